//! `drover sim` with kubectl: deployments run, namespaces are deleted, owned objects are garbage
//! collected.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::sync::Arc;

use anyhow::{Result, ensure};
use e2e::{Kubectl, SharedWorld, Sim, eventually};
use serde_json::{Value, json};
use testbed::RealCluster;

static SIM: SharedWorld<Sim> = SharedWorld::new();

fn sim() -> Arc<Sim> {
    SIM.get(|| Sim::start(&["--nodes", "3"]))
}

fn deployment(namespace: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "example.invalid/web:1"}]},
            },
        },
    })
}

fn namespace(kubectl: &Kubectl, name: &str) {
    kubectl.succeed(&["create", "namespace", name]).unwrap();
}

fn running(kubectl: &Kubectl, namespace: &str, expected: usize) -> Result<()> {
    let pods = kubectl.json(&["get", "pods", "-n", namespace])?;
    let all = pods["items"].as_array().cloned().unwrap_or_default();
    let running = all.iter().filter(|pod| pod["status"]["phase"] == "Running").count();
    ensure!(running == expected && all.len() == expected, "{running} of {} run", all.len());
    ensure!(all.iter().all(|pod| pod["spec"]["nodeName"].is_string()), "{pods}");
    Ok(())
}

#[test]
fn the_requested_number_of_nodes_is_ready() {
    let sim = sim();
    let kubectl = sim.kubectl().unwrap();
    eventually("three nodes are ready", || -> Result<()> {
        let table = kubectl.succeed(&["get", "nodes", "--no-headers"])?;
        let ready = table.lines().filter(|line| line.contains(" Ready ")).count();
        ensure!(ready == 3, "{table}");
        Ok(())
    });
}

#[test]
fn a_start_says_where_the_kubeconfigs_are_and_what_to_do_with_them() {
    let sim = Sim::start(&["--nodes", "1", "--clusters", "2"]).unwrap();
    let said = sim.log_tail();
    for file in sim.kubeconfigs().unwrap() {
        let url = e2e::Kubeconfig::read(&file).unwrap().server;
        let line = format!("  {url}  {}\n", file.display());
        assert!(said.contains(&line), "{line} is not in: {said}");
    }
    let first = sim.kubeconfig();
    let next = format!("drover cluster import NAME --kubeconfig {}", first.display());
    assert!(said.contains(&next), "{said}");
}

#[test]
fn admission_plugins_and_the_range_of_services_are_chosen_as_for_kube_apiserver() {
    let sim = Sim::start(&[
        "--nodes=0",
        "--service-cluster-ip-range=10.7.0.0/24",
        "--disable-admission-plugins=ServiceAccount,LimitRanger,ResourceQuota",
        "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
    ])
    .unwrap();
    let kubectl = sim.kubectl().unwrap();
    namespace(&kubectl, "shop");
    let bounds = json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "none", "namespace": "shop"},
        "spec": {"limits": [{"type": "Container", "default": {"memory": "1Mi"}}]},
    });
    kubectl.apply(&[bounds]).unwrap();
    kubectl.succeed(&["create", "quota", "none", "-n", "shop", "--hard=pods=0"]).unwrap();
    kubectl.succeed(&["run", "web", "-n", "shop", "--image=example.invalid/web:1"]).unwrap();
    let pod = kubectl.json(&["get", "pod", "web", "-n", "shop"]).unwrap();
    assert!(pod["spec"]["serviceAccountName"].is_null(), "{pod}");
    assert!(pod["spec"]["volumes"].is_null(), "{pod}");
    assert_eq!(pod["spec"]["containers"][0]["resources"], json!({}), "{pod}");
    // Plugins that were not named are enabled.
    assert_eq!(pod["spec"]["priority"], 0, "{pod}");

    kubectl.succeed(&["expose", "pod", "web", "-n", "shop", "--port=80"]).unwrap();
    let service = kubectl.json(&["get", "service", "web", "-n", "shop"]).unwrap();
    assert!(service["spec"]["clusterIP"].as_str().unwrap().starts_with("10.7.0."), "{service}");
    let own = kubectl.json(&["get", "service", "kubernetes"]).unwrap();
    assert_eq!(own["spec"]["clusterIP"], "10.7.0.1", "{own}");
    let offered = kubectl.json(&["get", "servicecidr", "kubernetes"]).unwrap();
    assert_eq!(offered["spec"]["cidrs"], json!(["10.7.0.0/24"]), "{offered}");

    let unknown = Sim::start(&["--disable-admission-plugins=Nonsense"]).map(drop).unwrap_err();
    let unknown = format!("{unknown:?}");
    assert!(unknown.contains("unknown plugin \"Nonsense\""), "{unknown}");
}

