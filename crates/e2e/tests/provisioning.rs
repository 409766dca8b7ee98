//! Clusters that a driver makes: created, changed, used and removed through the server, by the
//! driver `example` at a provider that makes simulated clusters.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster_provider::FEW;
use e2e::server::Options;
use e2e::wait::within;
use e2e::{Cli, Client, ClusterProvider, Kubectl, Server, WebSite, eventually, programs};
use serde_json::{Value, json};

const FILE: &str = "/kontainer-engine-driver-example";
/// A busy machine starts a simulated cluster and its agent within this time.
const ACTIVE_TIME_MAX: Duration = Duration::from_secs(120);

/// A server with the driver `example`, and the provider that it uses.
struct World {
    provider: ClusterProvider,
    server: Server,
    cli: Cli,
    api: Client,
    driver: String,
}

impl World {
    fn start() -> Self {
        Self::with(ClusterProvider::start(FEW, &[]).unwrap(), &[])
    }

    fn with(provider: ClusterProvider, flags: &[&str]) -> Self {
        let site = WebSite::start().unwrap();
        let may_reach = format!("127.0.0.1:{},{}", site.port, provider.ports);
        let mut all = vec![format!("--driver-may-reach={may_reach}")];
        all.extend(flags.iter().map(|&flag| flag.to_owned()));
        let server = Server::start_with(Options { flags: all, ..Options::default() }).unwrap();
        let cli = Cli::admin(&server).unwrap();
        let program = std::fs::read(programs::example_driver().unwrap()).unwrap();
        let url = site.put(FILE, program);
        cli.succeed(&["driver", "add", &url, "--wait"]).unwrap();
        let api = server.admin().unwrap();
        let drivers = api.get("/v3/kontainerdrivers?name=example").unwrap().success().unwrap();
        let driver = drivers["data"][0]["id"].as_str().unwrap().to_owned();
        Self { provider, server, cli, api, driver }
    }

    /// Orders a cluster. Returns its id.
    fn create(&self, name: &str, options: &Value) -> String {
        let body = json!({"type": "cluster", "name": name, "exampleEngineConfig": options});
        let made = self.api.post("/v3/clusters", &body).unwrap().success().unwrap();
        made["id"].as_str().unwrap().to_owned()
    }

    fn cluster(&self, id: &str) -> Result<Value> {
        self.api.get(&format!("/v3/clusters/{id}"))?.success()
    }

    fn change(&self, id: &str, fields: &Value) -> Result<Value> {
        let mut body = self.cluster(id)?;
        let changed = fields.as_object().context("no fields")?;
        for (field, value) in changed {
            body["exampleEngineConfig"][field] = value.clone();
        }
        self.api.put(&format!("/v3/clusters/{id}"), &body)?.success()
    }

    fn wait_for(&self, id: &str, state: &str, message: &str) -> Value {
        within(ACTIVE_TIME_MAX, &format!("cluster {id} is {state}"), || {
            let cluster = self.cluster(id)?;
            let said = cluster["transitioningMessage"].as_str().unwrap_or_default();
            let found = cluster["state"].as_str().unwrap_or_default();
            ensure!(found == state && said.contains(message), "it is {found}: {said}");
            Ok(cluster)
        })
    }

    fn log(&self, id: &str) -> String {
        let log = self.api.get(&format!("/v3/clusters/{id}/provisioninglog")).unwrap();
        let log = log.success().unwrap();
        let lines = log["lines"].as_array().unwrap().iter();
        lines.map(|line| format!("{}\n", line.as_str().unwrap())).collect()
    }

    fn remove(&self, id: &str) {
        self.api.delete(&format!("/v3/clusters/{id}")).unwrap().success().unwrap();
        within(ACTIVE_TIME_MAX, "the cluster goes", || {
            let found = self.api.get(&format!("/v3/clusters/{id}"))?;
            ensure!(found.status == 404, "it is there: {}", found.text());
            Ok::<_, anyhow::Error>(())
        });
    }

    /// The provider's clusters for this id.
    fn at_provider(&self, id: &str) -> Vec<Value> {
        let all = self.provider.clusters().unwrap();
        all.into_iter().filter(|made| made["name"] == id).collect()
    }

