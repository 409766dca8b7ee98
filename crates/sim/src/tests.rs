//! A simulated cluster through a real client inside the process.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::SystemTime;

use apiserver::UserInfo;
use apiserver::attributes::GROUP_MASTERS;
use kube::Client;
use kube::api::PostParams;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kubernetes_api::service_range::ServiceRange;
use pki::{CertificateFiles, ServingCertificate};
use serde_json::{Value, json};
use wait::{until, until_some};

use crate::SimArgs;
use crate::agent::AgentCommand;
use crate::authentication::{Authentication, AuthenticationArgs};
use crate::cluster::{ClusterConfig, SimulatedCluster};
use crate::simulation::deployment::{Generation, Rollout, desired_replicas};

mod certificates;
mod wait;

struct World {
    cluster: SimulatedCluster,
    client: Client,
}

impl World {
    async fn start(folder: &Path, agent: Option<&Path>, pods: u32) -> Self {
        Self::try_start(folder, agent, pods).await.unwrap()
    }

    async fn try_start(folder: &Path, agent: Option<&Path>, pods: u32) -> anyhow::Result<Self> {
        let args = SimArgs {
            data_dir: folder.to_owned(),
            listen: "127.0.0.1:0".parse().expect("an address"),
            tls_cert: None,
            tls_key: None,
            clusters: 1,
            provider: None,
            nodes: 3,
            pods,
            agent_image: "agent:1".to_owned(),
            agent_binary: agent.map(Path::to_owned),
            external_controllers: false,
            service_cluster_ip_range: ServiceRange::default(),
            disable_admission_plugins: Vec::new(),
            enable_admission_plugins: Vec::new(),
            authentication: AuthenticationArgs::default(),
            history_revisions: None,
            audit_log_path: None,
            audit_policy_file: None,
            audit_log_maxsize: None,
            audit_log_maxbackup: None,
            audit_log_maxage: None,
        };
        let now = SystemTime::now();
        let authority = CertificateFiles::in_directory(folder, "ca");
        let authority = pki::files::ensure_authority(&authority, "test", now).unwrap();
        let files = CertificateFiles::in_directory(folder, "serving");
        let names = ["127.0.0.1".to_owned()];
        pki::files::ensure_serving(&files, &authority, "test", &names, now).unwrap();
        let config = ClusterConfig {
            index: 0,
            folder: folder.to_owned(),
            listen: args.listen,
            nodes: args.nodes,
            pods: args.pods,
            history_revisions: None,
            controllers: args.controllers(),
            ca_pem: authority.certificate_pem().to_owned(),
            certificate: ServingCertificate::load(files).unwrap(),
            authentication: Authentication::default(),
            agent: AgentCommand::new(&args).unwrap(),
            front_proxy: crate::front_proxy(folder, now).unwrap(),
            audit: args.audit(0),
            built_in_plugins: args.built_in_plugins(),
            service_range: args.service_cluster_ip_range,
        };
        let cluster = SimulatedCluster::start(config).await?;
        let admin = UserInfo::new("admin", &[GROUP_MASTERS]);
        let client = Client::new(cluster.server().as_user(admin), "default");
        Ok(Self { cluster, client })
    }

    fn api(&self, group: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        if namespace.is_empty() {
            return Api::all_with(self.client.clone(), &resource);
        }
        Api::namespaced_with(self.client.clone(), namespace, &resource)
    }

    fn pods(&self) -> Api<DynamicObject> {
        self.api("", "Pod", "default")
    }

    async fn create(&self, kind: (&str, &str), object: Value) -> DynamicObject {
        let object = serde_json::from_value(object).unwrap();
        self.api(kind.0, kind.1, "default").create(&PostParams::default(), &object).await.unwrap()
    }

    /// Names of the running pods, and the number of all pods.
    async fn running(&self, selector: &str) -> (Vec<String>, usize) {
        let pods = self.pods().list(&ListParams::default().labels(selector)).await.unwrap();
        let total = pods.items.len();
        let runs = |pod: &DynamicObject| {
            pod.data["status"]["phase"] == "Running" && pod.metadata.deletion_timestamp.is_none()
        };
        let names = pods.items.into_iter().filter(runs).map(|pod| pod.metadata.name.unwrap());
        (names.collect(), total)
    }

