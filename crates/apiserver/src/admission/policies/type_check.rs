//! What the expressions of a policy get wrong about the kinds that it names: told in its status, and
//! of no effect on what it decides.

use std::collections::BTreeSet;
use std::sync::Arc;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use cel::declared::Object;
use cel::{Declared, DeclaredKind};
use serde_json::{Value, json};
use structural_schema::Schema;

use super::{POLICIES, params};
use crate::admission::expressions::Composition;
use crate::admission::webhooks::GROUP;
use crate::catalog::Catalog;
use crate::fields::{items, str_of};
use crate::registry::{Registry, Target, Update, WriteOptions};
use crate::schemas::builtin_schema;
use crate::strategy::Operation;

/// Kinds that one policy is checked against.
const KINDS_MAX: usize = 10;
const MANAGER: &str = "validatingadmissionpolicy-status-controller";
/// What comes before the problems of types.
const COMPILATION: &str = "compilation failed: ";

/// Keeps `status.typeChecking` and `status.observedGeneration` of all policies, until the kind is
/// served no more.
pub async fn run(registry: Arc<Registry>) {
    let Some(resource) = registry.find(GROUP, POLICIES) else { return };
    let mut subscription = registry.subscribe(&resource);
    while let Some(update) = subscription.next().await {
        let changed: Vec<_> = match update {
            Update::Reset(policies) => policies,
            Update::Events(events) => {
                let kept = events.iter().filter(|event| !event.deleted);
                kept.map(|event| event.current.clone()).collect()
            }
        };
        for policy in changed {
            let policy = policy.value();
            if policy.generation() <= policy["status"]["observedGeneration"].as_i64().unwrap_or(0) {
                continue;
            }
            if let Err(status) = tell(&registry, &policy).await
                && status.code != 404
            {
                let name = policy.name();
                tracing::warn!(name, status.message, "cannot write the status of a policy");
            }
        }
    }
}

async fn tell(registry: &Registry, policy: &Value) -> Result<(), Status> {
    let resource = registry.find(GROUP, POLICIES).ok_or_else(Status::unknown_resource)?;
    let warnings = warnings(&registry.catalog(), policy);
    let checked = match warnings.is_empty() {
        true => json!({}),
        false => json!({"expressionWarnings": warnings}),
    };
    let config = json!({
        "apiVersion": resource.api_version(), "kind": resource.kind,
        "metadata": {"name": policy.name()},
        "status": {"observedGeneration": policy.generation(), "typeChecking": checked},
    });
    let target = Target { resource: &resource, namespace: "", name: policy.name() };
    let options = WriteOptions { manager: MANAGER.to_owned(), ..WriteOptions::system() };
    registry.apply(&target, Operation::UpdateStatus, &config, true, &options).await.map(drop)
}

/// The warnings about the validations of a policy.
fn warnings(catalog: &Catalog, policy: &Value) -> Vec<Value> {
    let spec = &policy["spec"];
    let kinds = kinds(catalog, items(&spec["matchConstraints"]["resourceRules"]));
    let mut warnings = Vec::new();
    for (index, validation) in items(&spec["validations"]).iter().enumerate() {
        for field in ["expression", "messageExpression"] {
            let source = str_of(&validation[field]);
            if source.is_empty() {
                continue;
            }
            let problems = kinds.iter().filter_map(|kind| problem(catalog, spec, kind, source));
            let problems: Vec<String> = problems.collect();
            if !problems.is_empty() {
                warnings.push(json!({
                    "fieldRef": format!("spec.validations[{index}].{field}"),
                    "warning": problems.join("\n"),
                }));
            }
        }
    }
    warnings
}

/// API versions and kinds that the rules name without a wildcard, in order.
fn kinds(catalog: &Catalog, rules: &[Value]) -> BTreeSet<(String, String, String)> {
    let mut kinds = BTreeSet::new();
    for rule in rules {
        let texts = |field: &str| items(&rule[field]).iter().map(str_of).collect::<Vec<_>>();
        let (groups, versions) = (texts("apiGroups"), texts("apiVersions"));
        if groups.iter().chain(&versions).any(|text| text.contains('*')) {
            continue;
        }
        let resources = texts("resources");
        let plain = || resources.iter().filter(|text| !text.contains(['*', '/']));
        for (group, version) in
            groups.iter().flat_map(|group| versions.iter().map(move |version| (group, version)))
        {
            for resource in plain().filter_map(|plural| catalog.get(group, version, plural)) {
                let (group, version) = (resource.group.clone(), resource.version.clone());
                kinds.insert((group, version, resource.kind.clone()));
                if kinds.len() == KINDS_MAX {
                    return kinds;
                }
            }
        }
    }
    kinds
}

/// What is wrong with an expression where objects are of the kind.
fn problem(
    catalog: &Catalog,
    spec: &Value,
    kind: &(String, String, String),
    source: &str,
) -> Option<String> {
    let (group, version, kind) = kind;
    let api_version = if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
    let object = declared(catalog, &api_version, kind)?;
    let params = spec.get("paramKind").map(|kind| {
        declared(catalog, str_of(&kind["apiVersion"]), str_of(&kind["kind"]))
            .unwrap_or_else(|| Arc::new(Declared::dynamic()))
    });
    let has_params = params.is_some();
    let params = params.unwrap_or_else(|| Arc::new(Declared::dynamic()));
    let mut scope = Composition::typed(has_params, object, params);
    for variable in items(&spec["variables"]) {
        // What is wrong with a variable shows where it is used.
        let _ = scope.add_variable(str_of(&variable["name"]), str_of(&variable["expression"]));
    }
    let problem = scope.compile(source, &[], true).err()?;
    let told = problem.strip_prefix(COMPILATION)?;
    Some(format!("{}: {told}\n", params::told_kind(&api_version, kind)))
}

/// What expressions see of an object of the kind.
fn declared(catalog: &Catalog, api_version: &str, kind: &str) -> Option<Arc<Declared>> {
    let (group, version) = api_meta::object::group_version(api_version);
    if let Some(schema) = builtin_schema(group, version, kind) {
        return schema.declared(kind);
    }
    let resource = params::resource_of_kind(catalog, api_version, kind)?;
    let schema = resource.strategy.published_schema()?.to_json();
    let declared = Schema::compile(&schema).ok()?.declared(kind)?;
    let DeclaredKind::Object(object) = &declared.kind else { return Some(declared) };
    // Every object has these, and all in the same way.
    let any = builtin_schema("", "v1", "ConfigMap")?.declared("ConfigMap")?;
    let DeclaredKind::Object(any) = &any.kind else { return None };
    let own = ["apiVersion", "kind", "metadata"].into_iter().filter_map(|field| {
        let (name, field) = any.fields.get_key_value(field)?;
        Some((name.clone(), field.clone()))
    });
    let fields = object.fields.iter().map(|(name, field)| (name.clone(), field.clone())).chain(own);
    let object = Object { name: object.name.clone(), fields: fields.collect() };
    let kind = DeclaredKind::Object(Arc::new(object));
    Some(Arc::new(Declared::new(kind, declared.size_max, declared.json_min)))
}
