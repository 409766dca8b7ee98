//! Imports into a cluster with a real node: its kubelet runs the agent as a pod from the image.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use e2e::measure::memory;
use e2e::server::Options;
use e2e::{Cli, Kubectl, Server, agent_image, eventually, journey};
use serde_json::{Value, json};
use testbed::{Process, RealNode};

/// The order matters: the server listens on the node's network.
struct World {
    admin: Cli,
    server: Server,
    node: RealNode,
}

const NAMESPACE: &str = "cattle-system";
const DEPLOYMENT: &str = "deployment/cattle-cluster-agent";
/// From the manifest to an active cluster, with the image on the node. The goal is five seconds; a
/// machine that builds beside it gets more.
const ACTIVE_WITHIN: Duration = Duration::from_secs(20);

/// Resident memory of an idle agent, in megabytes.
const MEMORY_MAX: f64 = 15.0;

impl World {
    fn start() -> Self {
        let node = RealNode::start().unwrap();
        let address = Some(node.host_address().into());
        let server = Server::start_with(Options { address, ..Options::default() }).unwrap();
        Self { admin: Cli::admin(&server).unwrap(), server, node }
    }

    fn with_image() -> Self {
        let world = Self::start();
        world.load_image();
        world
    }

    fn load_image(&self) {
        let names = self.node.import(&agent_image::path().unwrap()).unwrap();
        assert_eq!(names, [agent_image::name().unwrap()]);
    }

    fn directly(&self) -> Kubectl {
        let cluster = self.node.cluster();
        Kubectl::new(&cluster.kubeconfig_path(), cluster.folder()).unwrap()
    }

    /// `drover cluster import` in the background.
    fn import(&self, name: &str, flags: &[&str]) -> Import {
        let kubeconfig = self.node.cluster().kubeconfig_path();
        let file = kubeconfig.to_str().unwrap();
        let mut arguments = vec!["cluster", "import", name, "--kubeconfig", file];
        arguments.extend(flags);
        let log = self.admin.home().join(format!("import-{name}.log"));
        let process = self.admin.start(&arguments, &log).unwrap();
        Import { process, log }
    }

    /// The agent's pods that are not terminating.
    fn pods(&self) -> Result<Vec<Value>> {
        let select = "app=cattle-cluster-agent";
        let list = self.directly().json(&["get", "pods", "-n", NAMESPACE, "-l", select])?;
        let pods = list["items"].as_array().context("a list without items")?;
        let stay = |pod: &&Value| pod["metadata"]["deletionTimestamp"].is_null();
        Ok(pods.iter().filter(stay).cloned().collect())
    }

    fn set_agent_environment(&self, id: &str, name: &str, value: &str) {
        let variables =
            if name.is_empty() { json!([]) } else { json!([{"name": name, "value": value}]) };
        let patch = json!({"spec": {"agentEnvVars": variables}}).to_string();
        let arguments =
            ["patch", "clusters.management.cattle.io", id, "--type=merge", "-p", &patch];
        self.server.kubectl().unwrap().succeed(&arguments).unwrap();
    }
}

/// A running `drover cluster import`.
struct Import {
    process: Process,
    log: PathBuf,
}

impl Import {
    fn words(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Waits until its output has all of `parts`.
    fn says(&mut self, parts: &[&str]) {
        eventually("the import says it", || -> Result<()> {
            let words = self.words();
            let missing: Vec<_> = parts.iter().filter(|part| !words.contains(**part)).collect();
            ensure!(missing.is_empty(), "{missing:?} is not in:\n{words}");
            Ok(())
        });
    }

    fn succeeds(&mut self) {
        let status = eventually("the import ends", || {
            self.process
                .exit_status()
                .with_context(|| format!("still importing:\n{}", self.words()))
        });
        assert!(status.success(), "{}", self.words());
    }

    fn fails(&mut self) {
        let status = eventually("the import gives up", || {
            self.process
                .exit_status()
                .with_context(|| format!("still importing:\n{}", self.words()))
        });
        assert_eq!(status.code(), Some(9), "{}", self.words());
    }
}

/// Memory of the process that the kubelet runs, which is visible on this machine.
fn memory_of_agent(world: &World) -> Result<f64> {
    let pods = world.pods()?;
    let uid = pods[0]["metadata"]["uid"].as_str().context("a pod without a uid")?;
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let is_agent = std::fs::read_link(entry.path().join("exe"))
            .is_ok_and(|program| program.ends_with("drover-agent"));
        let groups = std::fs::read_to_string(entry.path().join("cgroup")).unwrap_or_default();
        if is_agent && groups.contains(uid) {
            return memory(id);
        }
    }
    bail!("no process of pod {uid}")
}

