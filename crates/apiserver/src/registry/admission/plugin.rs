//! Rules that the embedding program adds to writes.

use std::collections::BTreeMap;
use std::fmt;
use std::future::ready;

use api_meta::status::{Cause, Status};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::resource::Resource;
use crate::strategy::Write;

/// A set of rules that the embedding program adds to writes.
pub trait Plugin: Send + Sync + 'static {
    /// Whether the rules apply to a resource at all.
    fn handles(&self, resource: &Resource) -> bool;

    /// Completes an object before it is validated. Idempotent. `old` is absent on create.
    fn prepare(
        &self,
        resource: &Resource,
        write: &Write<'_>,
        object: &mut Value,
        old: Option<&Value>,
    );

    /// All violations. Pure.
    fn validate(
        &self,
        resource: &Resource,
        write: &Write<'_>,
        object: &Value,
        old: Option<&Value>,
    ) -> Vec<Cause>;

    /// Rules that need other objects or the rights of the writer. `object` is absent on delete. The
    /// write may still be rejected afterwards, so this must not store anything that stays in force
    /// without it.
    ///
    /// # Errors
    /// Why the write is rejected.
    fn admit<'a>(
        &'a self,
        resource: &'a Resource,
        write: &'a Write<'a>,
        object: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>>;

    /// Takes the values out of an object that are not stored with it, and leaves references to
    /// them. Called for every write of an object and for every applied configuration, before field
    /// owners are compared and before policies and webhooks see it, and again after them. Stores
    /// nothing. `taken` holds the values taken so far.
    ///
    /// # Errors
    /// Why the write is rejected.
    fn take_out<'a>(
        &'a self,
        resource: &'a Resource,
        object: &'a mut Value,
        old: Option<&'a Value>,
        taken: &'a mut TakenValues,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let _ = (resource, object, old, taken);
        Box::pin(ready(Ok(())))
    }

    /// Stores the values taken out of the object, which is written next. The result is dropped when
    /// that write has ended, whether or not the object was stored.
    ///
    /// # Errors
    /// The values cannot be stored: the write is rejected.
    fn store_taken<'a>(
        &'a self,
        resource: &'a Resource,
        object: &'a Value,
        old: Option<&'a Value>,
        taken: &'a TakenValues,
    ) -> BoxFuture<'a, Result<Option<Held>, Status>> {
        let _ = (resource, object, old, taken);
        Box::pin(ready(Ok(None)))
    }

    /// Called after the object was deleted from the storage.
    fn on_deleted(&self, resource: &Resource, object: &Value) {
        let _ = (resource, object);
    }
}

/// The values that plugins took out of one object, by keys of their own. `Debug` omits the values.
#[derive(Clone, Default)]
pub struct TakenValues(pub BTreeMap<String, String>);

impl fmt::Debug for TakenValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TakenValues({} [redacted])", self.0.len())
    }
}

/// A guard that is dropped when the write it belongs to has ended.
pub type Held = Box<dyn Send>;
