//! Deployment: a sequence of replica sets.

use api_meta::status::Cause;
use apiserver::fields::{child, ensure, map, preset, str_of, text};
use apiserver::kind::cells::{self, number};
use apiserver::kind::normal::quantity_problem;
use apiserver::kind::{AGE, Hooks, Kind, NAME};
use serde_json::{Value, json};

use super::{old_annotations, status, template};

/// Non-negative numbers in its status.
const COUNTS: [&str; 8] = [
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "terminatingReplicas",
    "collisionCount",
];

/// The kind Deployment of the group `apps`: namespaced, with the defaults, validation and columns
/// of kube-apiserver.
pub fn kind() -> Kind {
    Kind {
        preserved_by_status: &[&["spec"], &["metadata", "labels"]],
        counts_metadata: &["annotations"],
        short_names: &["deploy"],
        categories: &["all"],
        columns: &[
            NAME,
            ("Ready", "string", "", 0),
            ("Up-to-date", "string", "", 0),
            ("Available", "string", "", 0),
            AGE,
            ("Containers", "string", "", 1),
            ("Images", "string", "", 1),
            ("Selector", "string", "", 1),
        ],
        hooks: Hooks {
            default,
            validate: |_, object, old| validate(object, old),
            validate_status,
            decode_problem: |object| quantity_problem(&object["spec"]),
            warnings: |object, old| old_annotations::of_template("spec.template", object, old),
            cells: row,
            ..Hooks::default()
        },
        ..Kind::new("apps", "deployments", "deployment", "Deployment").with_status().counted()
    }
}

fn default(object: &mut Value) {
    let Some(object) = map(object) else { return };
    if let Some(status) = ensure(object, "status") {
        apiserver::kind::default_conditions(status, &["lastUpdateTime"]);
    }
    let Some(spec) = ensure(object, "spec") else { return };
    preset(spec, "replicas", 1);
    preset(spec, "revisionHistoryLimit", 10);
    preset(spec, "progressDeadlineSeconds", 600);
    if let Some(strategy) = ensure(spec, "strategy") {
        preset(strategy, "type", "RollingUpdate");
        if text(strategy, "type") == "RollingUpdate" {
            ensure(strategy, "rollingUpdate");
            if let Some(rolling) = child(strategy, "rollingUpdate") {
                preset(rolling, "maxUnavailable", "25%");
                preset(rolling, "maxSurge", "25%");
            }
        }
    }
    template::default(spec);
}

fn validate(object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = template::validate(object, "deployment");
    causes.extend(strategy_problems(&object["spec"]["strategy"]));
    causes.extend(template::selector_change(object, old));
    causes
}

fn validate_status(object: &Value, old: &Value) -> Vec<Cause> {
    let status = &object["status"];
    let mut causes = status::counts(status, &COUNTS);
    let parts = ["updatedReplicas", "readyReplicas", "availableReplicas"];
    causes.extend(status::replicas(status, &parts, "readyReplicas"));
    causes.extend(status::collisions(status, &old["status"]));
    causes
}

fn strategy_problems(strategy: &Value) -> Vec<Cause> {
    let field = "spec.strategy";
    let rolling = &strategy["rollingUpdate"];
    match str_of(&strategy["type"]) {
        "Recreate" if !rolling.is_null() => {
            let text = "may not be specified when strategy `type` is 'Recreate'";
            vec![Cause::forbidden(format!("{field}.rollingUpdate"), text)]
        }
        "Recreate" => Vec::new(),
        "RollingUpdate" => {
            let field = format!("{field}.rollingUpdate");
            let mut causes = Vec::new();
            for name in ["maxSurge", "maxUnavailable"] {
                causes.extend(template::percentage(&format!("{field}.{name}"), &rolling[name]));
            }
            let zero = |value: &Value| value.as_i64() == Some(0) || str_of(value) == "0%";
            if zero(&rolling["maxSurge"]) && zero(&rolling["maxUnavailable"]) {
                causes.push(Cause::invalid(
                    format!("{field}.maxUnavailable"),
                    &rolling["maxUnavailable"],
                    "may not be 0 when `maxSurge` is 0",
                ));
            }
            causes
        }
        kind => {
            // Upstream prints its own struct here.
            let message = format!(
                "Unsupported value: {{\"Type\":{},\"RollingUpdate\":null}}: supported values: \
                 \"Recreate\", \"RollingUpdate\"",
                json!(kind)
            );
            vec![Cause::new("FieldValueNotSupported", field, message)]
        }
    }
}

fn row(object: &Value, now: i64) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let (names, images) = cells::containers(&spec["template"]["spec"]);
    vec![
        cells::name(object),
        format!("{}/{}", number(&status["readyReplicas"]), number(&spec["replicas"])).into(),
        number(&status["updatedReplicas"]).into(),
        number(&status["availableReplicas"]).into(),
        cells::age(object, now),
        names,
        images,
        cells::selector(&spec["selector"]),
    ]
}
