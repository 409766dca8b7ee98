//! Defaults and refusals without any configuration: the requests that clusters receive, with every
//! response in full.

use serde_json::{Value, json};

use super::side::{Side, TestResponse};
use super::wait;

type Outcomes = Vec<(String, TestResponse)>;

const NAMESPACE: &str = "/api/v1/namespaces/built-in";
const PRIORITIES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";
const RUNTIMES: &str = "/apis/node.k8s.io/v1/runtimeclasses";
const STORAGE: &str = "/apis/storage.k8s.io/v1/storageclasses";
const INGRESSES: &str = "/apis/networking.k8s.io/v1/namespaces/built-in/ingresses";
const INGRESS_CLASSES: &str = "/apis/networking.k8s.io/v1/ingressclasses";

/// Sends requests and records the responses.
pub struct Steps<'a> {
    pub side: &'a Side,
    pub outcomes: Outcomes,
}

impl Steps<'_> {
    pub async fn send(
        &mut self,
        case: &str,
        method: &str,
        path: &str,
        body: Value,
    ) -> TestResponse {
        let response = self.side.send(method, path, body).await;
        self.outcomes.push((case.to_owned(), response.clone()));
        response
    }

    /// Creates a pod in the namespace, or does a dry run.
    async fn pod(&mut self, case: &str, dry: bool, spec: Value) -> TestResponse {
        let path = format!("{NAMESPACE}/pods{}", if dry { "?dryRun=All" } else { "" });
        self.send(case, "POST", &path, pod(case, spec)).await
    }
}

