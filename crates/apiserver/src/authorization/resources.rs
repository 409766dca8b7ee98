//! The four RBAC kinds as served resources.

use std::sync::Arc;

use api_meta::object::ObjectExt;
use api_meta::patch::MergeKeys;
use api_meta::status::{Cause, Status};
use api_meta::time;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::RBAC_GROUP;
use super::escalation::EscalationGuard;
use super::rbac::RbacKind;
use super::validation::{validate_binding, validate_role};
use crate::kind::{VERBS, merge_keys, normal::normalize};
use crate::resource::{Backend, NameRule, Resource, ResourceRules, TableColumn};
use crate::schemas::builtin_schema;
use crate::strategy::{Operation, Strategy, Write};

/// The resources `roles`, `clusterroles`, `rolebindings` and `clusterrolebindings`. `guard` checks
/// their writers.
pub fn rbac_resources(guard: &Arc<EscalationGuard>) -> Vec<Resource> {
    RbacKind::ALL.into_iter().map(|kind| rbac_resource(kind, Arc::clone(guard))).collect()
}

fn rbac_resource(kind: RbacKind, guard: Arc<EscalationGuard>) -> Resource {
    let plural = kind.plural();
    Resource {
        group: RBAC_GROUP.to_owned(),
        version: "v1".to_owned(),
        plural: plural.to_owned(),
        singular: kind.kind().to_lowercase(),
        kind: kind.kind().to_owned(),
        list_kind: format!("{}List", kind.kind()),
        namespaced: kind.is_namespaced(),
        short_names: Vec::new(),
        categories: Vec::new(),
        verbs: VERBS.to_vec(),
        subresources: Vec::new(),
        backend: Backend::Stored { prefix: format!("/registry/{plural}/") },
        strategy: Arc::new(RbacStrategy { kind, guard }),
        columns: columns(kind),
        rules: ResourceRules {
            generation: false,
            create_on_update: true,
            unconditional_update: true,
            delete_returns_object: false,
            ttl: None,
        },
        name_rule: NameRule::PathSegment,
        selectable_fields: Vec::new(),
        custom: false,
    }
}

/// The table columns of a kind. The cells of [`RbacStrategy`] match them.
pub fn columns(kind: RbacKind) -> Vec<TableColumn> {
    let column = |name: &str, format: &str, priority: i32, description: &str| TableColumn {
        name: name.to_owned(),
        kind: "string".to_owned(),
        format: format.to_owned(),
        description: description.to_owned(),
        priority,
    };
    let name = column("Name", "name", 0, "Name of the object, unique within its scope.");
    if kind.is_role() {
        let mut created = column("Created At", "", 0, "When the object was created.");
        created.kind = "date".to_owned();
        return vec![name, created];
    }
    vec![
        name,
        column("Role", "", 0, "The role that is bound."),
        column("Age", "", 0, "Time since the object was created."),
        column("Users", "", 1, "Users among the subjects."),
        column("Groups", "", 1, "Groups among the subjects."),
        column("ServiceAccounts", "", 1, "Service accounts among the subjects."),
    ]
}

/// The strategy of one RBAC kind.
pub struct RbacStrategy {
    kind: RbacKind,
    guard: Arc<EscalationGuard>,
}

impl RbacStrategy {
    /// Creates the strategy of a kind.
    pub fn new(kind: RbacKind, guard: Arc<EscalationGuard>) -> Self {
        Self { kind, guard }
    }
}

impl RbacStrategy {
    fn schema(&self) -> Option<&'static structural_schema::Schema> {
        builtin_schema(RBAC_GROUP, "v1", self.kind.kind())
    }
}

impl Strategy for RbacStrategy {
    fn default(&self, object: &mut Value) {
        if self.kind.is_role() {
            normalize(object, &["rules"]);
            let rules = object["rules"].as_array_mut();
            rules.into_iter().flatten().for_each(|rule| normalize(rule, &[]));
        } else {
            normalize(object, &[]);
            default_binding(object);
        }
    }

    fn prepare(&self, _write: &Write<'_>, object: &mut Value, _old: Option<&Value>) {
        // Not earlier: in server-side apply an empty list has an owner, null has none.
        if self.kind.is_role() {
            set_null_rules(object);
        }
    }

    fn prune(&self, object: &mut Value) {
        if let Some(schema) = self.schema() {
            schema.prune(object);
        }
    }

    fn unknown_fields(&self, object: &Value) -> Vec<String> {
        self.schema().map(|schema| schema.unknown_fields(object)).unwrap_or_default()
    }

    fn decode_problem(&self, object: &Value) -> Option<String> {
        self.schema().and_then(|schema| schema.type_error(object))
    }

    fn merge_keys(&self) -> Option<&dyn MergeKeys> {
        Some(merge_keys(RBAC_GROUP, self.kind.kind()))
    }

    fn validate(&self, _write: &Write<'_>, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        if self.kind.is_role() {
            validate_role(self.kind, object)
        } else {
            validate_binding(self.kind, object, old)
        }
    }

    fn admit<'a>(
        &'a self,
        write: &'a Write<'a>,
        object: Option<&'a mut Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let result = match (write.operation, object) {
            (Operation::Delete, _) | (_, None) => Ok(()),
            (_, Some(object)) if self.kind.is_role() => {
                self.guard.admit_role(self.kind, write, object, old)
            }
            (_, Some(object)) => self.guard.admit_binding(self.kind, write, object, old),
        };
        Box::pin(std::future::ready(result))
    }

    fn cells(&self, object: &Value, now: i64) -> Vec<Value> {
        let created = object.meta_str("creationTimestamp");
        if self.kind.is_role() {
            return vec![json!(object.name()), json!(created)];
        }
        let age = match time::parse_seconds(created) {
            Some(created) => time::human_duration(now - created),
            None => "<unknown>".to_owned(),
        };
        let role = &object["roleRef"];
        let text =
            |value: &Value, field: &str| value[field].as_str().unwrap_or_default().to_owned();
        let subjects = object["subjects"].as_array().map(Vec::as_slice).unwrap_or_default();
        let of_kind = |kind: &str| -> Value {
            let names = subjects.iter().filter(|s| s["kind"] == kind).map(|s| match kind {
                "ServiceAccount" => format!("{}/{}", text(s, "namespace"), text(s, "name")),
                _ => text(s, "name"),
            });
            json!(names.collect::<Vec<_>>().join(", "))
        };
        vec![
            json!(object.name()),
            json!(format!("{}/{}", text(role, "kind"), text(role, "name"))),
            json!(age),
            of_kind("User"),
            of_kind("Group"),
            of_kind("ServiceAccount"),
        ]
    }
}

/// A role always has the field `rules`; without any it is `null`.
fn set_null_rules(object: &mut Value) {
    if object["rules"].as_array().is_none_or(Vec::is_empty) {
        object["rules"] = Value::Null;
    }
}

fn default_binding(object: &mut Value) {
    fn fill(reference: &mut Value) {
        let absent = reference["apiGroup"].as_str().unwrap_or_default().is_empty();
        if let (true, Some(map)) = (absent, reference.as_object_mut()) {
            map.insert("apiGroup".to_owned(), json!(RBAC_GROUP));
        }
    }
    let role = &mut object["roleRef"];
    if role.is_null() {
        *role = json!({});
    }
    fill(role);
    let subjects = object.get_mut("subjects").and_then(Value::as_array_mut);
    for subject in subjects.into_iter().flatten() {
        if matches!(subject["kind"].as_str(), Some("User" | "Group")) {
            fill(subject);
        }
    }
}
