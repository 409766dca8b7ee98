//! Isolation of projects on a real network: pods on a real node, kube-router enforces the policies
//! that Drover writes, and who reaches whom is tried from inside the pods.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::journey::{self, ImportTarget, Imported};
use e2e::{Cli, Kubectl, Server, eventually};
use serde_json::{Value, json};
use testbed::{RealNode, TOOLBOX_IMAGE};

const CLUSTER: &str = "net";
/// The port of each pod.
const PORT: u16 = 8080;
/// The port that a pod has on its node.
const HOST_PORT: u16 = 18080;
/// Long enough for an open port on a busy machine.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Namespaces and their projects. `tools` belongs to the system, `loose` to no project.
const NAMESPACES: [(&str, Option<&str>); 5] = [
    ("web", Some("shop")),
    ("data", Some("shop")),
    ("vault", Some("bank")),
    ("tools", Some("System")),
    ("loose", None),
];

/// Each namespace has one pod, with the name of the namespace.
struct World {
    node: RealNode,
    kubectl: Kubectl,
    cli: Cli,
    // Holds the agent.
    _imported: Imported,
    _server: Server,
}

impl World {
    fn start() -> Self {
        let mut node = RealNode::start().unwrap();
        node.enforce_policies().unwrap();
        let target = ImportTarget::of(node.cluster()).unwrap();
        let server = Server::start().unwrap();
        let cli = Cli::admin(&server).unwrap();
        let imported = journey::import(&server, &cli, CLUSTER, &target).unwrap();
        let kubectl = target.kubectl;
        let world = Self { node, kubectl, cli, _imported: imported, _server: server };
        for project in ["shop", "bank"] {
            world.drover(&["project", "create", project]);
        }
        for (namespace, project) in NAMESPACES {
            match project {
                Some(project) => {
                    world.drover(&["namespace", "create", namespace, "--project", project]);
                }
                None => drop(world.kubectl.succeed(&["create", "namespace", namespace]).unwrap()),
            }
            world.run_pod(namespace, &json!({}));
        }
        for (namespace, _) in NAMESPACES {
            world.await_ready(namespace);
        }
        world
    }

    fn drover(&self, arguments: &[&str]) -> String {
        self.cli.succeed(&[arguments, &["--cluster", CLUSTER]].concat()).unwrap()
    }

    fn isolate(&self, state: &str) {
        self.cli.succeed(&["cluster", "isolation", CLUSTER, state]).unwrap();
    }

    /// A pod that serves a page at [`PORT`]; the port has the fields of `more`. The node must reach
    /// it, or it is not ready.
    fn run_pod(&self, namespace: &str, more: &Value) {
        let serve = format!("echo {namespace} > /tmp/index.html; exec httpd -f -p {PORT} -h /tmp");
        let mut port = json!({"containerPort": PORT});
        port.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": namespace, "namespace": namespace, "labels": {"app": namespace}},
            "spec": {
                "terminationGracePeriodSeconds": 1,
                "containers": [{
                    "name": "main", "image": TOOLBOX_IMAGE, "imagePullPolicy": "Never",
                    "command": ["sh", "-c", serve], "ports": [port],
                    "readinessProbe": {"httpGet": {"port": PORT}, "periodSeconds": 1},
                }],
            },
        });
        self.kubectl.apply(&[pod]).unwrap();
    }

    fn await_ready(&self, namespace: &str) {
        let pod = format!("pod/{namespace}");
        let wait = ["wait", "--for=condition=Ready", &pod, "-n", namespace, "--timeout=90s"];
        self.kubectl.succeed(&wait).unwrap();
    }

    fn address(&self, namespace: &str) -> Result<String> {
        let pod = self.kubectl.json(&["get", "pod", namespace, "-n", namespace])?;
        pod["status"]["podIP"].as_str().map(str::to_owned).context("no address")
    }

    /// Whether the pod of `from` gets the page of the pod of `to`.
    fn reaches(&self, from: &str, to: &str) -> Result<bool> {
        let request =
            format!("printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 2 {} {PORT}", self.address(to)?);
        let run = self.kubectl.run(&["exec", "-n", from, from, "--", "sh", "-c", &request])?;
        Ok(run.succeeded().is_ok_and(|page| page.lines().last() == Some(to)))
    }

    /// Waits until each pod reaches exactly those that `expected` lists for it.
    fn until_reach(&self, what: &str, expected: [&str; 5]) {
        eventually(what, || {
            let mut reached = Vec::new();
            for (from, _) in NAMESPACES {
                let mut line = format!("{from}:");
                for (to, _) in NAMESPACES {
                    if from != to && self.reaches(from, to)? {
                        line.push(' ');
                        line.push_str(to);
                    }
                }
                reached.push(line);
            }
            ensure!(reached == expected, "{reached:?}");
            Ok(())
        });
    }

    /// Whether this machine, which is neither a node nor a pod of the cluster, can connect.
    fn is_open(&self, address: &str, port: u16) -> bool {
        let address = SocketAddr::new(address.parse().unwrap(), port);
        TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).is_ok()
    }
}

const EVERYWHERE: [&str; 5] = [
    "web: data vault tools loose",
    "data: web vault tools loose",
    "vault: web data tools loose",
    "tools: web data vault loose",
    "loose: web data vault tools",
];

/// From outside, a pod of a project takes connections at its port on the node and at that of its
/// Service, and at no other.
fn ports_on_the_node_are_open(world: &World) {
    world.drover(&["namespace", "create", "edge", "--project", "bank"]);
    world.run_pod("edge", &json!({"hostPort": HOST_PORT}));
    world.await_ready("edge");
    let node = world.node.address().to_string();
    eventually("the port of a pod on its node", || {
        ensure!(world.is_open(&node, HOST_PORT), "closed");
        Ok(())
    });

    let vault = world.address("vault").unwrap();
    assert!(!world.is_open(&vault, PORT), "no Service yet");
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "vault", "namespace": "vault"},
        // So that the connection comes from its own address.
        "spec": {"type": "NodePort", "externalTrafficPolicy": "Local",
            "selector": {"app": "vault"}, "ports": [{"port": 80, "targetPort": PORT}]},
    });
    world.kubectl.apply(&[service]).unwrap();
    let service = world.kubectl.json(&["get", "service", "vault", "-n", "vault"]).unwrap();
    let port = service["spec"]["ports"][0]["nodePort"].as_u64().unwrap();
    eventually("the port of a Service on the node", || {
        ensure!(world.is_open(&node, port.try_into()?), "closed");
        Ok(())
    });
    let web = world.address("web").unwrap();
    assert!(!world.is_open(&web, PORT), "a pod without a port on the node");
    world.kubectl.succeed(&["delete", "service", "vault", "-n", "vault"]).unwrap();
}

#[test]
fn pods_reach_their_project_and_no_other() {
    let world = World::start();
    world.until_reach("an open cluster", EVERYWHERE);

    world.isolate("on");
    world.until_reach(
        "closed projects",
        [
            "web: data tools loose",
            "data: web tools loose",
            "vault: tools loose",
            "tools: web data vault loose",
            "loose: tools",
        ],
    );
    ports_on_the_node_are_open(&world);

    world.drover(&["namespace", "move", "data", "--project", "bank"]);
    world.until_reach(
        "the moved namespace",
        [
            "web: tools loose",
            "data: vault tools loose",
            "vault: data tools loose",
            "tools: web data vault loose",
            "loose: tools",
        ],
    );

    world.isolate("off");
    world.until_reach("the cluster is open again", EVERYWHERE);
}