/// A pod without a token, which would have a name of its own.
pub fn pod(name: &str, mut spec: Value) -> Value {
    spec["automountServiceAccountToken"] = false.into();
    if spec["containers"].is_null() {
        spec["containers"] = json!([{"name": "main", "image": "x:1"}]);
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

/// A namespace with the account of its pods.
pub async fn namespace(side: &Side, name: &str, labels: Value) {
    let namespace = json!({"metadata": {"name": name, "labels": labels}});
    side.make("POST", "/api/v1/namespaces", namespace).await;
    let accounts = format!("/api/v1/namespaces/{name}/serviceaccounts");
    // Here a controller creates it; no controllers run beside the other server.
    side.send("POST", &accounts, json!({"metadata": {"name": "default"}})).await;
}

pub async fn run(side: &Side) -> Outcomes {
    namespace(side, "built-in", json!({})).await;
    let mut steps = Steps { side, outcomes: Vec::new() };
    accounts(&mut steps).await;
    priorities(&mut steps).await;
    tolerations(&mut steps).await;
    nodes(&mut steps).await;
    runtime_classes(&mut steps).await;
    claims(&mut steps).await;
    ingresses(&mut steps).await;
    steps.outcomes
}

async fn accounts(steps: &mut Steps<'_>) {
    let account = json!({"metadata": {"name": "puller"}, "imagePullSecrets": [{"name": "registry"}],
        "automountServiceAccountToken": false});
    steps.side.make("POST", &format!("{NAMESPACE}/serviceaccounts"), account).await;
    let containers = json!([{"name": "main", "image": "x:1"}]);
    let bare = |name: &str, spec: Value| json!({"metadata": {"name": name}, "spec": spec});
    let path = format!("{NAMESPACE}/pods?dryRun=All");
    let spec = json!({"containers": containers, "serviceAccountName": "puller"});
    steps.send("account", "POST", &path, bare("puller", spec.clone())).await;
    let mut own = spec.clone();
    own["imagePullSecrets"] = json!([{"name": "mine"}]);
    steps.send("own secrets", "POST", &path, bare("own", own)).await;
    let missing = json!({"containers": containers, "serviceAccountName": "nobody"});
    steps.send("no account", "POST", &path, bare("missing", missing)).await;
    let mut mirror = bare("mirror", spec);
    mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
    steps.send("mirror", "POST", &path, mirror.clone()).await;
    mirror["spec"]["serviceAccountName"] = "".into();
    mirror["spec"]["volumes"] = json!([{"name": "v", "secret": {"secretName": "s"}}]);
    steps.send("mirror with secret", "POST", &path, mirror).await;
}

async fn priorities(steps: &mut Steps<'_>) {
    let class = |name: &str, value: i64| json!({"metadata": {"name": name}, "value": value});
    let mut high = class("built-in-high", 1000);
    high["preemptionPolicy"] = "Never".into();
    steps.send("class", "POST", PRIORITIES, high).await;
    let probe = format!("{NAMESPACE}/pods?dryRun=All");
    wait::until("the class is known", async || {
        let spec = json!({"priorityClassName": "built-in-high"});
        steps.side.send("POST", &probe, pod("probe", spec)).await.code == 201
    })
    .await;
    for (case, spec) in [
        ("none", json!({})),
        ("high", json!({"priorityClassName": "built-in-high"})),
        ("system", json!({"priorityClassName": "system-node-critical"})),
        ("unknown class", json!({"priorityClassName": "nothing"})),
        ("stated", json!({"priorityClassName": "built-in-high", "priority": 1000})),
        ("other", json!({"priorityClassName": "built-in-high", "priority": 1001})),
        ("number alone", json!({"priority": 7})),
        (
            "other policy",
            json!({"priorityClassName": "built-in-high", "preemptionPolicy": "PreemptLowerPriority"}),
        ),
        ("policy alone", json!({"preemptionPolicy": "Never"})),
    ] {
        let case = format!("priority-{}", case.replace(' ', "-"));
        steps.pod(&case, true, spec).await;
    }
    let mut usual = class("built-in-usual", 5);
    usual["globalDefault"] = true.into();
    steps.send("default", "POST", PRIORITIES, usual.clone()).await;
    wait::until("the default is known", async || {
        let response = steps.side.send("POST", &probe, pod("probe", json!({}))).await;
        response.body["spec"]["priority"] == 5
    })
    .await;
    steps.pod("defaulted", true, json!({})).await;
    usual["metadata"]["name"] = "built-in-second".into();
    steps.send("second default", "POST", PRIORITIES, usual).await;
    let mark = json!({"globalDefault": true});
    let path = format!("{PRIORITIES}/built-in-high");
    steps.send("marked as default", "PATCH", &path, mark).await;
    let relabel = json!({"metadata": {"labels": {"a": "b"}}});
    let path = format!("{PRIORITIES}/built-in-usual");
    steps.send("default again", "PATCH", &path, relabel).await;
    steps.side.make("DELETE", &path, Value::Null).await;
    wait::until("the default is removed", async || {
        let response = steps.side.send("POST", &probe, pod("probe", json!({}))).await;
        response.body["spec"]["priority"] == 0
    })
    .await;
}

async fn tolerations(steps: &mut Steps<'_>) {
    let not_ready = "node.kubernetes.io/not-ready";
    for (case, list) in [
        ("all-keys", json!([{"operator": "Exists"}])),
        ("one-key", json!([{"key": not_ready, "operator": "Exists", "effect": "NoExecute"}])),
        ("other-effect", json!([{"key": not_ready, "operator": "Exists", "effect": "NoSchedule"}])),
    ] {
        steps.pod(&format!("tolerates-{case}"), true, json!({"tolerations": list})).await;
    }
    // An update that does not state defaulted values retains them.
    steps.pod("kept", false, json!({})).await;
    let mut bare = pod("kept", json!({"containers": [{"name": "main", "image": "x:2"}]}));
    bare["spec"]["serviceAccountName"] = "default".into();
    steps.send("replaced", "PUT", &format!("{NAMESPACE}/pods/kept"), bare).await;
}

async fn nodes(steps: &mut Steps<'_>) {
    let mut node = json!({"metadata": {"name": "built-in", "labels": {
        "topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/region": "r1", "other": "x"}}});
    steps.send("node", "POST", "/api/v1/nodes", node.clone()).await;
    node["metadata"]["name"] = "tainted".into();
    node["spec"]["taints"] = json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
        {"key": "own", "value": "x", "effect": "NoExecute"}]);
    steps.send("tainted node", "POST", "/api/v1/nodes?dryRun=All", node).await;
    let probe = format!("{NAMESPACE}/pods?dryRun=All");
    wait::until("the node is known", async || {
        let response =
            steps.side.send("POST", &probe, pod("probe", json!({"nodeName": "built-in"}))).await;
        response.body["metadata"]["labels"].is_object()
    })
    .await;
    steps.pod("placed", true, json!({"nodeName": "built-in"})).await;
    steps.pod("nowhere", true, json!({"nodeName": "no-such-node"})).await;
    steps.pod("bound", false, json!({})).await;
    let binding = json!({"metadata": {"name": "bound"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "built-in"}});
    steps.side.make("POST", &format!("{NAMESPACE}/pods/bound/binding"), binding).await;
    let bound = steps.side.make("GET", &format!("{NAMESPACE}/pods/bound"), Value::Null).await;
    let labels =
        TestResponse { code: 200, body: bound["metadata"]["labels"].clone(), warnings: vec![] };
    steps.outcomes.push(("labels of the bound".to_owned(), labels));
}