    fn kubectl(&self) -> Kubectl {
        self.server.kubectl().unwrap()
    }

    /// The record of a cluster, decoded.
    fn record(&self, id: &str) -> Option<Value> {
        let secret = format!("c-{id}");
        let get = ["-n", "cattle-system", "get", "secret", &secret, "--ignore-not-found"];
        let get = [&get[..], &["-o", "jsonpath={.data.cluster}"]].concat();
        let encoded = self.kubectl().succeed(&get).unwrap();
        if encoded.trim().is_empty() {
            return None;
        }
        let bytes = base64::Engine::decode(&base64::prelude::BASE64_STANDARD, encoded.trim());
        Some(serde_json::from_slice(&bytes.unwrap()).unwrap())
    }
}

#[test]
fn a_driver_makes_changes_and_removes_a_cluster() {
    let world = World::start();
    let id = world.create("made", &world.provider.options(2));
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
    let state = world.record(&id).unwrap()["metadata"]["state"].clone();

    // More nodes, without the secret that nobody was shown.
    world.change(&id, &json!({"nodeCount": 3})).unwrap();
    eventually("there is one more node", || {
        let found = nodes()?;
        ensure!(found == 3, "there are {found}");
        Ok(())
    });
    let cluster = world.wait_for(&id, "active", "");
    assert_eq!(cluster["appliedSpec"]["displayName"], "made");
    assert_eq!(world.at_provider(&id).len(), 1);
    let record = world.record(&id).unwrap();
    assert_eq!(
        (&record["status"], &record["driverName"]),
        (&json!("Running"), &json!(world.driver))
    );
    assert_ne!(record["metadata"]["state"], state, "the state has the number of nodes");

    let log = world.log(&id);
    let steps = ["Create", "ordering cluster", "PostCheck", "the agent is deployed", "Update"];
    let mut rest = log.as_str();
    for step in steps {
        let at = rest.find(step).unwrap_or_else(|| panic!("no {step} in {log}"));
        rest = &rest[at..];
    }
    assert!(!log.contains(world.provider.token.trim()), "{log}");
    let stored = world.kubectl().json(&["-n", &id, "get", "cm", "provisioning-log", "-o", "json"]);
    assert_eq!(stored.unwrap()["data"]["log"], log);

    world.remove(&id);
    assert_eq!(world.provider.clusters().unwrap(), [] as [Value; 0]);
    assert_eq!(world.record(&id), None);
    let report = format!("removal-{id}");
    let report =
        ["-n", "cattle-system", "get", "cm", &report, "-o", "jsonpath={.data.report\\.json}"];
    let report: Value = serde_json::from_str(&world.kubectl().succeed(&report).unwrap()).unwrap();
    assert_eq!((&report["outcome"], &report["left"]), (&json!("complete"), &json!([])));
    assert_eq!(report["removed"], json!([{"kind": "Cluster", "name": "made"}]));
    // Nobody else's.
    assert!(Path::new(&world.provider.sim.kubeconfig()).exists());
}

#[test]
fn a_wrong_option_is_said_and_mended() {
    let world = World::start();
    let mut wrong = world.provider.options(2);
    wrong["accessToken"] = json!("not-the-token-of-the-provider");
    let id = world.create("wrong", &wrong);
    let reason = "the provider answered 401: the token is not valid here; tried again at ";
    let cluster = world.wait_for(&id, "provisioning", reason);
    assert_eq!(cluster["transitioning"], "error");
    assert!(!world.log(&id).contains("not-the-token"), "{}", world.log(&id));
    world.change(&id, &json!({"accessToken": world.provider.token})).unwrap();
    world.wait_for(&id, "active", "");
    assert_eq!(world.at_provider(&id).len(), 1);

    // A change that fails leaves the cluster as it is.
    world.change(&id, &json!({"nodeCount": 100_000})).unwrap();
    let cluster = world.wait_for(&id, "updating", "a cluster has 1 to 1000 nodes");
    assert_eq!(cluster["transitioning"], "error");
    world.change(&id, &json!({"nodeCount": 1})).unwrap();
    world.wait_for(&id, "active", "");
    world.remove(&id);
    assert_eq!(world.provider.clusters().unwrap(), [] as [Value; 0]);
}
