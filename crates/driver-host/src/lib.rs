//! Runs cluster drivers. A driver is a program that serves the contract (`driver-contract`) at a
//! port of 127.0.0.1 that it gets as its only argument. Each operation starts a driver of its own:
//! [`RunningDriver::start`] returns it once it serves, and dropping it ends it.
//!
//! | Where | What |
//! | --- | --- |
//! | [`confinement`] | starts a driver in a sandbox |
//! | [`sandbox`] | the sandbox, from inside |
//! | [`egress`] | the way out of a sandbox: clouds, and not the machine of the server |
//! | [`log`] | what a driver writes to its output |
//!
//! Without a confinement a driver has the rights of the process that starts it. That is for
//! programs that users run themselves, such as `drover driver conformance`.

mod confinement;
pub mod egress;
mod log;
pub mod sandbox;

use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use driver_contract::DriverClient;
use driver_contract::types::Empty;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdin, Command};
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

use confinement::Sandbox;
pub use confinement::{Confinement, ConfinementError, remove_abandoned};
pub use egress::{EgressError, EgressException, EgressExceptionError};
pub use log::DriverLog;

/// Existing drivers need some 100 ms until they serve; on a busy machine more.
const START_TIME_MAX: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// What a driver has to end in after `SIGTERM`; a sandbox ends it after two seconds by itself.
const END_TIME_MAX: Duration = Duration::from_millis(2_500);
/// Between the end of a connection and that of the process.
const CRASH_TIME_MAX: Duration = Duration::from_millis(200);
/// Of one message. The state of a cluster comes in one.
const MESSAGE_BYTES_MAX: usize = 4 << 20;
/// Where drivers find programs, such as those of a cloud that make tokens.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

static STARTED: AtomicU64 = AtomicU64::new(0);

/// Drivers that were started since this process began.
pub fn started() -> u64 {
    STARTED.load(Ordering::Relaxed)
}

/// A driver that can be started.
#[derive(Clone, Debug)]
pub struct DriverProgram {
    /// The file.
    pub file: PathBuf,
    /// Arguments before the port; those that are started as files of their own have none.
    pub arguments: Vec<OsString>,
    /// Its environment, beside `PATH` and what a sandbox needs. Nothing is inherited.
    pub environment: Vec<(OsString, OsString)>,
    /// How it is confined; without it, the driver may do what this process may.
    pub confinement: Option<Confinement>,
}

/// A driver that does not serve.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no free port.
    #[error("cannot find a free port of 127.0.0.1: {0}")]
    NoPort(#[source] std::io::Error),
    /// The file cannot be started.
    #[error(
        "cannot start \"{file}\": {error}. A driver is an executable file for this machine; one \
         that is linked to other libraries says \"no such file\""
    )]
    NotExecutable {
        /// The file of the program.
        file: String,
        /// Why.
        #[source]
        error: std::io::Error,
    },
    /// There is no sandbox for it.
    #[error("the driver was not started, because it cannot be confined{log}")]
    NotConfined {
        /// Why, as a part of a sentence.
        log: String,
    },
    /// It ended before it served.
    #[error("the driver ended with {status} before it served at its port{log}")]
    Ended {
        /// How it ended.
        status: ExitStatus,
        /// The end of its log, as a part of a sentence.
        log: String,
    },
    /// It runs and does not serve.
    #[error("the driver did not serve at its port within {} s{log}", START_TIME_MAX.as_secs())]
    Silent {
        /// The end of its log, as a part of a sentence.
        log: String,
    },
}

/// A driver that serves. Dropping it ends the process and all that it started in its group.
#[derive(Debug)]
pub struct RunningDriver {
    child: Child,
    client: DriverClient,
    log: DriverLog,
    /// Ends the sandbox when it is closed. Not in the child: waiting for that closes it.
    lifeline: Option<ChildStdin>,
    sandbox: Option<Sandbox>,
}

