//! What is called around each write in addition to the rules of its kind: [`Admission`], which
//! [`crate::admission`] implements, and the [`Plugin`]s of the embedding program.

mod plugin;
mod request;

use std::sync::Arc;

use api_meta::status::Status;
use futures::future::BoxFuture;
use serde_json::Value;

pub use plugin::{Held, Plugin, TakenValues};
pub use request::{AdmissionOperation, AdmissionRequest};

use crate::registry::Registry;
use crate::resource::Resource;
use crate::strategy::Write;

/// Decides about writes. It fails closed: what it cannot evaluate is rejected.
pub trait Admission: Send + Sync + 'static {
    /// Whether [`Admission::mutate`] has anything to do for the write.
    fn mutates(&self, registry: &Registry, request: &AdmissionRequest<'_>) -> bool;

    /// Whether any policies or webhooks exist.
    fn is_configured(&self) -> bool;

    /// The first stage, before the kind prepares and validates: may change `object`, which is
    /// absent on delete.
    ///
    /// # Errors
    /// Why the write is rejected; `object` is then unspecified.
    fn mutate<'a>(
        &'a self,
        registry: &'a Registry,
        request: &'a AdmissionRequest<'a>,
        object: Option<&'a mut Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>>;

    /// The last stage: may reject the write. `object` is as it will be stored; absent on delete.
    ///
    /// # Errors
    /// Why the write is rejected.
    fn review<'a>(
        &'a self,
        registry: &'a Registry,
        request: &'a AdmissionRequest<'a>,
        object: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>>;

    /// Charges a write to the quotas of its namespace, just before it is stored.
    ///
    /// # Errors
    /// 403 when a quota would be exceeded.
    fn charge<'a>(
        &'a self,
        registry: &'a Registry,
        write: &'a Write<'a>,
        resource: &'a Resource,
        object: &'a Value,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>>;
}

impl Registry {
    pub(crate) fn admission(&self) -> &Arc<dyn Admission> {
        &self.admission
    }

    pub(super) fn mutates(&self, request: &AdmissionRequest<'_>) -> bool {
        self.admission.mutates(self, request)
    }

    pub(crate) async fn mutate(
        &self,
        request: &AdmissionRequest<'_>,
        object: Option<&mut Value>,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        match request.options.admitted {
            true => Ok(()),
            false => self.admission.mutate(self, request, object, old).await,
        }
    }

    pub(crate) async fn review(
        &self,
        request: &AdmissionRequest<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        match request.options.admitted {
            true => Ok(()),
            false => self.admission.review(self, request, object, old).await,
        }
    }

    pub(super) async fn charge_quotas(
        &self,
        write: &Write<'_>,
        resource: &Resource,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        self.admission.charge(self, write, resource, object, old).await
    }

    /// Lets plugins take the values out of an object that are not stored with it.
    pub(crate) async fn take_out(
        &self,
        resource: &Resource,
        object: &mut Value,
        old: Option<&Value>,
        taken: &mut TakenValues,
    ) -> Result<(), Status> {
        for plugin in self.plugins(resource) {
            plugin.take_out(resource, object, old, taken).await?;
        }
        Ok(())
    }

    /// Stores the values that were taken out. Hold the result until the write of the object has
    /// ended.
    pub(crate) async fn store_taken(
        &self,
        resource: &Resource,
        object: &Value,
        old: Option<&Value>,
        taken: &TakenValues,
    ) -> Result<Vec<Held>, Status> {
        let mut held = Vec::new();
        for plugin in self.plugins(resource) {
            held.extend(plugin.store_taken(resource, object, old, taken).await?);
        }
        Ok(held)
    }

    /// Notifies plugins that the object is no longer stored.
    pub(crate) fn note_deleted(&self, resource: &Resource, object: &Value) {
        self.plugins(resource).for_each(|plugin| plugin.on_deleted(resource, object));
    }
}
