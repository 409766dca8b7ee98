//! The sandbox of one driver, from inside: two processes of this program that prepare it and then
//! start the driver.
//!
//! 1. [`enter`] makes namespaces of its own for mounts, processes, the network, messages and the
//!    host name; where the server is not root, also one for users. It starts the next.
//! 2. [`init`] is process 1 in there. It builds the root ([`root`]), opens the loopback interface
//!    ([`loopback`]), gives up rights ([`rights`]), starts the driver, and carries connections
//!    between the sandbox and the server ([`relay`]). When it ends, the kernel ends all the others.
//!
//! Both run before this program has threads, but for the one that starts the driver: namespaces and
//! rights belong to a thread.

mod loopback;
mod relay;
mod rights;
mod root;

use std::fs;
use std::io::Read as _;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::net::UnixListener;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, getegid, geteuid, sethostname};
use serde::{Deserialize, Serialize};

pub(crate) use self::root::TRUST_ENV;

/// What starts the two processes: `drover driver-sandbox STAGE PLAN`.
pub const COMMAND: &str = "driver-sandbox";
/// Exit code: the sandbox could not be made. The reason is on standard error.
pub(crate) const EXIT_NO_SANDBOX: u8 = 125;
/// Exit code: the sandbox is there, and the program could not be started.
pub(crate) const EXIT_NOT_EXECUTABLE: u8 = 126;
/// Socket in the folder at which the server reaches the driver.
pub(crate) const DRIVER_SOCKET: &str = "driver.sock";
/// Socket in the folder at which the sandbox reaches the filtered way out.
pub(crate) const EGRESS_SOCKET: &str = "egress.sock";
/// Port of the driver. Nothing else listens in its network.
const DRIVER_PORT: u16 = 4000;
/// Port of the way out, an HTTP proxy.
const EGRESS_PORT: u16 = 3128;
/// What a driver has to end in after `SIGTERM`.
const END_TIME_MAX: Duration = Duration::from_secs(2);
/// Signals of a process that ended by one are reported like shells do.
const SIGNAL_EXIT_BASE: i32 = 128;
const HOST_NAME: &str = "driver";
/// This program, also after its file was replaced.
pub(crate) const OWN_PROGRAM: &str = "/proc/self/exe";

/// The two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxStage {
    /// Makes the namespaces.
    Enter,
    /// Process 1 in them.
    Init,
}

impl SandboxStage {
    /// Both, as arguments of [`COMMAND`].
    pub const NAMES: [&str; 2] = ["enter", "init"];

    /// The stage of an argument.
    pub fn of(name: &str) -> Option<Self> {
        [Self::Enter, Self::Init].into_iter().find(|stage| stage.name() == name)
    }

    /// The argument.
    pub(crate) fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// What runs in a sandbox, in the argument of both processes. No secrets: others on the machine see
/// arguments.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SandboxPlan {
    /// The driver's file.
    pub(crate) program: PathBuf,
    /// Arguments before the port.
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    /// Folder of the sockets, which only the server's user reads.
    pub(crate) folder: PathBuf,
    /// File with the authorities that the server trusts, if they are not the machine's.
    pub(crate) trust: Option<PathBuf>,
    /// The user that the driver runs as, if the server may choose.
    pub(crate) user: Option<u32>,
    /// Ports of 127.0.0.1 that lead to the same ports outside.
    pub(crate) loopback_ports: Vec<u16>,
}

/// Runs one of the two processes until the driver has ended.
pub fn run(stage: SandboxStage, plan: &str) -> ExitCode {
    let result =
        serde_json::from_str(plan).context("the plan is invalid").and_then(|plan| match stage {
            SandboxStage::Enter => enter(plan),
            SandboxStage::Init => init(&plan),
        });
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::from(EXIT_NO_SANDBOX)
        }
    }
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|signal| SIGNAL_EXIT_BASE + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

