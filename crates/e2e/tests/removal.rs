//! The removal of a cluster restores its original state, and always ends.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use anyhow::{Result, bail};
use e2e::journey::{self, ImportTarget, Imported, MANAGEMENT};
use e2e::{Agent, Cli, Client, Kubeconfig, Server, eventually, snapshot};
use serde_json::{Value, json};
use testbed::RealCluster;

struct World {
    server: Server,
    cli: Cli,
    target: ImportTarget,
    /// `kubectl` of the downstream cluster.
    admin: Client,
    _cluster: RealCluster,
}

fn world() -> World {
    let cluster = RealCluster::start().unwrap();
    let target = ImportTarget::of(&cluster).unwrap();
    let admin = Client::of(&Kubeconfig::parse(cluster.kubeconfig()).unwrap()).unwrap();
    let server = Server::start().unwrap();
    let cli = Cli::admin(&server).unwrap();
    World { server, cli, target, admin, _cluster: cluster }
}

/// Checks that no object in the management API belongs to the cluster any more.
fn is_gone(server: &Server, id: &str) -> Result<()> {
    let admin = server.admin()?;
    for path in [
        format!("{MANAGEMENT}/clusters/{id}"),
        format!("/api/v1/namespaces/{id}"),
        format!("/v3/clusters/{id}"),
    ] {
        let response = admin.get(&path)?;
        if response.status != 404 {
            bail!("{path} still returns {}: {}", response.status, response.text());
        }
    }
    for kind in ["nodes", "projects", "clusterregistrationtokens", "clusterroletemplatebindings"] {
        let list = admin.get(&format!("{MANAGEMENT}/{kind}"))?.success()?;
        let items = list["items"].as_array().cloned().unwrap_or_default();
        if items.iter().any(|item| item["metadata"]["namespace"] == id) {
            bail!("{kind} of '{id}' are left: {list}");
        }
    }
    Ok(())
}

/// Creates a Secret of the cluster's project Default, which is copied to the namespace `default`.
fn share_a_secret(world: &World, cluster: &str) {
    let admin = world.server.admin().unwrap();
    let path = format!("/v3/projects?clusterId={cluster}&name=Default");
    let projects = admin.get(&path).unwrap().success().unwrap();
    let project = projects["data"][0]["id"].as_str().unwrap();
    let path = format!("/v3/projects/{project}/secrets");
    let shared = json!({"name": "shared", "stringData": {"k": "v"}});
    eventually("a Secret of the project", || admin.post(&path, &shared)?.success().map(drop));
    eventually("its copy", || {
        let copy = world.target.kubectl.json(&["get", "secret", "shared", "-n", "default"])?;
        if copy["data"]["k"] == "dg==" { Ok(()) } else { bail!("{copy}") }
    });
}

#[test]
fn removing_a_cluster_leaves_no_object_of_drover_in_it() {
    let world = world();
    let before = snapshot::take(&world.admin).unwrap();
    let imported = journey::import(&world.server, &world.cli, "visited", &world.target).unwrap();
    share_a_secret(&world, &imported.id);
    let during = snapshot::take(&world.admin).unwrap();
    let made = snapshot::differences(&before, &during);
    assert!(made.iter().any(|line| line.contains("cattle-system")), "nothing to remove: {made:?}");
    let role = Some(("cluster-member", "visited"));
    journey::user_with_role(&world.server, &world.cli, "guest", role).unwrap();

    world.cli.succeed(&["cluster", "rm", "visited", "--yes"]).unwrap();
    is_gone(&world.server, &imported.id).unwrap();
    eventually("all objects are as before", || {
        let after = snapshot::take(&world.admin)?;
        let left = snapshot::differences(&before, &after);
        if left.is_empty() { Ok(()) } else { bail!("{}", left.join("\n")) }
    });
    let gone = world.cli.refuse(&["cluster", "get", "visited"]).unwrap();
    assert!(gone.contains("visited"), "{gone}");
}

