//! HorizontalPodAutoscaler in its two versions.

use serde_json::{Value, json};

use super::side::{Side, TestResponse};
use super::world::run;

const V1: &str = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
const V2: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
const MERGE: &str = "merge-patch+json";
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";

fn scaler(name: &str, spec: &Value) -> Value {
    let mut object = json!({"metadata": {"name": name}, "spec": {
        "maxReplicas": 5,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
    }});
    object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    object
}

/// The response without values that differ between any two servers.
fn outcome(response: &TestResponse) -> Value {
    let mut body = response.json();
    if response.code >= 300 {
        return json!([response.code, body["reason"], body["message"]]);
    }
    if let Some(details) = body.get_mut("details").and_then(Value::as_object_mut) {
        details.remove("uid");
    }
    let metadata = body["metadata"].as_object_mut().unwrap();
    for own in ["uid", "resourceVersion", "creationTimestamp"] {
        metadata.remove(own);
    }
    if let Some(entries) = metadata.get_mut("managedFields").and_then(Value::as_array_mut) {
        for entry in entries.iter_mut() {
            entry.as_object_mut().unwrap().remove("time");
        }
        // Their order is that of the seconds in which each server wrote.
        entries.sort_by_key(ToString::to_string);
    }
    json!([response.code, body])
}

/// Fields of version 2 that version 1 does not have.
fn full_spec() -> Value {
    let selector = json!({
        "matchLabels": {"b": "1", "a": "<&>"},
        "matchExpressions": [{"key": "k", "operator": "In", "values": ["x"]}],
    });
    let object = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "i"});
    json!({
        "minReplicas": 2,
        "metrics": [
            {"type": "Resource", "resource": {"name": "memory",
                "target": {"type": "AverageValue", "averageValue": "0.5Gi"}}},
            {"type": "Pods", "pods": {"metric": {"name": "requests", "selector": selector},
                "target": {"type": "AverageValue", "averageValue": "1000m"}}},
            {"type": "Object", "object": {"describedObject": object, "metric": {"name": "hits"},
                "target": {"type": "Value", "value": "2k"}}},
            {"type": "Object", "object": {"describedObject": object, "metric": {"name": "hits"},
                "target": {"type": "AverageValue", "averageValue": "10"}}},
            {"type": "External", "external": {"metric": {"name": "queue", "selector": selector},
                "target": {"type": "AverageValue", "averageValue": "30"}}},
            {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c",
                "target": {"type": "Utilization", "averageUtilization": 70}}},
            // From version 1 it is always the last one.
            {"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 60}}},
        ],
        "behavior": {
            "scaleDown": {"stabilizationWindowSeconds": 60, "policies": [
                {"type": "Percent", "value": 10, "periodSeconds": 30}]},
            "scaleUp": {"selectPolicy": "Min"},
        },
    })
}

fn full_status() -> Value {
    json!({
        "currentReplicas": 3,
        "desiredReplicas": 4,
        "observedGeneration": 1,
        "lastScaleTime": "2026-01-01T00:00:00Z",
        "currentMetrics": [
            {"type": "Resource", "resource": {"name": "cpu",
                "current": {"averageUtilization": 50, "averageValue": "100m"}}},
            {"type": "Pods", "pods": {"metric": {"name": "requests"},
                "current": {"averageValue": "900m"}}},
            {"type": "External", "external": {"metric": {"name": "queue"},
                "current": {"value": "7", "averageValue": "2"}}},
        ],
        "conditions": [
            {"type": "AbleToScale", "status": "True", "reason": "R", "message": "a < b",
                "lastTransitionTime": "2026-01-01T00:00:00Z"},
            {"type": "ScalingActive", "status": "False"},
        ],
    })
}

/// Objects of version 2, read and changed in version 1.
async fn newer(side: &Side) -> Vec<Value> {
    let mut all = Vec::new();
    let paths = |name: &str| [format!("{V1}/{name}"), format!("{V2}/{name}")];
    for (name, spec) in [("plain", json!({})), ("full", full_spec())] {
        side.post(V2, &scaler(name, &spec)).await.success();
        let [v1, v2] = paths(name);
        all.push(outcome(&side.get(&v1).await));
        let status = json!({"status": full_status()}).to_string();
        all.push(outcome(&side.patch(&format!("{v2}/status"), MERGE, status).await));
        let before = side.get(&v1).await;
        all.push(outcome(&before));
        // Writing what was read changes nothing.
        let same = side.put(&v1, &before.json()).await;
        let versions =
            [&before, &same].map(|response| response.json()["metadata"]["resourceVersion"].clone());
        all.push(json!([versions[0] == versions[1], outcome(&same)]));
        // A write of the spec does not change the status, and vice versa.
        let change = json!({
            "metadata": {"annotations": {CONDITIONS: "[]", CURRENT: "[]", "own": "1"}},
            "spec": {"targetCPUUtilizationPercentage": 33},
            "status": {"currentReplicas": 9},
        });
        all.push(outcome(&side.patch(&v1, MERGE, change.to_string()).await));
        all.push(outcome(&side.get(&v2).await));
        let change = json!({
            "metadata": {"annotations": {METRICS: "[]", BEHAVIOR: null, CONDITIONS: null}},
            "spec": {"maxReplicas": 9},
            "status": {"currentReplicas": 1, "desiredReplicas": 2},
        });
        all.push(outcome(&side.patch(&format!("{v1}/status"), MERGE, change.to_string()).await));
        all.push(outcome(&side.get(&v2).await));
        let change = json!({"metadata": {"annotations": {METRICS: null, BEHAVIOR: null}}});
        all.push(outcome(&side.patch(&v1, MERGE, change.to_string()).await));
        all.push(outcome(&side.get(&v2).await));
        all.push(outcome(&side.delete(&v1).await));
    }
    all
}

