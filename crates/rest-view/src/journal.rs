//! Where an index learns what objects there are: the state of a resource, and each change of it,
//! inside the process and without anybody's rights.

use bytes::Bytes;
use futures::future::BoxFuture;

use crate::error::ApiError;
use crate::types::store::{Key, KubeResource};

/// An object as a list of its resource shows it, in JSON. Best shared with who else keeps it.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub key: Key,
    pub bytes: Bytes,
}

/// What is new.
#[derive(Debug)]
pub enum News {
    /// Everything; forget what was known.
    All(Vec<Recorded>),
    /// In order.
    Changes(Vec<Change>),
}

/// One change of one object.
#[derive(Clone, Debug)]
pub enum Change {
    Is(Recorded),
    Gone(Key),
}

/// The resources of one API.
pub trait Journal: Send + Sync + 'static {
    /// Begins with everything. `None`: this resource cannot be followed.
    fn follow(&self, resource: &KubeResource) -> Option<Box<dyn Follow>>;

    /// Waits until [`Follow::news`] tells all that was written before the call.
    fn settled(&self) -> BoxFuture<'_, Result<(), ApiError>>;
}

/// A place in the history of a resource.
pub trait Follow: Send + 'static {
    /// What has come since the last call, if anything, without waiting for it.
    ///
    /// # Errors
    /// It cannot be followed any longer.
    fn news(&mut self) -> Result<Option<News>, Ended>;
}

/// Nothing more is told of the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the resource can no longer be followed")]
pub struct Ended;
