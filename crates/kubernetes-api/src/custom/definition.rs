//! The kind CustomResourceDefinition itself.

mod validation;

use std::sync::Arc;

use api_meta::object::ObjectExt;
use api_meta::patch::MergeKeys;
use api_meta::status::Cause;
use apiserver::kind::{SUBRESOURCE_VERBS, VERBS, merge_keys};
use apiserver::resource::{
    Backend, NameRule, Resource, ResourceRules, Subresource, SubresourceHandler, TableColumn,
};
use apiserver::schemas;
use apiserver::strategy::{Operation, Strategy, Write};
use serde_json::{Map, Value, json};

use super::columns::name_column;
use super::names::stored_versions;
use super::{CLEANUP_FINALIZER, GROUP, PLURAL};

const KIND: &str = "CustomResourceDefinition";

/// The strategy of `customresourcedefinitions.apiextensions.k8s.io/v1`.
///
/// The [`controller`](super::controller) owns conditions and accepted names. Stored versions are
/// set here, so that they are correct from the first response on.
#[derive(Clone, Copy, Debug, Default)]
pub struct DefinitionStrategy;

/// The defining kind as a resource.
pub fn definition_resource() -> Resource {
    Resource {
        group: GROUP.to_owned(),
        version: "v1".to_owned(),
        plural: PLURAL.to_owned(),
        singular: "customresourcedefinition".to_owned(),
        kind: KIND.to_owned(),
        list_kind: "CustomResourceDefinitionList".to_owned(),
        namespaced: false,
        short_names: vec!["crd".to_owned(), "crds".to_owned()],
        categories: vec!["api-extensions".to_owned()],
        verbs: VERBS.to_vec(),
        subresources: vec![Subresource {
            name: "status",
            verbs: SUBRESOURCE_VERBS.to_vec(),
            handler: SubresourceHandler::Status,
            gvk: None,
        }],
        backend: Backend::Stored { prefix: format!("/registry/{GROUP}/{PLURAL}/") },
        strategy: Arc::new(DefinitionStrategy),
        columns: vec![
            name_column(),
            TableColumn {
                name: "Created At".to_owned(),
                kind: "date".to_owned(),
                format: String::new(),
                description: super::columns::CREATED_DESCRIPTION.to_owned(),
                priority: 0,
            },
        ],
        rules: ResourceRules {
            generation: true,
            create_on_update: false,
            unconditional_update: false,
            delete_returns_object: false,
            ttl: None,
        },
        name_rule: NameRule::Dns1123Subdomain,
        selectable_fields: Vec::new(),
        custom: false,
    }
}

fn schema() -> Option<&'static structural_schema::Schema> {
    schemas::builtin_schema(GROUP, "v1", KIND)
}

/// Sets a field that is absent or empty.
fn set_if_empty(map: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    let empty = |value: &Value| value.is_null() || value.as_str() == Some("");
    if map.get(key).is_none_or(empty) {
        map.insert(key.to_owned(), value.into());
    }
}

impl Strategy for DefinitionStrategy {
    fn default(&self, object: &mut Value) {
        let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else {
            return;
        };
        if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut)
            && let Some(kind) = names.get("kind").and_then(Value::as_str).map(str::to_owned)
            && !kind.is_empty()
        {
            set_if_empty(names, "singular", kind.to_lowercase());
            set_if_empty(names, "listKind", format!("{kind}List"));
        }
        set_if_empty(spec, "conversion", json!({"strategy": "None"}));
        let service = spec
            .get_mut("conversion")
            .and_then(|conversion| conversion.get_mut("webhook"))
            .and_then(|webhook| webhook.get_mut("clientConfig"))
            .and_then(|config| config.get_mut("service"));
        if let Some(service) = service.and_then(Value::as_object_mut) {
            set_if_empty(service, "port", 443);
        }
        if spec.get("preserveUnknownFields") == Some(&Value::Bool(false)) {
            spec.remove("preserveUnknownFields");
        }
    }

    fn prune(&self, object: &mut Value) {
        if let Some(schema) = schema() {
            schema.prune(object);
        }
    }

    fn preserved_by_status(&self) -> &'static [&'static [&'static str]] {
        &[&["spec"], &["metadata"]]
    }

    fn unknown_fields(&self, object: &Value) -> Vec<String> {
        schema().map(|schema| schema.unknown_fields(object)).unwrap_or_default()
    }

    fn decode_problem(&self, object: &Value) -> Option<String> {
        schema().and_then(|schema| schema.type_error(object))
    }

    fn merge_keys(&self) -> Option<&dyn MergeKeys> {
        Some(merge_keys(GROUP, KIND))
    }

    fn counts_deletion(&self) -> bool {
        false
    }

    fn prepare(&self, write: &Write<'_>, object: &mut Value, old: Option<&Value>) {
        match write.operation {
            Operation::UpdateStatus | Operation::Finalize | Operation::Part(_) => {}
            // The instances of a definition must be deleted before it.
            Operation::Delete => {
                let marked_before = old.is_some_and(ObjectExt::is_terminating);
                if !marked_before && !object.finalizers().contains(&CLEANUP_FINALIZER) {
                    let finalizers = object["metadata"]["finalizers"].as_array().cloned();
                    let mut finalizers = finalizers.unwrap_or_default();
                    finalizers.push(CLEANUP_FINALIZER.into());
                    object.set_meta("finalizers", finalizers);
                }
            }
            Operation::Create => {
                object["status"] =
                    json!({"conditions": [], "acceptedNames": {"plural": "", "kind": ""}});
                object["status"]["storedVersions"] = stored_versions(object).into();
            }
            Operation::Update => {
                object["status"]["storedVersions"] = stored_versions(object).into();
            }
        }
    }

    fn validate(&self, write: &Write<'_>, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        match (write.operation, old) {
            (Operation::Delete, _) => Vec::new(),
            (Operation::UpdateStatus, _) => validation::status(object),
            (_, None) => validation::create(object),
            (_, Some(old)) => validation::update(object, old),
        }
    }

    fn cells(&self, object: &Value, _now: i64) -> Vec<Value> {
        vec![object.name().into(), object["metadata"]["creationTimestamp"].clone()]
    }
}
