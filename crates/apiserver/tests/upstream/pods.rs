//! What the spec of a pod may say, alone and in templates, and what of it an update may change.

use futures::{StreamExt, stream};
use serde_json::{Value, json};

use super::side::{Answer, Side};
use super::world::run;

/// A line says what its JSON is a part of: the spec of a pod; its container `c`; an init container
/// `i`; a volume `v`, followed by more of the container; the template of a workload; or an update of
/// one of two pods.
const CASES: &str = include_str!("pods.txt");
/// Pods that are sent before the first is answered.
pub const AT_ONCE: usize = 16;
const PODS: &str = "/api/v1/namespaces/default/pods";
const IMMUTABLE: &str = ": field is immutable";
/// API version, kind, and where the kind is served.
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

fn cases(wanted: &[&str]) -> Vec<&'static str> {
    let lines = CASES.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter(|line| wanted.contains(&line.split_once(' ').unwrap().0)).collect()
}

/// A pod with nothing else wrong than what the line is about.
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

/// What counts of the answer. Go goes through maps in any order, and shows changes in the form of its
/// own structures.
fn judged(answer: &Answer) -> Value {
    let body = answer.json();
    if answer.code != 422 {
        return json!([answer.code, body["reason"], body["message"]]);
    }
    let mut causes = body["details"]["causes"].as_array().unwrap().clone();
    for cause in &mut causes {
        let message = cause["message"].as_str().unwrap().lines().next().unwrap_or_default();
        let message = without_uids(message);
        let is_template = cause["field"].as_str().unwrap().starts_with("spec.template");
        // All of the patched object, with its fields in an order of their own.
        if cause["field"] == "patch" {
            cause["message"] = message.rsplit_once("}\": ").unwrap_or_default().1.into();
            continue;
        }
        cause["message"] = match message.split_once(": {") {
            // All of the template in the form of Go's own structures.
            Some((kind, _)) if is_template && message.ends_with(IMMUTABLE) => {
                format!("{kind}{IMMUTABLE}").into()
            }
            _ => message.into(),
        };
    }
    let is_of_map = |cause: &Value| {
        let field = cause["field"].as_str().unwrap();
        let maps = [".nodeSelector", ".matchLabels", ".labels", ".annotations"];
        let amounts = [
            "resources",
            "overhead",
            "status.allocat",
            "status.capacity",
            "status.hard",
            "status.used",
        ];
        amounts.iter().any(|part| field.contains(part))
            || maps.iter().any(|map| field.ends_with(map))
    };
    let (mut of_maps, others): (Vec<_>, Vec<_>) = causes.into_iter().partition(is_of_map);
    of_maps.sort_by_key(ToString::to_string);
    json!([answer.code, body["reason"], others, of_maps])
}

/// The text with one mark in place of each uid, which each server gives as it likes.
fn without_uids(text: &str) -> String {
    let is_uid = |part: &str| {
        let lengths = part.split('-').map(str::len);
        lengths.eq([8, 4, 4, 4, 12])
            && part.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
    };
    let parts = text.split_inclusive(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let masked = parts.map(|part| {
        let bare = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        if is_uid(bare) { format!("UID{}", &part[bare.len()..]) } else { part.to_owned() }
    });
    masked.collect()
}

/// What the two servers said, told apart.
#[derive(Default)]
pub struct Tally {
    refused: usize,
    taken: usize,
    differences: String,
}

impl Tally {
    pub fn add(&mut self, what: &str, real: &Answer, ours: &Answer) {
        let (real, ours) = (judged(real), judged(ours));
        if real != ours {
            self.differences += &format!("{what}\n  theirs {real}\n  ours   {ours}\n");
        }
        if real[0] == 422 { self.refused += 1 } else { self.taken += 1 }
    }

    /// Compares what both tell in the status of the fields of `given`.
    pub fn add_told(&mut self, what: &str, given: &Value, real: &Answer, ours: &Answer) {
        let (real, ours) = (real.json(), ours.json());
        for field in given.as_object().unwrap().keys() {
            let (real, ours) = (&real["status"][field], &ours["status"][field]);
            if real != ours {
                self.differences += &format!("{what}\n  theirs {real}\n  ours   {ours}\n");
            }
        }
    }

    #[track_caller]
    pub fn check(&self, refused: usize, taken: usize) {
        assert!(self.differences.is_empty(), "{}", self.differences);
        assert!(self.refused >= refused && self.taken >= taken, "{} {}", self.refused, self.taken);
    }
}

#[test]
fn pods_are_judged_as_kube_apiserver_judges_them() {
    run(async |world| {
        let mut tally = Tally::default();
        let path = format!("{PODS}?dryRun=All");
        let ask = async |line: &'static str| {
            let pod = pod(line);
            let (real, ours) =
                tokio::join!(world.real.post(&path, &pod), world.ours.post(&path, &pod));
            (line, real, ours)
        };
        let lines = cases(&["spec", "container", "init", "volume"]);
        let mut answers = stream::iter(lines).map(ask).buffered(AT_ONCE);
        while let Some((line, real, ours)) = answers.next().await {
            tally.add(line, &real, &ours);
        }
        tally.check(200, 60);
    });
}

/// An object of the kind with nothing else wrong than its template.
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
fn templates_are_judged_as_kube_apiserver_judges_them() {
    run(async |world| {
        let mut tally = Tally::default();
        for line in cases(&["template"]) {
            let given = serde_json::from_str(line.split_once(' ').unwrap().1).unwrap();
            let mut template = json!({"metadata": {"labels": {"a": "b"}}});
            merge(&mut template, given);
            for (api_version, kind, path) in OWNERS {
                let (path, owner) =
                    (format!("{path}?dryRun=All"), owner(api_version, kind, &template));
                let (real, ours) =
                    tokio::join!(world.real.post(&path, &owner), world.ours.post(&path, &owner));
                tally.add(&format!("{kind} {line}"), &real, &ours);
            }
        }
        tally.check(30, 2);
    });
}

/// Makes the pods that the updates are about. Nobody binds them.
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
fn updates_of_pods_are_judged_as_kube_apiserver_judges_them() {
    run(async |world| {
        let mut tally = Tally::default();
        for side in world.sides() {
            make_pods(side).await;
        }
        for line in cases(&["gated", "plain"]) {
            let (name, spec) = line.split_once(' ').unwrap();
            let (path, patch) =
                (format!("{PODS}/{name}?dryRun=All"), format!(r#"{{"spec": {spec}}}"#));
            let (real, ours) = tokio::join!(
                world.real.patch(&path, "merge-patch+json", patch.clone()),
                world.ours.patch(&path, "merge-patch+json", patch.clone())
            );
            tally.add(line, &real, &ours);
        }
        tally.check(25, 8);
    });
}

#[test]
fn selectors_and_what_else_of_workloads_stays_are_judged_as_kube_apiserver_judges_them() {
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
                let (real, ours) = tokio::join!(
                    world.real.patch(&path, "merge-patch+json", patch.clone()),
                    world.ours.patch(&path, "merge-patch+json", patch.clone())
                );
                tally.add(&format!("{kind} {spec}"), &real, &ours);
            }
        }
        tally.check(12, 8);
    });
}
