//! HorizontalPodAutoscaler in its two versions. Objects are stored and returned; no controller
//! scales.

mod annotations;
mod v1;
mod validate;

use api_meta::quantity;
use api_meta::status::Cause;
use apiserver::fields::{Object, child, each, ensure, items, map, preset, str_of};
use apiserver::kind::cells::{self, UNKNOWN, UNSET, number};
use apiserver::kind::normal::quantity_problem_of_both;
use apiserver::kind::{AGE, Hooks, Kind, NAME};
use apiserver::strategy::Write;
use serde_json::{Value, json};

use super::status;

pub use v1::kind as horizontal_pod_autoscaler_v1;

/// The kind HorizontalPodAutoscaler, stored as version 2 and served as version 1 too.
pub fn horizontal_pod_autoscaler() -> Kind {
    let mut kind = stored_kind();
    kind.hooks.on_convert = Some(v1::to_stored);
    // Fields of version 2 replace what version 1 has in annotations.
    kind.hooks.default = |object| {
        v1::drop_annotations(object);
        default(object);
    };
    kind
}

/// The parts that both versions share, with the rules of the stored version.
fn stored_kind() -> Kind {
    Kind {
        version: "v2",
        short_names: &["hpa"],
        categories: &["all"],
        columns: &[
            NAME,
            ("Reference", "string", "", 0),
            ("Targets", "string", "", 0),
            ("MinPods", "string", "", 0),
            ("MaxPods", "string", "", 0),
            ("Replicas", "string", "", 0),
            AGE,
        ],
        hooks: Hooks {
            default,
            validate,
            validate_status: |object, _| {
                status::counts(&object["status"], &["currentReplicas", "desiredReplicas"])
            },
            decode_problem: |object| {
                quantity_problem_of_both(object).or_else(|| target_problem(&object["spec"]))
            },
            cells: row,
            ..Hooks::default()
        },
        ..Kind::new(
            "autoscaling",
            "horizontalpodautoscalers",
            "horizontalpodautoscaler",
            "HorizontalPodAutoscaler",
        )
        .with_status()
    }
}

fn validate(_: &Write<'_>, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    validate::validate(&object["spec"], old.map(|old| &old["spec"]))
}

fn default(object: &mut Value) {
    let Some(object) = map(object) else { return };
    if let Some(spec) = ensure(object, "spec") {
        preset(spec, "minReplicas", 1);
        let cpu = json!([{
            "type": "Resource",
            "resource": {
                "name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 80},
            },
        }]);
        preset(spec, "metrics", cpu);
        each(spec, "metrics", |metric| {
            let targets = metric.values_mut().filter_map(|source| source.get_mut("target"));
            for value in targets.filter_map(|target| target.get_mut("value")) {
                if let Some(text) = quantity::canonical(value) {
                    *value = text.into();
                }
            }
        });
        if let Some(behavior) = child(spec, "behavior") {
            default_behavior(behavior);
        }
    }
    if let Some(status) = ensure(object, "status") {
        preset(status, "desiredReplicas", 0);
        preset(status, "currentMetrics", Value::Null);
    }
}

/// The message about the first target whose value is no quantity. In other fields, a `value` is
/// text.
fn target_problem(spec: &Value) -> Option<String> {
    let sources = items(&spec["metrics"]).iter().filter_map(Value::as_object).flatten();
    let mut values = sources.map(|(_, source)| &source["target"]["value"]);
    let is_wrong = |value: &Value| !value.is_null() && quantity::canonical(value).is_none();
    values.any(is_wrong).then(|| quantity::QuantityError.to_string())
}

/// The default scaling speed. The stabilization window for scaling down is left to the controller's
/// own setting.
fn default_behavior(behavior: &mut Object) {
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
    if let Some(up) = ensure(behavior, "scaleUp") {
        preset(up, "stabilizationWindowSeconds", 0);
        preset(up, "selectPolicy", "Max");
        preset(up, "policies", json!([pods, percent]));
    }
    if let Some(down) = ensure(behavior, "scaleDown") {
        preset(down, "selectPolicy", "Max");
        preset(down, "policies", json!([percent]));
    }
}

fn row(object: &Value, now: i64) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let target = &spec["scaleTargetRef"];
    let targets: Vec<String> = items(&spec["metrics"])
        .iter()
        .map(|metric| {
            let resource = &metric["resource"];
            let name = str_of(&resource["name"]);
            match resource["target"]["averageUtilization"].as_i64() {
                Some(percent) => format!("{name}: {UNKNOWN}/{percent}%"),
                None => {
                    format!("{name}: {UNKNOWN}/{}", str_of(&resource["target"]["averageValue"]))
                }
            }
        })
        .collect();
    vec![
        cells::name(object),
        format!("{}/{}", str_of(&target["kind"]), str_of(&target["name"])).into(),
        targets.join(", ").into(),
        cells::int_or_text(&spec["minReplicas"], UNSET),
        number(&spec["maxReplicas"]).into(),
        number(&status["currentReplicas"]).into(),
        cells::age(object, now),
    ]
}
