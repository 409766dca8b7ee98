//! Processes that another command started earlier: identified by id *and* start time, so that a
//! reused id is never mistaken for a recorded process.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::{Error, poll_until};

/// SIGKILL works at once unless the process hangs in the kernel.
const END_TIMEOUT: Duration = Duration::from_secs(10);
const END_INTERVAL: Duration = Duration::from_millis(20);

/// A process that can be found again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedProcess {
    /// Its name at the start.
    pub name: String,
    /// Its id.
    pub pid: i32,
    /// When it was started, in clock ticks since the machine started.
    pub started_ticks: u64,
}

impl RecordedProcess {
    /// The process that has `pid` now; `None` when there is none.
    #[must_use]
    pub fn of(name: &str, pid: i32) -> Option<Self> {
        Some(Self { name: name.to_owned(), pid, started_ticks: started_ticks(pid)? })
    }

    /// Whether exactly this process still runs.
    #[must_use]
    pub fn is_running(&self) -> bool {
        started_ticks(self.pid) == Some(self.started_ticks)
    }

    /// Ends it and waits until it has ended. A process that has already ended is a success.
    ///
    /// # Errors
    /// [`Error::WouldNotEnd`].
    pub fn end(&self) -> Result<(), Error> {
        poll_until(END_TIMEOUT, END_INTERVAL, || {
            if !self.is_running() {
                return Ok(());
            }
            // It may have ended since the check; the next poll finds that.
            let _ = kill(Pid::from_raw(self.pid), Signal::SIGKILL);
            Err(())
        })
        .map_err(|()| Error::WouldNotEnd {
            name: self.name.clone(),
            pid: self.pid,
            waited: END_TIMEOUT,
        })
    }
}

/// Field 22 of `/proc/PID/stat`; `None` for a process that has ended or only waits to be reaped.
fn started_ticks(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses and may itself contain some.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    // Fields 4 to 21 lie between the state and the start time.
    fields.nth(18)?.parse().ok()
}
