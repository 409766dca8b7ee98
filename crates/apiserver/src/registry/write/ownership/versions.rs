//! The versions in which fields of a kind have owners, and how its objects get from one into another.

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
/// A webhook that converts cannot be asked in the midst of the comparison that finds it must be:
/// that ends, the webhook is asked, and the comparison begins anew. [`KindVersions::settle`] does so.
pub(super) struct KindVersions<'a> {
    resource: &'a Resource,
    catalog: Arc<Catalog>,
    /// What the endpoint resets.
    reset: FieldSet,
    conversions: Mutex<Conversions>,
}

#[derive(Default)]
struct Conversions {
    done: Vec<(Question, Result<Value, String>)>,
    wanted: Option<Question>,
}

/// An object that is wanted in another version.
#[derive(PartialEq)]
struct Question {
    object: Value,
    api_version: String,
}

impl<'a> KindVersions<'a> {
    pub fn new(resource: &'a Resource, catalog: Arc<Catalog>, reset: FieldSet) -> Self {
        Self { resource, catalog, reset, conversions: Mutex::default() }
    }

    /// What `work` comes to, once all is converted that it wants to see in other versions. It must
    /// want the same each time it is done.
    pub async fn settle<T>(&self, registry: &Registry, work: impl Fn() -> T) -> T {
        loop {
            let outcome = work();
            let wanted = self.conversions.lock().wanted.take();
            let Some(question) = wanted else { return outcome };
            let Some(conversion) = self.resource.strategy.conversion() else { return outcome };
            let mut object = question.object.clone();
            let one = std::slice::from_mut(&mut object);
            // On the heap: the future of every write would be as large as that of a call.
            let converted = Box::pin(registry.convert_by(conversion, &question.api_version, one));
            let answer = converted.await.map(|()| object).map_err(|status| status.message);
            self.conversions.lock().done.push((question, answer));
        }
    }

    /// A custom resource in another version, whose schema it need not fit.
    fn converted(&self, mut object: Value, api_version: &str) -> Result<Value, ConvertError> {
        let by_name = self.resource.strategy.conversion().is_none();
        if by_name || has_type_only(&object) {
            object["apiVersion"] = api_version.into();
            return Ok(object);
        }
        // As kube-apiserver, through the version of the request.
        let hub = self.resource.api_version();
        if object.api_version() != hub && api_version != hub {
            object = self.answered(object, hub)?;
        }
        self.answered(object, api_version.to_owned())
    }

    /// What the webhook made of it.
    fn answered(&self, object: Value, api_version: String) -> Result<Value, ConvertError> {
        let question = Question { object, api_version };
        let mut conversions = self.conversions.lock();
        if let Some((_, answer)) = conversions.done.iter().find(|(done, _)| *done == question) {
            return answer.clone().map_err(ConvertError::Failed);
        }
        conversions.wanted = Some(question);
        Err(ConvertError::Failed("the webhook has yet to be asked".to_owned()))
    }

    /// A built-in kind in another version. It may be in another group: what is stored counts.
    fn served_as(&self, api_version: &str) -> Option<&Resource> {
        let Backend::Stored { prefix } = &self.resource.backend else { return None };
        let same = |other: &&Arc<Resource>| {
            other.api_version() == api_version
                && matches!(&other.backend, Backend::Stored { prefix: other } if other == prefix)
        };
        self.catalog.all().find(same).map(|resource| &**resource)
    }
}

/// What is not an object of anybody: the state before a create.
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
            let converted = Cow::Owned(self.converted(value, api_version)?);
            return Typed::new(converted, schema, Duplicates::Refuse).map_err(ConvertError::Unfit);
        }
        let resource = self.served_as(api_version).ok_or_else(missing)?;
        bring_to_version(resource, &mut value);
        Ok(Typed::unchecked(Cow::Owned(value), merge_schema(resource)))
    }

    fn ignored(&self, _api_version: &str) -> Option<&FieldSet> {
        Some(&self.reset)
    }
}
