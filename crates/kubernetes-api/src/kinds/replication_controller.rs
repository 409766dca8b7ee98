//! ReplicationController: the predecessor of ReplicaSet, with a plain map as selector.

use api_meta::status::Cause;
use apiserver::fields::{ensure, map};
use apiserver::kind::cells;
use apiserver::kind::normal::quantity_problem;
use apiserver::kind::{FieldSpec, Hooks, Kind};
use serde_json::{Value, json};

use super::{old_annotations, replica_set, template};

/// The kind ReplicationController of the core group: namespaced, with the defaults, validation,
/// columns and selectable fields of kube-apiserver.
pub fn kind() -> Kind {
    Kind {
        short_names: &["rc"],
        categories: &["all"],
        columns: replica_set::COLUMNS,
        fields: vec![FieldSpec::text("status.replicas").unset("0")],
        orphans: true,
        hooks: Hooks {
            default,
            validate: |_, object, _| validate(object),
            validate_status: |object, _| replica_set::validate_status(object),
            decode_problem: |object| quantity_problem(&object["spec"]),
            warnings: |object, old| old_annotations::of_template("spec.template", object, old),
            cells: |object, now| {
                replica_set::row(object, now, cells::pairs(&object["spec"]["selector"]))
            },
            ..Hooks::default()
        },
        ..Kind::new("", "replicationcontrollers", "replicationcontroller", "ReplicationController")
            .with_status()
            .counted()
    }
}

fn default(object: &mut Value) {
    replica_set::default(object);
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    let Some(object) = map(object) else { return };
    if labels.as_object().is_none_or(|labels| labels.is_empty()) {
        return;
    }
    if let Some(metadata) = ensure(object, "metadata") {
        metadata.entry("labels").or_insert_with(|| labels.clone());
    }
    if let Some(spec) = ensure(object, "spec") {
        spec.entry("selector").or_insert(labels);
    }
}

fn validate(object: &Value) -> Vec<Cause> {
    let spec = &object["spec"];
    let mut causes = Vec::new();
    causes.extend(template::not_negative("spec.replicas", &spec["replicas"]));
    if spec["selector"].as_object().is_none_or(|map| map.is_empty()) {
        causes.push(Cause::required("spec.selector", ""));
    }
    let as_labels = json!({
        "selector": {"matchLabels": spec["selector"]},
        "template": spec["template"],
    });
    causes.extend(template::selector_mismatch("spec.template", &as_labels));
    causes.extend(template::of_running(&spec["template"], "ReplicationController"));
    causes
}
