//! Confinement of drivers, from outside: starts each in a sandbox of its own (`sandbox`), with a
//! filtered way out (`egress`).

use std::ffi::OsString;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tempfile::TempDir;
use tokio::net::UnixStream;
use tokio::process::Command;
use tonic::transport::{Channel, Endpoint};

use crate::DriverProgram;
use crate::egress::{EgressException, EgressProxy};
use crate::log::DriverLog;
use crate::sandbox::{self, SandboxPlan, SandboxStage};

/// Users of drivers, where the server is root: those that systemd also gives to services that need
/// no name.
const FIRST_USER: u32 = 61_184;
const USERS: u32 = 4_336;
/// A sandbox is there in some 50 ms; on a busy machine later.
const CHECK_TIME_MAX: Duration = Duration::from_secs(20);

/// Prefix of the folders of sandboxes, in that for temporary files.
const FOLDER_PREFIX: &str = "drover-driver-";

static NEXT_USER: AtomicU32 = AtomicU32::new(0);

/// How drivers are confined.
#[derive(Clone, Debug)]
pub struct Confinement {
    launcher: PathBuf,
    exceptions: Arc<[EgressException]>,
    /// File with the authorities that drivers trust; without it those of the machine.
    trust: Option<PathBuf>,
}

/// This machine does not let drivers be confined.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfinementError(String);

impl Confinement {
    /// By this program, which is started again for each driver and must have the command
    /// [`sandbox::COMMAND`]. Drivers trust what this program trusts: the authorities of
    /// `SSL_CERT_FILE`, if it is set.
    pub fn by_this_program(exceptions: impl Into<Arc<[EgressException]>>) -> Self {
        let trust = std::env::var_os(sandbox::TRUST_ENV).map(PathBuf::from);
        let trust = trust.filter(|file| file.is_file());
        Self { launcher: sandbox::OWN_PROGRAM.into(), exceptions: exceptions.into(), trust }
    }

    /// By another program that has the command. Drivers trust the authorities of the machine.
    pub fn by(launcher: PathBuf, exceptions: impl Into<Arc<[EgressException]>>) -> Self {
        Self { launcher, exceptions: exceptions.into(), trust: None }
    }

    /// What drivers reach although it is of this machine.
    pub fn exceptions(&self) -> &Arc<[EgressException]> {
        &self.exceptions
    }

    /// Tries it: a sandbox in which this program prints its version.
    ///
    /// # Errors
    /// What the machine does not allow, and how to allow it.
    pub async fn check(&self) -> Result<(), ConfinementError> {
        let failed = |error: io::Error| ConfinementError(format!("cannot make a sandbox: {error}"));
        let program = DriverProgram {
            file: self.launcher.canonicalize().map_err(failed)?,
            arguments: vec!["--version".into()],
            environment: Vec::new(),
            confinement: Some(self.clone()),
        };
        let (mut command, _sandbox) =
            Sandbox::prepare(self, &program, DriverLog::default()).map_err(failed)?;
        let mut child = command.spawn().map_err(failed)?;
        let _lifeline = child.stdin.take();
        let output = tokio::time::timeout(CHECK_TIME_MAX, child.wait_with_output()).await;
        let output = output.map_err(|_| {
            ConfinementError(format!("no sandbox within {} s", CHECK_TIME_MAX.as_secs()))
        })?;
        let output = output.map_err(failed)?;
        if output.status.code() == Some(i32::from(sandbox::EXIT_NO_SANDBOX)) {
            return Err(ConfinementError(
                String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            ));
        }
        Ok(())
    }
}

/// Removes the folders of sandboxes whose server was killed: nobody listens at their sockets. What
/// belongs to another user stays.
pub fn remove_abandoned() {
    let entries = std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
    for entry in entries {
        let is_sandbox = entry.file_name().to_str().is_some_and(|it| it.starts_with(FOLDER_PREFIX));
        let socket = entry.path().join(sandbox::EGRESS_SOCKET);
        let is_abandoned = is_sandbox
            && std::os::unix::net::UnixStream::connect(socket)
                .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        if is_abandoned {
            // What cannot be removed is empty but for two sockets.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// What belongs to one confined driver. Dropping it ends the driver.
#[derive(Debug)]
pub(crate) struct Sandbox {
    folder: TempDir,
    _egress: EgressProxy,
}

impl Sandbox {
    /// The command that makes the sandbox and starts the driver in it.
    pub(crate) fn prepare(
        confinement: &Confinement,
        program: &DriverProgram,
        log: DriverLog,
    ) -> io::Result<(Command, Self)> {
        // Short: a path of a socket has at most 107 bytes.
        let folder = tempfile::Builder::new()
            .prefix(FOLDER_PREFIX)
            .permissions(Permissions::from_mode(0o700))
            .tempdir()?;
        let egress = EgressProxy::listen(
            &folder.path().join(sandbox::EGRESS_SOCKET),
            Arc::clone(&confinement.exceptions),
            log,
        )?;
        let plan = SandboxPlan {
            program: program.file.canonicalize()?,
            arguments: program.arguments.iter().map(text).collect::<io::Result<_>>()?,
            environment: program
                .environment
                .iter()
                .map(|(name, value)| Ok((text(name)?, text(value)?)))
                .collect::<io::Result<_>>()?,
            folder: folder.path().to_owned(),
            trust: confinement.trust.clone(),
            user: Some(FIRST_USER + NEXT_USER.fetch_add(1, Ordering::Relaxed) % USERS),
            loopback_ports: confinement
                .exceptions
                .iter()
                .flat_map(EgressException::loopback_ports)
                .collect(),
        };
        let mut command = Command::new(&confinement.launcher);
        command
            .args([sandbox::COMMAND, SandboxStage::Enter.name()])
            .arg(serde_json::to_string(&plan)?)
            .env_clear()
            // Closing it ends the driver, also when this process is killed.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Ok((command, Self { folder, _egress: egress }))
    }

    /// A connection to the driver, made when it is needed.
    pub(crate) fn channel(&self) -> Channel {
        let socket = self.folder.path().join(sandbox::DRIVER_SOCKET);
        // The address names the host in requests; the connector ignores it.
        Endpoint::from_static("http://127.0.0.1")
            .connect_with_connector_lazy(tower::service_fn(move |_| connect(socket.clone())))
    }
}

async fn connect(socket: impl AsRef<Path>) -> io::Result<TokioIo<UnixStream>> {
    UnixStream::connect(socket).await.map(TokioIo::new)
}

fn text(value: &OsString) -> io::Result<String> {
    value.to_str().map(str::to_owned).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("{value:?} is not UTF-8"))
    })
}
