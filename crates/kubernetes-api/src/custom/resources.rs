//! Converts an accepted definition to resources.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use apiserver::kind::SUBRESOURCE_VERBS;
use apiserver::resource::{
    Backend, Endpoint, NameRule, Resource, ResourceRules, SelectableField, Subresource,
    SubresourceHandler,
};
use serde_json::Value;
use structural_schema::JsonPath;

use super::columns::columns_of;
use super::instance::{CustomStrategy, Schemas};
use super::scale::{ScalePaths, ScaleTarget};

/// The verbs in the order in which Kubernetes lists them for custom resources.
const VERBS: [&str; 8] =
    ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// Converts the served versions of a definition to resources, with the accepted names.
///
/// `terminating` says whether the definition is being deleted, as long as the resources live.
/// `scale` creates the handler of a scale subresource. A version whose schema does not compile,
/// which validation rules out, is omitted and logged.
pub fn resources_of(
    crd: &Value,
    terminating: &Arc<AtomicBool>,
    scale: impl Fn(ScaleTarget) -> Arc<dyn Endpoint>,
) -> Vec<Resource> {
    let versions = crd["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let served = versions.iter().filter(|version| version["served"] == true);
    let mut schemas = Schemas::of(crd);
    served
        .filter_map(|version| match resource(crd, version, &mut schemas, terminating, &scale) {
            Ok(resource) => Some(resource),
            Err(error) => {
                let definition = crd["metadata"]["name"].as_str();
                tracing::error!(definition, %error, "cannot serve a version of a definition");
                None
            }
        })
        .collect()
}

fn resource(
    crd: &Value,
    version: &Value,
    schemas: &mut Schemas,
    terminating: &Arc<AtomicBool>,
    scale: &impl Fn(ScaleTarget) -> Arc<dyn Endpoint>,
) -> Result<Resource, structural_schema::SchemaError> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().map(text).collect()
    };
    let names = accepted_names(crd);
    let group = text(&crd["spec"]["group"]);
    let plural = text(&names["plural"]);
    let (columns, sources) = columns_of(version);
    Ok(Resource {
        version: text(&version["name"]),
        singular: text(&names["singular"]),
        kind: text(&names["kind"]),
        list_kind: text(&names["listKind"]),
        namespaced: crd["spec"]["scope"] == "Namespaced",
        short_names: list(&names["shortNames"]),
        categories: list(&names["categories"]),
        verbs: VERBS.to_vec(),
        subresources: subresources(&group, &plural, version, scale),
        backend: Backend::Stored { prefix: storage_prefix(&group, &plural) },
        strategy: Arc::new(CustomStrategy::new(
            crd,
            version,
            schemas,
            sources,
            terminating.clone(),
        )?),
        columns,
        rules: ResourceRules {
            generation: true,
            create_on_update: false,
            unconditional_update: false,
            delete_returns_object: false,
            ttl: None,
        },
        name_rule: NameRule::Dns1123Subdomain,
        selectable_fields: selectable_fields(crd, version),
        custom: true,
        group,
        plural,
    })
}

/// The storage prefix of the instances of a definition, in all versions.
pub fn storage_prefix(group: &str, plural: &str) -> String {
    format!("/registry/{group}/{plural}/")
}

/// The names in effect: the accepted ones, or the requested ones before these are complete.
fn accepted_names(crd: &Value) -> &Value {
    let accepted = &crd["status"]["acceptedNames"];
    let complete = |key: &str| accepted[key].as_str().is_some_and(|name| !name.is_empty());
    let all = ["plural", "singular", "kind", "listKind"].into_iter().all(complete);
    if all { accepted } else { &crd["spec"]["names"] }
}

fn subresources(
    group: &str,
    plural: &str,
    version: &Value,
    scale: &impl Fn(ScaleTarget) -> Arc<dyn Endpoint>,
) -> Vec<Subresource> {
    let mut subresources = Vec::new();
    let declared = &version["subresources"];
    if declared["status"].is_object() {
        subresources.push(Subresource {
            name: "status",
            verbs: SUBRESOURCE_VERBS.to_vec(),
            handler: SubresourceHandler::Status,
            gvk: None,
        });
    }
    if let Some(paths) = ScalePaths::parse(&declared["scale"]) {
        let target = ScaleTarget {
            group: group.to_owned(),
            version: version["name"].as_str().unwrap_or_default().to_owned(),
            plural: plural.to_owned(),
            paths,
        };
        subresources.push(Subresource {
            name: "scale",
            verbs: SUBRESOURCE_VERBS.to_vec(),
            handler: SubresourceHandler::Endpoint(scale(target)),
            gvk: Some(("autoscaling", "v1", "Scale")),
        });
    }
    subresources
}

/// The selectable fields of all versions, in one order, since all versions are read from the same
/// stored objects.
fn selectable_fields(crd: &Value, version: &Value) -> Vec<SelectableField> {
    let offered: Vec<Vec<String>> = declared_fields(version).collect();
    let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    let mut fields: Vec<SelectableField> = Vec::new();
    for path in versions.flat_map(declared_fields) {
        if fields.iter().all(|known| known.path != path) {
            let offered = offered.contains(&path);
            let (label, fallback) = (path.join("."), Vec::new());
            fields.push(SelectableField { label, path, fallback, unset: "", offered });
        }
    }
    fields
}

fn declared_fields(version: &Value) -> impl Iterator<Item = Vec<String>> {
    let declared = version["selectableFields"].as_array().into_iter().flatten();
    declared.filter_map(|field| JsonPath::parse(field["jsonPath"].as_str()?).ok()?.fields())
}
