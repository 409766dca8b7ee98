//! HorizontalPodAutoscaler: stored and shown; nothing scales here.

use api_meta::status::Cause;
use serde_json::{Value, json};

use super::cells::{self, UNKNOWN, UNSET, number};
use super::fields::{ensure, items, map, preset, str_of};
use super::kind::{AGE, Hooks, Kind, NAME};
use super::normal::quantity_problem_of_both;
use super::status;

pub fn horizontal_pod_autoscaler() -> Kind {
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
            validate: |_, object, _| validate(object),
            validate_status: |object, _| {
                status::counts(&object["status"], &["currentReplicas", "desiredReplicas"])
            },
            decode_problem: quantity_problem_of_both,
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
    }
    if let Some(status) = ensure(object, "status") {
        preset(status, "desiredReplicas", 0);
        preset(status, "currentMetrics", Value::Null);
    }
}

fn validate(object: &Value) -> Vec<Cause> {
    let spec = &object["spec"];
    let mut causes = Vec::new();
    let (least, most) = (number(&spec["minReplicas"]), number(&spec["maxReplicas"]));
    if most < 1 {
        causes.push(Cause::required("spec.maxReplicas", "must be set and greater than 0"));
    }
    if most < least {
        let text = "must be greater than or equal to `minReplicas`";
        causes.push(Cause::invalid("spec.maxReplicas", &most.into(), text));
    }
    for field in ["kind", "name"] {
        if str_of(&spec["scaleTargetRef"][field]).is_empty() {
            causes.push(Cause::required(format!("spec.scaleTargetRef.{field}"), ""));
        }
    }
    let version = &spec["scaleTargetRef"]["apiVersion"];
    if str_of(version).is_empty() {
        let text = "apiVersion must specify API group";
        let field = "spec.scaleTargetRef.apiVersion";
        causes.push(Cause::invalid(field, &"".into(), text));
    }
    causes
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
