//! What goes wrong with drivers while they make, change and remove clusters: the server says what,
//! goes on when it is mended, and forgets nothing. The driver is one in Go that fails as its
//! options say; its clusters are simulated, and exist already.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::ensure;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use e2e::{ClusterProvider, DriverWorld, Kubeconfig, SharedWorld, WebSite, eventually};
use serde_json::{Value, json};
use testbed::{Binaries, Program, RealCluster};

/// Ports of the simulator: its clusters, and more than the provider needs.
const PORTS: u16 = 24;

/// A server with the driver, and a simulator with clusters.
struct World {
    drivers: DriverWorld,
    sim: ClusterProvider,
}

static WORLD: SharedWorld<World> = SharedWorld::new();

fn faulty() -> PathBuf {
    Binaries::locate().path(Program::FaultyDriver).unwrap()
}

fn world() -> Arc<World> {
    WORLD.get(|| {
        let sim = ClusterProvider::start(PORTS, &["--clusters", "12"])?;
        let flags = ["--driver-call-time-max=5s"];
        let drivers = DriverWorld::start(&faulty(), &sim.ports, &flags)?;
        Ok(World { drivers, sim })
    })
}

impl World {
    /// The options of a cluster that is the simulator's with this number.
    fn options(&self, number: usize, fault: &str) -> Value {
        let files = self.sim.sim.kubeconfigs().unwrap();
        let cluster = Kubeconfig::read(&files[number]).unwrap();
        json!({
            "clusterEndpoint": cluster.server,
            "clusterCa": BASE64_STANDARD.encode(&cluster.ca_pem),
            "accessToken": cluster.token.unwrap(),
            "fault": fault,
        })
    }

    /// Makes a cluster whose driver fails with this message, mends it, and removes it.
    fn fails_and_is_mended(&self, number: usize, fault: &str, message: &str) {
        let drivers = &self.drivers;
        let name = fault.replace(':', "-").to_lowercase();
        let id = drivers.create(&name, &self.options(number, fault)).unwrap();
        let failed = drivers.wait_for(&id, "provisioning", message);
        assert_eq!(failed["transitioning"], "error", "{fault}");
        let log = drivers.log(&id).unwrap();
        assert!(log.contains("drover: failed: "), "{fault}: {log}");
        drivers.change(&id, &json!({"fault": ""})).unwrap();
        drivers.wait_for(&id, "active", "");
        drivers.remove(&id).unwrap();
        assert_eq!(drivers.record(&id).unwrap(), None);
    }
}

#[test]
fn a_driver_that_crashes_is_said_to_have_ended() {
    let last =
        "the driver ended in the middle of Create; it wrote last: panic: the memory is corrupt";
    world().fails_and_is_mended(0, "crash:Create", last);
}

#[test]
fn a_driver_that_hangs_is_ended() {
    let message = "the driver did not answer to Create within 5 s and was ended";
    world().fails_and_is_mended(1, "hang:Create", message);
}

#[test]
fn a_driver_that_returns_nothing_is_called_again() {
    world().fails_and_is_mended(
        2,
        "nil:Create",
        "the driver returned nothing of the cluster to Create",
    );
}

#[test]
fn a_driver_that_returns_garbage_leads_nowhere() {
    let message = "the driver returned \"nowhere at all\" as the endpoint of the cluster";
    world().fails_and_is_mended(3, "garbage:PostCheck", message);
}

#[test]
fn what_a_driver_says_itself_is_shown_as_it_is() {
    let message = "the cloud does not like it; tried again at ";
    world().fails_and_is_mended(4, "error:PostCheck", message);
}

#[test]
fn what_a_failed_creation_left_is_known_to_the_next_attempt() {
    let world = world();
    let drivers = &world.drivers;
    let id = drivers.create("half", &world.options(5, "half:Create")).unwrap();
    drivers.wait_for(&id, "provisioning", "the quota of the cloud is exceeded");
    let record = drivers.record(&id).unwrap().unwrap();
    assert_eq!(record["status"], "Error");
    let state = record["metadata"]["state"].clone();
    assert!(
        state.as_str().unwrap().starts_with("{\"z\": 1,  \"text\": \"\\u00e9é\\n\""),
        "{state}"
    );
    drivers.change(&id, &json!({"fault": ""})).unwrap();
    drivers.wait_for(&id, "active", "");
    assert_eq!(drivers.record(&id).unwrap().unwrap()["metadata"]["state"], state);
    // The second creation came with the state of the first.
    let log = drivers.log(&id).unwrap();
    let states: Vec<&str> =
        calls(&log).filter(|(name, _)| *name == "Create").map(|(_, s)| s).collect();
    assert_eq!(states.len(), 2, "{log}");
    assert_ne!(states[0], states[1]);
    drivers.remove(&id).unwrap();
}