fn enter(mut plan: SandboxPlan) -> anyhow::Result<u8> {
    let namespaces = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS;
    let (user, group) = (geteuid(), getegid());
    // Root needs no namespace of users, and can give the driver a user of its own. Many systems
    // let only root make namespaces at all.
    let is_privileged = user.is_root() && unshare(namespaces).is_ok();
    if !is_privileged {
        plan.user = None;
        unshare(namespaces | CloneFlags::CLONE_NEWUSER).context(
            "this machine does not let the server make namespaces; run it as root, or allow user \
             namespaces (sysctl user.max_user_namespaces, and what restricts them: AppArmor's \
             kernel.apparmor_restrict_unprivileged_userns, or the seccomp profile of a container)",
        )?;
        map_user(user.as_raw(), group.as_raw()).context("cannot map the user")?;
    }
    let status = Command::new(OWN_PROGRAM)
        .args([COMMAND, SandboxStage::Init.name(), &serde_json::to_string(&plan)?])
        .status()
        .context("cannot start the first process of the sandbox")?;
    Ok(exit_code(status))
}

/// The user is root inside, and stays who it was outside.
fn map_user(user: u32, group: u32) -> std::io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("0 {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("0 {group} 1"))
}

fn init(plan: &SandboxPlan) -> anyhow::Result<u8> {
    let server = UnixListener::bind(plan.folder.join(DRIVER_SOCKET))
        .context("cannot open the socket for the server")?;
    rights::be_killed_first();
    let inside = root::enter(plan)?;
    sethostname(HOST_NAME).context("cannot set the host name")?;
    loopback::open().context("cannot open the loopback interface")?;
    let ports = std::iter::once(EGRESS_PORT).chain(plan.loopback_ports.iter().copied());
    let ways_out = ports
        .map(|port| {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
            Ok((port, listener.with_context(|| format!("cannot listen at port {port}"))?))
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let child = rights::as_driver(|| driver(plan, &inside).spawn())?;
    let child = match child {
        Ok(child) => child,
        Err(error) => {
            eprintln!("{error}");
            return Ok(EXIT_NOT_EXECUTABLE);
        }
    };
    rights::limit()?;
    rights::give_up()?;
    relay::to_driver(server, DRIVER_PORT);
    for (port, listener) in ways_out {
        relay::to_server(listener, (port != EGRESS_PORT).then_some(port));
    }
    let child = Pid::from_raw(i32::try_from(child.id())?);
    std::thread::spawn(move || end_with_server(child));
    Ok(wait_for(child))
}

fn driver(plan: &SandboxPlan, inside: &root::Inside) -> Command {
    let proxy = format!("http://{}:{EGRESS_PORT}", Ipv4Addr::LOCALHOST);
    let mut command = Command::new(&inside.program);
    command
        .args(&plan.arguments)
        .arg(DRIVER_PORT.to_string())
        .env_clear()
        .envs([("PATH", "/usr/bin"), ("HOME", root::TEMPORARY), ("TMPDIR", root::TEMPORARY)])
        .envs(["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"].map(|name| (name, &proxy)))
        .envs(inside.trust.map(|file| (TRUST_ENV, file)))
        .envs(plan.environment.iter().map(|(name, value)| (name, value)))
        .current_dir("/")
        .stdin(Stdio::null());
    if let Some(user) = plan.user {
        // Its supplementary groups go, too.
        command.uid(user).gid(user);
    }
    command
}

/// Ends the driver when the server closes the standard input, or has ended.
#[expect(
    clippy::disallowed_methods,
    reason = "the time is a limit: process 1 ends with the driver"
)]
fn end_with_server(driver: Pid) {
    // Nothing is written to it.
    let _ = std::io::stdin().read(&mut [0]);
    let _ = kill(driver, Signal::SIGTERM);
    std::thread::sleep(END_TIME_MAX);
    std::process::exit(SIGNAL_EXIT_BASE + Signal::SIGKILL as i32);
}

/// Waits for the driver, and for processes whose parents have ended, as process 1 has to.
fn wait_for(driver: Pid) -> u8 {
    loop {
        match waitpid(None, None) {
            Ok(WaitStatus::Exited(id, code)) if id == driver => {
                return u8::try_from(code).unwrap_or(u8::MAX);
            }
            Ok(WaitStatus::Signaled(id, signal, _)) if id == driver => {
                return u8::try_from(SIGNAL_EXIT_BASE + signal as i32).unwrap_or(u8::MAX);
            }
            Err(Errno::ECHILD) => return u8::MAX,
            Ok(_) | Err(_) => {}
        }
    }
}
