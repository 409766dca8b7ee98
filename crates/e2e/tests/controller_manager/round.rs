//! One round: all tasks of the controllers, in namespaces of its own.

#[path = "beyond.rs"]
mod beyond;

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use e2e::{Kubectl, eventually};
use serde_json::{Value, json};

pub struct Round<'a> {
    kubectl: &'a Kubectl,
    namespace: String,
    nodes: usize,
}

fn names(list: &Value) -> BTreeSet<String> {
    let items = list["items"].as_array().into_iter().flatten();
    items.filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned)).collect()
}

fn template(app: &str, container: Value) -> Value {
    json!({"metadata": {"labels": {"app": app}}, "spec": {"containers": [container]}})
}

impl<'a> Round<'a> {
    pub fn new(kubectl: &'a Kubectl, number: usize, nodes: usize) -> Self {
        Self { kubectl, namespace: format!("round-{number}"), nodes }
    }

    pub fn run(&self) {
        self.kubectl.succeed(&["create", "namespace", &self.namespace]).unwrap();
        self.accounts();
        self.deployment();
        self.endpoints();
        self.disruptions();
        self.deletions();
        self.owned_objects();
        self.jobs();
        self.daemon_set();
        self.stateful_set();
        self.beyond_workloads();
        self.quota();
        self.end();
    }

    fn kubectl(&self, arguments: &str) -> Result<String> {
        let mut all = vec!["-n", &self.namespace];
        all.extend(arguments.split(' '));
        Ok(self.kubectl.succeed(&all)?.trim().to_owned())
    }

    fn json(&self, arguments: &str) -> Result<Value> {
        let mut all = vec!["-n", &self.namespace];
        all.extend(arguments.split(' '));
        self.kubectl.json(&all)
    }

    fn apply(&self, mut object: Value) {
        object["metadata"]["namespace"] = self.namespace.clone().into();
        self.kubectl.apply(&[object]).unwrap();
    }

    fn cluster_wide(&self, object: Value) {
        self.kubectl.apply(&[object]).unwrap();
    }

    fn workload(&self, kind: &str, name: &str, replicas: Option<usize>, container: Value) {
        let mut object = json!({
            "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
            "spec": {
                "selector": {"matchLabels": {"app": name}},
                "template": template(name, container),
            },
        });
        if let Some(replicas) = replicas {
            object["spec"]["replicas"] = replicas.into();
        }
        self.apply(object);
    }

    fn deploy(&self, name: &str, replicas: usize) {
        let container = json!({"name": "c", "image": "web:1"});
        self.workload("Deployment", name, Some(replicas), container);
    }

    /// Checks that all pods of an app run.
    fn running(&self, app: &str, expected: usize) -> Result<Value> {
        let pods = self.json(&format!("get pods -l app={app}"))?;
        let all = pods["items"].as_array().cloned().unwrap_or_default();
        let runs = |pod: &&Value| {
            pod["status"]["phase"] == "Running" && pod["metadata"]["deletionTimestamp"].is_null()
        };
        let running = all.iter().filter(runs).count();
        ensure!(running == expected && all.len() == expected, "{running} of {} run", all.len());
        Ok(pods)
    }

    fn left(&self, kinds: &str, expected: &[&str]) -> Result<()> {
        let found = self.kubectl(&format!("get {kinds} -o name"))?;
        let found: Vec<&str> = found.lines().collect();
        ensure!(found == expected, "{found:?}");
        Ok(())
    }