async fn runtime_classes(steps: &mut Steps<'_>) {
    let class = |name: &str, more: Value| {
        let mut class = json!({"metadata": {"name": name}, "handler": "h"});
        for (field, value) in more.as_object().unwrap() {
            class[field] = value.clone();
        }
        class
    };
    let heavy = class("heavy", json!({"overhead": {"podFixed": {"cpu": "250m"}}}));
    let placed = class(
        "placed",
        json!({"scheduling": {
            "nodeSelector": {"disk": "ssd"},
            "tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists",
                "effect": "NoSchedule"}],
        }}),
    );
    for class in [heavy, placed, class("plain", json!({}))] {
        steps.send("runtime class", "POST", RUNTIMES, class).await;
    }
    for (case, spec) in [
        ("heavy", json!({"runtimeClassName": "heavy"})),
        ("heavy-stated", json!({"runtimeClassName": "heavy", "overhead": {"cpu": "0.25"}})),
        ("heavy-other", json!({"runtimeClassName": "heavy", "overhead": {"cpu": "1"}})),
        ("plain-overhead", json!({"runtimeClassName": "plain", "overhead": {"cpu": "1"}})),
        ("overhead-alone", json!({"overhead": {"cpu": "1"}})),
        ("unknown", json!({"runtimeClassName": "nothing"})),
        (
            "placed",
            json!({"runtimeClassName": "placed", "nodeSelector": {"arch": "arm"},
                "tolerations": [{"key": "a", "operator": "Equal", "value": "x"},
                    {"key": "c", "operator": "Exists"}]}),
        ),
        ("conflict", json!({"runtimeClassName": "placed", "nodeSelector": {"disk": "hdd"}})),
    ] {
        steps.pod(&format!("runtime-{case}"), true, spec).await;
    }
}

fn claim(name: &str, storage: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": storage}}}})
}

