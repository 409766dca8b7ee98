//! The versions in which fields of a kind have owners, and the conversion of its objects between
//! them.

use std::borrow::Cow;
use std::sync::Arc;

use api_meta::object::ObjectExt;
use parking_lot::Mutex;
use serde_json::Value;
use structured_merge::{ConvertError, Duplicates, FieldSet, Typed, Versions};

use super::merge_schema;
use crate::catalog::Catalog;
use crate::registry::Registry;
use crate::registry::write::bring_to_version;
use crate::resource::{Backend, Resource};

/// The versions of the kind of a resource, for one write.
///
/// A conversion webhook cannot be called inside the comparison that needs it. The comparison
/// therefore ends, the webhook is called, and the comparison starts again:
/// [`KindVersions::run_with_conversions`].
pub(super) struct KindVersions<'a> {
    resource: &'a Resource,
    catalog: Arc<Catalog>,
    /// The fields that the endpoint ignores.
    reset: FieldSet,
    conversions: Mutex<Conversions>,
}

#[derive(Default)]
struct Conversions {
    done: Vec<(ConversionRequest, Result<Value, String>)>,
    pending: Option<ConversionRequest>,
}

/// An object that is needed in another version.
#[derive(PartialEq)]
struct ConversionRequest {
    object: Value,
    api_version: String,
}

impl<'a> KindVersions<'a> {
    /// Without any conversions yet.
    pub fn new(resource: &'a Resource, catalog: Arc<Catalog>, reset: FieldSet) -> Self {
        Self { resource, catalog, reset, conversions: Mutex::default() }
    }

    /// Repeats `work` until all conversions that it requests are done, and returns its result. It
    /// must request the same conversions each time.
    pub async fn run_with_conversions<T>(&self, registry: &Registry, work: impl Fn() -> T) -> T {
        loop {
            let result_of_work = work();
            let pending = self.conversions.lock().pending.take();
            let Some(request) = pending else { return result_of_work };
            let Some(conversion) = self.resource.strategy.conversion() else {
                return result_of_work;
            };
            let mut object = request.object.clone();
            let one = std::slice::from_mut(&mut object);
            // Boxed, or the future of every write would be as large as that of a call.
            let converted = Box::pin(registry.convert_by(conversion, &request.api_version, one));
            let result = converted.await.map(|()| object).map_err(|status| status.message);
            self.conversions.lock().done.push((request, result));
        }
    }

    /// Converts a custom resource to another version; it need not match the schema of that version.
    fn convert_custom(&self, mut object: Value, api_version: &str) -> Result<Value, ConvertError> {
        let by_name = self.resource.strategy.conversion().is_none();
        if by_name || has_type_only(&object) {
            object["apiVersion"] = api_version.into();
            return Ok(object);
        }
        // Like kube-apiserver, through the version of the request.
        let hub = self.resource.api_version();
        if object.api_version() != hub && api_version != hub {
            object = self.conversion_result(object, hub)?;
        }
        self.conversion_result(object, api_version.to_owned())
    }

    /// The result of the webhook, or a pending request for it.
    fn conversion_result(&self, object: Value, api_version: String) -> Result<Value, ConvertError> {
        let request = ConversionRequest { object, api_version };
        let mut conversions = self.conversions.lock();
        if let Some((_, result)) = conversions.done.iter().find(|(done, _)| *done == request) {
            return result.clone().map_err(ConvertError::Failed);
        }
        conversions.pending = Some(request);
        Err(ConvertError::Failed("the conversion webhook was not called yet".to_owned()))
    }

    /// A built-in kind in another version, possibly of another group: resources with the same
    /// storage prefix.
    fn served_as(&self, api_version: &str) -> Option<&Resource> {
        let Backend::Stored { prefix } = &self.resource.backend else { return None };
        let same = |other: &&Arc<Resource>| {
            other.api_version() == api_version
                && matches!(&other.backend, Backend::Stored { prefix: other } if other == prefix)
        };
        self.catalog.all().find(same).map(|resource| &**resource)
    }
}

/// The state before a create, which is not an object yet.
fn has_type_only(object: &Value) -> bool {
    let members = object.as_object();
    members.is_some_and(|members| members.keys().all(|key| key == "apiVersion" || key == "kind"))
}

impl Versions for KindVersions<'_> {
    fn convert<'v>(
        &'v self,
        object: &Typed<'v>,
        api_version: &str,
    ) -> Result<Typed<'v>, ConvertError> {
        if object.value.api_version() == api_version {
            return Ok(object.clone());
        }
        let missing = || ConvertError::MissingVersion(api_version.to_owned());
        let mut value = object.value.clone().into_owned();
        if self.resource.custom {
            let schema = self.resource.strategy.merge_schema(api_version).ok_or_else(missing)?;
            let converted = Cow::Owned(self.convert_custom(value, api_version)?);
            return Typed::new(converted, schema, Duplicates::Refuse).map_err(ConvertError::Unfit);
        }
        let resource = self.served_as(api_version).ok_or_else(missing)?;
        bring_to_version(resource, &mut value);
        Ok(Typed::unchecked(Cow::Owned(value), merge_schema(resource)))
    }

    fn ignored_fields(&self, _api_version: &str) -> Option<&FieldSet> {
        Some(&self.reset)
    }
}
