//! Validation of the status of objects, and of its changes.

use serde_json::{Value, json};

use super::side::Side;
use super::tally::Tally;
use super::world::run;

/// A line names the object whose status is changed, and the JSON that is merged into it.
const CASES: &str = include_str!("statuses.txt");
const STARTED: &str = "2026-01-01T00:00:00Z";

struct Subject {
    name: &'static str,
    /// The path of its kind.
    folder: &'static str,
    spec: Value,
    /// Its initial status.
    status: Value,
}

fn subject(name: &'static str, folder: &'static str, spec: Value, status: Value) -> Subject {
    Subject { name, folder, spec, status }
}

fn true_conditions(types: &[&str]) -> Value {
    types.iter().map(|one| json!({"type": one, "status": "True"})).collect()
}

fn pod_spec(restarts: &str) -> Value {
    json!({
        "automountServiceAccountToken": false,
        "restartPolicy": restarts,
        "containers": [{"name": "c", "image": "i"}],
    })
}

fn terminated(name: &str, exit_code: i64) -> Value {
    json!({
        "name": name, "image": "i", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": exit_code}},
    })
}

/// Matches no pods, so that the controllers count none.
fn workload() -> Value {
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": pod_spec("Always")});
    json!({"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template})
}

fn job(name: &'static str, spec: Value, status: Value) -> Subject {
    let mut whole =
        json!({"managedBy": "example.com/nobody", "template": {"spec": pod_spec("Never")}});
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    subject(name, "/apis/batch/v1/namespaces/default/jobs", whole, status)
}

fn jobs() -> Vec<Subject> {
    let ended = |conditions: &[&str]| json!({"startTime": STARTED, "conditions": true_conditions(conditions)});
    let mut done = ended(&["SuccessCriteriaMet", "Complete"]);
    done["completionTime"] = "2026-01-01T00:01:00Z".into();
    done["succeeded"] = 1.into();
    let mut failed = ended(&["FailureTarget", "Failed"]);
    failed["failed"] = 2.into();
    let indexed =
        |number: i64| json!({"completionMode": "Indexed", "completions": number, "parallelism": 3});
    let mut limited = indexed(10);
    limited["backoffLimitPerIndex"] = 1.into();
    let mut policy = indexed(3);
    policy["successPolicy"] = json!({"rules": [{"succeededCount": 1}]});
    vec![
        job("fresh", json!({}), json!({})),
        job(
            "running",
            json!({"completions": 5, "parallelism": 2}),
            json!({"startTime": STARTED, "active": 2, "ready": 1, "succeeded": 1, "failed": 1}),
        ),
        job("met", json!({}), ended(&["SuccessCriteriaMet"])),
        job("targeted", json!({}), ended(&["FailureTarget"])),
        job("done", json!({}), done),
        job("failed", json!({}), failed),
        job("suspended", json!({"suspend": true}), ended(&["Suspended"])),
        job("resuming", json!({}), ended(&["Suspended"])),
        job("idle", json!({"suspend": true, "completions": 0}), json!({})),
        job(
            "indexed",
            limited,
            json!({"startTime": STARTED, "completedIndexes": "0-2", "failedIndexes": "5", "succeeded": 3}),
        ),
        job("elastic", indexed(3), json!({"startTime": STARTED, "succeeded": 3, "failed": 1})),
        job("shrunk", indexed(3), json!({"startTime": STARTED, "completedIndexes": "0-2"})),
        job("policy", policy, json!({"startTime": STARTED})),
    ]
}

fn controllers() -> Vec<Subject> {
    let mut everywhere = workload();
    everywhere.as_object_mut().unwrap().remove("replicas");
    let mut controller = workload();
    controller["selector"] = json!({"a": "b"});
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"});
    vec![
        subject(
            "deployment",
            "/apis/apps/v1/namespaces/default/deployments",
            workload(),
            json!({"collisionCount": 2}),
        ),
        subject(
            "replica-set",
            "/apis/apps/v1/namespaces/default/replicasets",
            workload(),
            json!({}),
        ),
        subject(
            "daemon-set",
            "/apis/apps/v1/namespaces/default/daemonsets",
            everywhere,
            json!({"collisionCount": 2}),
        ),
        subject(
            "stateful-set",
            "/apis/apps/v1/namespaces/default/statefulsets",
            workload(),
            json!({"collisionCount": 2}),
        ),
        subject(
            "controller",
            "/api/v1/namespaces/default/replicationcontrollers",
            controller,
            json!({}),
        ),
        subject(
            "budget",
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            json!({"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}),
            json!({}),
        ),
        subject(
            "autoscaler",
            "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
            json!({"maxReplicas": 2, "scaleTargetRef": target}),
            json!({}),
        ),
        subject(
            "timed",
            "/apis/batch/v1/namespaces/default/cronjobs",
            json!({
                "schedule": "* * * * *",
                "suspend": true,
                "jobTemplate": {"spec": {"template": {"spec": pod_spec("Never")}}},
            }),
            json!({}),
        ),
    ]
}

fn pods() -> Vec<Subject> {
    let pods = "/api/v1/namespaces/default/pods";
    let mut bound = pod_spec("Always");
    bound["nodeName"] = "of-status-node".into();
    vec![
        subject("pod", pods, pod_spec("Always"), json!({})),
        subject("bound", pods, bound, json!({})),
        subject(
            "retried",
            pods,
            pod_spec("OnFailure"),
            json!({"containerStatuses": [terminated("c", 1), terminated("d", 0)]}),
        ),
        subject(
            "ended",
            pods,
            pod_spec("Never"),
            json!({"containerStatuses": [terminated("c", 1)]}),
        ),
    ]
}

fn storage() -> Vec<Subject> {
    vec![
        subject(
            "claim",
            "/api/v1/namespaces/default/persistentvolumeclaims",
            json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}),
            json!({}),
        ),
        subject(
            "volume",
            "/api/v1/persistentvolumes",
            json!({
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1Gi"},
                "hostPath": {"path": "/x"},
            }),
            json!({}),
        ),
        subject(
            "quota",
            "/api/v1/namespaces/default/resourcequotas",
            json!({"hard": {"count/x.example.com": "1"}}),
            json!({}),
        ),
        subject(
            "attachment",
            "/apis/storage.k8s.io/v1/volumeattachments",
            json!({"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}),
            json!({}),
        ),
    ]
}

fn others() -> Vec<Subject> {
    let port = json!([{"port": 80}]);
    let services = "/api/v1/namespaces/default/services";
    vec![
        subject("service", services, json!({"ports": port}), json!({})),
        subject("balanced", services, json!({"ports": port, "type": "LoadBalancer"}), json!({})),
        subject(
            "ingress",
            "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
            json!({"defaultBackend": {"service": {"name": "a", "port": {"number": 1}}}}),
            json!({}),
        ),
        subject("namespace", "/api/v1/namespaces", json!({}), json!({})),
        subject("node", "/api/v1/nodes", json!({}), json!({})),
        subject(
            "flow",
            "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
            json!({"priorityLevelConfiguration": {"name": "x"}}),
            json!({}),
        ),
        subject(
            "level",
            "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
            json!({"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}),
            json!({}),
        ),
    ]
}

impl Subject {
    /// Differs from the paths of other tests.
    fn path(&self) -> String {
        format!("{}/of-status-{}", self.folder, self.name)
    }
}

async fn make(side: &Side, subject: &Subject) {
    let name = format!("of-status-{}", subject.name);
    let object = json!({"metadata": {"name": name}, "spec": subject.spec});
    side.post(subject.folder, &object).await.success();
    if subject.status != json!({}) {
        let patch = json!({"status": subject.status}).to_string();
        let path = format!("{}/status", subject.path());
        side.patch(&path, "merge-patch+json", patch).await.success();
    }
}

#[test]
fn statuses_are_validated_like_by_kube_apiserver() {
    run(async |world| {
        let subjects: Vec<Subject> =
            [jobs(), controllers(), pods(), storage(), others()].into_iter().flatten().collect();
        for side in world.sides() {
            for subject in &subjects {
                make(side, subject).await;
            }
            let shrink = json!({"spec": {"completions": 2, "parallelism": 2}}).to_string();
            let shrunk = "/apis/batch/v1/namespaces/default/jobs/of-status-shrunk";
            side.patch(shrunk, "merge-patch+json", shrink).await.success();
        }
        let mut tally = Tally::default();
        for line in CASES.lines().filter(|line| !line.starts_with('#')) {
            let (name, status) = line.split_once(' ').unwrap();
            let subject = subjects.iter().find(|subject| subject.name == name);
            let path = subject.unwrap_or_else(|| panic!("{name}")).path();
            let path = format!("{path}/status?dryRun=All");
            let patch = format!(r#"{{"status": {status}}}"#);
            let (real, drover) = tokio::join!(
                world.real.patch(&path, "merge-patch+json", patch.clone()),
                world.drover.patch(&path, "merge-patch+json", patch.clone())
            );
            tally.add(line, &real, &drover);
            if real.code == 200 {
                let given: Value = serde_json::from_str(status).unwrap();
                tally.compare_status(line, &given, &real, &drover);
            }
        }
        tally.check(80, 30);
    });
}