#[test]
fn a_cluster_without_agent_is_removed_by_force_with_a_report_of_leftovers() {
    let world = world();
    let mut imported = journey::import(&world.server, &world.cli, "lost", &world.target).unwrap();
    imported.agent.kill();
    eventually("the cluster is known to be out of reach", || {
        let (state, message) = journey::state(&world.server, &imported.id)?;
        if state == "unavailable" { Ok(()) } else { bail!("{state} {message}") }
    });
    let outcome = world.cli.run(&["cluster", "rm", "lost", "--yes", "--force"]).unwrap();
    let words = format!("{}{}", outcome.stdout, outcome.stderr);
    assert!(outcome.success, "{outcome:?}");
    assert!(words.contains("cattle-system"), "no report of what is left: {words}");
    is_gone(&world.server, &imported.id).unwrap();

    // The same cluster can be imported again over the leftovers, and then removed completely.
    let again = journey::import(&world.server, &world.cli, "lost", &world.target).unwrap();
    world.cli.succeed(&["cluster", "rm", "lost", "--yes"]).unwrap();
    is_gone(&world.server, &again.id).unwrap();
    eventually("nothing is left", || {
        let left = world.target.kubectl.succeed(&[
            "get",
            "namespaces,clusterroles,clusterrolebindings",
            "-o",
            "name",
        ])?;
        let ours: Vec<_> = left
            .lines()
            .filter(|line| line.contains("cattle") || line.contains("drover"))
            .collect();
        if ours.is_empty() { Ok(()) } else { bail!("{ours:?}") }
    });
}

/// Objects that users create in a cluster through Drover.
fn works() -> Vec<Value> {
    let labels = json!({"team": "shop", "field.cattle.io/projectId": "c-x_p-y"});
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace",
               "metadata": {"name": "shop", "labels": labels}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap",
               "metadata": {"name": "prices", "namespace": "shop", "finalizers": ["shop.io/keep"]},
               "data": {"apple": "1"}}),
        json!({"apiVersion": "v1", "kind": "Secret",
               "metadata": {"name": "till", "namespace": "shop"}, "stringData": {"pin": "0000"}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
               "metadata": {"name": "shopkeeper"},
               "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
               "metadata": {"name": "shopkeepers"},
               "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                           "name": "shopkeeper"},
               "subjects": [{"kind": "Group", "name": "shopkeepers",
                             "apiGroup": "rbac.authorization.k8s.io"}]}),
    ]
}

#[test]
fn detaching_deletes_drovers_objects_and_leaves_those_of_users() {
    let world = world();
    let before = snapshot::take(&world.admin).unwrap();
    let imported = journey::import(&world.server, &world.cli, "lent", &world.target).unwrap();
    let role = Some(("cluster-member", "lent"));
    journey::user_with_role(&world.server, &world.cli, "guest", role).unwrap();
    world.cli.kubectl("lent").unwrap().apply(&works()).unwrap();
    let bound = ["token", "create", "--cluster", "lent"];
    world.cli.succeed(&bound).unwrap();
    let with_works = snapshot::take(&world.admin).unwrap();

    let refused = world.cli.refuse(&["cluster", "detach", "lent"]).unwrap();
    assert!(refused.contains("--yes"), "{refused}");
    let outcome = world.cli.run(&["cluster", "detach", "lent", "--yes"]).unwrap();
    assert!(outcome.success, "{outcome:?}");
    assert!(outcome.stderr.contains("everything else in it is unchanged"), "{outcome:?}");
    is_gone(&world.server, &imported.id).unwrap();

    // Downstream: exactly the original objects, and unchanged those that users created.
    eventually("only objects of users were added", || {
        let after = snapshot::take(&world.admin)?;
        let made = ["shop", "shopkeeper", "shopkeepers"];
        let mut strange = snapshot::differences(&before, &after);
        strange.retain(|line| {
            let is_made = line
                .strip_prefix("new: ")
                .is_some_and(|key| key.split('/').skip(1).any(|name| made.contains(&name)));
            !is_made
        });
        let changed = snapshot::differences(&with_works, &after);
        let lost: Vec<_> = changed.iter().filter(|line| line.contains("shop")).collect();
        if strange.is_empty() && lost.is_empty() { Ok(()) } else { bail!("{strange:?} {lost:?}") }
    });

    // In the management API: a report, an event, and no token that is valid only for this cluster.
    let admin = world.server.admin().unwrap();
    let path = format!("/api/v1/namespaces/cattle-system/configmaps/removal-{}", imported.id);
    let kept = admin.get(&path).unwrap().success().unwrap();
    let report: Value =
        serde_json::from_str(kept["data"]["report.json"].as_str().unwrap()).unwrap();
    assert_eq!(
        (&report["mode"], &report["outcome"], &report["left"]),
        (&json!("detach"), &json!("complete"), &json!([])),
        "{report}"
    );
    let events = admin.get("/api/v1/namespaces/default/events").unwrap().success().unwrap();
    let events = events["items"].as_array().unwrap();
    let of_cluster = |event: &&Value| event["involvedObject"]["name"] == imported.id.as_str();
    let reasons: Vec<_> = events.iter().filter(of_cluster).map(|e| &e["reason"]).collect();
    assert_eq!(reasons, [&json!("Detached")]);
    let tokens = admin.get(&format!("{MANAGEMENT}/tokens")).unwrap().success().unwrap();
    assert!(!tokens.to_string().contains(&imported.id), "{tokens}");

    // It can be imported again.
    drop(imported);
    journey::import(&world.server, &world.cli, "lent", &world.target).unwrap();
}