#[test]
fn a_log_that_comes_too_fast_costs_lines_and_nothing_else() {
    let world = world();
    let drivers = &world.drivers;
    let id = drivers.create("flood", &world.options(6, "flood:Create")).unwrap();
    drivers.wait_for(&id, "active", "");
    let log = drivers.log(&id).unwrap();
    assert!(log.contains("more lines, too fast to store them"), "{log}");
    assert!(log.len() < 300_000, "{} bytes", log.len());
    drivers.remove(&id).unwrap();
}

#[test]
fn a_change_that_fails_leaves_the_cluster_in_use() {
    let world = world();
    let drivers = &world.drivers;
    let id = drivers.create("changed", &world.options(7, "")).unwrap();
    drivers.wait_for(&id, "active", "");
    drivers.change(&id, &json!({"fault": "status:Update"})).unwrap();
    let failed = drivers.wait_for(&id, "updating", "ResourceExhausted: too many requests");
    assert_eq!(failed["transitioning"], "error");
    let nodes = drivers.cli.kubectl("changed").unwrap().succeed(&["get", "nodes", "-o", "name"]);
    assert_eq!(nodes.unwrap().lines().count(), 1);
    drivers.change(&id, &json!({"fault": ""})).unwrap();
    drivers.wait_for(&id, "active", "");
    drivers.remove(&id).unwrap();
}

#[test]
fn an_answer_after_a_cancel_is_not_used() {
    let world = world();
    let drivers = &world.drivers;
    let id = drivers.create("late", &world.options(10, "late:Create")).unwrap();
    let creations = || Ok::<_, anyhow::Error>(drivers.log(&id)?.matches("call Create ").count());
    eventually("the driver is called", || {
        ensure!(creations()? == 1, "{}", drivers.log(&id)?);
        Ok(())
    });
    drivers.cli.succeed(&["cluster", "pause", "late"]).unwrap();
    eventually("the driver has ended", || {
        let log = drivers.log(&id)?;
        ensure!(log.contains("drover: failed: "), "{log}");
        Ok(())
    });
    // Nothing is known of what it may have made, but that it was begun.
    let record = drivers.record(&id).unwrap().unwrap();
    assert_eq!((&record["status"], &record["endpoint"]), (&json!("Creating"), &json!("")));
    drivers.change(&id, &json!({"fault": ""})).unwrap();
    assert_eq!(creations().unwrap(), 1);
    drivers.cli.succeed(&["cluster", "resume", "late"]).unwrap();
    drivers.wait_for(&id, "active", "");
    assert_eq!(creations().unwrap(), 2);
    drivers.remove(&id).unwrap();
}

#[test]
fn a_driver_whose_options_change_keeps_its_clusters() {
    let sim = ClusterProvider::start(PORTS, &["--clusters", "1"]).unwrap();
    let site = WebSite::start().unwrap();
    let ports = format!("{},127.0.0.1:{}", sim.ports, site.port);
    let drivers = DriverWorld::start(&faulty(), &ports, &[]).unwrap();
    let world = World { drivers, sim };
    let drivers = &world.drivers;
    let mut options = world.options(0, "");
    options["size"] = 2.into();
    let id = drivers.create("kept", &options).unwrap();
    drivers.wait_for(&id, "active", "");

    let mut program = std::fs::read(faulty()).unwrap();
    program.extend_from_slice(b"other-options");
    let url = site.put("/v2/kontainer-engine-driver-faulty", program);
    drivers.replace_driver(&url).unwrap();
    eventually("the type has the other options", || {
        let path = format!("/v3/schemas/{}", drivers.field);
        let fields = drivers.api.get(&path)?.success()?["resourceFields"].take();
        ensure!(fields["zone"].is_object() && fields["size"].is_null(), "{fields}");
        Ok(())
    });
    let cluster = drivers.wait_for(&id, "active", "");
    assert_eq!(cluster[&drivers.field]["zone"], Value::Null);
    drivers.change(&id, &json!({"zone": "west"})).unwrap();
    eventually("it is changed with the other driver", || {
        let log = drivers.log(&id)?;
        ensure!(calls(&log).any(|(name, _)| name == "Update"), "{log}");
        Ok(())
    });
    let cluster = drivers.wait_for(&id, "active", "");
    assert_eq!(cluster[&drivers.field]["zone"], "west");
    drivers.remove(&id).unwrap();
}

/// The calls in a log, each with the checksum of the state that came with it.
fn calls(log: &str) -> impl Iterator<Item = (&str, &str)> {
    log.lines().filter_map(|line| {
        let (_, call) = line.split_once("faulty: call ")?;
        call.split_once(" state ")
    })
}

