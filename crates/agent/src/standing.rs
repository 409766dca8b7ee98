//! How the agent stands, told where Kubernetes looks: in the container's termination message, and
//! to its startup probe.
//!
//! The probe is this program too, as `drover-agent probe`; the image has no other. It asks over a
//! socket in the abstract namespace, which needs no file system and which a pod has to itself.
//! Outside a container that a kubelet runs, nothing is told and nobody asks.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::watch;

/// Where a kubelet lets its containers leave their last words.
const TERMINATION_LOG: &str = "/dev/termination-log";
/// Kubelets cut longer ones.
const MESSAGE_MAX_BYTES: usize = 4096;
const SOCKET: &[u8] = b"drover-agent/standing";
/// The agent answers at once or not at all.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);
/// Before the first attempt has ended.
const STARTING: &str = "the agent is connecting for the first time";

/// Says why the agent is not connected, for as long as it is not.
pub(crate) struct Standing {
    log: PathBuf,
    /// Empty while connected.
    trouble: watch::Sender<String>,
}

impl Standing {
    /// Of the one agent in this container. Must be called inside a tokio runtime.
    pub(crate) fn of_container() -> Self {
        let standing = Self::at(TERMINATION_LOG.into());
        if standing.log.exists()
            && let Err(error) = standing.answer_at(SOCKET)
        {
            tracing::warn!(%error, "the startup probe will get no answer");
        }
        standing
    }

    pub(crate) fn at(log: PathBuf) -> Self {
        Self { log, trouble: watch::Sender::new(STARTING.to_owned()) }
    }

    /// Answers probes at the abstract socket `name` as long as the runtime lives.
    pub(crate) fn answer_at(&self, name: &[u8]) -> io::Result<()> {
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
        listener.set_nonblocking(true)?;
        let listener = tokio::net::UnixListener::from_std(listener)?;
        let trouble = self.trouble.subscribe();
        tokio::spawn(async move {
            while let Ok((asking, _)) = listener.accept().await {
                // Far less than a socket buffers; one that has gone needs no answer.
                let _ = asking.try_write(trouble.borrow().as_bytes());
            }
        });
        Ok(())
    }

    /// A session is up.
    pub(crate) fn connected(&self) {
        self.tell("");
    }

    /// No session is up, because of `reason`.
    pub(crate) fn troubled(&self, reason: &str) {
        self.tell(&reason[..reason.floor_char_boundary(MESSAGE_MAX_BYTES)]);
    }

    fn tell(&self, reason: &str) {
        let changed = self.trouble.send_if_modified(|last| {
            let changed = last != reason;
            reason.clone_into(last);
            changed
        });
        if changed {
            leave_message_at(&self.log, reason);
        }
    }
}

/// The process is about to end because of `reason`.
pub(crate) fn last_words(reason: &str) {
    let end = reason.floor_char_boundary(MESSAGE_MAX_BYTES);
    leave_message_at(Path::new(TERMINATION_LOG), &reason[..end]);
}

/// Replaces the message. A container that has no place for it has nobody who reads it.
fn leave_message_at(log: &Path, text: &str) {
    let opened = OpenOptions::new().write(true).truncate(true).open(log);
    if let Err(error) = opened.and_then(|mut file| file.write_all(text.as_bytes()))
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::debug!(%error, "could not leave a termination message");
    }
}

/// Asks the agent in this container: why it is not connected, or nothing when it is.
pub(crate) fn ask() -> io::Result<Option<String>> {
    ask_at(SOCKET)
}

pub(crate) fn ask_at(name: &[u8]) -> io::Result<Option<String>> {
    let mut stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?;
    stream.set_read_timeout(Some(ANSWER_TIME_MAX))?;
    let mut trouble = String::new();
    stream.read_to_string(&mut trouble)?;
    Ok((!trouble.is_empty()).then_some(trouble))
}
