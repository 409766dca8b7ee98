//! The agent's connection status, reported to Kubernetes in the container's termination message and
//! to its startup probe.
//!
//! The probe is the same program, as `drover-agent probe`; the image has no other. It queries the
//! agent over a socket in the abstract namespace, which needs no file system and is private to a
//! pod. Outside a container of a kubelet, nothing is reported or queried.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::watch;

/// The file from which a kubelet reads a container's termination message.
const TERMINATION_LOG: &str = "/dev/termination-log";
/// Size of a termination message. Kubelets truncate longer ones.
const MESSAGE_MAX_BYTES: usize = 4096;
const SOCKET: &[u8] = b"drover-agent/standing";
/// Time for the agent's response. It responds at once or not at all.
const RESPONSE_TIME_MAX: Duration = Duration::from_secs(2);
/// The status before the first attempt has ended.
const STARTING: &str = "the agent is connecting for the first time";

/// Reports why the agent is not connected, while it is not.
pub(crate) struct StatusReporter {
    log: PathBuf,
    /// Empty while connected.
    trouble: watch::Sender<String>,
}

impl StatusReporter {
    /// The reporter of the one agent in this container. Must be called inside a tokio runtime.
    pub(crate) fn of_container() -> Self {
        let reporter = Self::at(TERMINATION_LOG.into());
        if reporter.log.exists()
            && let Err(error) = reporter.serve_at(SOCKET)
        {
            tracing::warn!(%error, "the startup probe will get no response");
        }
        reporter
    }

    pub(crate) fn at(log: PathBuf) -> Self {
        Self { log, trouble: watch::Sender::new(STARTING.to_owned()) }
    }

    /// Responds to probes at the abstract socket `name` until the runtime ends.
    pub(crate) fn serve_at(&self, name: &[u8]) -> io::Result<()> {
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
        listener.set_nonblocking(true)?;
        let listener = tokio::net::UnixListener::from_std(listener)?;
        let trouble = self.trouble.subscribe();
        tokio::spawn(async move {
            while let Ok((probe, _)) = listener.accept().await {
                // The text fits a socket's buffer; a closed probe needs no response.
                let _ = probe.try_write(trouble.borrow().as_bytes());
            }
        });
        Ok(())
    }

    /// Reports that a session is open.
    pub(crate) fn report_connected(&self) {
        self.report("");
    }

    /// Reports that no session is open, and why.
    pub(crate) fn report_trouble(&self, reason: &str) {
        self.report(&reason[..reason.floor_char_boundary(MESSAGE_MAX_BYTES)]);
    }

    fn report(&self, reason: &str) {
        let changed = self.trouble.send_if_modified(|last| {
            let changed = last != reason;
            reason.clone_into(last);
            changed
        });
        if changed {
            write_message_at(&self.log, reason);
        }
    }
}

/// Writes why the process is about to end.
pub(crate) fn write_termination_message(reason: &str) {
    let end = reason.floor_char_boundary(MESSAGE_MAX_BYTES);
    write_message_at(Path::new(TERMINATION_LOG), &reason[..end]);
}

/// Replaces the message. Without the file, no kubelet would read the message.
fn write_message_at(log: &Path, text: &str) {
    let opened = OpenOptions::new().write(true).truncate(true).open(log);
    if let Err(error) = opened.and_then(|mut file| file.write_all(text.as_bytes()))
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::debug!(%error, "could not write a termination message");
    }
}

/// Queries the agent in this container: why it is not connected, or `None` when it is.
pub(crate) fn query_trouble() -> io::Result<Option<String>> {
    query_trouble_at(SOCKET)
}

pub(crate) fn query_trouble_at(name: &[u8]) -> io::Result<Option<String>> {
    let mut stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?;
    stream.set_read_timeout(Some(RESPONSE_TIME_MAX))?;
    let mut trouble = String::new();
    stream.read_to_string(&mut trouble)?;
    Ok((!trouble.is_empty()).then_some(trouble))
}
