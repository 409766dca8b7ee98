//! What all who watch one version of a resource share of one event: the object in that version, and
//! the bytes in each form that somebody wants.
//!
//! Both are made when the first one asks, and kept as long as the event is. A definition that changes
//! makes another resource of each version, for which there is no view yet.

use std::sync::{Arc, Weak};

use api_meta::status::Status;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, WeakShared};
use parking_lot::Mutex;

use super::event::{Change, Framing};
use super::once_map::OnceMap;
use crate::resource::Resource;
use crate::stored::Stored;

/// An object being converted, or why it cannot be.
type Conversion = BoxFuture<'static, Result<Arc<Stored>, Status>>;

/// See the module.
pub struct View {
    /// Keeps the address that the view is found by from becoming another resource's.
    _resource: Weak<Resource>,
    object: Arc<Stored>,
    served: Mutex<Served>,
    frames: OnceMap<(Change, Encoding), Bytes>,
}

/// The object in the version that the resource is.
enum Served {
    Unknown,
    /// Held by those who wait: when the last of them leaves, nobody is asked any more.
    Asked(WeakShared<Conversion>),
    Known(Arc<Stored>),
}

/// A form that events are written in, which is the same for all who want it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding {
    pub framing: Framing,
    /// The version of `meta.k8s.io`, when metadata alone is wanted.
    pub metadata_only: Option<&'static str>,
}

impl View {
    pub(super) fn new(resource: &Arc<Resource>, object: Arc<Stored>) -> Self {
        Self {
            _resource: Arc::downgrade(resource),
            object,
            served: Mutex::new(Served::Unknown),
            frames: OnceMap::default(),
        }
    }

    /// The object in the version that it is stored in.
    pub fn stored(&self) -> &Arc<Stored> {
        &self.object
    }

    /// What `convert` makes of the stored object, asked once by all who come while it is under way
    /// and after it. A failure is told to those who waited for it; the next one asks again.
    ///
    /// # Errors
    /// Those of `convert`.
    pub async fn served(
        &self,
        convert: impl FnOnce(Arc<Stored>) -> Conversion,
    ) -> Result<Arc<Stored>, Status> {
        let conversion = {
            let mut served = self.served.lock();
            let asked = match &*served {
                Served::Known(object) => return Ok(object.clone()),
                // What has failed is over, though some may not have heard of it yet.
                Served::Asked(asked) => {
                    asked.upgrade().filter(|asked| !matches!(asked.peek(), Some(Err(_))))
                }
                Served::Unknown => None,
            };
            asked.unwrap_or_else(|| {
                let conversion = convert(self.object.clone()).shared();
                *served = conversion.downgrade().map_or(Served::Unknown, Served::Asked);
                conversion
            })
        };
        // A clone, so that it is still held when its outcome is noted.
        let object = conversion.clone().await?;
        *self.served.lock() = Served::Known(object.clone());
        Ok(object)
    }

    /// The event in this form, made by whoever asks first.
    pub fn frame(&self, change: Change, encoding: Encoding, make: impl Fn() -> Bytes) -> Bytes {
        self.frames.get_or_make((change, encoding), make).clone()
    }
}

#[cfg(test)]
mod tests;
