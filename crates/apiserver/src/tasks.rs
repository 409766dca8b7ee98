//! Background tasks that run as long as the server, and end with their owner.

use tokio::task::{AbortHandle, JoinSet};

/// A set of tasks. They are aborted when it is dropped.
#[derive(Default)]
pub struct Tasks {
    set: JoinSet<()>,
    handles: Vec<AbortHandle>,
}

impl Tasks {
    /// Starts a task, which is aborted with this set. Must be called inside a tokio runtime.
    pub fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.handles.push(self.set.spawn(task));
    }

    /// Handles of the tasks so far, for health checks.
    pub fn watched(&self) -> WatchedTasks {
        WatchedTasks(self.handles.clone())
    }
}

/// Handles of tasks, which show whether the tasks run.
#[derive(Clone)]
pub struct WatchedTasks(Vec<AbortHandle>);

impl WatchedTasks {
    /// Whether all of them are still running. A task that panicked is not.
    pub fn are_running(&self) -> bool {
        self.0.iter().all(|handle| !handle.is_finished())
    }
}

impl From<AbortHandle> for WatchedTasks {
    fn from(handle: AbortHandle) -> Self {
        Self(vec![handle])
    }
}
