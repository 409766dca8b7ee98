//! ReplicaSet: a number of pods of one template.

use api_meta::status::Cause;
use apiserver::fields::{ensure, map, preset};
use apiserver::kind::cells::{self, number};
use apiserver::kind::normal::quantity_problem;
use apiserver::kind::{AGE, ColumnSpec, Hooks, Kind, NAME};
use serde_json::Value;

use super::{old_annotations, status, template};

/// Numbers of replicas that cannot exceed the total.
const PARTS: [&str; 3] = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];

pub const COLUMNS: &[ColumnSpec] = &[
    NAME,
    ("Desired", "integer", "", 0),
    ("Current", "integer", "", 0),
    ("Ready", "integer", "", 0),
    AGE,
    ("Containers", "string", "", 1),
    ("Images", "string", "", 1),
    ("Selector", "string", "", 1),
];

/// The kind ReplicaSet of the group `apps`: namespaced, with the defaults, validation and columns
/// of kube-apiserver.
pub fn kind() -> Kind {
    Kind {
        short_names: &["rs"],
        categories: &["all"],
        columns: COLUMNS,
        hooks: Hooks {
            default,
            validate: |_, object, old| {
                let mut causes = template::validate(object, "replica set");
                causes.extend(template::selector_change(object, old));
                causes
            },
            validate_status: |object, _| validate_status(object),
            decode_problem: |object| quantity_problem(&object["spec"]),
            warnings: |object, old| old_annotations::of_template("spec.template", object, old),
            cells: |object, now| row(object, now, cells::selector(&object["spec"]["selector"])),
            ..Hooks::default()
        },
        ..Kind::new("apps", "replicasets", "replicaset", "ReplicaSet").with_status().counted()
    }
}

/// Sets the defaults of a ReplicaSet or ReplicationController.
pub fn default(object: &mut Value) {
    let Some(object) = map(object) else { return };
    if let Some(status) = ensure(object, "status") {
        preset(status, "replicas", 0);
    }
    if let Some(spec) = ensure(object, "spec") {
        preset(spec, "replicas", 1);
        template::default(spec);
    }
}

/// Returns all causes to refuse the status. Also for a ReplicationController.
pub fn validate_status(object: &Value) -> Vec<Cause> {
    let status = &object["status"];
    let mut causes = status::counts(status, &["replicas"]);
    causes.extend(status::counts(status, &PARTS));
    causes.extend(status::counts(status, &["observedGeneration", "terminatingReplicas"]));
    causes.extend(status::replicas(status, &PARTS, "readyReplicas"));
    causes
}

/// The cells of a row. `now` is in seconds since 1970; `selector` is the last cell.
pub fn row(object: &Value, now: i64, selector: Value) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let (names, images) = cells::containers(&spec["template"]["spec"]);
    vec![
        cells::name(object),
        number(&spec["replicas"]).into(),
        number(&status["replicas"]).into(),
        number(&status["readyReplicas"]).into(),
        cells::age(object, now),
        names,
        images,
        selector,
    ]
}