fn is_ready(pod: &Value) -> bool {
    pod["status"]["containerStatuses"][0]["ready"] == true
}

#[test]
fn a_manifest_is_all_it_takes_and_a_reboot_changes_nothing() {
    let mut world = World::with_image();
    let id = journey::create_cluster(&world.server, "by-manifest").unwrap();
    let manifest = eventually("the manifest", || journey::manifest_of(&world.server, &id));
    let since = Instant::now();
    world.directly().apply(&manifest.objects).unwrap();
    eventually("the cluster is active", || journey::is_active(&world.server, &id));
    let took = since.elapsed();
    println!("from kubectl apply to active: {:.2} s", took.as_secs_f64());
    assert!(took < ACTIVE_WITHIN, "{took:?}");
    let memory = memory_of_agent(&world).unwrap();
    println!("resident memory of the agent: {memory:.1} MB");
    assert!(memory <= MEMORY_MAX, "{memory} MB");
    // The Deployment is complete when, and only when, the agent is connected.
    let rollout = ["rollout", "status", "-n", NAMESPACE, DEPLOYMENT, "--timeout=60s"];
    world.directly().succeed(&rollout).unwrap();
    let through = world.admin.kubectl("by-manifest").unwrap();
    assert_eq!(through.succeed(&["get", "nodes", "-o", "name"]).unwrap().trim(), "node/node-1");

    world.node.power_off();
    eventually("the cluster is lost", || -> Result<()> {
        let (state, message) = journey::state(&world.server, &id)?;
        ensure!(state == "unavailable", "{state}: {message}");
        Ok(())
    });
    let since = Instant::now();
    world.node.power_on().unwrap();
    eventually("the cluster is active again", || journey::is_active(&world.server, &id));
    println!("from power on to active again: {:.2} s", since.elapsed().as_secs_f64());
    let pods = world.pods().unwrap();
    assert_eq!(pods.len(), 1, "the same pod: {pods:?}");
    assert_eq!(pods[0]["status"]["containerStatuses"][0]["restartCount"], 1);
}

#[test]
fn a_missing_image_is_named_and_the_import_goes_on_when_it_comes() {
    let world = World::start();
    let mut import = world.import("no-image", &["--timeout=5m"]);
    let node = world.node.name();
    import.says(&[
        "✓ agent pod has a node",
        "… agent image is on the node: ",
        &format!("node {node} cannot get the agent's image \"drover-agent:"),
        "ctr -n k8s.io images import drover-agent.tar",
    ]);
    world.load_image();
    import.succeeds();
    import.says(&["✓ agent image is on the node", "✓ agent connected", "✓ cluster active"]);
}

#[test]
fn a_taint_and_a_missing_right_are_named_and_the_import_goes_on_without_them() {
    let world = World::with_image();
    let (directly, node) = (world.directly(), world.node.name());
    directly.succeed(&["taint", "node", node, "team=other:NoSchedule"]).unwrap();
    let mut import = world.import("kept-out", &["--timeout=5m"]);
    import.says(&["… agent pod has a node: no node takes", "untolerated taint", "kubectl taint"]);

    let binding = ["rolebinding", "-n", NAMESPACE, "drover-cluster-agent"];
    let get: Vec<&str> = ["get"].into_iter().chain(binding).collect();
    let mut kept = directly.json(&get).unwrap();
    kept["metadata"] = json!({"name": "drover-cluster-agent", "namespace": NAMESPACE});
    let delete: Vec<&str> = ["delete"].into_iter().chain(binding).collect();
    directly.succeed(&delete).unwrap();
    directly.succeed(&["taint", "node", node, "team-"]).unwrap();
    import.says(&[
        "✓ agent started",
        "the agent says: store the agent's key: read Secret",
        "cannot get resource \"secrets\"",
        "apply it again",
    ]);

    directly.apply(&[kept]).unwrap();
    import.succeeds();
}

