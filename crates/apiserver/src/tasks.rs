//! Tasks that go on for as long as the server, and end with their owner.

use tokio::task::{AbortHandle, JoinSet};

/// Some tasks. They are aborted when this is dropped.
#[derive(Default)]
pub struct Tasks {
    set: JoinSet<()>,
    handles: Vec<AbortHandle>,
}

impl Tasks {
    /// Starts a task, which ends with this set. Must be called inside a tokio runtime.
    pub fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.handles.push(self.set.spawn(task));
    }

    /// These tasks, for who must know whether they go on.
    pub fn watched(&self) -> WatchedTasks {
        WatchedTasks(self.handles.clone())
    }
}

/// Tasks seen from elsewhere.
#[derive(Clone)]
pub struct WatchedTasks(Vec<AbortHandle>);

impl WatchedTasks {
    /// Whether all of them go on. One that panicked does not.
    pub fn are_running(&self) -> bool {
        self.0.iter().all(|handle| !handle.is_finished())
    }
}

impl From<AbortHandle> for WatchedTasks {
    fn from(handle: AbortHandle) -> Self {
        Self(vec![handle])
    }
}
