//! What is called around each write beside the rules of its kind: [`Admission`], which
//! [`crate::admission`] implements, and the [`Plugin`]s of the embedding program.

mod plugin;
mod request;

use std::sync::Arc;

use api_meta::status::Status;
use futures::future::BoxFuture;
use serde_json::Value;

pub use plugin::{Held, Plugin, Taken};
pub use request::{Operation, Request};

use crate::registry::Registry;
use crate::resource::Resource;
use crate::strategy::Write;

/// Decides about writes. It fails closed: what it cannot evaluate is rejected.
pub trait Admission: Send + Sync + 'static {
    /// Whether [`Admission::mutate`] has anything to do for the write.
    fn mutates(&self, registry: &Registry, request: &Request<'_>) -> bool;

    /// Whether policies or webhooks are configured.
    fn is_configured(&self) -> bool;

    /// The first stage, before the kind prepares and validates: may change `object`, which is absent on
    /// delete.
    fn mutate<'a>(
        &'a self,
        registry: &'a Registry,
        request: &'a Request<'a>,
        object: Option<&'a mut Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>>;

    /// The last stage: may reject the write. `object` is as it will be stored; absent on delete.
    fn review<'a>(
        &'a self,
        registry: &'a Registry,
        request: &'a Request<'a>,
        object: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>>;

    /// Charges a write to the quotas of its namespace, just before it is stored.
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

    pub(super) fn mutates(&self, request: &Request<'_>) -> bool {
        self.admission.mutates(self, request)
    }

    pub(crate) async fn mutate(
        &self,
        request: &Request<'_>,
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
        request: &Request<'_>,
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

    /// Lets plugins take out what is not stored with the object.
    pub(crate) async fn take_out(
        &self,
        resource: &Resource,
        object: &mut Value,
        old: Option<&Value>,
        taken: &mut Taken,
    ) -> Result<(), Status> {
        for plugin in self.plugins(resource) {
            plugin.take_out(resource, object, old, taken).await?;
        }
        Ok(())
    }

    /// Stores what was taken out. Holds until the object's own write has ended.
    pub(crate) async fn store_taken(
        &self,
        resource: &Resource,
        object: &Value,
        old: Option<&Value>,
        taken: &Taken,
    ) -> Result<Vec<Held>, Status> {
        let mut held = Vec::new();
        for plugin in self.plugins(resource) {
            held.extend(plugin.store_taken(resource, object, old, taken).await?);
        }
        Ok(held)
    }

    /// Tells plugins that the object is no longer stored.
    pub(crate) fn note_deleted(&self, resource: &Resource, object: &Value) {
        self.plugins(resource).for_each(|plugin| plugin.deleted(resource, object));
    }
}