#[test]
fn the_agent_reports_an_unreachable_server_and_a_wrong_authority() {
    let world = World::with_image();
    let id = journey::create_cluster(&world.server, "wrong").unwrap();
    // Nothing listens there.
    let nowhere = format!("https://{}:1", world.node.host_address());
    world.set_agent_environment(&id, "CATTLE_SERVER", &nowhere);
    let mut import = world.import("wrong", &["--resume", "--timeout=20s"]);
    import.says(&[
        "… agent connected: the agent says: reach the server: connect to",
        "onnection refused",
        "firewalls and network policies",
    ]);
    import.fails();

    world.set_agent_environment(&id, "CATTLE_CA_CHECKSUM", &"0".repeat(64));
    let mut import = world.import("wrong", &["--resume", "--timeout=20s"]);
    let reported = "but the agent trusts only 000";
    import
        .says(&["… agent connected: the agent says: decide whether to trust the server", reported]);
    import.fails();
    // `kubectl describe` shows the same.
    let describe = ["describe", "pods", "-n", NAMESPACE, "-l", "app=cattle-cluster-agent"];
    let described = world.directly().succeed(&describe).unwrap();
    assert!(described.contains(reported), "{described}");

    world.set_agent_environment(&id, "", "");
    world.import("wrong", &["--resume", "--timeout=2m"]).succeeds();
}

#[test]
fn a_manifest_with_a_mistake_does_not_replace_an_agent_that_works() {
    let world = World::with_image();
    world.import("works", &["--timeout=2m"]).succeeds();
    let id = journey::cluster_id(&world.server, "works").unwrap();
    let before = eventually("the agent is ready", || -> Result<String> {
        match world.pods()?.as_slice() {
            [pod] if is_ready(pod) => {
                Ok(pod["metadata"]["name"].as_str().unwrap_or_default().to_owned())
            }
            other => bail!("{other:?}"),
        }
    });
    let wrong = format!("CATTLE_CA_CHECKSUM={}", "0".repeat(64));
    world.directly().succeed(&["set", "env", "-n", NAMESPACE, DEPLOYMENT, &wrong]).unwrap();
    eventually("the new pod says what is wrong", || -> Result<()> {
        let arguments = ["get", "events", "-n", NAMESPACE, "--field-selector=reason=Unhealthy"];
        let events = world.directly().json(&arguments)?;
        let all = events["items"].to_string();
        ensure!(all.contains("the agent trusts only"), "{all}");
        Ok(())
    });
    let pods = world.pods().unwrap();
    let stayed = pods.iter().find(|pod| pod["metadata"]["name"] == before);
    assert!(stayed.is_some_and(is_ready), "{pods:?}");
    let other = pods.iter().find(|pod| pod["metadata"]["name"] != before);
    assert!(other.is_some_and(|pod| !is_ready(pod)), "{pods:?}");
    journey::is_active(&world.server, &id).unwrap();
}

#[test]
fn a_manifest_of_another_entry_does_not_replace_an_agent_that_works() {
    let world = World::with_image();
    world.import("first", &["--timeout=2m"]).succeeds();
    let first = journey::cluster_id(&world.server, "first").unwrap();
    let rollout = ["rollout", "status", "-n", NAMESPACE, DEPLOYMENT, "--timeout=60s"];
    world.directly().succeed(&rollout).unwrap();
    let before = world.pods().unwrap()[0]["metadata"]["name"].clone();

    let second = journey::create_cluster(&world.server, "second").unwrap();
    let manifest = eventually("the manifest", || journey::manifest_of(&world.server, &second));
    world.directly().apply(&manifest.objects).unwrap();
    eventually("the new pod says why it is refused", || -> Result<()> {
        let arguments = ["get", "events", "-n", NAMESPACE, "--field-selector=reason=Unhealthy"];
        let events = world.directly().json(&arguments)?;
        let all = events["items"].to_string();
        ensure!(all.contains("another entry of this server already manages"), "{all}");
        Ok(())
    });
    eventually("the second entry says why", || -> Result<()> {
        let cluster = journey::cluster(&world.server, &second)?;
        let conditions = cluster["status"]["conditions"].to_string();
        ensure!(conditions.contains("AlreadyManaged"), "{conditions}");
        Ok(())
    });
    journey::is_active(&world.server, &first).unwrap();

    // The first agent's key is unchanged: its new pod reconnects by itself.
    world
        .directly()
        .succeed(&["delete", "pod", "-n", NAMESPACE, before.as_str().unwrap()])
        .unwrap();
    eventually("another pod of the first agent is ready", || -> Result<()> {
        let pods = world.pods()?;
        let ready = pods.iter().find(|pod| is_ready(pod) && pod["metadata"]["name"] != before);
        ensure!(ready.is_some(), "{pods:?}");
        Ok(())
    });
    journey::is_active(&world.server, &first).unwrap();

    // The next step that the refusal names.
    world.directly().succeed(&["rollout", "undo", "-n", NAMESPACE, DEPLOYMENT]).unwrap();
    world.directly().succeed(&rollout).unwrap();
    world.admin.succeed(&["cluster", "rm", "second", "--yes"]).unwrap();
    journey::is_active(&world.server, &first).unwrap();
}