impl RunningDriver {
    /// Starts the program, and waits until it serves.
    ///
    /// # Errors
    /// It cannot be confined or started, ends, or does not serve within 30 s.
    pub async fn start(program: &DriverProgram) -> Result<Self, StartError> {
        let log = DriverLog::default();
        let not_executable =
            |error| StartError::NotExecutable { file: program.file.display().to_string(), error };
        let (mut command, channel, sandbox) = match &program.confinement {
            Some(confinement) => {
                let (command, sandbox) =
                    Sandbox::prepare(confinement, program, log.clone()).map_err(not_executable)?;
                (command, sandbox.channel(), Some(sandbox))
            }
            None => {
                let port = free_port().await.map_err(StartError::NoPort)?;
                (unconfined(program, port), loopback_channel(port), None)
            }
        };
        command.process_group(0).kill_on_drop(true);
        let mut child = command.spawn().map_err(not_executable)?;
        STARTED.fetch_add(1, Ordering::Relaxed);
        let lifeline = child.stdin.take();
        log.follow(child.stdout.take());
        log.follow(child.stderr.take());
        let client = DriverClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let mut driver = Self { child, client, log, lifeline, sandbox };
        driver.wait_until_it_serves(program).await?;
        Ok(driver)
    }

    async fn wait_until_it_serves(&mut self, program: &DriverProgram) -> Result<(), StartError> {
        let mut client = self.client.clone();
        let serves = async {
            loop {
                // A driver that refuses the call serves as well.
                let response = client.get_capabilities(Empty {}).await;
                if !response.is_err_and(|status| status.code() == Code::Unavailable) {
                    return;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        tokio::select! {
            () = serves => Ok(()),
            ended = self.child.wait() => match ended {
                Ok(status) => Err(self.end_at_start(program, status).await),
                Err(_) => Err(StartError::Silent { log: self.log.ending().await }),
            },
            () = tokio::time::sleep(START_TIME_MAX) => {
                Err(StartError::Silent { log: self.log.ending().await })
            }
        }
    }

    async fn end_at_start(&self, program: &DriverProgram, status: ExitStatus) -> StartError {
        let log = self.log.ending().await;
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        match code.filter(|_| self.sandbox.is_some()) {
            Some(sandbox::EXIT_NO_SANDBOX) => StartError::NotConfined { log },
            Some(sandbox::EXIT_NOT_EXECUTABLE) => StartError::NotExecutable {
                file: program.file.display().to_string(),
                error: std::io::Error::other(log.trim_start_matches("; it wrote last: ")),
            },
            _ => StartError::Ended { status, log },
        }
    }

    /// A client of the driver. Its calls have no deadline of their own.
    pub fn client(&self) -> DriverClient {
        self.client.clone()
    }

    /// What it wrote to its output.
    pub fn log(&self) -> &DriverLog {
        &self.log
    }

    /// Whether the process still runs, also a moment later: one that crashed in a call has not
    /// ended when the call has.
    pub async fn is_running(&mut self) -> bool {
        tokio::time::timeout(CRASH_TIME_MAX, self.child.wait()).await.is_err()
    }

    /// Ends it: with `SIGTERM` first, after 2 s at once.
    pub async fn end(mut self) {
        match self.sandbox {
            // The first process of the sandbox passes it on.
            Some(_) => self.lifeline = None,
            None => self.signal(Signal::SIGTERM),
        }
        let _ = tokio::time::timeout(END_TIME_MAX, self.child.wait()).await;
    }

    fn signal(&self, signal: Signal) {
        let group = self.child.id().and_then(|id| i32::try_from(id).ok());
        if let Some(group) = group {
            // It may have ended.
            let _ = killpg(Pid::from_raw(group), signal);
        }
    }
}

impl Drop for RunningDriver {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}

fn unconfined(program: &DriverProgram, port: u16) -> Command {
    let mut command = Command::new(&program.file);
    command
        .args(&program.arguments)
        .arg(port.to_string())
        .env_clear()
        .env("PATH", PATH)
        .envs(program.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Connects with the first call, and again when a connection breaks.
fn loopback_channel(port: u16) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{}:{port}", Ipv4Addr::LOCALHOST));
    endpoint.expect("an address with a port is valid").connect_lazy()
}

/// A port that was free a moment ago: drivers open it themselves.
async fn free_port() -> std::io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    Ok(listener.local_addr()?.port())
}
