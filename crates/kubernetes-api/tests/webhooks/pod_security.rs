//! The Pod Security Standards: many pods under many levels.

use serde_json::{Value, json};

use super::built_in::{Steps, namespace, pod};
use super::side::{Side, TestResponse};
use super::wait;

type Outcomes = Vec<(String, TestResponse)>;

/// Level and version of each namespace.
const STANDARDS: [(&str, &str); 13] = [
    ("baseline", "latest"),
    ("baseline", "v1.0"),
    ("baseline", "v1.18"),
    ("baseline", "v1.28"),
    ("baseline", "v1.33"),
    ("restricted", "latest"),
    ("restricted", "v1.0"),
    ("restricted", "v1.7"),
    ("restricted", "v1.19"),
    ("restricted", "v1.22"),
    ("restricted", "v1.24"),
    ("restricted", "v1.34"),
    ("restricted", "v1.99"),
];

fn container(name: &str, context: Value) -> Value {
    json!({"name": name, "image": "x:1", "securityContext": context})
}

/// The requirements of `restricted` on a container.
fn sound() -> Value {
    json!({"allowPrivilegeEscalation": false, "runAsNonRoot": true,
        "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}})
}

/// Like [`sound`], with more fields.
fn with(more: Value) -> Value {
    let mut context = sound();
    for (field, value) in more.as_object().unwrap() {
        context[field] = value.clone();
    }
    context
}

/// Specs by name, each with one fault or a few.
#[expect(clippy::too_many_lines, reason = "a table of pods")]
fn specs() -> Vec<(&'static str, Value)> {
    let one = |context: Value| json!({"containers": [container("a", context)]});
    let two = |context: &Value| {
        json!({"containers": [container("b", context.clone()), container("a", context.clone())],
            "initContainers": [container("first", context.clone())]})
    };
    let of_pod = |context: Value| json!({"securityContext": context, "containers": [container("a", sound())]});
    let probe = |probe: Value| {
        let mut main = container("a", sound());
        main["livenessProbe"] = probe.clone();
        main["lifecycle"] = json!({"preStop": {"httpGet": {"host": "10.0.0.1", "port": 80}}});
        json!({"containers": [main]})
    };
    let ports = |ports: &[i64]| {
        let mut main = container("a", sound());
        main["ports"] =
            ports.iter().map(|port| json!({"containerPort": port, "hostPort": port})).collect();
        json!({"containers": [main, container("b", sound())]})
    };
    let volumes =
        |volumes: Value| json!({"volumes": volumes, "containers": [container("a", sound())]});
    let mut own_users = two(&json!({"runAsUser": 0, "procMount": "Unmasked"}));
    own_users["hostUsers"] = false.into();
    vec![
        ("bare", json!({})),
        ("sound", one(sound())),
        ("two-bare", two(&json!({}))),
        ("privileged", two(&json!({"privileged": true}))),
        ("capabilities", two(&json!({"capabilities": {"add": ["NET_ADMIN", "CHOWN", "BPF"]}}))),
        (
            "bind-service",
            one(with(json!({"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}))),
        ),
        ("drop-one", one(with(json!({"capabilities": {"drop": ["CHOWN"]}})))),
        (
            "host",
            json!({"hostPID": true, "hostIPC": true, "containers": [container("a", sound())]}),
        ),
        ("host-network", json!({"hostNetwork": true, "containers": [container("a", sound())]})),
        ("host-port", ports(&[8080])),
        ("host-ports", ports(&[9090, 8080, 10000])),
        ("host-path", volumes(json!([{"name": "h", "hostPath": {"path": "/"}}]))),
        (
            "volumes",
            volumes(json!([
                {"name": "n", "nfs": {"server": "s", "path": "/"}}, {"name": "e", "emptyDir": {}},
                {"name": "h", "hostPath": {"path": "/"}}, {"name": "c", "configMap": {"name": "m"}},
                {"name": "i", "iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2000-01.com.example:x", "lun": 0}},
            ])),
        ),
        ("nfs", volumes(json!([{"name": "n", "nfs": {"server": "s", "path": "/"}}]))),
        ("probe-http", probe(json!({"httpGet": {"host": "example.com", "port": 80}}))),
        ("probe-tcp", probe(json!({"tcpSocket": {"host": "10.0.0.1", "port": 80}}))),
        ("selinux-pod", of_pod(json!({"seLinuxOptions": {"type": "spc_t", "user": "u"}}))),
        ("selinux-role", of_pod(json!({"seLinuxOptions": {"role": "r"}}))),
        ("selinux-engine", two(&with(json!({"seLinuxOptions": {"type": "container_engine_t"}})))),
        ("selinux-both", {
            let mut spec = two(&with(json!({"seLinuxOptions": {"type": "other_t", "role": "r"}})));
            spec["securityContext"] = json!({"seLinuxOptions": {"type": "spc_t"}});
            spec
        }),
        ("apparmor-pod", of_pod(json!({"appArmorProfile": {"type": "Unconfined"}}))),
        ("apparmor-container", one(with(json!({"appArmorProfile": {"type": "Unconfined"}})))),
        ("apparmor-default", one(with(json!({"appArmorProfile": {"type": "RuntimeDefault"}})))),
        ("seccomp-pod", json!({"securityContext": {"seccompProfile": {"type": "Unconfined"}}})),
        (
            "seccomp-sound-pod",
            json!({"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}),
        ),
        ("seccomp-container", two(&with(json!({"seccompProfile": {"type": "Unconfined"}})))),
        (
            "sysctls",
            of_pod(json!({"sysctls": [
            {"name": "kernel.msgmax", "value": "1"}, {"name": "net.ipv4.tcp_rmem", "value": "1"},
            {"name": "net.ipv4.tcp_fin_timeout", "value": "1"},
            {"name": "net.ipv4.ip_local_reserved_ports", "value": "1"},
            {"name": "net.ipv4.tcp_syncookies", "value": "1"}]})),
        ),
        ("root-pod", of_pod(json!({"runAsNonRoot": false, "runAsUser": 0}))),
        ("root-container", two(&with(json!({"runAsNonRoot": false, "runAsUser": 0})))),
        ("non-root-pod", json!({"securityContext": {"runAsNonRoot": true, "runAsUser": 7}})),
        ("user-namespace", own_users),
        (
            "windows",
            json!({"os": {"name": "windows"}, "containers": [
            {"name": "a", "image": "x:1", "securityContext": {"runAsNonRoot": true}}]}),
        ),
        (
            "windows-host",
            json!({"os": {"name": "windows"}, "hostNetwork": true,
            "securityContext": {"windowsOptions": {"hostProcess": true}}}),
        ),
    ]
}

pub async fn run(side: &Side) -> Outcomes {
    let mut steps = Steps { side, outcomes: Vec::new() };
    for (level, version) in STANDARDS {
        let name = format!("{level}-{}", version.replace('.', "-"));
        let labels = json!({"pod-security.kubernetes.io/enforce": level,
            "pod-security.kubernetes.io/enforce-version": version});
        namespace(side, &name, labels).await;
        for (case, spec) in specs() {
            let path = format!("/api/v1/namespaces/{name}/pods?dryRun=All");
            let case = format!("{case} under {name}");
            let name = case.split(' ').next().unwrap();
            steps.send(&case, "POST", &path, pod(name, spec)).await;
        }
    }
    annotations(&mut steps).await;
    labels(&mut steps).await;
    workloads(&mut steps).await;
    updates(&mut steps).await;
    steps.outcomes
}

/// Settings in annotations from before there were fields.
async fn annotations(steps: &mut Steps<'_>) {
    let seccomp = "seccomp.security.alpha.kubernetes.io";
    for annotations in [
        json!({format!("{seccomp}/pod"): "unconfined"}),
        json!({format!("container.{seccomp}/main"): "unconfined", format!("{seccomp}/pod"): "docker/default"}),
    ] {
        for name in ["baseline-latest", "baseline-v1-18"] {
            let mut body = pod("noted", json!({}));
            body["metadata"]["annotations"] = annotations.clone();
            let path = format!("/api/v1/namespaces/{name}/pods?dryRun=All");
            steps.send(&format!("{annotations} under {name}"), "POST", &path, body).await;
        }
    }
}

fn label(mode: &str, value: &str) -> Value {
    json!({format!("pod-security.kubernetes.io/{mode}"): value})
}

async fn labels(steps: &mut Steps<'_>) {
    let namespaces = "/api/v1/namespaces?dryRun=All";
    for labels in [
        label("enforce", "strict"),
        label("warn-version", "v2.0"),
        label("audit-version", "v1.01"),
        label("enforce-version", "v1.99999999999999999999"),
        label("enforce", ""),
        json!({"pod-security.kubernetes.io/enforce": "x", "pod-security.kubernetes.io/warn": "y",
            "pod-security.kubernetes.io/audit-version": "z"}),
    ] {
        let body = json!({"metadata": {"name": "labelled", "labels": labels}});
        steps.send(&format!("namespace {labels}"), "POST", namespaces, body).await;
    }
    // Pods from before the label.
    namespace(steps.side, "grown", json!({})).await;
    let pods = "/api/v1/namespaces/grown/pods";
    let bad = |name: &str| pod(name, json!({"hostPID": true}));
    for body in
        [bad("b"), bad("a"), bad("c"), pod("d", json!({})), pod("e", json!({"hostIPC": true}))]
    {
        steps.side.make("POST", pods, body).await;
    }
    wait::until("the pods are known", async || {
        let path = "/api/v1/namespaces/grown?dryRun=All";
        let body = json!({"metadata": {"labels": label("enforce", "baseline")}});
        let response = steps.side.send("PATCH", path, body).await;
        response.warnings.iter().any(|warning| warning.contains("(and 3 other pods)"))
    })
    .await;
    for labels in [
        label("enforce", "baseline"),
        label("enforce", "restricted"),
        label("enforce", "privileged"),
        label("warn", "restricted"),
        label("enforce", "nothing"),
    ] {
        let body = json!({"metadata": {"labels": labels}});
        let path = "/api/v1/namespaces/grown?dryRun=All";
        steps.send(&format!("relabelled {labels}"), "PATCH", path, body).await;
    }
}

/// Workloads get warnings, and are never refused.
async fn workloads(steps: &mut Steps<'_>) {
    let labels = json!({"pod-security.kubernetes.io/enforce": "baseline",
        "pod-security.kubernetes.io/warn": "restricted",
        "pod-security.kubernetes.io/warn-version": "v1.34"});
    namespace(steps.side, "warned", labels).await;
    let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"hostPID": true,
        "containers": [{"name": "main", "image": "x:1"}]}});
    let selector = json!({"matchLabels": {"app": "a"}});
    let mut ending = template.clone();
    ending["spec"]["restartPolicy"] = "Never".into();
    for (path, body) in [
        (
            "/apis/apps/v1/namespaces/warned/deployments",
            json!({"spec": {"selector": selector, "template": template}}),
        ),
        (
            "/apis/apps/v1/namespaces/warned/statefulsets",
            json!({"spec": {"serviceName": "s", "selector": selector, "template": template}}),
        ),
        (
            "/apis/apps/v1/namespaces/warned/daemonsets",
            json!({"spec": {"selector": selector, "template": template}}),
        ),
        (
            "/apis/apps/v1/namespaces/warned/replicasets",
            json!({"spec": {"selector": selector, "template": template}}),
        ),
        (
            "/api/v1/namespaces/warned/replicationcontrollers",
            json!({"spec": {"selector": {"app": "a"}, "template": template}}),
        ),
        ("/api/v1/namespaces/warned/podtemplates", json!({"template": template})),
        (
            "/apis/batch/v1/namespaces/warned/cronjobs",
            json!({"spec": {"schedule": "1 * * * *", "jobTemplate": {"spec": {"template": ending}}}}),
        ),
    ] {
        let mut body = body;
        body["metadata"]["name"] = "made".into();
        let response = steps.side.send("POST", &format!("{path}?dryRun=All"), body).await;
        let summary = TestResponse { body: json!({}), ..response };
        steps.outcomes.push((format!("workload {path}"), summary));
    }
    let pods = "/api/v1/namespaces/warned/pods";
    steps.send("warned pod", "POST", pods, pod("warned", json!({}))).await;
    steps.send("refused pod", "POST", pods, pod("refused", json!({"hostPID": true}))).await;
}

async fn updates(steps: &mut Steps<'_>) {
    let pods = "/api/v1/namespaces/warned/pods/warned";
    let image = json!({"spec": {"containers": [{"name": "main", "image": "x:2"}]}});
    let path = format!("{pods}?dryRun=All");
    let headers = [("content-type", "application/strategic-merge-patch+json")];
    let response = steps.side.send_with("PATCH", &path, image, &headers).await;
    steps.outcomes.push(("new image".to_owned(), response));
    let relabel = json!({"metadata": {"labels": {"a": "b"}}});
    steps.send("nothing that matters", "PATCH", &path, relabel).await;
    let debug = json!({"spec": {"ephemeralContainers": [
        {"name": "debug", "image": "x", "securityContext": {"privileged": true}}]}});
    let path = format!("{pods}/ephemeralcontainers?dryRun=All");
    let response = steps.side.send_with("PATCH", &path, debug, &headers).await;
    steps.outcomes.push(("debugged".to_owned(), response));
}

/// The expected results, independent of the other server.
pub fn check(outcomes: &Outcomes) {
    let code = |case: &str| {
        let found = outcomes.iter().find(|(name, _)| name == case);
        found.unwrap_or_else(|| panic!("no case {case}")).1.code
    };
    for (case, expected_code) in [
        ("bare under baseline-latest", 201),
        ("bare under restricted-latest", 403),
        ("sound under restricted-latest", 201),
        ("privileged under baseline-v1-0", 403),
        ("user-namespace under baseline-latest", 201),
        ("user-namespace under baseline-v1-33", 403),
        ("windows under restricted-v1-24", 403),
        ("refused pod", 403),
        ("debugged", 403),
        ("new image", 200),
    ] {
        assert_eq!(code(case), expected_code, "{case}");
    }
    let allowed = outcomes.iter().filter(|(case, response)| {
        case.contains(" under restricted-latest") && response.code == 201
    });
    let allowed: Vec<&str> = allowed.map(|(case, _)| case.split(' ').next().unwrap()).collect();
    assert_eq!(allowed, ["sound", "bind-service", "selinux-engine", "apparmor-default", "windows"]);
}
