//! Clusters that a driver makes: created, changed, used and removed through the server, by the
//! driver `example` at a provider that makes simulated clusters.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::ops::Deref;

use anyhow::{Context, Result, ensure};
use e2e::cluster_provider::FEW;
use e2e::{ClusterProvider, DriverWorld, eventually, programs};
use serde_json::{Value, json};

/// A server with the driver `example`, and the provider that it uses.
struct World {
    provider: ClusterProvider,
    drivers: DriverWorld,
}

impl Deref for World {
    type Target = DriverWorld;

    fn deref(&self) -> &DriverWorld {
        &self.drivers
    }
}

impl World {
    fn start() -> Self {
        let provider = ClusterProvider::start(FEW, &[]).unwrap();
        let program = programs::example_driver().unwrap();
        let drivers = DriverWorld::start(&program, &provider.ports, &[]).unwrap();
        Self { provider, drivers }
    }

    /// The provider's clusters for this id.
    fn at_provider(&self, id: &str) -> usize {
        let all = self.provider.clusters().unwrap();
        all.into_iter().filter(|made| made["name"] == id).count()
    }
}

#[test]
fn a_driver_makes_changes_and_removes_a_cluster() {
    let world = World::start();
    let id = world.create("made", &world.provider.options(2)).unwrap();
    let cluster = world.wait_for(&id, "active", "");
    assert_eq!(cluster["driver"], "example");
    assert_eq!(cluster["capabilities"]["nodePortRange"], "30000-32767");
    assert!(cluster["apiEndpoint"].as_str().unwrap().starts_with("https://127.0.0.1:"));
    assert_eq!(cluster["exampleEngineConfig"]["nodeCount"], 2);
    assert_eq!(cluster["exampleEngineConfig"]["driverName"], world.driver.as_str());
    let nodes = || -> Result<usize> {
        let list = world.cli.kubectl("made")?.json(&["get", "nodes", "-o", "json"])?;
        Ok(list["items"].as_array().context("no list")?.len())
    };
    assert_eq!(nodes().unwrap(), 2);
    let state = world.record(&id).unwrap().unwrap()["metadata"]["state"].clone();

    // More nodes, without the secret that nobody was shown.
    let changes = json!({"nodeCount": 3, "providerCa": ""});
    world.change(&id, &changes).unwrap();
    eventually("there is one more node", || {
        let found = nodes()?;
        ensure!(found == 3, "there are {found}");
        Ok(())
    });
    let cluster = world.wait_for(&id, "active", "");
    assert_eq!(cluster["appliedSpec"]["displayName"], "made");
    assert_eq!(world.at_provider(&id), 1);
    let record = world.record(&id).unwrap().unwrap();
    assert_eq!(
        (&record["status"], &record["driverName"]),
        (&json!("Running"), &json!(world.driver))
    );
    assert_ne!(record["metadata"]["state"], state, "the state has the number of nodes");

    let log = world.log(&id).unwrap();
    let ignored = "the driver does not name providerCa among the options that can change";
    let steps =
        ["Create", "ordering cluster", "PostCheck", "the agent is deployed", ignored, "Update"];
    let mut rest = log.as_str();
    for step in steps {
        let at = rest.find(step).unwrap_or_else(|| panic!("no {step} in {log}"));
        rest = &rest[at..];
    }
    assert!(!log.contains(world.provider.token.trim()), "{log}");
    let stored =
        world.kubectl().unwrap().json(&["-n", &id, "get", "cm", "provisioning-log", "-o", "json"]);
    assert_eq!(stored.unwrap()["data"]["log"], log);

    world.remove(&id).unwrap();
    assert_eq!(world.provider.clusters().unwrap(), [] as [Value; 0]);
    assert_eq!(world.record(&id).unwrap(), None);
    let report = world.removal_report(&id).unwrap();
    assert_eq!((&report["outcome"], &report["left"]), (&json!("complete"), &json!([])));
    assert_eq!(report["removed"], json!([{"kind": "Cluster", "name": "made"}]));
}

