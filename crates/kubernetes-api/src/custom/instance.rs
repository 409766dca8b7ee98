//! The strategy of custom resources, from their definition.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use api_meta::object::ObjectExt;
use api_meta::status::{Cause, Status};
use apiserver::catalog::compare_versions;
use apiserver::strategy::{Conversion, Operation, PublishedSchema, Strategy, Write};
use futures::future::BoxFuture;
use serde_json::Value;
use structural_schema::{Schema, SchemaError, number};

use super::columns::{CellSource, cells};
use super::versions::Versions;

/// The schemas of a definition's versions, each compiled once.
pub struct Schemas {
    compiled: BTreeMap<String, Arc<Schema>>,
    versions: Arc<Versions>,
}

impl Schemas {
    /// Creates the set for the versions of `crd`. Schemas are compiled on first use.
    pub fn of(crd: &Value) -> Self {
        Self { compiled: BTreeMap::new(), versions: Arc::new(Versions::of(crd)) }
    }

    fn compile(&mut self, version: &Value) -> Result<Arc<Schema>, SchemaError> {
        let name = version["name"].as_str().unwrap_or_default();
        if let Some(schema) = self.compiled.get(name) {
            return Ok(schema.clone());
        }
        let schema = Arc::new(Schema::compile(&version["schema"]["openAPIV3Schema"])?);
        self.compiled.insert(name.to_owned(), schema.clone());
        Ok(schema)
    }
}

/// The strategy of one version of a custom resource.
pub struct CustomStrategy {
    group: String,
    plural: String,
    api_version: String,
    storage_version: String,
    conversion: Option<Conversion>,
    schema: Arc<Schema>,
    /// The schema of the storage version, if that is another one and no webhook converts between
    /// them.
    stored: Option<Arc<Schema>>,
    versions: Arc<Versions>,
    sources: Vec<CellSource>,
    deprecation: Option<String>,
    /// The definition is being deleted, so nothing may be created.
    terminating: Arc<AtomicBool>,
    /// Objects may have been stored with another schema.
    rewrites: AtomicBool,
    /// The definition has only this version.
    only_version: bool,
}

impl CustomStrategy {
    /// Creates the strategy of `version`, an entry of `spec.versions` of the definition `crd`.
    /// `schemas` are the schemas compiled so far. While `terminating` is set, nothing can be
    /// created.
    ///
    /// # Errors
    /// A schema does not compile, which validation rules out.
    pub fn new(
        crd: &Value,
        version: &Value,
        schemas: &mut Schemas,
        sources: Vec<CellSource>,
        terminating: Arc<AtomicBool>,
    ) -> Result<Self, SchemaError> {
        let spec = &crd["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let group = text(&spec["group"]);
        let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let stored = versions.iter().find(|version| version["storage"] == true);
        let storage_version = stored.map(|version| text(&version["name"])).unwrap_or_default();
        let conversion = Conversion::of(crd, &format!("{group}/{storage_version}"));
        let other = stored.filter(|stored| stored["name"] != version["name"]);
        let stored = match other.filter(|_| conversion.is_none()) {
            Some(stored) => Some(schemas.compile(stored)?),
            None => None,
        };
        Ok(Self {
            api_version: format!("{group}/{}", text(&version["name"])),
            plural: text(&spec["names"]["plural"]),
            conversion,
            storage_version,
            schema: schemas.compile(version)?,
            stored,
            versions: schemas.versions.clone(),
            sources,
            deprecation: deprecation(crd, version),
            terminating,
            rewrites: AtomicBool::new(versions.len() > 1 || crd.generation() != 1),
            only_version: versions.len() == 1,
            group,
        })
    }
}

/// The warning for a deprecated version: the definition's own, or one that names the version to
/// use.
fn deprecation(crd: &Value, version: &Value) -> Option<String> {
    if version["deprecated"] != true {
        return None;
    }
    if let Some(text) = version["deprecationWarning"].as_str() {
        return Some(text.to_owned());
    }
    let (group, kind) = (crd["spec"]["group"].as_str()?, crd["spec"]["names"]["kind"].as_str()?);
    let name = version["name"].as_str()?;
    let served = crd["spec"]["versions"]
        .as_array()?
        .iter()
        .filter(|other| other["served"] == true && other["deprecated"] != true);
    let replacement = served
        .filter_map(|other| other["name"].as_str())
        .filter(|other| compare_versions(other, name).is_gt())
        .max_by(|a, b| compare_versions(a, b));
    let mut text = format!("{group}/{name} {kind} is deprecated");
    if let Some(replacement) = replacement {
        text.push_str(&format!("; use {group}/{replacement} {kind}"));
    }
    Some(text)
}

/// Rewrites the message of a write of the status, which Kubernetes validates as if the status were
/// the whole object: the message names `seen` where the field is `status.seen`.
fn shorten_message_to_status(cause: &mut Cause) {
    let Some(within) = cause.field.strip_prefix("status") else { return };
    let within = within.strip_prefix('.').unwrap_or(within);
    let full_path = format!("{} in body", cause.field);
    cause.message = cause.message.replacen(&full_path, &format!("{within} in body"), 1);
}

impl Strategy for CustomStrategy {
    fn default(&self, object: &mut Value) {
        number::canonicalize(object);
        self.schema.default(object);
    }