    fn accounts(&self) {
        eventually("the account and the authority are there", || -> Result<()> {
            self.kubectl("get serviceaccount default")?;
            let map = self.json("get configmap kube-root-ca.crt")?;
            let text = map["data"]["ca.crt"].as_str().unwrap_or_default();
            ensure!(text.contains("BEGIN CERTIFICATE"), "{map}");
            Ok(())
        });
        self.kubectl("delete serviceaccount default").unwrap();
        eventually("it comes again", || self.kubectl("get serviceaccount default"));
        let note = "kubernetes.io/service-account.name";
        self.apply(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {
                "name": "token", "annotations": {note: "default"},
            },
            "type": "kubernetes.io/service-account-token",
        }));
        eventually("the Secret has a token", || -> Result<()> {
            let secret = self.json("get secret token")?;
            ensure!(secret["data"]["token"].is_string(), "{secret}");
            Ok(())
        });
        let token = self.kubectl("get secret token -o go-template={{.data.token|base64decode}}");
        let who = self.json(&format!("auth whoami --token {}", token.unwrap())).unwrap();
        let expected = format!("system:serviceaccount:{}:default", self.namespace);
        assert_eq!(who["status"]["userInfo"]["username"], expected);
    }

    fn deployment(&self) {
        self.deploy("web", 3);
        let pods = eventually("three pods run", || self.running("web", 3));
        let owner = &pods["items"][0]["metadata"]["ownerReferences"][0];
        assert_eq!(owner["kind"], "ReplicaSet");
        self.kubectl("rollout status deployment/web --timeout=60s").unwrap();
        let before = names(&pods);
        self.kubectl("set image deployment/web c=web:2").unwrap();
        self.kubectl("rollout status deployment/web --timeout=60s").unwrap();
        let after = eventually("all are new", || {
            let after = names(&self.running("web", 3)?);
            ensure!(after.is_disjoint(&before), "{after:?}");
            Ok(after)
        });
        self.kubectl("rollout undo deployment/web").unwrap();
        self.kubectl("rollout status deployment/web --timeout=60s").unwrap();
        eventually("it is as before", || {
            let pods = self.running("web", 3)?;
            ensure!(names(&pods).is_disjoint(&after), "{after:?}");
            ensure!(pods["items"][0]["spec"]["containers"][0]["image"] == "web:1", "{pods}");
            Ok(())
        });
        self.kubectl("scale deployment/web --replicas=4").unwrap();
        eventually("four pods run", || self.running("web", 4));
    }

    fn endpoints(&self) {
        self.kubectl("expose deployment web --port=80").unwrap();
        eventually("Endpoints and slices list four addresses", || -> Result<()> {
            let endpoints = self.json("get endpoints web")?;
            let addresses = endpoints["subsets"][0]["addresses"].as_array().map_or(0, Vec::len);
            ensure!(addresses == 4, "{endpoints}");
            let slices = self.json("get endpointslices -l kubernetes.io/service-name=web")?;
            let ready = slices["items"].as_array().into_iter().flatten();
            let ready = ready.flat_map(|slice| slice["endpoints"].as_array().into_iter().flatten());
            let ready = ready.filter(|one| one["conditions"]["ready"] == true).count();
            ensure!(ready == 4, "{slices}");
            Ok(())
        });
    }

    fn disruptions(&self) {
        self.kubectl("create poddisruptionbudget web --selector=app=web --min-available=3")
            .unwrap();
        eventually("one pod may go", || -> Result<()> {
            let budget = self.json("get poddisruptionbudget web")?;
            let status = &budget["status"];
            ensure!(status["disruptionsAllowed"] == 1 && status["currentHealthy"] == 4, "{status}");
            Ok(())
        });
    }

    fn deletions(&self) {
        self.kubectl("delete deployment web --cascade=background").unwrap();
        eventually("sets and pods go after it", || self.left("replicasets,pods", &[]));

        self.deploy("web", 2);
        eventually("two pods run", || self.running("web", 2));
        // Returns when it has been deleted.
        self.kubectl("delete deployment web --cascade=foreground").unwrap();
        self.left("replicasets", &[]).unwrap();

        self.deploy("web", 1);
        eventually("a pod runs", || self.running("web", 1));
        self.kubectl("delete deployment web --cascade=orphan").unwrap();
        eventually("the set is its own", || -> Result<()> {
            let sets = self.json("get replicasets")?;
            ensure!(sets["items"].as_array().is_some_and(|all| all.len() == 1), "{sets}");
            ensure!(sets["items"][0]["metadata"].get("ownerReferences").is_none(), "{sets}");
            self.running("web", 1).map(drop)
        });
        self.kubectl("delete replicasets --all").unwrap();
        eventually("the pod goes", || self.left("pods", &[]));
    }

    fn owned_objects(&self) {
        self.kubectl("create configmap owner").unwrap();
        let owner = self.json("get configmap owner").unwrap();
        self.apply(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "owned", "ownerReferences": [{
                "apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
                "uid": owner["metadata"]["uid"],
            }]},
        }));
        self.kubectl("delete configmap owner").unwrap();
        eventually("what it owned goes", || self.left("secrets", &["secret/token"]));
    }

    fn jobs(&self) {
        self.apply(json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "task"},
            "spec": {
                "completions": 4, "parallelism": 2, "ttlSecondsAfterFinished": 1,
                "template": {"spec": {
                    "restartPolicy": "Never", "containers": [{"name": "c", "image": "task:1"}],
                }},
            },
        }));
        self.kubectl("wait --for=condition=Complete job/task --timeout=60s").unwrap();
        eventually("the job goes after its time, with its pods", || self.left("jobs,pods", &[]));
    }

    fn daemon_set(&self) {
        self.workload("DaemonSet", "everywhere", None, json!({"name": "c", "image": "web:1"}));
        let pods = eventually("one runs on each node", || self.running("everywhere", self.nodes));
        let nodes = pods["items"].as_array().into_iter().flatten();
        let nodes: BTreeSet<_> = nodes.map(|pod| pod["spec"]["nodeName"].as_str()).collect();
        assert_eq!(nodes.len(), self.nodes);
        self.kubectl("set image daemonset/everywhere c=web:2").unwrap();
        self.kubectl("rollout status daemonset/everywhere --timeout=60s").unwrap();
        self.kubectl("delete daemonset everywhere").unwrap();
        eventually("they go", || self.left("pods", &[]));
    }

    fn stateful_set(&self) {
        self.workload("StatefulSet", "db", Some(2), json!({"name": "c", "image": "db:1"}));
        let pods = eventually("two pods run", || self.running("db", 2));
        assert_eq!(names(&pods), ["db-0".to_owned(), "db-1".to_owned()].into());
        self.kubectl("scale statefulset/db --replicas=1").unwrap();
        let pods = eventually("the last one goes", || self.running("db", 1));
        assert_eq!(names(&pods), ["db-0".to_owned()].into());
        self.kubectl("delete statefulset db").unwrap();
        eventually("it goes", || self.left("pods", &[]));
    }

    fn used(&self, expected: &Value) -> Result<()> {
        let quota = self.json("get resourcequota room")?;
        ensure!(quota["status"]["used"] == *expected, "{quota}");
        Ok(())
    }

    fn quota(&self) {
        let hard = "pods=2,requests.cpu=300m,secrets=2";
        self.kubectl(&format!("create quota room --hard={hard}")).unwrap();
        eventually("it is counted", || {
            self.used(&json!({"pods": "0", "requests.cpu": "0", "secrets": "1"}))
        });
        self.kubectl("create secret generic second").unwrap();
        let refused = ["-n", &self.namespace, "create", "secret", "generic", "third"];
        let refusal = self.kubectl.refuse(&refused).unwrap();
        let expected = "secrets \"third\" is forbidden: exceeded quota: room, requested: \
                        secrets=1, used: secrets=2, limited: secrets=2";
        assert!(refusal.contains(expected), "{refusal}");

        let requests = json!({"requests": {"cpu": "100m"}});
        let container = json!({"name": "c", "image": "web:1", "resources": requests});
        self.workload("Deployment", "greedy", Some(5), container);
        eventually("two of five run, and the status says why", || -> Result<()> {
            self.running("greedy", 2)?;
            let sets = self.json("get replicasets -l app=greedy")?;
            let conditions = sets["items"][0]["status"]["conditions"].as_array().cloned();
            let failed = conditions.into_iter().flatten().any(|condition| {
                condition["type"] == "ReplicaFailure"
                    && condition["message"].as_str().is_some_and(|m| m.contains("exceeded quota"))
            });
            ensure!(failed, "{sets}");
            Ok(())
        });
        let full = json!({"pods": "2", "requests.cpu": "200m", "secrets": "2"});
        eventually("all that fits is used", || self.used(&full));
        self.kubectl("delete deployment greedy").unwrap();
        self.kubectl("delete secret second").unwrap();
        eventually("it is given back", || {
            self.used(&json!({"pods": "0", "requests.cpu": "0", "secrets": "1"}))
        });
        self.kubectl("create secret generic third").unwrap();
        self.kubectl("delete quota room").unwrap();
    }

    /// The namespace is deleted with its remaining objects.
    fn end(&self) {
        self.deploy("last", 1);
        eventually("a pod runs", || self.running("last", 1));
        self.kubectl.succeed(&["delete", "namespace", &self.namespace]).unwrap();
        self.left("all,secrets,resourcequotas,poddisruptionbudgets", &[]).unwrap();
    }
}