async fn claims(steps: &mut Steps<'_>) {
    let path = format!("{NAMESPACE}/persistentvolumeclaims");
    steps.send("unclassed claim", "POST", &path, claim("unclassed", "1Gi")).await;
    for (name, grows) in [("fixed", false), ("growing", true)] {
        let class = json!({"metadata": {"name": name}, "provisioner": "example.com/disk",
            "allowVolumeExpansion": grows});
        steps.side.make("POST", STORAGE, class).await;
    }
    let default = json!({"metadata": {"annotations": {
        "storageclass.kubernetes.io/is-default-class": "true"}}});
    steps.side.make("PATCH", &format!("{STORAGE}/growing"), default).await;
    let dry = format!("{path}?dryRun=All");
    wait::until("the default is known", async || {
        let response = steps.side.send("POST", &dry, claim("probe", "1Gi")).await;
        response.body["spec"]["storageClassName"] == "growing"
    })
    .await;
    steps.send("defaulted claim", "POST", &path, claim("defaulted", "1Gi")).await;
    let mut own = claim("own", "1Gi");
    own["spec"]["storageClassName"] = "".into();
    steps.send("claim of no class", "POST", &dry, own.clone()).await;
    own["spec"].as_object_mut().unwrap().remove("storageClassName");
    own["metadata"]["annotations"] = json!({"volume.beta.kubernetes.io/storage-class": "old"});
    own["metadata"]["finalizers"] = json!(["example.com/own", "kubernetes.io/pvc-protection"]);
    steps.send("claim of the old way", "POST", &dry, own).await;
    let mut fixed = claim("fixed", "1Gi");
    fixed["spec"]["storageClassName"] = "fixed".into();
    steps.send("fixed claim", "POST", &path, fixed).await;

    let size = |storage: &str| json!({"spec": {"resources": {"requests": {"storage": storage}}}});
    for name in ["defaulted", "fixed", "unclassed"] {
        let bound = json!({"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}});
        steps.side.make("PATCH", &format!("{path}/{name}/status"), bound).await;
        for (what, storage) in [("grown", "2Gi"), ("same", "1024Mi"), ("shrunk", "512Mi")] {
            let case = format!("claim {name} {what}");
            steps.send(&case, "PATCH", &format!("{path}/{name}?dryRun=All"), size(storage)).await;
        }
    }

    let volume = json!({"metadata": {"name": "built-in"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}});
    let volumes = "/api/v1/persistentvolumes?dryRun=All";
    let mut response = steps.side.send("POST", volumes, volume).await;
    response.body["status"] = Value::Null;
    steps.outcomes.push(("volume".to_owned(), response));
    let class = json!({"metadata": {"name": "built-in"}, "driverName": "example.com",
        "parameters": {"a": "b"}});
    let classes = "/apis/storage.k8s.io/v1/volumeattributesclasses?dryRun=All";
    steps.send("class of attributes", "POST", classes, class).await;
}

async fn ingresses(steps: &mut Steps<'_>) {
    let backend = json!({"service": {"name": "web", "port": {"number": 80}}});
    let ingress =
        |name: &str| json!({"metadata": {"name": name}, "spec": {"defaultBackend": backend}});
    steps.send("unclassed ingress", "POST", INGRESSES, ingress("unclassed")).await;
    for name in ["b", "a"] {
        let class = json!({"metadata": {"name": name, "annotations": {
            "ingressclass.kubernetes.io/is-default-class": "true"}},
            "spec": {"controller": "example.com/ingress"}});
        steps.side.make("POST", INGRESS_CLASSES, class).await;
    }
    let dry = format!("{INGRESSES}?dryRun=All");
    wait::until("a default is known", async || {
        let response = steps.side.send("POST", &dry, ingress("probe")).await;
        !response.body["spec"]["ingressClassName"].is_null()
    })
    .await;
    steps.side.make("DELETE", &format!("{INGRESS_CLASSES}/b"), Value::Null).await;
    wait::until("the default is the one that is left", async || {
        let response = steps.side.send("POST", &dry, ingress("probe")).await;
        response.body["spec"]["ingressClassName"] == "a"
    })
    .await;
    steps.send("defaulted ingress", "POST", &dry, ingress("defaulted")).await;
    let mut own = ingress("own");
    own["metadata"]["annotations"] = json!({"kubernetes.io/ingress.class": "old"});
    steps.send("ingress of the old way", "POST", &dry, own).await;
}

/// Claims, volumes and classes that are deleted while they are in use.
pub async fn in_use(side: &Side) {
    let pods = "/api/v1/namespaces/default/pods";
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let volumes = "/api/v1/persistentvolumes";
    let classes = "/apis/storage.k8s.io/v1/volumeattributesclasses";
    let mut used = claim("used", "1Gi");
    used["spec"]["volumeAttributesClassName"] = "used".into();
    side.make("POST", claims, used).await;
    side.make("POST", claims, claim("free", "1Gi")).await;
    let class = json!({"metadata": {"name": "used"}, "driverName": "example.com",
        "parameters": {"a": "b"}});
    side.make("POST", classes, class).await;
    let volume = json!({"metadata": {"name": "used"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}});
    side.make("POST", volumes, volume).await;
    let phase = |phase: &str| json!({"status": {"phase": phase}});
    side.make("PATCH", &format!("{volumes}/used/status"), phase("Bound")).await;
    let runs = json!({"nodeName": "n", "volumes": [
        {"name": "v", "persistentVolumeClaim": {"claimName": "used"}}]});
    side.make("POST", pods, pod("user", runs)).await;

    let gone = async |path: &str| side.send("GET", path, Value::Null).await.code == 404;
    let until_gone = async |path: &str| wait::until(path, async || gone(path).await).await;
    let held = [format!("{claims}/used"), format!("{volumes}/used"), format!("{classes}/used")];
    for path in &held {
        side.make("DELETE", path, Value::Null).await;
    }
    let free = format!("{claims}/free");
    side.make("DELETE", &free, Value::Null).await;
    until_gone(&free).await;
    for path in &held {
        let held = side.make("GET", path, Value::Null).await;
        assert!(held["metadata"]["deletionTimestamp"].is_string(), "{path} waits: {held}");
    }
    side.make("DELETE", &format!("{pods}/user?gracePeriodSeconds=0"), Value::Null).await;
    until_gone(&held[0]).await;
    // Without the claim, nothing uses its class.
    until_gone(&held[2]).await;
    assert!(!gone(&held[1]).await, "a bound volume stays");
    side.make("PATCH", &format!("{volumes}/used/status"), phase("Released")).await;
    until_gone(&held[1]).await;
}

/// The expected results, independent of the other server.
pub fn check(outcomes: &Outcomes) {
    let find = |case: &str| {
        let found = outcomes.iter().find(|(name, _)| name == case);
        &found.unwrap_or_else(|| panic!("no case {case}")).1
    };
    for (case, code) in [
        ("account", 201),
        ("no account", 403),
        ("mirror", 403),
        ("priority-high", 201),
        ("priority-unknown-class", 403),
        ("priority-other", 403),
        ("second default", 403),
        ("replaced", 200),
        ("runtime-heavy-other", 403),
        ("runtime-conflict", 403),
        ("claim fixed grown", 403),
        ("claim defaulted grown", 200),
    ] {
        assert_eq!(find(case).code, code, "{case}: {}", find(case).body);
    }
    assert_eq!(find("account").body["spec"]["imagePullSecrets"], json!([{"name": "registry"}]));
    let high = &find("priority-high").body["spec"];
    assert_eq!((&high["priority"], &high["preemptionPolicy"]), (&json!(1000), &json!("Never")));
    assert_eq!(find("defaulted").body["spec"]["priorityClassName"], "built-in-usual");
    assert_eq!(find("node").body["spec"]["taints"][0]["effect"], "NoSchedule");
    assert_eq!(find("runtime-heavy").body["spec"]["overhead"], json!({"cpu": "250m"}));
    assert_eq!(find("defaulted claim").body["spec"]["storageClassName"], "growing");
    assert_eq!(find("defaulted ingress").body["spec"]["ingressClassName"], "a");
    let finalizers = |case: &str| find(case).body["metadata"]["finalizers"].clone();
    assert_eq!(finalizers("volume"), json!(["kubernetes.io/pv-protection"]));
    assert_eq!(finalizers("defaulted claim"), json!(["kubernetes.io/pvc-protection"]));
}