    async fn until_running(&self, selector: &str, desired: usize) {
        until(&format!("{desired} pods of {selector} run"), || async {
            let (running, total) = self.running(selector).await;
            running.len() == desired && total == desired
        })
        .await;
    }
}

fn workload(kind: &str, image: &str, replicas: Option<u32>) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": image}]},
            },
        },
    });
    if let Some(replicas) = replicas {
        object["spec"]["replicas"] = replicas.into();
    }
    object
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_runs_scales_rolls_out_and_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::start(folder.path(), None, 0).await;
    world.create(("apps", "Deployment"), workload("Deployment", "web:1", Some(2))).await;
    world.until_running("app=web", 2).await;
    let deployments = world.api("apps", "Deployment", "default");
    until("the deployment is available", || async {
        let status = deployments.get("web").await.unwrap().data["status"].clone();
        status["availableReplicas"] == 2 && status["observedGeneration"] == 1
    })
    .await;

    let scale = Patch::Merge(json!({"spec": {"replicas": 5}}));
    deployments.patch_scale("web", &PatchParams::default(), &scale).await.unwrap();
    world.until_running("app=web", 5).await;
    let (before, _) = world.running("app=web").await;

    let image = Patch::Strategic(json!({"spec": {"template": {"spec": {
        "containers": [{"name": "web", "image": "web:2"}],
    }}}}));
    deployments.patch("web", &PatchParams::default(), &image).await.unwrap();
    until("all pods are of the new image", || async {
        let (now, total) = world.running("app=web").await;
        now.len() == 5 && total == 5 && !now.iter().any(|name| before.contains(name))
    })
    .await;
    until("the rollout is complete", || async {
        let status = deployments.get("web").await.unwrap().data["status"].clone();
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        status["updatedReplicas"] == 5
            && conditions.iter().any(|c| c["reason"] == "NewReplicaSetAvailable")
    })
    .await;
    let deployment = deployments.get("web").await.unwrap();
    let annotations = deployment.metadata.annotations.unwrap();
    assert_eq!(annotations["deployment.kubernetes.io/revision"], "2");

    let back = Patch::Strategic(json!({"spec": {"template": {"spec": {
        "containers": [{"name": "web", "image": "web:1"}],
    }}}}));
    deployments.patch("web", &PatchParams::default(), &back).await.unwrap();
    until("the old replica set is the newest", || async {
        let deployment = deployments.get("web").await.unwrap();
        let annotations = deployment.metadata.annotations.unwrap();
        annotations["deployment.kubernetes.io/revision"] == "3"
    })
    .await;

    deployments.delete("web", &DeleteParams::default()).await.unwrap();
    until("sets and pods are collected", || async {
        let sets = world.api("apps", "ReplicaSet", "default").list(&ListParams::default()).await;
        sets.unwrap().items.is_empty() && world.running("app=web").await.1 == 0
    })
    .await;
    world.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_that_a_client_sets_stays_and_the_deployment_is_not_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::start(folder.path(), None, 0).await;
    let deployments = world.api("apps", "Deployment", "default");
    let is_settled = async |name: &str| {
        until("the deployment is settled", || async {
            let status = deployments.get(name).await.unwrap().data["status"].clone();
            let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|condition| condition["reason"] == "NewReplicaSetAvailable")
        })
        .await;
    };
    let named = |name: &str| {
        let mut object = workload("Deployment", "web:1", Some(0));
        object["metadata"]["name"] = name.into();
        object
    };
    world.create(("apps", "Deployment"), named("web")).await;
    is_settled("web").await;
    let conditions = json!([{"type": "X", "status": "True"}]);
    let patch = Patch::Strategic(json!({"status": {"replicas": 0, "conditions": conditions}}));
    let patched = deployments.patch_status("web", &PatchParams::default(), &patch).await.unwrap();
    // Deployments are reconciled in one task, so the first one has been.
    world.create(("apps", "Deployment"), named("web-2")).await;
    is_settled("web-2").await;
    let later = deployments.get("web").await.unwrap();
    assert_eq!(later.data["status"], patched.data["status"]);
    assert_eq!(later.metadata.resource_version, patched.metadata.resource_version);
    let conditions = later.data["status"]["conditions"].as_array().unwrap();
    assert_eq!(conditions.len(), 3, "{conditions:?}");
    world.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_set_has_one_pod_on_every_node() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::start(folder.path(), None, 0).await;
    world.create(("apps", "DaemonSet"), workload("DaemonSet", "web:1", None)).await;
    world.until_running("app=web", 3).await;
    let pods = world.pods().list(&ListParams::default()).await.unwrap();
    let mut nodes: Vec<&str> =
        pods.items.iter().map(|pod| pod.data["spec"]["nodeName"].as_str().unwrap()).collect();
    nodes.sort_unstable();
    assert_eq!(nodes, ["node-1", "node-2", "node-3"]);
    let sets = world.api("apps", "DaemonSet", "default");
    until("the status counts them", || async {
        sets.get("web").await.unwrap().data["status"]["numberAvailable"] == 3
    })
    .await;
    world.api("", "Node", "").delete("node-3", &DeleteParams::default()).await.unwrap();
    world.until_running("app=web", 2).await;
    world.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn initial_pods_exist_and_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::start(folder.path(), None, 40).await;
    let count = |world: &World| {
        let pods = world.api("", "Pod", "sim-load");
        async move {
            let pods = pods.list(&ListParams::default()).await.unwrap();
            let ips: std::collections::BTreeSet<String> = pods
                .items
                .iter()
                .filter_map(|pod| pod.data["status"]["podIP"].as_str().map(str::to_owned))
                .collect();
            (pods.items.len(), ips.len())
        }
    };
    until("forty pods have addresses of their own", || async { count(&world).await == (40, 40) })
        .await;
    world.cluster.stop().await;
    drop(world.client);
    // The ended tasks release the storage a moment later.
    let world = until_some("it starts again", || async {
        World::try_start(folder.path(), None, 40).await.ok()
    })
    .await;
    assert_eq!(count(&world).await, (40, 40));
    let kubeconfig = std::fs::read_to_string(folder.path().join("admin.kubeconfig")).unwrap();
    assert!(kubeconfig.contains(&world.cluster.url()));
    world.cluster.stop().await;
}

