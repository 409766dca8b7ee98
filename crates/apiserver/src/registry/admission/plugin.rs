//! Rules that the embedding program adds to writes.

use std::collections::BTreeMap;
use std::fmt;
use std::future::ready;

use api_meta::status::{Cause, Status};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::resource::Resource;
use crate::strategy::Write;

/// A set of added rules.
pub trait Plugin: Send + Sync + 'static {
    /// Whether the rules apply to a resource at all.
    fn handles(&self, resource: &Resource) -> bool;

    /// Fills in and marks an object before it is validated. Idempotent.
    fn prepare(
        &self,
        resource: &Resource,
        write: &Write<'_>,
        object: &mut Value,
        old: Option<&Value>,
    );

    /// Every violation. Pure.
    fn validate(
        &self,
        resource: &Resource,
        write: &Write<'_>,
        object: &Value,
        old: Option<&Value>,
    ) -> Vec<Cause>;

    /// Rules that need other objects or the asker. `object` is absent on delete. The write may still be refused, so
    /// this must not write anything that stays in force without it.
    fn admit<'a>(
        &'a self,
        resource: &'a Resource,
        write: &'a Write<'a>,
        object: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>>;

    /// Takes out of an object what is not stored with it, and leaves in its place what is. For every write of an
    /// object and every configuration that is applied, before owners of fields are compared and before policies
    /// and webhooks see it; then once more. Writes nothing. `taken`: what was taken so far.
    fn take_out<'a>(
        &'a self,
        resource: &'a Resource,
        object: &'a mut Value,
        old: Option<&'a Value>,
        taken: &'a mut Taken,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let _ = (resource, object, old, taken);
        Box::pin(ready(Ok(())))
    }

    /// Stores what was taken out of the object, which is written next. The result is dropped when that write has
    /// ended, whether or not the object was stored.
    fn store_taken<'a>(
        &'a self,
        resource: &'a Resource,
        object: &'a Value,
        old: Option<&'a Value>,
        taken: &'a Taken,
    ) -> BoxFuture<'a, Result<Option<Held>, Status>> {
        let _ = (resource, object, old, taken);
        Box::pin(ready(Ok(None)))
    }

    /// The object was deleted from the storage.
    fn deleted(&self, resource: &Resource, object: &Value) {
        let _ = (resource, object);
    }
}

/// What plugins took out of one object, by names of theirs. Printed without the values.
#[derive(Clone, Default)]
pub struct Taken(pub BTreeMap<String, String>);

impl fmt::Debug for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Taken({} [redacted])", self.0.len())
    }
}

/// Ends with the write that it is about.
pub type Held = Box<dyn Send>;