#[test]
fn a_deployment_gets_running_pods_and_follows_its_replicas() {
    let sim = sim();
    let kubectl = sim.kubectl().unwrap();
    namespace(&kubectl, "scaled");
    kubectl.apply(&[deployment("scaled", 2)]).unwrap();
    eventually("two pods run", || running(&kubectl, "scaled", 2));
    kubectl.succeed(&["rollout", "status", "-n", "scaled", "deployment/web"]).unwrap();
    kubectl.succeed(&["scale", "-n", "scaled", "deployment/web", "--replicas=5"]).unwrap();
    eventually("five pods run", || running(&kubectl, "scaled", 5));
    kubectl.succeed(&["scale", "-n", "scaled", "deployment/web", "--replicas=1"]).unwrap();
    eventually("one pod runs", || running(&kubectl, "scaled", 1));
    let table = kubectl.succeed(&["get", "deployment", "-n", "scaled", "web"]).unwrap();
    assert!(table.contains("1/1"), "{table}");
}

#[test]
fn a_replication_controller_gets_running_pods_and_follows_its_replicas() {
    let sim = sim();
    let kubectl = sim.kubectl().unwrap();
    namespace(&kubectl, "older");
    let controller = json!({
        "apiVersion": "v1", "kind": "ReplicationController",
        "metadata": {"name": "web", "namespace": "older"},
        "spec": {
            "replicas": 3,
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "example.invalid/web:1"}]},
            },
        },
    });
    kubectl.apply(&[controller]).unwrap();
    eventually("three pods run", || running(&kubectl, "older", 3));
    kubectl.succeed(&["scale", "rc/web", "-n", "older", "--replicas=1"]).unwrap();
    eventually("one pod runs", || running(&kubectl, "older", 1));
    eventually("its status says so", || -> Result<()> {
        let status = &kubectl.json(&["get", "rc", "web", "-n", "older"])?["status"];
        ensure!(status["replicas"] == 1 && status["readyReplicas"] == 1, "{status}");
        Ok(())
    });
}

#[test]
fn a_quota_counts_existing_objects_and_releases_deleted_ones() {
    let sim = sim();
    let kubectl = sim.kubectl().unwrap();
    namespace(&kubectl, "bounded");
    let pod = |name: &str| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "bounded"},
            "spec": {"containers": [{
                "name": "c", "image": "example.invalid/c:1",
                "resources": {"requests": {"cpu": "250m"}},
            }]},
        })
    };
    let used = |pods: &str, cpu: &str| {
        eventually(&format!("{pods} pods and {cpu} of a processor are used"), || -> Result<()> {
            let quota = kubectl.json(&["get", "resourcequota", "few", "-n", "bounded"])?;
            let expected = json!({
                "hard": {"pods": "2", "requests.cpu": "1", "count/deployments.apps": "0"},
                "used": {"pods": pods, "requests.cpu": cpu, "count/deployments.apps": "0"},
            });
            ensure!(quota["status"] == expected, "{quota}");
            Ok(())
        });
    };
    // One exists before the quota.
    kubectl.apply(&[pod("one")]).unwrap();
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": "bounded"},
        "spec": {"hard": {"pods": "2", "requests.cpu": "1", "count/deployments.apps": "0"}},
    });
    kubectl.apply(&[quota]).unwrap();
    used("1", "250m");
    kubectl.apply(&[pod("two")]).unwrap();
    used("2", "500m");
    let refused = kubectl.apply(&[pod("three")]).unwrap_err().to_string();
    assert!(refused.contains("exceeded quota: few, requested: pods=1, used: pods=2"), "{refused}");
    kubectl.succeed(&["delete", "pod", "one", "-n", "bounded"]).unwrap();
    used("1", "250m");
    kubectl.apply(&[pod("three")]).unwrap();
    used("2", "500m");
}

#[test]
fn a_daemon_set_runs_once_on_every_node() {
    let sim = sim();
    let kubectl = sim.kubectl().unwrap();
    namespace(&kubectl, "everywhere");
    let mut set = deployment("everywhere", 0);
    set["kind"] = json!("DaemonSet");
    set["spec"].as_object_mut().unwrap().remove("replicas");
    kubectl.apply(&[set]).unwrap();
    eventually("it runs three times", || -> Result<()> {
        running(&kubectl, "everywhere", 3)?;
        let pods = kubectl.json(&["get", "pods", "-n", "everywhere"])?;
        let names = |pod: &Value| pod["spec"]["nodeName"].as_str().map(str::to_owned);
        let all = pods["items"].as_array().cloned().unwrap_or_default();
        let nodes: std::collections::BTreeSet<_> = all.iter().filter_map(names).collect();
        ensure!(nodes.len() == 3, "{nodes:?}");
        Ok(())
    });
}

#[test]
fn a_deleted_namespace_takes_its_objects_along() {
    let sim = sim();
    let kubectl = sim.kubectl().unwrap();
    namespace(&kubectl, "leaving");
    kubectl.apply(&[deployment("leaving", 2)]).unwrap();
    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": "leaving"},
    });
    kubectl.apply(&[settings]).unwrap();
    eventually("two pods run", || running(&kubectl, "leaving", 2));
    kubectl.succeed(&["delete", "namespace", "leaving"]).unwrap();
    let refused = kubectl.refuse(&["get", "namespace", "leaving"]).unwrap();
    assert!(refused.contains("NotFound"), "{refused}");
    let left = kubectl.succeed(&["get", "all,configmaps", "-n", "leaving", "-o", "name"]).unwrap();
    assert_eq!(left, "");
}