#[test]
fn a_wrong_option_is_said_and_mended() {
    let world = World::start();
    let mut wrong = world.provider.options(2);
    wrong["accessToken"] = json!("not-the-token-of-the-provider");
    let id = world.create("wrong", &wrong).unwrap();
    let reason = "the provider answered 401: the token is not valid here; tried again at ";
    let cluster = world.wait_for(&id, "provisioning", reason);
    assert_eq!(cluster["transitioning"], "error");
    let log = world.log(&id).unwrap();
    assert!(!log.contains("not-the-token"), "{log}");
    world.change(&id, &json!({"accessToken": world.provider.token})).unwrap();
    world.wait_for(&id, "active", "");
    assert_eq!(world.at_provider(&id), 1);

    // A change that fails leaves the cluster as it is.
    world.change(&id, &json!({"nodeCount": 100_000})).unwrap();
    let cluster = world.wait_for(&id, "updating", "a cluster has 1 to 1000 nodes");
    assert_eq!(cluster["transitioning"], "error");
    world.change(&id, &json!({"nodeCount": 1})).unwrap();
    world.wait_for(&id, "active", "");
    world.remove(&id).unwrap();
    assert_eq!(world.provider.clusters().unwrap(), [] as [Value; 0]);
}

#[test]
fn the_command_line_makes_changes_and_removes_clusters() {
    let world = World::start();
    let cli = &world.cli;
    let options = cli.succeed(&["driver", "options", "example"]).unwrap();
    assert!(options.contains("--node-count") && options.contains("Number of nodes"), "{options}");
    let [url, ca, token, _] = world.provider.flags(1);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("options.yaml");
    std::fs::write(&file, "node-count: 1\n").unwrap();
    let file = file.to_str().unwrap();
    let (url, ca, token) = (format!("--{url}"), format!("--{ca}"), format!("--{token}"));
    let create = ["cluster", "create", "typed", "--driver", "example", &url, &ca, &token];
    let wrong = cli.refuse(&[&create[..], &["--nodes", "2"]].concat()).unwrap();
    assert!(wrong.contains("the driver has no option \"nodes\""), "{wrong}");
    let wrong = cli.refuse(&[&create[..], &["--node-count", "many"]].concat()).unwrap();
    assert!(wrong.contains("needs a whole number"), "{wrong}");
    let made = cli.run(&[&create[..], &["--options-file", file, "--wait"]].concat()).unwrap();
    assert!(made.success, "{made:?}");
    // What the driver says while the command waits.
    assert!(made.stderr.contains("example: ordering cluster"), "{made:?}");
    let id = made.stdout.trim();
    assert_eq!(world.cluster(id).unwrap()["state"], "active");

    cli.succeed(&["cluster", "update", "typed", "--node-count", "3", "--wait"]).unwrap();
    let nodes = cli.kubectl("typed").unwrap().succeed(&["get", "nodes", "-o", "name"]).unwrap();
    assert_eq!(nodes.lines().count(), 3, "{nodes}");
    let log = cli.succeed(&["cluster", "logs", "typed", "--follow"]).unwrap();
    assert!(log.contains("to 3 nodes") && log.trim_end().ends_with("done"), "{log}");
    let refused = cli.refuse(&["cluster", "update", "typed", "--node-count", "0", "--wait"]);
    assert!(refused.unwrap().contains("a cluster has 1 to 1000 nodes"));

    // Paused, the driver does nothing; what is to be done is done later.
    cli.succeed(&["cluster", "pause", "typed"]).unwrap();
    world.wait_for(id, "updating", "paused by the annotation drover.io/paused=true");
    cli.succeed(&["cluster", "update", "typed", "--node-count", "2"]).unwrap();
    cli.succeed(&["cluster", "resume", "typed"]).unwrap();
    eventually("it has two nodes", || {
        let nodes = cli.kubectl("typed")?.succeed(&["get", "nodes", "-o", "name"])?;
        ensure!(nodes.lines().count() == 2, "{nodes}");
        Ok::<_, anyhow::Error>(())
    });
    cli.succeed(&["cluster", "rm", "typed", "--yes", "--wait"]).unwrap();
    assert_eq!(world.provider.clusters().unwrap(), [] as [Value; 0]);
}

#[test]
fn a_cluster_that_is_let_go_stays_at_the_provider() {
    let world = World::start();
    let id = world.create("kept", &world.provider.options(1)).unwrap();
    world.wait_for(&id, "active", "");
    world.cli.succeed(&["cluster", "detach", "kept", "--yes", "--wait"]).unwrap();
    assert_eq!(world.at_provider(&id), 1);
    assert_eq!(world.record(&id).unwrap(), None);
    let report = world.removal_report(&id).unwrap();
    assert_eq!((&report["mode"], &report["outcome"]), (&json!("detach"), &json!("complete")));
}