/// A program that writes its arguments and environment to a file and does not exit.
fn fake_agent(folder: &Path) -> std::path::PathBuf {
    let file = folder.join("fake-agent");
    let script = "#!/bin/sh\n\
        { echo \"arguments $*\"; env; cat \"$DROVER_SERVICEACCOUNT_DIR/namespace\"; echo;\n\
        echo \"url $(cat \"$DROVER_CREDENTIALS_DIR/url\")\"; } > report.tmp\n\
        mv report.tmp report\nexec sleep 1000\n";
    std::fs::write(&file, script).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    file
}

fn agent_pod(image: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "agent"},
        "spec": {
            "containers": [{
                "name": "agent", "image": image, "command": ["/bin/false"],
                "args": ["cluster", "--flag=$(PLAIN)"],
                "env": [
                    {"name": "PLAIN", "value": "plain"},
                    {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "url"}}},
                    {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                ],
                "volumeMounts": [{"name": "c", "mountPath": "/cattle-credentials"}],
            }],
            "volumes": [{"name": "c", "secret": {"secretName": "s"}}],
        },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agent_image_runs_with_its_pods_settings_and_ends_with_the_pod() {
    let folder = tempfile::tempdir().unwrap();
    let program = fake_agent(folder.path());
    let world = World::start(folder.path(), Some(&program), 0).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
                        "stringData": {"url": "https://drover.example"}});
    world.create(("", "Secret"), secret).await;
    let pod = world.create(("", "Pod"), agent_pod("agent:1")).await;
    let own = folder.path().join("clusters/0/pods").join(pod.metadata.uid.unwrap());
    until("the agent reports its settings", || async { own.join("report").exists() }).await;
    let report = std::fs::read_to_string(own.join("report")).unwrap();
    for line in [
        "arguments cluster --flag=plain",
        "PLAIN=plain",
        "SECRET=https://drover.example",
        "url https://drover.example",
        "default",
    ] {
        assert!(
            report.lines().any(|reported| reported == line),
            "no line \"{line}\" in:\n{report}"
        );
    }
    assert!(report.contains("NODE=node-"), "{report}");
    let token = std::fs::read_dir(own.join("volumes"))
        .unwrap()
        .find_map(|entry| std::fs::read_to_string(entry.unwrap().path().join("token")).ok());
    assert_eq!(token.unwrap().split('.').count(), 3);
    world.until_running("", 1).await;

    world.pods().delete("agent", &DeleteParams::default()).await.unwrap();
    until("the pod and its files are deleted", || async {
        world.pods().get_opt("agent").await.unwrap().is_none() && !own.exists()
    })
    .await;
    world.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_other_image_is_run() {
    let folder = tempfile::tempdir().unwrap();
    let program = fake_agent(folder.path());
    let world = World::start(folder.path(), Some(&program), 0).await;
    for (index, image) in ["agent:10", "registry.example/agent:1", "web"].iter().enumerate() {
        let mut pod = agent_pod(image);
        pod["metadata"]["name"] = format!("p{index}").into();
        world.create(("", "Pod"), pod).await;
    }
    world.until_running("", 3).await;
    assert!(!folder.path().join("clusters/0/pods").exists());
    world.cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_without_restarts_succeeds_on_the_node_of_its_affinity() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::start(folder.path(), None, 0).await;
    let terms = json!([
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-9"]}]},
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-2"]}],
         "matchExpressions": [{"key": "kubernetes.io/os", "operator": "Exists"}]},
    ]);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "once"},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "task:1"}],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": terms,
            }}},
        },
    });
    world.create(("", "Pod"), pod).await;
    until("the pod has succeeded", || async {
        world.pods().get("once").await.unwrap().data["status"]["phase"] == "Succeeded"
    })
    .await;
    let pod = world.pods().get("once").await.unwrap();
    assert_eq!(pod.data["spec"]["nodeName"], "node-2");
    let state = &pod.data["status"]["containerStatuses"][0]["state"];
    assert_eq!(state["terminated"]["exitCode"], 0, "{state}");
    world.cluster.stop().await;
}