#[test]
fn objects_go_with_their_owner_and_stay_when_orphaned() {
    let sim = sim();
    let kubectl = sim.kubectl().unwrap();
    namespace(&kubectl, "owned");
    kubectl.apply(&[deployment("owned", 1)]).unwrap();
    eventually("the pod runs", || running(&kubectl, "owned", 1));
    kubectl.succeed(&["delete", "deployment", "-n", "owned", "web"]).unwrap();
    eventually("replica sets and pods are collected", || -> Result<()> {
        let left = kubectl.succeed(&["get", "replicasets,pods", "-n", "owned", "-o", "name"])?;
        ensure!(left.is_empty(), "{left}");
        Ok(())
    });

    kubectl.apply(&[deployment("owned", 1)]).unwrap();
    eventually("the pod runs", || running(&kubectl, "owned", 1));
    let orphan = ["delete", "deployment", "-n", "owned", "web", "--cascade=orphan"];
    kubectl.succeed(&orphan).unwrap();
    eventually("the replica set is its own now", || -> Result<()> {
        let sets = kubectl.json(&["get", "replicasets", "-n", "owned"])?;
        ensure!(sets["items"].as_array().is_some_and(|all| all.len() == 1), "{sets}");
        ensure!(sets["items"][0]["metadata"].get("ownerReferences").is_none(), "{sets}");
        running(&kubectl, "owned", 1)
    });
}

#[test]
fn custom_resources_are_served_once_defined() {
    let sim = sim();
    let kubectl = sim.kubectl().unwrap();
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "lamps.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "lamps", "singular": "lamp", "kind": "Lamp"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"watts": {"type": "integer"}}},
                }},
            }}],
        },
    });
    kubectl.apply(&[crd]).unwrap();
    let established = ["wait", "--for=condition=Established", "crd/lamps.example.com"];
    kubectl.succeed(&established).unwrap();
    let lamp = |watts: Value| {
        json!({
            "apiVersion": "example.com/v1", "kind": "Lamp",
            "metadata": {"name": "desk", "namespace": "default"}, "spec": {"watts": watts},
        })
    };
    kubectl.apply(&[lamp(json!(5))]).unwrap();
    let seen = kubectl.json(&["get", "lamp", "desk"]).unwrap();
    assert_eq!(seen["spec"]["watts"], 5);
    let refused = kubectl.apply(&[lamp(json!("many"))]).unwrap_err().to_string();
    assert!(refused.contains("spec.watts") && refused.contains("integer"), "{refused}");
}

fn rights(verb: &str, user: &str, role: &str) -> Vec<Value> {
    let group = "rbac.authorization.k8s.io";
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": [verb]}]);
    let object = |kind: &str, metadata: Value, more: Value| {
        let mut object =
            json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": metadata});
        object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        object
    };
    let inside = json!({"name": "rec", "namespace": "made"});
    vec![
        object("ClusterRole", json!({"name": "rec"}), json!({"rules": rules})),
        object(
            "ClusterRoleBinding",
            json!({"name": "rec"}),
            json!({
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
                "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
            }),
        ),
        object("Role", inside.clone(), json!({"rules": rules})),
        object(
            "RoleBinding",
            inside,
            json!({
                "roleRef": {"apiGroup": group, "kind": "Role", "name": "rec"},
                "subjects": [{"kind": "ServiceAccount", "name": "s", "namespace": "made"}],
            }),
        ),
    ]
}

/// The output of kubectl, and the final objects.
fn reconciled(kubectl: &Kubectl) -> String {
    let mut output = String::new();
    let mut reconcile = |objects: &[Value], more: &[&str]| {
        let arguments = [&["auth", "reconcile"], more, &["-f"]].concat();
        output += &kubectl.with_file(objects, &arguments).unwrap();
    };
    let first = rights("get", "a", "rec");
    // Another role recreates the binding.
    let second = rights("list", "b", "view");
    reconcile(&first, &[]);
    reconcile(&first, &[]);
    reconcile(&second, &[]);
    reconcile(&second, &["--remove-extra-permissions", "--remove-extra-subjects"]);
    for path in ["clusterrole/rec", "clusterrolebinding/rec", "role/rec", "rolebinding/rec"] {
        let found = kubectl.json(&["get", path, "-n", "made"]).unwrap();
        output +=
            &format!("{path}: {} {} {}\n", found["rules"], found["roleRef"], found["subjects"]);
    }
    output
}

#[test]
fn kubectl_reconciles_rights_as_with_kube_apiserver() {
    let real = RealCluster::start().unwrap();
    let real = Kubectl::new(&real.kubeconfig_path(), real.folder()).unwrap();
    let theirs = reconciled(&real);
    assert!(theirs.contains("role.rbac.authorization.k8s.io/rec reconciled"), "{theirs}");
    assert_eq!(reconciled(&sim().kubectl().unwrap()), theirs);
}
