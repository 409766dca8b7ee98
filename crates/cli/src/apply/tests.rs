//! Manifests, applied to a real API server in process.

use std::sync::Arc;

use apiserver::UserInfo;
use apiserver::attributes::GROUP_MASTERS;
use apiserver::service_accounts::SigningKey;
use kubernetes_api::assembly::{Assembly, Profile, Running};
use serde_json::json;
use storage::embedded::{EmbeddedConfig, EmbeddedStorage};

use super::*;

const MANIFEST: &str = "\
kind: Deployment
apiVersion: apps/v1
metadata: {name: agent, namespace: system}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: \"registry/agent:1\"}]}
---
---
kind: ClusterRoleBinding
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: agent}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: agent}
subjects: [{kind: ServiceAccount, name: n, namespace: system}]
---
kind: Namespace
apiVersion: v1
metadata: {name: system, labels: {keep: n}}
---
kind: ClusterRole
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: agent}
rules: [{apiGroups: [\"*\"], resources: [\"*\"], verbs: [\"*\"]}]
---
kind: ServiceAccount
apiVersion: v1
metadata: {name: n, namespace: system}
";

struct Cluster {
    running: Running,
    _folder: tempfile::TempDir,
}

impl Cluster {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let storage = EmbeddedStorage::open(folder.path(), EmbeddedConfig::default()).unwrap();
        let assembly = Assembly::new(storage, Profile::Full, SigningKey::generate_pem());
        let running = assembly.start().await.unwrap();
        Self { running, _folder: folder }
    }
    fn client(&self, user: &str, group: &str) -> kube::Client {
        let user = UserInfo::new(user, &[group]);
        kube::Client::new(self.running.server.as_user(user), "default")
    }
}

async fn get(client: &kube::Client, path: &str) -> Value {
    let request = http::Request::builder().uri(path).body(Vec::new()).unwrap();
    client.request(request).await.unwrap()
}

#[test]
fn namespaces_come_first_and_empty_documents_are_left_out() {
    let titles: Vec<String> = documents(MANIFEST).unwrap().iter().map(title).collect();
    let expected = [
        "namespace/system",
        "serviceaccount/n",
        "clusterrole/agent",
        "clusterrolebinding/agent",
        "deployment/agent",
    ];
    assert_eq!(titles, expected);
}

#[test]
fn a_document_without_a_name_is_refused() {
    let error = documents("kind: Namespace\n").unwrap_err();
    assert!(error.message.contains("no name"), "{}", error.message);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn applying_a_manifest_again_leaves_labels_of_other_clients() {
    let cluster = Cluster::start().await;
    let admin = cluster.client("admin", GROUP_MASTERS);
    let mut documents = documents(MANIFEST).unwrap();
    for document in &documents {
        apply(&admin, document).await.unwrap();
    }
    let labels = json!({"metadata": {"labels": {"added-by-user": "yes"}}});
    let namespaces = Api::<k8s_openapi::api::core::v1::Namespace>::all(admin.clone());
    let patch = Patch::Merge(&labels);
    namespaces.patch("system", &PatchParams::default(), &patch).await.unwrap();

    let containers = json!([{"name": "agent", "image": "registry/agent:2"}]);
    documents[4]["spec"]["template"]["spec"]["containers"] = containers;
    for document in &documents {
        apply(&admin, document).await.unwrap();
    }
    let namespace = get(&admin, "/api/v1/namespaces/system").await;
    assert_eq!(namespace["metadata"]["labels"]["added-by-user"], "yes");
    assert_eq!(namespace["metadata"]["labels"]["keep"], "n");
    let deployment = get(&admin, "/apis/apps/v1/namespaces/system/deployments/agent").await;
    let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(image, "registry/agent:2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forbidden_document_names_the_required_rights() {
    let cluster = Cluster::start().await;
    let eve = cluster.client("eve", "system:authenticated");
    let namespace = &documents(MANIFEST).unwrap()[0];
    let error = apply(&eve, namespace).await.unwrap_err();
    assert_eq!(error.failure, Failure::Forbidden);
    assert!(error.message.starts_with("namespace/system: "), "{}", error.message);
    assert!(error.hint.unwrap().contains("administrator"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_waits_for_its_namespace() {
    let cluster = Cluster::start().await;
    let admin = cluster.client("admin", GROUP_MASTERS);
    let documents = Arc::new(documents(MANIFEST).unwrap());
    let (early, late) = (documents.clone(), admin.clone());
    let waiting = tokio::spawn(async move { apply(&late, &early[1]).await });
    // Refused at least once before the namespace exists.
    let path = "/api/v1/namespaces/system/serviceaccounts/n";
    let request = || http::Request::builder().uri(path).body(Vec::new()).unwrap();
    assert!(admin.request::<Value>(request()).await.is_err());
    apply(&admin, &documents[0]).await.unwrap();
    waiting.await.unwrap().unwrap();
    assert_eq!(get(&admin, path).await["metadata"]["name"], "n");
}
