//! A real node with real pods and a real disruption budget is drained: as the caller, through the
//! proxy.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Result, ensure};
use e2e::journey::{self, ImportTarget, Imported};
use e2e::{Cli, Kubectl, Server, SharedWorld, eventually};
use serde_json::{Value, json};
use testbed::{RealNode, TOOLBOX_IMAGE};

const CLUSTER: &str = "works";
const NODE: &str = "node-1";

/// An imported cluster with one node. On it: two pods that a budget protects, and one of a
/// DaemonSet.
struct World {
    imported: Imported,
    admin: Cli,
    server: Mutex<Server>,
    node: RealNode,
    /// Lock of the test that drains.
    turn: Mutex<()>,
}

static WORLD: SharedWorld<World> = SharedWorld::new();

fn world() -> Arc<World> {
    WORLD.get(|| {
        let node = RealNode::start()?;
        let target = ImportTarget::of(node.cluster())?;
        target.kubectl.apply(&[
            workload("Deployment", "web"),
            workload("DaemonSet", "log"),
            budget(),
        ])?;
        for workload in ["deployment/web", "daemonset/log"] {
            target.kubectl.succeed(&["rollout", "status", workload, "--timeout=90s"])?;
        }
        let server = Server::start()?;
        let admin = Cli::admin(&server)?;
        let imported = journey::import(&server, &admin, CLUSTER, &target)?;
        let (server, turn) = (Mutex::new(server), Mutex::new(()));
        Ok(World { imported, admin, server, node, turn })
    })
}

fn workload(kind: &str, name: &str) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{
                        "name": "main", "image": TOOLBOX_IMAGE, "imagePullPolicy": "Never",
                        "command": ["sh", "-c", "sleep 1000000"],
                    }],
                },
            },
        },
    });
    if kind == "Deployment" {
        object["spec"]["replicas"] = 2.into();
    }
    object
}

fn budget() -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    })
}

impl World {
    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn server(&self) -> MutexGuard<'_, Server> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn directly(&self) -> Kubectl {
        let cluster = self.node.cluster();
        Kubectl::new(&cluster.kubeconfig_path(), cluster.folder()).unwrap()
    }
    /// Names of pods with this label that are on the node and not terminating.
    fn pods(&self, app: &str) -> Vec<String> {
        let list = self.directly().json(&["get", "pods", "-l", &format!("app={app}")]).unwrap();
        let on_node = |pod: &&Value| {
            pod["metadata"]["deletionTimestamp"].is_null() && pod["spec"]["nodeName"] == NODE
        };
        let items = list["items"].as_array().unwrap().iter().filter(on_node);
        items.map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }
    /// The node in `/v3`.
    fn shown(&self) -> Result<Value> {
        let path = format!("/v3/nodes?clusterId={}", self.imported.id);
        let list = self.server().admin()?.get(&path)?.success()?;
        let node = list["data"][0].clone();
        ensure!(node["nodeName"] == NODE, "{list}");
        Ok(node)
    }
    fn until(&self, state: &str, message: &str) {
        eventually(&format!("{state}: {message}"), || {
            let node = self.shown()?;
            let said = node["transitioningMessage"].as_str().unwrap_or_default();
            ensure!(node["state"] == state && said.contains(message), "{}: {said}", node["state"]);
            Ok(())
        });
    }
    /// Both pods run on the node again, and the budget is up to date.
    fn uncordon(&self) {
        self.admin.succeed(&on(&["uncordon", NODE])).unwrap();
        eventually("both pods and the budget", || {
            let budget = self.directly().json(&["get", "pdb", "web"])?;
            let healthy = &budget["status"]["currentHealthy"];
            ensure!(self.pods("web").len() == 2 && *healthy == 2, "{healthy}");
            Ok(())
        });
        self.until("active", "");
    }
}

fn on<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [&["node"][..], words, &["--cluster", CLUSTER]].concat()
}

#[test]
fn a_budget_holds_a_drain_which_is_stopped_and_then_comes_to_its_end() {
    let world = world();
    let _turn = world.turn();
    let alone = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "alone"},
        "spec": workload("Deployment", "alone")["spec"]["template"]["spec"]});
    world.directly().apply(&[alone]).unwrap();
    eventually("the pod on the node", || {
        let pod = world.directly().json(&["get", "pod", "alone"])?;
        ensure!(pod["spec"]["nodeName"] == NODE);
        Ok(())
    });
    let refused = world.admin.refuse(&on(&["drain", NODE])).unwrap();
    assert!(refused.contains("default/alone") && refused.contains("force"), "{refused}");
    assert_ne!(world.shown().unwrap()["unschedulable"], true);
    assert_eq!(world.pods("web").len(), 2);

    world.admin.succeed(&on(&["drain", NODE, "--force", "--no-wait"])).unwrap();
    world.until("draining", "disruption budget web needs 1 healthy pods and has 1 currently");
    assert_eq!(world.pods("web").len(), 1);
    eventually("the pod deleted", || world.directly().refuse(&["get", "pod", "alone"]));
    let again = world.admin.refuse(&on(&["drain", NODE])).unwrap();
    assert!(again.contains("is being drained already"), "{again}");
    world.admin.succeed(&on(&["stop-drain", NODE])).unwrap();
    world.until("cordoned", "");
    assert_eq!(world.pods("web").len(), 1);

    // Because of the budget it times out, and reports the remaining pods.
    let refused = world.admin.refuse(&on(&["drain", NODE, "--timeout", "2s"])).unwrap();
    assert!(
        refused.contains("did not end in time") && refused.contains("default/web-"),
        "{refused}"
    );

    world.directly().succeed(&["delete", "pdb", "web"]).unwrap();
    world.admin.succeed(&on(&["drain", NODE])).unwrap();
    world.until("drained", "");
    assert_eq!(world.pods("web"), [""; 0]);
    assert_eq!(world.pods("log").len(), 1);
    world.directly().apply(&[budget()]).unwrap();
    world.uncordon();
}

#[test]
fn a_drain_ends_with_the_login_that_began_it() {
    let world = world();
    let _turn = world.turn();
    let owner = Some(("cluster-owner", CLUSTER));
    let dora = journey::user_with_role(&world.server(), &world.admin, "dora", owner).unwrap();
    eventually("the role", || dora.succeed(&on(&["drain", NODE, "--no-wait"])));
    world.until("draining", "disruption budget web");
    dora.succeed(&["logout"]).unwrap();
    world.until("cordoned", "The login that started the drain has ended.");
    world.uncordon();
}

#[test]
fn a_drain_that_a_restart_interrupts_is_reported() {
    let world = world();
    let _turn = world.turn();
    world.admin.succeed(&on(&["drain", NODE, "--no-wait"])).unwrap();
    world.until("draining", "disruption budget web");
    world.server().restart().unwrap();
    world.until("cordoned", "The server was restarted while it drained the node.");
    eventually("the cluster again", || world.admin.succeed(&on(&["uncordon", NODE])));
    world.uncordon();
}
