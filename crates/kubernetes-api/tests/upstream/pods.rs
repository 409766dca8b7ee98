//! Validation of pod specs, alone and in templates, and of their updates.

use futures::{StreamExt, stream};
use serde_json::{Value, json};

use super::side::Side;
use super::tally::{AT_ONCE, Tally};
use super::world::run;

/// A line names the owner of its JSON: the spec of a pod; its container `c`; an init container `i`;
/// a volume `v`, followed by more of the container; the template of a workload; or an update of one
/// of two pods.
const CASES: &str = include_str!("pods.txt");
const PODS: &str = "/api/v1/namespaces/default/pods";
/// API version, kind, and path of the kind.
const OWNERS: [(&str, &str, &str); 8] = [
    ("v1", "PodTemplate", "/api/v1/namespaces/default/podtemplates"),
    ("v1", "ReplicationController", "/api/v1/namespaces/default/replicationcontrollers"),
    ("apps/v1", "DaemonSet", "/apis/apps/v1/namespaces/default/daemonsets"),
    ("apps/v1", "Deployment", "/apis/apps/v1/namespaces/default/deployments"),
    ("apps/v1", "ReplicaSet", "/apis/apps/v1/namespaces/default/replicasets"),
    ("apps/v1", "StatefulSet", "/apis/apps/v1/namespaces/default/statefulsets"),
    ("batch/v1", "CronJob", "/apis/batch/v1/namespaces/default/cronjobs"),
    ("batch/v1", "Job", "/apis/batch/v1/namespaces/default/jobs"),
];

fn cases(subjects: &[&str]) -> Vec<&'static str> {
    let lines = CASES.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter(|line| subjects.contains(&line.split_once(' ').unwrap().0)).collect()
}

/// A pod whose only fault is that of the line.
fn pod(line: &str) -> Value {
    let (part, text) = line.split_once(' ').unwrap();
    let values: Result<Vec<Value>, _> =
        serde_json::Deserializer::from_str(text).into_iter().collect();
    let mut values = values.unwrap_or_else(|error| panic!("{line}: {error}")).into_iter();
    let mut container = json!({"name": "c", "image": "i"});
    let mut spec = json!({"automountServiceAccountToken": false, "containers": []});
    let given = values.next().unwrap();
    match part {
        "spec" => {}
        "container" => merge(&mut container, given.clone()),
        "init" => {
            let mut init = json!({"name": "i", "image": "i"});
            merge(&mut init, given.clone());
            spec["initContainers"] = json!([init]);
        }
        "volume" => {
            let mut volume = json!({"name": "v"});
            merge(&mut volume, given.clone());
            spec["volumes"] = json!([volume]);
            values.for_each(|more| merge(&mut container, more));
        }
        part => panic!("{part}"),
    }
    spec["containers"] = json!([container]);
    if part == "spec" {
        merge(&mut spec, given);
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
}

pub fn merge(object: &mut Value, more: Value) {
    let Value::Object(more) = more else { panic!("{more}") };
    object.as_object_mut().unwrap().extend(more);
}

#[test]
fn pods_are_validated_like_by_kube_apiserver() {
    run(async |world| {
        let mut tally = Tally::default();
        let path = format!("{PODS}?dryRun=All");
        let send_line = async |line: &'static str| {
            let pod = pod(line);
            let (real, drover) =
                tokio::join!(world.real.post(&path, &pod), world.drover.post(&path, &pod));
            (line, real, drover)
        };
        let lines = cases(&["spec", "container", "init", "volume"]);
        let mut responses = stream::iter(lines).map(send_line).buffered(AT_ONCE);
        while let Some((line, real, drover)) = responses.next().await {
            tally.add(line, &real, &drover);
        }
        tally.check(200, 60);
    });
}

/// An object of the kind whose only fault is its template.
fn owner(api_version: &str, kind: &str, template: &Value) -> Value {
    let mut owner = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "w"}});
    let labels = json!({"a": "b"});
    match kind {
        "PodTemplate" => owner["template"] = template.clone(),
        "CronJob" => {
            let job = json!({"spec": {"template": template}});
            owner["spec"] = json!({"schedule": "* * * * *", "jobTemplate": job});
        }
        "Job" => owner["spec"] = json!({"template": template}),
        "ReplicationController" => {
            owner["spec"] = json!({"selector": labels, "template": template});
        }
        _ => {
            let selector = json!({"matchLabels": labels});
            owner["spec"] = json!({"selector": selector, "template": template});
        }
    }
    owner
}

