//! Reports the type errors of a policy's expressions, for the kinds that its rules name, in its
//! status. This does not affect decisions.

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
use crate::registry::{Registry, Update, WriteOptions, WriteTarget};
use crate::schemas::builtin_schema;
use crate::strategy::Operation;

/// The number of kinds that one policy is checked against.
const KINDS_MAX: usize = 10;
const MANAGER: &str = "validatingadmissionpolicy-status-controller";
/// Prefix of type errors.
const COMPILATION: &str = "compilation failed: ";

/// Reconciles `status.typeChecking` and `status.observedGeneration` of all policies, until the kind
/// is no longer served. A failed write is logged and not retried until the policy changes.
pub async fn run(registry: Arc<Registry>) {
    let Some(resource) = registry.find(GROUP, POLICIES) else { return };
    let mut subscription = registry.subscribe(&resource);
    while let Some(update) = subscription.next().await {
        let changed: Vec<_> = match update {
            Update::Reset(policies) => policies,
            Update::Events(events) => {
                let existing = events.iter().filter(|event| !event.deleted);
                existing.map(|event| event.current.clone()).collect()
            }
        };
        for policy in changed {
            let policy = policy.value();
            if policy.generation() <= policy["status"]["observedGeneration"].as_i64().unwrap_or(0) {
                continue;
            }
            if let Err(status) = reconcile_status(&registry, &policy).await
                && status.code != 404
            {
                let name = policy.name();
                tracing::warn!(name, status.message, "cannot write the status of a policy");
            }
        }
    }
}

async fn reconcile_status(registry: &Registry, policy: &Value) -> Result<(), Status> {
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
    let target = WriteTarget { resource: &resource, namespace: "", name: policy.name() };
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

/// The groups, versions and kinds that the rules name without a wildcard, in order.
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

/// The type error of an expression when objects have the kind.
fn problem(
    catalog: &Catalog,
    spec: &Value,
    kind: &(String, String, String),
    source: &str,
) -> Option<String> {
    let (group, version, kind) = kind;
    let api_version = if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
    let object = declared_type(catalog, &api_version, kind)?;
    let params = spec.get("paramKind").map(|kind| {
        declared_type(catalog, str_of(&kind["apiVersion"]), str_of(&kind["kind"]))
            .unwrap_or_else(|| Arc::new(Declared::dynamic()))
    });
    let has_params = params.is_some();
    let params = params.unwrap_or_else(|| Arc::new(Declared::dynamic()));
    let mut scope = Composition::with_types(has_params, object, params);
    for variable in items(&spec["variables"]) {
        // The error of a variable is reported where it is used.
        let _ = scope.add_variable(str_of(&variable["name"]), str_of(&variable["expression"]));
    }
    let problem = scope.compile(source, &[], true).err()?;
    let error = problem.strip_prefix(COMPILATION)?;
    Some(format!("{}: {error}\n", params::format_kind(&api_version, kind)))
}

/// The declared type of objects of the kind.
fn declared_type(catalog: &Catalog, api_version: &str, kind: &str) -> Option<Arc<Declared>> {
    let (group, version) = api_meta::object::group_version(api_version);
    if let Some(schema) = builtin_schema(group, version, kind) {
        return schema.declaration(kind);
    }
    let resource = params::resource_of_kind(catalog, api_version, kind)?;
    let schema = resource.strategy.published_schema()?.to_json();
    let declared = Schema::compile(&schema).ok()?.declaration(kind)?;
    let DeclaredKind::Object(object) = &declared.kind else { return Some(declared) };
    // Every object has these fields, with the same types.
    let any = builtin_schema("", "v1", "ConfigMap")?.declaration("ConfigMap")?;
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
