//! Steps of Drover that a cluster rejects: each one is reported on the cluster, with the reason and
//! the next step, in `/v3` and on the command line, and goes away when the cluster takes the step.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use anyhow::{Context, Result, ensure};
use e2e::journey::{self, ImportTarget, Imported};
use e2e::{Agent, Cli, Kubectl, Server, eventually};
use serde_json::{Value, json};
use testbed::RealCluster;

/// The user that the agent is in its cluster.
const AGENT: &str = "system:serviceaccount:cattle-system:cattle";
const AGENT_ROLE: &str = "drover-cluster-agent";

struct World {
    imported: Imported,
    target: ImportTarget,
    admin: Cli,
    server: Server,
    _cluster: RealCluster,
}

impl World {
    fn start() -> Self {
        let cluster = RealCluster::start().unwrap();
        let target = ImportTarget::of(&cluster).unwrap();
        let server = Server::start().unwrap();
        let admin = Cli::admin(&server).unwrap();
        let imported = journey::import(&server, &admin, "first", &target).unwrap();
        eventually("active", || journey::is_active(&server, &imported.id));
        Self { imported, target, admin, server, _cluster: cluster }
    }

    fn directly(&self) -> &Kubectl {
        &self.target.kubectl
    }

    /// Has the cluster reject what the agent does with cluster roles for which the CEL expression
    /// holds.
    fn reject_roles(&self, when: &str) {
        let policy = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "frozen"},
            "spec": {
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": ["rbac.authorization.k8s.io"], "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"], "resources": ["clusterroles"],
                }]},
                "matchConditions": [
                    {"name": "agent", "expression": format!("request.userInfo.username == '{AGENT}'")},
                    {"name": "concerned", "expression": when},
                ],
                "validations": [{"expression": "false", "message": "roles are frozen here"}],
            },
        });
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "frozen"},
            "spec": {"policyName": "frozen", "validationActions": ["Deny"]},
        });
        self.directly().apply(&[policy, binding]).unwrap();
        // A policy holds some time after it was made.
        let probe = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "drover:cluster:probe"},
        });
        let create = ["create", "--as", AGENT, "--dry-run=server", "-f"];
        eventually("the policy holds", || -> Result<()> {
            let refused = self.directly().with_file(std::slice::from_ref(&probe), &create);
            let words = refused.err().context("the probe was accepted")?.to_string();
            ensure!(words.contains("roles are frozen here"), "{words}");
            Ok(())
        });
    }

    fn accept_roles(&self) {
        let binding = ["delete", "validatingadmissionpolicybinding", "frozen"];
        self.directly().succeed(&binding).unwrap();
    }

    /// Ends the agent and starts it again, so that every controller of the cluster starts anew.
    fn restart_agent(&mut self) {
        self.imported.agent.kill();
        let Imported { container, .. } = &self.imported;
        let agent = Agent::start(container, &self.target.downstream, self.directly()).unwrap();
        self.imported.agent = agent;
    }

    fn condition(&self, name: &str) -> Result<Value> {
        let path = format!("/v3/clusters/{}", self.imported.id);
        let mut cluster = self.server.admin()?.get(&path)?.success()?;
        let conditions = cluster["conditions"].as_array_mut().context("no conditions")?;
        let found = conditions.iter_mut().find(|condition| condition["type"] == name);
        Ok(found.with_context(|| format!("no condition {name}"))?.take())
    }

    /// Waits until a condition reports a failure, in `/v3` and on the command line.
    fn reports(&self, condition: &str, parts: &[&str]) {
        eventually(&format!("{condition} is false"), || -> Result<()> {
            let found = self.condition(condition)?;
            ensure!(found["status"] == "False", "{found}");
            let message = found["message"].as_str().unwrap_or_default();
            for part in parts {
                ensure!(message.contains(part), "'{part}' is not in: {message}");
            }
            Ok(())
        });
        let path = format!("/v3/clusters/{}", self.imported.id);
        let cluster = self.server.admin().unwrap().get(&path).unwrap().success().unwrap();
        assert_eq!(cluster["transitioning"], "error", "{cluster}");
        assert_ne!(cluster["state"], "active", "{cluster}");
        let shown = self.admin.succeed(&["inspect", "cluster", "first"]).unwrap();
        for part in parts.iter().chain(&[condition]) {
            assert!(shown.contains(part), "'{part}' is not in: {shown}");
        }
    }

    fn recovers(&self, condition: &str) {
        eventually(&format!("{condition} is true"), || -> Result<()> {
            let found = self.condition(condition)?;
            ensure!(found["status"] == "True", "{found}");
            journey::is_active(&self.server, &self.imported.id)
        });
    }
}

#[test]
fn a_role_that_the_cluster_rejects_is_reported_on_the_cluster() {
    let world = World::start();
    world.recovers("RolesApplied");
    world.reject_roles("object.metadata.name.startsWith('drover:cluster:')");
    let member = Some(("cluster-member", "first"));
    journey::user_with_role(&world.server, &world.admin, "ada", member).unwrap();
    let parts = ["could not", "drover:cluster:cluster-member", "roles are frozen here", "policy"];
    world.reports("RolesApplied", &parts);
    world.accept_roles();
    world.recovers("RolesApplied");
}

#[test]
fn nodes_that_the_agent_may_not_list_are_reported_on_the_cluster() {
    let mut world = World::start();
    world.recovers("NodesSynced");
    let role = world.directly().json(&["get", "clusterrole", AGENT_ROLE]).unwrap();
    let mut without = role.clone();
    for rule in without["rules"].as_array_mut().unwrap() {
        if let Some(resources) = rule["resources"].as_array_mut() {
            resources.retain(|resource| resource != "nodes");
        }
    }
    without["rules"].as_array_mut().unwrap().retain(|rule| rule["resources"] != json!([]));
    world.directly().with_file(&[without], &["replace", "-f"]).unwrap();
    world.restart_agent();
    let parts = ["nodes is forbidden", "apply the import manifest again"];
    world.reports("NodesSynced", &parts);
    let mut restored = role;
    restored["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    world.directly().with_file(&[restored], &["replace", "-f"]).unwrap();
    world.recovers("NodesSynced");
}

#[test]
fn an_owner_reference_that_the_cluster_rejects_is_reported_on_the_cluster() {
    let mut world = World::start();
    world.recovers("AgentObjectsOwned");
    world
        .reject_roles(&format!("object.metadata.name in ['{AGENT_ROLE}', 'drover:cluster:probe']"));
    let unowned = r#"{"metadata":{"ownerReferences":null}}"#;
    let patch = ["patch", "clusterrole", AGENT_ROLE, "--type", "merge", "--patch", unowned];
    world.directly().succeed(&patch).unwrap();
    world.restart_agent();
    let parts =
        ["own clusterrole", AGENT_ROLE, "roles are frozen here", "deleting the agent's namespace"];
    world.reports("AgentObjectsOwned", &parts);
    world.accept_roles();
    world.recovers("AgentObjectsOwned");
}