/// A cluster whose agent has disconnected, which the server has noticed.
fn lost(world: &World, name: &str) -> Imported {
    let mut imported = journey::import(&world.server, &world.cli, name, &world.target).unwrap();
    imported.agent.kill();
    eventually("the cluster is known to be out of reach", || {
        let (state, message) = journey::state(&world.server, &imported.id)?;
        if state == "unavailable" { Ok(()) } else { bail!("{state} {message}") }
    });
    imported
}

/// The warning before anything changes.
const SILENCE: [&str; 6] = [
    "does not respond since",
    "cluster agent is not connected",
    "ClusterRoleBinding drover-cluster-agent",
    "kubectl delete namespace cattle-system",
    "--wait",
    "--force",
];

#[test]
fn a_cluster_that_does_not_respond_is_removed_only_in_the_chosen_way() {
    let world = world();
    let imported = lost(&world, "away");
    let before = journey::cluster(&world.server, &imported.id).unwrap();
    for command in ["rm", "detach"] {
        let outcome = world.cli.run(&["cluster", command, "away", "--yes"]).unwrap();
        assert_eq!(outcome.code, 8, "{outcome:?}");
        for part in SILENCE {
            assert!(outcome.stderr.contains(part), "'{part}' is not in: {}", outcome.stderr);
        }
    }
    let after = journey::cluster(&world.server, &imported.id).unwrap();
    assert_eq!(after["metadata"]["annotations"], before["metadata"]["annotations"]);
    assert!(after["metadata"]["deletionTimestamp"].is_null(), "{after}");

    // The command reports the deadline, and shows the end of the removal when the agent is back.
    let log = world.cli.home().join("rm.log");
    let mut removal = world.cli.start(&["cluster", "rm", "away", "--yes", "--wait"], &log).unwrap();
    eventually("the wait has an end", || {
        let said = removal.log_tail();
        if said.contains("Drover waits for it until") { Ok(()) } else { bail!("{said}") }
    });
    let target = &world.target;
    let _agent = Agent::start(&imported.container, &target.downstream, &target.kubectl).unwrap();
    let status = eventually("the removal ends", || match removal.exit_status() {
        Some(status) => Ok(status),
        None => bail!("{}", removal.log_tail()),
    });
    assert!(status.success(), "{}", removal.log_tail());
    assert!(removal.log_tail().contains("nothing is left"), "{}", removal.log_tail());
    is_gone(&world.server, &imported.id).unwrap();
}

#[test]
fn a_cluster_that_does_not_respond_is_detached_by_force_with_a_report() {
    let world = world();
    let imported = lost(&world, "away");
    let outcome = world.cli.run(&["cluster", "detach", "away", "--yes", "--force"]).unwrap();
    assert!(outcome.success, "{outcome:?}");
    for part in ["does not respond since", "these are left:", "cattle-system", "no longer work"] {
        assert!(outcome.stderr.contains(part), "'{part}' is not in: {}", outcome.stderr);
    }
    is_gone(&world.server, &imported.id).unwrap();
    let admin = world.server.admin().unwrap();
    let path = format!("/api/v1/namespaces/cattle-system/configmaps/removal-{}", imported.id);
    let kept = admin.get(&path).unwrap().success().unwrap();
    let report: Value =
        serde_json::from_str(kept["data"]["report.json"].as_str().unwrap()).unwrap();
    assert_eq!(
        (&report["mode"], &report["outcome"]),
        (&json!("detach"), &json!("forced")),
        "{report}"
    );
    let refused = world.cli.refuse(&["cluster", "detach", "local", "--yes"]).unwrap();
    assert!(refused.contains("local"), "{refused}");
}

#[test]
fn removal_requires_a_confirmation() {
    let server = Server::start().unwrap();
    let cli = Cli::admin(&server).unwrap();
    journey::create_cluster(&server, "dear").unwrap();
    let refused = cli.refuse(&["cluster", "rm", "dear"]).unwrap();
    assert!(refused.contains("--yes"), "{refused}");
    journey::cluster_id(&server, "dear").unwrap();
    let refused = cli.refuse(&["cluster", "rm", "local", "--yes"]).unwrap();
    assert!(refused.contains("local"), "{refused}");
    eventually("the local cluster stays", || journey::is_active(&server, "local"));
}
