//! What all watchers of one version of a resource share of one event: the object in that version,
//! and its bytes in each requested encoding.
//!
//! Both are created on first use and live as long as the event. A changed definition creates
//! another resource of each version, for which there is no view yet.

use std::sync::{Arc, Weak};

use api_meta::status::Status;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, WeakShared};
use parking_lot::Mutex;

use super::event::{Framing, WatchEventType};
use super::once_map::OnceMap;
use crate::resource::Resource;
use crate::stored::Stored;

/// The conversion of an object.
type Conversion = BoxFuture<'static, Result<Arc<Stored>, Status>>;

/// A shared view of one event; see the module.
pub struct View {
    /// Prevents the address by which the view is found from being reused by another resource.
    _resource: Weak<Resource>,
    object: Arc<Stored>,
    converted: Mutex<ConversionState>,
    frames: OnceMap<(WatchEventType, Encoding), Bytes>,
}

/// The state of the conversion to the resource's version.
enum ConversionState {
    NotStarted,
    /// In progress. The waiting callers own the conversion: it is cancelled when the last of them
    /// leaves.
    Pending(WeakShared<Conversion>),
    Done(Arc<Stored>),
}

/// An encoding of events, shared by all watchers that request it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding {
    /// How events are framed.
    pub framing: Framing,
    /// The version of `meta.k8s.io`, when only metadata is requested.
    pub metadata_only: Option<&'static str>,
}

impl View {
    /// Creates the view of a stored object in the version of `resource`.
    pub(super) fn new(resource: &Arc<Resource>, object: Arc<Stored>) -> Self {
        Self {
            _resource: Arc::downgrade(resource),
            object,
            converted: Mutex::new(ConversionState::NotStarted),
            frames: OnceMap::default(),
        }
    }

    /// The object in its stored version.
    pub fn stored(&self) -> &Arc<Stored> {
        &self.object
    }

    /// The object converted by `convert`. Concurrent callers share one conversion, and its result
    /// is cached. A failure is returned to the callers that waited for it; the next caller converts
    /// again.
    ///
    /// # Errors
    /// The error of `convert`.
    pub async fn get_or_convert(
        &self,
        convert: impl FnOnce(Arc<Stored>) -> Conversion,
    ) -> Result<Arc<Stored>, Status> {
        let conversion = {
            let mut converted = self.converted.lock();
            let pending = match &*converted {
                ConversionState::Done(object) => return Ok(object.clone()),
                // A failed conversion is finished, even if some waiting callers were not polled
                // since.
                ConversionState::Pending(pending) => {
                    pending.upgrade().filter(|pending| !matches!(pending.peek(), Some(Err(_))))
                }
                ConversionState::NotStarted => None,
            };
            pending.unwrap_or_else(|| {
                let conversion = convert(self.object.clone()).shared();
                *converted = conversion
                    .downgrade()
                    .map_or(ConversionState::NotStarted, ConversionState::Pending);
                conversion
            })
        };
        // A clone, so that it is still owned while its result is stored.
        let object = conversion.clone().await?;
        *self.converted.lock() = ConversionState::Done(object.clone());
        Ok(object)
    }

    /// The event in this encoding, which `make` creates on first use.
    pub fn frame(
        &self,
        change: WatchEventType,
        encoding: Encoding,
        make: impl Fn() -> Bytes,
    ) -> Bytes {
        self.frames.get_or_create((change, encoding), make).clone()
    }
}

#[cfg(test)]
mod tests;
