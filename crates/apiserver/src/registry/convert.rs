//! Objects between the versions of their kind: by their schemas alone, or by a webhook.

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
/// Bytes of objects that one question to a conversion webhook has, or one object that is larger.
const QUESTION_SIZE_MAX: usize = 4 * 1024 * 1024;

/// The API version that objects are stored in, where they have several.
pub(super) fn stored_as(resource: &Resource) -> Option<String> {
    let version = resource.strategy.storage_version().filter(|version| !version.is_empty())?;
    Some(format!("{}/{version}", resource.group))
}

impl Registry {
    /// Brings an object of any version of `resource` into the version that `resource` is.
    ///
    /// # Errors
    /// A webhook that must be asked for that failed.
    pub(crate) async fn convert(
        &self,
        resource: &Resource,
        object: &mut Value,
    ) -> Result<(), Status> {
        if let Some(conversion) = resource.strategy.conversion() {
            let wanted = resource.api_version();
            self.convert_by(conversion, &wanted, std::slice::from_mut(object)).await?;
        }
        bring_to_version(resource, object);
        Ok(())
    }

    /// The objects in the version that `resource` is; as they are where that needs no webhook.
    ///
    /// # Errors
    /// As [`Registry::convert`].
    pub(crate) async fn serve(
        &self,
        resource: &Resource,
        mut objects: Vec<Arc<Stored>>,
    ) -> Result<Vec<Arc<Stored>>, Status> {
        let Some(conversion) = resource.strategy.conversion() else { return Ok(objects) };
        let wanted = resource.api_version();
        let mut rest = objects.as_mut_slice();
        while !rest.is_empty() {
            let mut size = 0;
            let fits = rest.iter().take_while(|object| {
                size += object.bytes.len();
                size <= QUESTION_SIZE_MAX
            });
            let count = fits.count().max(1);
            let (batch, later) = rest.split_at_mut(count);
            let mut values: Vec<Value> = batch.iter().map(|object| object.value()).collect();
            let other = values.iter().map(|value| value.api_version() != wanted);
            let other: Vec<bool> = other.collect();
            self.convert_by(conversion, &wanted, &mut values).await?;
            for ((object, value), other) in batch.iter_mut().zip(&values).zip(other) {
                if other {
                    *object = Arc::new(object.with_value(value));
                }
            }
            rest = later;
        }
        Ok(objects)
    }

    /// [`Registry::serve`] of one.
    pub(crate) async fn serve_one(
        &self,
        resource: &Resource,
        object: Arc<Stored>,
    ) -> Result<Arc<Stored>, Status> {
        if resource.strategy.conversion().is_none() {
            return Ok(object);
        }
        // Every watch would keep room for a call that few make, for as long as it lasts.
        let mut served = Box::pin(self.serve(resource, vec![object])).await?;
        Ok(served.remove(0))
    }

    /// [`Registry::serve`] of what an event shows: a webhook is asked once for all who watch.
    ///
    /// # Errors
    /// As [`Registry::convert`].
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
        view.served(convert).await
    }

    /// The tree of a stored object as this resource serves it.
    pub(super) async fn served_value(
        &self,
        resource: &Resource,
        stored: &Stored,
    ) -> Result<Value, Status> {
        let mut object = stored.value();
        self.convert(resource, &mut object).await?;
        Ok(object)
    }

    /// The object as it is stored, in the version it is stored in.
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

    /// Has a webhook bring those objects into the version `wanted` that are in another one.
    ///
    /// # Errors
    /// The webhook failed, or what it answered is no conversion of them.
    pub(super) async fn convert_by(
        &self,
        conversion: &Conversion,
        wanted: &str,
        objects: &mut [Value],
    ) -> Result<(), Status> {
        let others = |object: &&Value| object.api_version() != wanted;
        let question: Vec<Value> = objects.iter().filter(others).cloned().collect();
        let Some(first) = question.first() else { return Ok(()) };
        let (api_version, kind) = (first.api_version(), first.kind());
        let failed = |problem: String| {
            let text = format!("conversion webhook for {api_version}, Kind={kind} {problem}");
            Status::new(500, "", text)
        };
        let client =
            conversion.client.as_ref().map_err(|text| failed(format!("failed: {text}")))?;
        let uid = new_uid();
        let body = conversion.question(&uid, wanted, &question);
        let answered =
            self.webhook_calls().post(self.webhook_target(client), client, TIMEOUT, body).await;
        let bytes = answered.map_err(|error| failed(format!("failed: {error}")))?;
        let converted = conversion.answer(&uid, wanted, &question, &bytes).map_err(failed)?;
        let places = objects.iter_mut().filter(|object| object.api_version() != wanted);
        for (place, converted) in places.zip(converted) {
            *place = converted;
        }
        Ok(())
    }
}
