//! Converts objects between the versions of their kind: by their schemas alone, or by a webhook.

use std::sync::Arc;
use std::time::Duration;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use bytes::Bytes;
use futures::FutureExt;
use serde_json::Value;

use super::write::bring_to_version;
use crate::cache::View;
use crate::registry::Registry;
use crate::resource::Resource;
use crate::stored::{Stored, new_uid, to_storage};
use crate::strategy::Conversion;

/// Longest call of a conversion webhook.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of objects in one request to a conversion webhook, or one object that is larger.
const REQUEST_SIZE_MAX: usize = 4 * 1024 * 1024;

/// The API version that objects are stored in, when it may differ from the served one.
pub(super) fn stored_as(resource: &Resource) -> Option<String> {
    let version = resource.strategy.storage_version().filter(|version| !version.is_empty())?;
    Some(format!("{}/{version}", resource.group))
}

impl Registry {
    /// Converts an object of any version of `resource` to the version of `resource`.
    ///
    /// # Errors
    /// The conversion webhook failed.
    pub(crate) async fn convert(
        &self,
        resource: &Resource,
        object: &mut Value,
    ) -> Result<(), Status> {
        if let Some(conversion) = resource.strategy.conversion() {
            let api_version = resource.api_version();
            self.convert_by(conversion, &api_version, std::slice::from_mut(object)).await?;
        }
        bring_to_version(resource, object);
        Ok(())
    }

    /// The objects in the version of `resource`; as they are when that needs no webhook.
    ///
    /// # Errors
    /// Those of [`Registry::convert`].
    pub(crate) async fn serve(
        &self,
        resource: &Resource,
        mut objects: Vec<Arc<Stored>>,
    ) -> Result<Vec<Arc<Stored>>, Status> {
        let Some(conversion) = resource.strategy.conversion() else { return Ok(objects) };
        let api_version = resource.api_version();
        let mut rest = objects.as_mut_slice();
        while !rest.is_empty() {
            let mut size = 0;
            let fits = rest.iter().take_while(|object| {
                size += object.bytes.len();
                size <= REQUEST_SIZE_MAX
            });
            let count = fits.count().max(1);
            let (batch, later) = rest.split_at_mut(count);
            let mut values: Vec<Value> = batch.iter().map(|object| object.value()).collect();
            let needs_conversion = values.iter().map(|value| value.api_version() != api_version);
            let needs_conversion: Vec<bool> = needs_conversion.collect();
            self.convert_by(conversion, &api_version, &mut values).await?;
            for ((object, value), needs_conversion) in
                batch.iter_mut().zip(&values).zip(needs_conversion)
            {
                if needs_conversion {
                    *object = Arc::new(object.with_value(value));
                }
            }
            rest = later;
        }
        Ok(objects)
    }

    /// The object in the version of `resource`; as it is when that needs no webhook.
    ///
    /// # Errors
    /// The conversion webhook failed.
    pub async fn serve_one(
        &self,
        resource: &Resource,
        object: Arc<Stored>,
    ) -> Result<Arc<Stored>, Status> {
        if resource.strategy.conversion().is_none() {
            return Ok(object);
        }
        // Boxed, or every watch would reserve the size of a call that few make.
        let mut served = Box::pin(self.serve(resource, vec![object])).await?;
        Ok(served.remove(0))
    }

    /// [`Registry::serve`] for the object of an event: the webhook is called once for all watches.
    ///
    /// # Errors
    /// Those of [`Registry::convert`].
    pub(crate) async fn serve_view(
        self: &Arc<Self>,
        resource: &Arc<Resource>,
        view: &View,
    ) -> Result<Arc<Stored>, Status> {
        if resource.strategy.conversion().is_none() {
            return Ok(view.stored().clone());
        }
        let (registry, resource) = (self.clone(), resource.clone());
        let convert = |stored| async move { registry.serve_one(&resource, stored).await }.boxed();
        view.get_or_convert(convert).await
    }

    /// The tree of a stored object, in the version of this resource.
    pub(super) async fn served_value(
        &self,
        resource: &Resource,
        stored: &Stored,
    ) -> Result<Value, Status> {
        let mut object = stored.value();
        self.convert(resource, &mut object).await?;
        Ok(object)
    }

    /// The bytes of an object for the storage, in its storage version.
    pub(super) async fn storage_bytes(
        &self,
        resource: &Resource,
        object: &mut Value,
    ) -> Result<Bytes, Status> {
        if let Some(conversion) = resource.strategy.conversion() {
            let stored_as = &conversion.stored_as;
            self.convert_by(conversion, stored_as, std::slice::from_mut(object)).await?;
        } else if let Some(api_version) = stored_as(resource) {
            resource.strategy.to_stored(object);
            object["apiVersion"] = api_version.into();
        }
        Ok(to_storage(object))
    }

    /// Converts those objects to `api_version` that are in another version, by one call of the
    /// webhook.
    ///
    /// # Errors
    /// The webhook failed, or its response is not a conversion of the objects.
    pub(super) async fn convert_by(
        &self,
        conversion: &Conversion,
        api_version: &str,
        objects: &mut [Value],
    ) -> Result<(), Status> {
        let differs = |object: &&Value| object.api_version() != api_version;
        let originals: Vec<Value> = objects.iter().filter(differs).cloned().collect();
        let Some(first) = originals.first() else { return Ok(()) };
        let (from, kind) = (first.api_version(), first.kind());
        let failed = |problem: String| {
            let text = format!("conversion webhook for {from}, Kind={kind} {problem}");
            Status::new(500, "", text)
        };
        let client =
            conversion.client.as_ref().map_err(|text| failed(format!("failed: {text}")))?;
        let uid = new_uid();
        let body = conversion.request_body(&uid, api_version, &originals);
        let response =
            self.webhook_client().post(self.webhook_target(client), client, TIMEOUT, body).await;
        let bytes = response.map_err(|error| failed(format!("failed: {error}")))?;
        let converted =
            conversion.converted_objects(&uid, api_version, &originals, &bytes).map_err(failed)?;
        let targets = objects.iter_mut().filter(|object| object.api_version() != api_version);
        for (target, converted) in targets.zip(converted) {
            *target = converted;
        }
        Ok(())
    }
}
