//! Helm on a simulated cluster: a release with its own kind, and with hooks that are jobs and pods,
//! is installed, upgraded, fails to be upgraded, is rolled back, tested and removed.
//!
//! Jobs are run by a kube-controller-manager.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use e2e::helm::Helm;
use e2e::{ControllerManager, Kubectl, Sim};
use serde_json::Value;

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/helm/lamp");
const NAMESPACE: &str = "light";
/// Helm sends its own three-way merges and waits for its objects.
const CAREFULLY: [&str; 3] = ["--wait", "--timeout", "60s"];

struct World {
    helm: Helm,
    kubectl: Kubectl,
}

impl World {
    fn helm(&self, arguments: &[&str]) -> String {
        self.helm.succeed(&[arguments, &CAREFULLY].concat()).unwrap()
    }

    fn json(&self, arguments: &str) -> Value {
        let all: Vec<&str> = ["-n", NAMESPACE].into_iter().chain(arguments.split(' ')).collect();
        self.kubectl.json(&all).unwrap()
    }

    fn names(&self, kinds: &str) -> String {
        let found = self.kubectl.succeed(&["-n", NAMESPACE, "get", kinds, "-o", "name"]).unwrap();
        found.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Number and state of every revision.
    fn history(&self) -> Vec<(u64, String)> {
        let history = self.helm.json(&["history", "desk"]).unwrap();
        let revisions = history.as_array().unwrap().iter();
        let entry = |one: &Value| {
            (one["revision"].as_u64().unwrap(), one["status"].as_str().unwrap().to_owned())
        };
        revisions.map(entry).collect()
    }

    fn watts(&self) -> Value {
        self.json("get lamp desk")["spec"]["watts"].clone()
    }
}

fn states(entries: &[(u64, &str)]) -> Vec<(u64, String)> {
    entries.iter().map(|(revision, state)| (*revision, (*state).to_owned())).collect()
}

#[test]
fn a_release_lives_its_life() {
    let sim = Sim::start(&["--external-controllers", "--nodes", "2"]).unwrap();
    let _manager = ControllerManager::start(&sim).unwrap();
    let world =
        World { helm: Helm::new(&sim, NAMESPACE).unwrap(), kubectl: sim.kubectl().unwrap() };

    world.helm(&["install", "desk", CHART, "--create-namespace"]);
    assert_eq!(world.history(), states(&[(1, "deployed")]));
    assert_eq!(world.watts(), 5);
    let deployment = world.json("get deployment desk");
    assert_eq!(deployment["status"]["readyReplicas"], 1, "it was waited for");
    assert_eq!(deployment["metadata"]["labels"]["app.kubernetes.io/managed-by"], "Helm");
    let hook = world.json("get job desk-before");
    assert_eq!(hook["status"]["succeeded"], 1, "the hook ran before");
    assert!(hook["status"]["completionTime"].as_str() <= created(&deployment), "{hook}");
    let first_hook = hook["metadata"]["uid"].clone();

    world.helm(&["upgrade", "desk", CHART, "--set", "replicas=3,watts=9"]);
    assert_eq!(world.watts(), 9);
    assert_eq!(world.json("get deployment desk")["status"]["readyReplicas"], 3);
    let hook = world.json("get job desk-before");
    assert_ne!(hook["metadata"]["uid"], first_hook, "the hook ran anew");
    assert_eq!(world.json("get configmap desk")["data"]["revision"], "2");

    let wrong = ["upgrade", "desk", CHART, "--set", "watts=many"];
    let refusal = world.helm.refuse(&wrong).unwrap();
    assert!(refusal.contains("spec.watts: expected numeric"), "{refusal}");
    assert_eq!(world.history().last().unwrap().1, "failed");

    world.helm(&["rollback", "desk", "1"]);
    let expected = states(&[(1, "superseded"), (2, "superseded"), (3, "failed"), (4, "deployed")]);
    assert_eq!(world.history(), expected);
    assert_eq!(world.watts(), 5);
    assert_eq!(world.json("get deployment desk")["status"]["readyReplicas"], 1);

    let manifest = world.helm.succeed(&["get", "manifest", "desk"]).unwrap();
    assert!(manifest.contains("kind: Lamp") && manifest.contains("watts: 5"), "{manifest}");
    let listed = world.helm.json(&["list"]).unwrap();
    assert_eq!(listed[0]["name"], "desk");
    assert_eq!((&listed[0]["revision"], &listed[0]["status"]), (&"4".into(), &"deployed".into()));

    let tested = world.helm.succeed(&["test", "desk", "--timeout", "60s"]).unwrap();
    assert!(tested.contains("Succeeded"), "{tested}");
    assert_eq!(world.json("get pod desk-test")["status"]["phase"], "Succeeded");

    let dry = ["upgrade", "desk", CHART, "--dry-run=server", "--set", "watts=7"];
    let shown = world.helm.succeed(&dry).unwrap();
    assert!(shown.contains("watts: 7"), "{shown}");
    assert_eq!(world.watts(), 5, "a dry run changes nothing");

    world.helm.succeed(&["uninstall", "desk", "--wait"]).unwrap();
    assert_eq!(world.names("deployments,services,lamps"), "");
    assert_eq!(world.names("secrets"), "", "the releases are kept in Secrets, which go");
    assert_eq!(world.helm.json(&["list"]).unwrap(), Value::Array(Vec::new()));
    // Helm does not delete definitions.
    world.kubectl.succeed(&["get", "crd", "lamps.example.com"]).unwrap();
}

fn created(object: &Value) -> Option<&str> {
    object["metadata"]["creationTimestamp"].as_str()
}
