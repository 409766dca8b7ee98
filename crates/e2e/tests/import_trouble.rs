//! Imports that cannot succeed because the cluster admits no pod: the command reports the step, the
//! reason, and the next step.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::sync::Arc;

use anyhow::{Result, ensure};
use e2e::{Cli, Kubectl, ProgramOutput, Server, SharedWorld, eventually};
use serde_json::{Value, json};
use testbed::RealCluster;

/// A cluster without a node, and a server.
struct World {
    admin: Cli,
    _server: Server,
    cluster: RealCluster,
}

const NAMESPACE: &str = "cattle-system";
/// Timeout of these imports. They cannot succeed, and report the reason within a second or two.
const PATIENCE: &str = "15s";

fn world() -> World {
    let cluster = RealCluster::start().unwrap();
    let server = Server::start().unwrap();
    World { admin: Cli::admin(&server).unwrap(), _server: server, cluster }
}

impl World {
    fn directly(&self) -> Kubectl {
        Kubectl::new(&self.cluster.kubeconfig_path(), self.cluster.folder()).unwrap()
    }

    fn prepare(&self, objects: &[Value]) {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
            "name": NAMESPACE,
            "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
        }});
        let mut all = vec![namespace];
        all.extend_from_slice(objects);
        self.directly().apply(&all).unwrap();
    }

    /// The output of the import when it times out.
    fn import(&self, kubeconfig: &std::path::Path) -> ProgramOutput {
        let file = kubeconfig.to_str().unwrap();
        let arguments = ["cluster", "import", "it", "--kubeconfig", file, "--timeout", PATIENCE];
        self.admin.run(&arguments).unwrap()
    }
}

fn says(outcome: &ProgramOutput, parts: &[&str]) {
    for part in parts {
        assert!(outcome.stderr.contains(part), "'{part}' is not in: {}", outcome.stderr);
    }
}

static WITHOUT_NODE: SharedWorld<World> = SharedWorld::new();

fn without_node() -> Arc<World> {
    WITHOUT_NODE.get(|| Ok(world()))
}

#[test]
fn a_quota_is_named_as_what_refuses_the_pod() {
    let world = world();
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "no-pods", "namespace": NAMESPACE}, "spec": {"hard": {"pods": "0"}}});
    world.prepare(&[quota]);
    eventually("the quota counts", || -> Result<()> {
        let quota = world.directly().json(&["get", "resourcequota", "-n", NAMESPACE, "no-pods"])?;
        ensure!(quota["status"]["hard"]["pods"] == "0", "{quota}");
        Ok(())
    });
    let outcome = world.import(&world.cluster.kubeconfig_path());
    assert_eq!(outcome.code, 9, "{}", outcome.stderr);
    says(
        &outcome,
        &[
            "✗ agent pod created",
            "exceeded quota: no-pods",
            "raise or remove the ResourceQuota",
            "--resume",
        ],
    );
}

#[test]
fn the_strictest_level_of_pod_security_admits_the_agent_and_a_missing_node_is_reported() {
    let world = without_node();
    world.prepare(&[]);
    let outcome = world.import(&world.cluster.kubeconfig_path());
    assert_eq!(outcome.code, 9, "{}", outcome.stderr);
    says(
        &outcome,
        &["✓ agent pod created", "✗ agent pod has a node", "no nodes available", "add a node"],
    );
}

#[test]
fn a_kubeconfig_without_rights_is_refused_before_anything_is_made() {
    let world = without_node();
    let kubeconfig = world.cluster.kubeconfig_file_for("nobody", &[]).unwrap();
    let outcome = world.import(&kubeconfig);
    assert_eq!(outcome.code, 4, "{}", outcome.stderr);
    says(&outcome, &["✗ cluster reached", "cluster role bindings", "cluster administrator"]);
    assert!(!outcome.stderr.contains("cluster object created"), "{}", outcome.stderr);
}