/// Objects of version 1, read in both.
async fn older(side: &Side) -> Vec<Value> {
    let mut all = Vec::new();
    let metrics = json!([
        {"type": "Resource", "resource": {"name": "memory", "targetAverageValue": "1Gi"}},
        {"type": "Pods", "pods": {"metricName": "m", "targetAverageValue": 5}},
        {"type": "Object", "object": {"target": {"kind": "K", "name": "n"}, "metricName": "m",
            "targetValue": "0", "averageValue": "3"}},
        {"type": "External", "external": {"metricName": "m", "targetValue": "4",
            "metricSelector": {"matchLabels": {"a": "b"}}}},
        {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c",
            "targetAverageUtilization": 20}},
    ]);
    let behavior = json!({"ScaleUp": {"StabilizationWindowSeconds": 7, "SelectPolicy": "Max",
        "Policies": [{"Type": "Pods", "Value": 1, "PeriodSeconds": 9}]}, "ScaleDown": null});
    let conditions = json!([{"type": "A", "status": "True", "lastTransitionTime": null}]);
    let noted = json!({
        METRICS: metrics.to_string(),
        BEHAVIOR: behavior.to_string(),
        CONDITIONS: conditions.to_string(),
        "own": "1",
    });
    let cases = [
        (json!({}), json!({})),
        (json!({"targetCPUUtilizationPercentage": 40, "minReplicas": 3}), json!({})),
        (json!({"targetCPUUtilizationPercentage": 40}), noted.clone()),
        (json!({}), noted),
        (json!({}), json!({METRICS: "no JSON", BEHAVIOR: "{}", CONDITIONS: "{}"})),
        (json!({}), json!({METRICS: r#"[{"type": 1}]"#, BEHAVIOR: r#"{"ScaleUp": 1}"#})),
        (json!({"maxReplicas": 0}), json!({})),
        (json!({"maxReplicas": "x"}), json!({})),
        (json!({"metrics": []}), json!({})),
    ];
    for (number, (spec, annotations)) in cases.into_iter().enumerate() {
        let name = format!("older-{number}");
        let mut object = scaler(&name, &spec);
        object["metadata"]["annotations"] = annotations;
        all.push(outcome(&side.post(&format!("{V1}?fieldValidation=Strict"), &object).await));
        all.push(outcome(&side.get(&format!("{V2}/{name}")).await));
        all.push(outcome(&side.get(&format!("{V1}/{name}")).await));
        // The newer version ignores them.
        object["metadata"]["name"] = format!("newer-{number}").into();
        all.push(outcome(&side.post(&format!("{V2}?fieldValidation=Ignore"), &object).await));
    }
    let applied = json!({
        "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "applied"},
        "spec": {"maxReplicas": 2, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "K", "name": "n"},
            "targetCPUUtilizationPercentage": 10},
    });
    for version in [V1, V2] {
        let path = format!("{version}/applied?fieldManager=m&force=true");
        let mut applied = applied.clone();
        if version == V2 {
            applied["apiVersion"] = "autoscaling/v2".into();
            applied["spec"].as_object_mut().unwrap().remove("targetCPUUtilizationPercentage");
        }
        all.push(outcome(&side.patch(&path, "apply-patch+yaml", applied.to_string()).await));
        all.push(outcome(&side.get(&format!("{V1}/applied")).await));
    }
    all
}

#[test]
fn autoscalers_are_converted_like_by_kube_apiserver() {
    run(async |world| {
        let (mut real, mut drover) = tokio::join!(newer(&world.real), newer(&world.drover));
        let (more, more_ours) = tokio::join!(older(&world.real), older(&world.drover));
        real.extend(more);
        drover.extend(more_ours);
        let mut differences = String::new();
        for (step, (drover, real)) in drover.iter().zip(&real).enumerate() {
            if drover != real {
                differences +=
                    &format!("step {step}\n  kube-apiserver {real}\n  drover         {drover}\n");
            }
        }
        assert!(differences.is_empty(), "{differences}");
        assert!(
            real.iter().any(|outcome| outcome[0] == 422)
                && real.iter().any(|outcome| outcome[0] == 201)
        );
    });
}
