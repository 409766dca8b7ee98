//! A cluster that a driver made is reached without its agent, and through its agent when the way to
//! it is cut.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use e2e::wait::within;
use e2e::{ClusterProvider, DriverWorld, Kubeconfig, Kubectl, Relay, eventually};
use serde_json::json;
use testbed::{Binaries, Program};

/// Ports of the simulator.
const PORTS: u16 = 12;
/// The server looks for the direct way every ten seconds.
const BACK_TIME_MAX: Duration = Duration::from_secs(60);

struct World {
    drivers: DriverWorld,
    relay: Relay,
    id: String,
    kubectl: Kubectl,
    _sim: ClusterProvider,
}

impl World {
    fn start() -> Self {
        let sim = ClusterProvider::start(PORTS, &[]).unwrap();
        let cluster = Kubeconfig::read(&sim.sim.kubeconfig()).unwrap();
        let address = cluster.server.strip_prefix("https://").unwrap().parse().unwrap();
        let relay = Relay::start(address).unwrap();
        let program = Binaries::locate().path(Program::FaultyDriver).unwrap();
        let reach = format!("127.0.0.1:{},{}", relay.port, sim.ports);
        let drivers = DriverWorld::start(&program, &reach, &[]).unwrap();
        let options = json!({
            "clusterEndpoint": format!("https://127.0.0.1:{}", relay.port),
            "clusterCa": BASE64_STANDARD.encode(&cluster.ca_pem),
            "accessToken": cluster.token.unwrap(),
        });
        let id = drivers.create("direct", &options).unwrap();
        drivers.wait_for(&id, "active", "");
        let kubectl = drivers.cli.kubectl("direct").unwrap();
        Self { drivers, relay, id, kubectl, _sim: sim }
    }

    /// What the API of the cluster writes into a request's own audit: who asked.
    fn who(&self) -> Result<String> {
        let reviewed = self.kubectl.json(&["auth", "whoami", "-o", "json"])?;
        Ok(reviewed["status"]["userInfo"]["username"].as_str().context("nobody")?.to_owned())
    }

    fn bytes_of(&self, work: impl FnOnce()) -> u64 {
        let before = self.relay.bytes();
        work();
        self.relay.bytes() - before
    }
}

#[test]
fn a_cluster_whose_direct_endpoint_is_cut_stays_active_and_is_used_through_its_agent() {
    let world = World::start();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "web", "image": "web:1"}]},
    });
    world.kubectl.apply(&[pod]).unwrap();
    world.kubectl.succeed(&["wait", "--for=condition=Ready", "--timeout=60s", "pod/web"]).unwrap();
    let echo = || world.kubectl.succeed(&["exec", "web", "--", "echo", "over", "a", "stream"]);
    let who = world.who().unwrap();

    // Directly: requests and streams.
    eventually("requests go directly", || {
        let bytes = world.bytes_of(|| drop(world.kubectl.succeed(&["get", "nodes"])));
        ensure!(bytes > 1_000, "{bytes} bytes");
        Ok(())
    });
    let bytes = world.bytes_of(|| assert_eq!(echo().unwrap().trim(), "over a stream"));
    assert!(bytes > 1_000, "{bytes} bytes of a stream");
    let endpoint = world.drivers.cluster(&world.id).unwrap()["apiEndpoint"].clone();
    assert_eq!(endpoint, format!("https://127.0.0.1:{}", world.relay.port));

    // Cut, in the middle of a watch.
    world.relay.cut();
    let bytes = world.bytes_of(|| {
        for _ in 0..5 {
            world.kubectl.succeed(&["get", "nodes"]).unwrap();
            assert_eq!(echo().unwrap().trim(), "over a stream");
        }
    });
    assert_eq!(bytes, 0);
    assert_eq!(world.who().unwrap(), who, "the same user either way");
    let cluster = world.drivers.cluster(&world.id).unwrap();
    assert_eq!(cluster["state"], "active", "{cluster:#}");
    // A restarted server does not know the way to be cut, and finds out.
    let World { mut drivers, relay, id, kubectl, _sim } = world;
    drivers.kill_and_restart().unwrap();
    drivers.wait_for(&id, "active", "");
    eventually("kubectl works after a restart", || kubectl.succeed(&["get", "nodes"]));

    // Back.
    relay.mend();
    within(BACK_TIME_MAX, "requests go directly again", || {
        let before = relay.bytes();
        kubectl.succeed(&["get", "nodes"])?;
        let bytes = relay.bytes() - before;
        ensure!(bytes > 1_000, "{bytes} bytes");
        Ok(())
    });
    drivers.wait_for(&id, "active", "");
}
