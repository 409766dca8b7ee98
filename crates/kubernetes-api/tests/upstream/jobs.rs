//! Validation of the specs of Jobs and CronJobs, and of their updates.

use futures::{StreamExt, stream};
use serde_json::{Value, json};

use super::pods::merge;
use super::side::Side;
use super::tally::{AT_ONCE, Tally};
use super::world::run;

/// A line names the owner of its JSON: the spec of a Job, of a CronJob, or of the Job in one, each
/// followed by metadata if needed; or the object whose update it is.
const CASES: &str = include_str!("jobs.txt");
const CREATED: [&str; 3] = ["job", "cron", "cron-job"];
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const CRON_JOBS: &str = "/apis/batch/v1/namespaces/default/cronjobs";

/// The subject of a line, and its JSON.
fn cases() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = CASES.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').unwrap())
}

fn template() -> Value {
    json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}})
}

/// The path at which the line's object is created, and that object, which has no other fault.
fn created(kind: &str, text: &str) -> (&'static str, Value) {
    let values: Result<Vec<Value>, _> =
        serde_json::Deserializer::from_str(text).into_iter().collect();
    let mut values = values.unwrap_or_else(|error| panic!("{text}: {error}")).into_iter();
    let given = values.next().unwrap();
    let mut job = json!({"template": template()});
    let mut cron_job = json!({"schedule": "* * * * *"});
    merge(if kind == "cron" { &mut cron_job } else { &mut job }, given);
    let mut metadata = json!({"name": "w"});
    values.for_each(|more| merge(&mut metadata, more));
    if kind == "job" {
        return (JOBS, json!({"metadata": metadata, "spec": job}));
    }
    cron_job["jobTemplate"] = json!({"spec": job});
    (CRON_JOBS, json!({"metadata": metadata, "spec": cron_job}))
}

#[test]
fn jobs_are_validated_like_by_kube_apiserver() {
    run(async |world| {
        let mut tally = Tally::default();
        let send_line = async |(kind, text): (&'static str, &'static str)| {
            let (path, object) = created(kind, text);
            let path = format!("{path}?dryRun=All");
            let (real, drover) =
                tokio::join!(world.real.post(&path, &object), world.drover.post(&path, &object));
            (kind, text, real, drover)
        };
        let lines = cases().filter(|(kind, _)| CREATED.contains(kind));
        let mut responses = stream::iter(lines).map(send_line).buffered(AT_ONCE);
        while let Some((kind, text, real, drover)) = responses.next().await {
            tally.add(&format!("{kind} {text}"), &real, &drover);
        }
        tally.check(80, 30);
    });
}

/// Creates the objects that are updated. Controllers ignore them.
async fn make(side: &Side) {
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}],
    }}});
    let mut placed = template();
    placed["spec"]["affinity"] = affinity;
    let suspended = json!({"suspend": true, "template": placed});
    let indexed = json!({
        "completionMode": "Indexed",
        "completions": 3,
        "parallelism": 3,
        "backoffLimitPerIndex": 1,
        "successPolicy": {"rules": [{"succeededCount": 1}]},
        "template": template(),
    });
    for (name, spec) in [
        ("plain", json!({"template": template()})),
        ("indexed", indexed),
        ("suspended", suspended.clone()),
        ("stopped", suspended.clone()),
        ("rested", suspended),
    ] {
        let mut spec = spec;
        spec["managedBy"] = "example.com/nobody".into();
        side.post(JOBS, &json!({"metadata": {"name": name}, "spec": spec})).await.success();
    }
    let condition = json!({"type": "Suspended", "status": "True"});
    for (name, conditions) in [("stopped", json!([])), ("rested", json!([condition]))] {
        let status = json!({"startTime": "2026-01-01T00:00:00Z", "conditions": conditions});
        let patch = json!({"status": status}).to_string();
        let path = format!("{JOBS}/{name}/status");
        side.patch(&path, "merge-patch+json", patch).await.success();
    }
    let (_, mut timed) = created("cron", "{}");
    timed["metadata"]["name"] = "timed".into();
    timed["spec"]["suspend"] = true.into();
    side.post(CRON_JOBS, &timed).await.success();
}

#[test]
fn updates_of_jobs_are_validated_like_by_kube_apiserver() {
    run(async |world| {
        let mut tally = Tally::default();
        for side in world.sides() {
            make(side).await;
        }
        for (name, spec) in cases().filter(|(kind, _)| !CREATED.contains(kind)) {
            let folder = if name == "timed" { CRON_JOBS } else { JOBS };
            let path = format!("{folder}/{name}?dryRun=All");
            let patch = format!(r#"{{"spec": {spec}}}"#);
            let (real, drover) = tokio::join!(
                world.real.patch(&path, "merge-patch+json", patch.clone()),
                world.drover.patch(&path, "merge-patch+json", patch.clone())
            );
            tally.add(&format!("{name} {spec}"), &real, &drover);
        }
        tally.check(25, 10);
    });
}
