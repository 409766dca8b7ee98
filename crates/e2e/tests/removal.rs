//! A cluster that is removed is left as it was found, and a removal always ends.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use anyhow::{Result, bail};
use e2e::journey::{self, MANAGEMENT, Target};
use e2e::{Cli, Client, Kubeconfig, Server, eventually, snapshot};
use testbed::RealCluster;

struct World {
    server: Server,
    cli: Cli,
    target: Target,
    /// Of the downstream cluster.
    admin: Client,
    _cluster: RealCluster,
}

fn world() -> World {
    let cluster = RealCluster::start().unwrap();
    let target = Target::of(&cluster).unwrap();
    let admin = Client::of(&Kubeconfig::parse(cluster.kubeconfig()).unwrap()).unwrap();
    let server = Server::start().unwrap();
    let cli = Cli::admin(&server).unwrap();
    World { server, cli, target, admin, _cluster: cluster }
}

/// Nothing in the management API belongs to the cluster any more.
fn is_gone(server: &Server, id: &str) -> Result<()> {
    let admin = server.admin()?;
    for path in [
        format!("{MANAGEMENT}/clusters/{id}"),
        format!("/api/v1/namespaces/{id}"),
        format!("/v3/clusters/{id}"),
    ] {
        let answer = admin.get(&path)?;
        if answer.status != 404 {
            bail!("{path} is still answered by {}: {}", answer.status, answer.text());
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

#[test]
fn removing_a_cluster_leaves_no_object_of_ours_in_it() {
    let world = world();
    let before = snapshot::take(&world.admin).unwrap();
    let imported = journey::import(&world.server, &world.cli, "visited", &world.target).unwrap();
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
fn a_cluster_whose_agent_is_gone_goes_by_force_with_a_report_of_what_is_left() {
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

    // The same cluster can be imported again over what is left, and then removed for good.
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

#[test]
fn removal_asks_before_it_removes() {
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
