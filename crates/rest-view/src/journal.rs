//! The source of an index: the objects of a resource and each change of them, in process and
//! independent of any caller.

use bytes::Bytes;
use futures::future::BoxFuture;

use crate::error::ApiError;
use crate::types::store::{Key, KubeResource};

/// An object as a list of its resource returns it, in JSON. Implementations share the bytes with
/// their own cache.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Key of the object.
    pub key: Key,
    /// Its JSON.
    pub bytes: Bytes,
}

/// What has happened since the last poll.
#[derive(Debug)]
pub enum JournalUpdate {
    /// All objects; discard the previous state.
    Snapshot(Vec<Recorded>),
    /// Changes in the order in which they were committed.
    Changes(Vec<ObjectChange>),
}

/// One change of one object.
#[derive(Clone, Debug)]
pub enum ObjectChange {
    /// The object was created or updated, and is now this.
    Stored(Recorded),
    /// The object was deleted.
    Deleted(Key),
}

/// The resources of one API.
pub trait Journal: Send + Sync + 'static {
    /// Starts with a [`JournalUpdate::Snapshot`]. `None`: this resource cannot be followed.
    fn follow(&self, resource: &KubeResource) -> Option<Box<dyn Follow>>;

    /// Waits until [`Follow::poll_update`] returns everything that was written before the call.
    ///
    /// # Errors
    /// That cannot be determined; do not serve from the journal.
    fn wait_until_current(&self) -> BoxFuture<'_, Result<(), ApiError>>;
}

/// A position in the history of a resource.
pub trait Follow: Send + 'static {
    /// The next update since the last call, without waiting. `None`: nothing has changed.
    ///
    /// # Errors
    /// The resource can no longer be followed; start again with [`Journal::follow`].
    fn poll_update(&mut self) -> Result<Option<JournalUpdate>, Ended>;
}

/// No more updates of the resource follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the resource can no longer be followed")]
pub struct Ended;