#[test]
fn a_removal_that_fails_is_tried_until_somebody_gives_up_and_every_call_is_recorded() {
    let world = world();
    let drivers = &world.drivers;
    let id = drivers.create("stuck", &world.options(8, "error:Remove")).unwrap();
    let made = drivers.wait_for(&id, "active", "");
    let balancer = json!({
        "enabled": true, "provider": "faulty", "protocolsSupported": ["TCP"],
        "healthCheckSupported": false,
    });
    assert_eq!(made["capabilities"]["loadBalancerCapabilities"], balancer);
    let ingress = json!([{"ingressProvider": "faulty", "customDefaultBackend": false}]);
    assert_eq!(made["capabilities"]["ingressCapabilities"], ingress);
    drivers.change(&id, &json!({"size": 2})).unwrap();
    eventually("it is changed", || {
        let log = drivers.log(&id)?;
        ensure!(calls(&log).any(|(name, _)| name == "Update"), "{log}");
        Ok(())
    });
    drivers.wait_for(&id, "active", "");
    drivers.api.delete(&format!("/v3/clusters/{id}")).unwrap().success().unwrap();
    let message = "the cloud does not like it; tried again at ";
    let stuck = drivers.wait_for(&id, "removing", message);
    assert_eq!(stuck["transitioning"], "error");
    let said = stuck["transitioningMessage"].as_str().unwrap();
    assert!(said.contains("drover cluster rm stuck --force"), "{said}");

    let log = drivers.log(&id).unwrap();
    let called: BTreeSet<&str> = calls(&log).map(|(name, _)| name).collect();
    let expected = [
        "Create",
        "GetDriverCreateOptions",
        "GetDriverUpdateOptions",
        "GetK8sCapabilities",
        "PostCheck",
        "Remove",
        "RemoveLegacyServiceAccount",
        "Update",
    ];
    // To see whether a driver serves.
    let called: Vec<&str> = called.into_iter().filter(|name| *name != "GetCapabilities").collect();
    assert_eq!(called, expected, "{log}");
    // From Create to Remove, each byte of the state came back.
    let empty = calls(&log).find(|(name, _)| *name == "Create").unwrap().1;
    let states: BTreeSet<&str> = calls(&log).map(|(_, state)| state).collect();
    let states: Vec<&&str> = states.iter().filter(|state| **state != empty).collect();
    assert_eq!(states.len(), 1, "{log}");

    drivers.cli.succeed(&["cluster", "rm", "stuck", "--yes", "--force"]).unwrap();
    drivers.wait_until_gone(&id);
    assert_eq!(drivers.record(&id).unwrap(), None);
    let report = drivers.removal_report(&id).unwrap();
    assert_eq!(report["outcome"], "forced");
    let left = &report["left"][0];
    assert_eq!((&left["cluster"], &left["name"]), (&json!("provider"), &json!("stuck")));
}

#[test]
fn snapshots_of_etcd_are_the_business_of_the_driver() {
    let world = world();
    let drivers = &world.drivers;
    let id = drivers.create("saved", &world.options(9, "")).unwrap();
    drivers.wait_for(&id, "active", "");
    let act = |action: &str, body: &Value| {
        drivers.api.post(&format!("/v3/clusters/{id}?action={action}"), body).unwrap()
    };
    let saved = act("backupEtcd", &json!({})).success().unwrap();
    let name = saved["name"].as_str().unwrap();
    let log = drivers.log(&id).unwrap();
    assert!(log.contains(&format!("faulty: saving \"{name}\"")), "{log}");
    let missing = act("restoreFromEtcdBackup", &json!({}));
    assert_eq!(missing.json()["code"], "MissingRequired");
    let refused = act("restoreFromEtcdBackup", &json!({"etcdBackupId": name}));
    assert_eq!(refused.status, 422);
    assert_eq!(refused.json()["message"], "ETCD backup operations are not implemented");
    // Nothing of that is a failure of the cluster.
    assert_eq!(drivers.cluster(&id).unwrap()["state"], "active");
    drivers.remove(&id).unwrap();
}

#[test]
fn the_server_makes_the_account_that_old_drivers_cannot_make() {
    let cluster = RealCluster::start().unwrap();
    let admin = Kubeconfig::read(&cluster.kubeconfig_path()).unwrap();
    let address = admin.server.trim_start_matches("https://").to_owned();
    let drivers = DriverWorld::start(&faulty(), &address, &[]).unwrap();
    // As the cloud gives it to drivers from before Kubernetes 1.24: a certificate and no token.
    let (certificate, key) = admin.certificate.unwrap();
    let options = json!({
        "clusterEndpoint": admin.server,
        "clusterCa": BASE64_STANDARD.encode(&admin.ca_pem),
        "clientCertificate": BASE64_STANDARD.encode(certificate),
        "clientKey": BASE64_STANDARD.encode(key),
    });
    let id = drivers.create("old", &options).unwrap();
    eventually("the agent is deployed", || {
        let log = drivers.log(&id)?;
        ensure!(log.contains("the agent is deployed"), "{log}");
        Ok(())
    });
    let log = drivers.log(&id).unwrap();
    let said =
        "PostCheck failed, and Drover makes the account: failed to fetch serviceAccountToken";
    assert!(log.contains(said), "{log}");
    let record = drivers.record(&id).unwrap().unwrap();
    let token = record["serviceAccountToken"].as_str().unwrap();
    assert_eq!(token.split('.').count(), 3, "a token of a service account");
}