fn generation(is_new: bool, desired: i64, existing: i64, available: i64) -> Generation {
    Generation { name: "s".to_owned(), is_new, revision: 1, desired, existing, available }
}

#[test]
fn a_rollout_keeps_enough_pods_and_not_too_many() {
    let rolling = Rollout::Rolling { surge: 1, unavailable: 1 };
    let old = generation(false, 4, 4, 4);
    let new = generation(true, 0, 0, 0);
    assert_eq!(desired_replicas(rolling, 4, &[old.clone(), new]), [3, 1]);
    let new = generation(true, 1, 1, 1);
    assert_eq!(desired_replicas(rolling, 4, &[old.clone(), new]), [2, 1]);
    let broken = generation(false, 2, 2, 0);
    let new = generation(true, 2, 2, 2);
    assert_eq!(desired_replicas(rolling, 4, &[broken, new]), [0, 3]);
    let none = Rollout::of(&json!({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}), 4);
    assert_eq!(none, Rollout::Rolling { surge: 0, unavailable: 1 });
    let quarter =
        Rollout::of(&json!({"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}), 5);
    assert_eq!(quarter, Rollout::Rolling { surge: 2, unavailable: 1 });
}

#[test]
fn recreating_waits_until_the_old_pods_are_deleted() {
    let new = generation(true, 0, 0, 0);
    let old = generation(false, 2, 2, 2);
    assert_eq!(desired_replicas(Rollout::Recreate, 2, &[old, new.clone()]), [0, 0]);
    let old = generation(false, 0, 0, 0);
    assert_eq!(desired_replicas(Rollout::Recreate, 2, &[old, new]), [0, 2]);
}