#[test]
fn templates_are_validated_like_by_kube_apiserver() {
    run(async |world| {
        let mut tally = Tally::default();
        for line in cases(&["template"]) {
            let given = serde_json::from_str(line.split_once(' ').unwrap().1).unwrap();
            let mut template = json!({"metadata": {"labels": {"a": "b"}}});
            merge(&mut template, given);
            for (api_version, kind, path) in OWNERS {
                let (path, owner) =
                    (format!("{path}?dryRun=All"), owner(api_version, kind, &template));
                let (real, drover) =
                    tokio::join!(world.real.post(&path, &owner), world.drover.post(&path, &owner));
                tally.add(&format!("{kind} {line}"), &real, &drover);
            }
        }
        tally.check(30, 2);
    });
}

/// Creates the pods that are updated. They are not bound.
async fn make_pods(side: &Side) {
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}],
    }}});
    let spec = json!({
        "automountServiceAccountToken": false,
        "schedulerName": "none",
        "terminationGracePeriodSeconds": 20,
        "nodeSelector": {"a": "b"},
        "affinity": affinity,
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "initContainers": [{"name": "i", "image": "i"}],
        "containers": [{"name": "c", "image": "i"}],
    });
    let more = [
        ("gated", json!({"schedulingGates": [{"name": "a"}, {"name": "b"}]})),
        ("plain", json!({"activeDeadlineSeconds": 100})),
    ];
    for (name, more) in more {
        let mut spec = spec.clone();
        merge(&mut spec, more);
        let metadata = json!({"name": name});
        side.post(PODS, &json!({"metadata": metadata, "spec": spec})).await.success();
    }
}

#[test]
fn updates_of_pods_are_validated_like_by_kube_apiserver() {
    run(async |world| {
        let mut tally = Tally::default();
        for side in world.sides() {
            make_pods(side).await;
        }
        for line in cases(&["gated", "plain"]) {
            let (name, spec) = line.split_once(' ').unwrap();
            let (path, patch) =
                (format!("{PODS}/{name}?dryRun=All"), format!(r#"{{"spec": {spec}}}"#));
            let (real, drover) = tokio::join!(
                world.real.patch(&path, "merge-patch+json", patch.clone()),
                world.drover.patch(&path, "merge-patch+json", patch.clone())
            );
            tally.add(line, &real, &drover);
        }
        tally.check(25, 8);
    });
}

#[test]
fn selectors_and_immutable_fields_of_workloads_are_validated_like_by_kube_apiserver() {
    run(async |world| {
        let mut tally = Tally::default();
        let template = json!({
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        });
        let changes = [
            r#"{"selector": {"matchLabels": {"a": "c"}}}"#,
            r#"{"selector": {"matchExpressions": [{"key": "a", "operator": "X"}]}}"#,
            r#"{"template": {"spec": {"nodeName": "n"}}}"#,
            r#"{"template": {"metadata": {"labels": {"a": "c"}}}}"#,
            r#"{"serviceName": "t", "minReadySeconds": 3}"#,
            r#"{"minReadySeconds": 3}"#,
        ];
        for (api_version, kind, path) in OWNERS.iter().filter(|(group, ..)| *group == "apps/v1") {
            let mut owner = owner(api_version, kind, &template);
            owner["metadata"]["name"] = "kept".into();
            if *kind != "DaemonSet" {
                owner["spec"]["replicas"] = 0.into();
            }
            for side in world.sides() {
                side.post(path, &owner).await.success();
            }
            for spec in changes {
                let (path, patch) =
                    (format!("{path}/kept?dryRun=All"), format!(r#"{{"spec": {spec}}}"#));
                let (real, drover) = tokio::join!(
                    world.real.patch(&path, "merge-patch+json", patch.clone()),
                    world.drover.patch(&path, "merge-patch+json", patch.clone())
                );
                tally.add(&format!("{kind} {spec}"), &real, &drover);
            }
        }
        tally.check(12, 8);
    });
}
