//! Warnings about annotations that fields have replaced.

use serde_json::{Value, json};

use super::built_in::namespace;
use super::side::{Side, TestResponse};

type Outcomes = Vec<(String, TestResponse)>;

const SECCOMP: &str = "seccomp.security.alpha.kubernetes.io";

/// Objects by the paths of their collections, with a change of each that increments its generation.
fn objects() -> Vec<(&'static str, Value, Value)> {
    let annotations = json!({
        format!("{SECCOMP}/pod"): "runtime/default",
        format!("container.{SECCOMP}/main"): "runtime/default",
        format!("container.{SECCOMP}/first"): "runtime/default",
        format!("container.{SECCOMP}/fielded"): "runtime/default",
        format!("container.{SECCOMP}/absent"): "runtime/default",
        "scheduler.alpha.kubernetes.io/critical-pod": "",
        "security.alpha.kubernetes.io/sysctls": "a=b",
        "security.alpha.kubernetes.io/unsafe-sysctls": "a=b",
    });
    let fielded = json!({"name": "fielded", "image": "x:1",
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}});
    let pod = |restart: &str| {
        json!({"metadata": {"labels": {"app": "x"}, "annotations": annotations}, "spec": {
            "automountServiceAccountToken": false, "restartPolicy": restart,
            "initContainers": [{"name": "first", "image": "x:1"}],
            "containers": [{"name": "main", "image": "x:1"}, fielded]}})
    };
    let owner = |more: Value| {
        let mut spec =
            json!({"selector": {"matchLabels": {"app": "x"}}, "template": pod("Always")});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"spec": spec})
    };
    let mut controller = owner(json!({"selector": {"app": "x"}}));
    controller["spec"]["replicas"] = 0.into();
    let job = json!({"spec": {"template": pod("Never")}});
    let cron_job = json!({"spec": {"schedule": "* * * * *", "jobTemplate": job.clone()}});
    let claim = json!({"metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "x"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let volume = json!({"metadata": {"annotations": {
            "volume.beta.kubernetes.io/storage-class": "x",
            "volume.beta.kubernetes.io/mount-options": "ro"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
            "nfs": {"server": "x", "path": "/x"}}});
    let backend = json!({"service": {"name": "web", "port": {"number": 80}}});
    let ingress = json!({"metadata": {"annotations": {"kubernetes.io/ingress.class": "x"}},
        "spec": {"defaultBackend": backend}});
    let replicas = json!({"spec": {"replicas": 2}});
    vec![
        ("api/v1/pods", pod("Always"), json!({"spec": {"activeDeadlineSeconds": 9}})),
        ("apis/apps/v1/deployments", owner(json!({})), replicas.clone()),
        ("apis/apps/v1/replicasets", owner(json!({})), replicas.clone()),
        ("apis/apps/v1/statefulsets", owner(json!({"serviceName": "x"})), replicas.clone()),
        ("apis/apps/v1/daemonsets", owner(json!({})), json!({"spec": {"minReadySeconds": 2}})),
        ("api/v1/replicationcontrollers", controller, replicas),
        ("api/v1/podtemplates", json!({"template": pod("Always")}), json!({})),
        ("apis/batch/v1/jobs", job, json!({"spec": {"parallelism": 2}})),
        ("apis/batch/v1/cronjobs", cron_job, json!({"spec": {"suspend": true}})),
        ("api/v1/persistentvolumeclaims", claim, json!({})),
        ("api/v1/persistentvolumes", volume, json!({})),
        ("apis/networking.k8s.io/v1/ingresses", ingress, json!({})),
    ]
}

/// Creates each object, relabels it and changes it. Only codes and warnings are compared.
pub async fn run(side: &Side) -> Outcomes {
    const NAMESPACE: &str = "old-annotations";
    namespace(side, NAMESPACE, json!({})).await;
    let mut outcomes = Outcomes::new();
    for (place, mut object, change) in objects() {
        let (version, plural) = place.rsplit_once('/').unwrap();
        let path = match plural {
            "persistentvolumes" => format!("/{place}"),
            _ => format!("/{version}/namespaces/{NAMESPACE}/{plural}"),
        };
        object["metadata"]["name"] = NAMESPACE.into();
        let one = format!("{path}/{NAMESPACE}");
        let relabelled = json!({"metadata": {"labels": {"new": "yes"}}});
        for (method, path, body) in
            [("POST", &path, object), ("PATCH", &one, relabelled), ("PATCH", &one, change)]
        {
            let response = side.send(method, path, body.clone()).await;
            assert!(response.code < 300, "{} {method} {path}: {}", side.name, response.body);
            let response = TestResponse { body: Value::Null, ..response };
            outcomes.push((format!("{method} {path} {}", body["spec"]), response));
        }
    }
    outcomes
}

/// The expected results, independent of the other server.
pub fn check(outcomes: &Outcomes) {
    let warnings_of = |begin: &str| -> Vec<&str> {
        let found = outcomes.iter().filter(|(case, _)| case.starts_with(begin));
        found.flat_map(|(_, response)| response.warnings.iter().map(String::as_str)).collect()
    };
    assert_eq!(
        warnings_of("POST /apis/networking.k8s.io"),
        ["299 - \"annotation \\\"kubernetes.io/ingress.class\\\" is deprecated, please use \
          'spec.ingressClassName' instead\""]
    );
    assert_eq!(warnings_of("PATCH /apis/networking.k8s.io"), [""; 0]);
    assert_eq!(warnings_of("POST /api/v1/namespaces/old-annotations/pods").len(), 6);
    let of_pod = "299 - \"spec.template.metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: \
                  non-functional in v1.27+; use the \\\"seccompProfile\\\" field instead\"";
    for begin in ["POST /apis/apps", "PATCH /apis/apps"] {
        assert!(warnings_of(begin).contains(&of_pod), "{:?}", warnings_of(begin));
    }
}