    fn default_applied(&self, object: &mut Value) {
        number::canonicalize(object);
        self.schema.default_keeping_nulls(object);
    }

    fn prune(&self, object: &mut Value) {
        self.schema.prune(object);
    }

    fn lose_unstored(&self, object: &mut Value) {
        if let Some(stored) = &self.stored {
            stored.prune(object);
            stored.default(object);
            self.schema.prune(object);
        }
    }

    fn preserved_by_status(&self) -> &'static [&'static [&'static str]] {
        &[&["spec"], &["metadata"]]
    }

    fn unknown_fields(&self, object: &Value) -> Vec<String> {
        self.schema.unknown_fields(object)
    }

    fn validate(&self, write: &Write<'_>, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        let mut causes = self.schema.validate(object, old);
        if write.operation == Operation::UpdateStatus {
            causes.iter_mut().for_each(shorten_message_to_status);
        }
        causes
    }

    fn is_ending(&self) -> bool {
        self.terminating.load(Ordering::Acquire)
    }

    fn admit<'a>(
        &'a self,
        write: &'a Write<'a>,
        _object: Option<&'a mut Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let terminating = self.terminating.load(Ordering::Acquire);
        let refused = terminating && write.operation == Operation::Create;
        let result = if refused {
            let text = "create not allowed while custom resource definition is terminating";
            Err(Status::forbidden(&self.group, &self.plural, write.name, text))
        } else {
            Ok(())
        };
        Box::pin(std::future::ready(result))
    }

    fn on_read(&self, object: &mut Value) {
        object["apiVersion"] = self.api_version.clone().into();
        self.schema.prune(object);
        self.schema.default(object);
    }

    fn rewrites_on_read(&self) -> bool {
        self.rewrites.load(Ordering::Relaxed)
    }

    fn set_conforming(&self) {
        if self.only_version {
            self.rewrites.store(false, Ordering::Relaxed);
        }
    }

    fn cells(&self, object: &Value, now: i64) -> Vec<Value> {
        cells(&self.sources, object, now)
    }

    fn storage_version(&self) -> Option<&str> {
        Some(&self.storage_version)
    }

    fn conversion(&self) -> Option<&Conversion> {
        self.conversion.as_ref()
    }

    fn deprecation(&self) -> Option<&str> {
        self.deprecation.as_deref()
    }

    fn published_schema(&self) -> Option<&PublishedSchema> {
        self.versions.published_schema(&self.api_version)
    }

    fn merge_schema(&self, api_version: &str) -> Option<&structured_merge::Schema> {
        self.versions.merge_schema(api_version)
    }
}
