//! Drover's kinds and controllers against a real Kubernetes control plane.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

use api_management::{Cluster, ClusterRoleTemplateBinding, Token, keys};
use feature_clusters::cluster_registration_token::manifest::{Import, render};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node as KubeNode, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, Config, ResourceExt};
use serde_json::json;
use test_kit::{PATIENCE, World, eventually};
use testbed::RealCluster;
use tunnel::AgentKey;

async fn config(cluster: &RealCluster) -> Config {
    let kubeconfig = Kubeconfig::from_yaml(cluster.kubeconfig()).unwrap();
    Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap()
}

async fn admin(cluster: &RealCluster) -> Client {
    Client::try_from(config(cluster).await).unwrap()
}

fn start() -> RealCluster {
    RealCluster::start().unwrap_or_else(|error| panic!("{error}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_api_server_accepts_drovers_definitions_and_objects() {
    let cluster = tokio::task::spawn_blocking(start).await.unwrap();
    let client = admin(&cluster).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in api_management::crds() {
        let name = crd.name_any();
        definitions.create(&PostParams::default(), &crd).await.unwrap();
        let served = await_condition(definitions.clone(), &name, conditions::is_crd_established());
        tokio::time::timeout(PATIENCE, served).await.expect("established in time").unwrap();
        let stored = definitions.get(&name).await.unwrap();
        let conditions = stored.status.unwrap().conditions.unwrap_or_default();
        assert!(conditions.iter().all(|c| c.type_ != "NonStructuralSchema"), "{conditions:?}");
    }
    let mut desired = Cluster::default();
    desired.metadata.name = Some("c-abcde".to_owned());
    desired.spec.display_name = "north".to_owned();
    desired.spec.generic_engine_config = Some(json!({"nodes": [{"count": 1}]}));
    let clusters: Api<Cluster> = Api::all(client.clone());
    let stored = clusters.create(&PostParams::default(), &desired).await.unwrap();
    assert_eq!(stored.spec, desired.spec);
    let status = controller::StatusPatch::new().field("driver", "imported");
    let target = controller::StatusTarget::of::<Cluster>("", "c-abcde");
    assert!(status.write(&client, &target).await.unwrap());
    assert!(!status.write(&client, &target).await.unwrap());
    let tokens: Api<Token> = Api::all(client);
    let mut token =
        Token { user_id: "u-1".to_owned(), ttl_millis: 5, ..<Token as Default>::default() };
    token.metadata.name = Some("token-abcde".to_owned());
    tokens.create(&PostParams::default(), &token).await.unwrap();
    assert_eq!(tokens.get("token-abcde").await.unwrap().ttl_millis, 5);
}

/// Everything in the cluster, except what Kubernetes itself creates and deletes.
async fn everything(client: &Client) -> BTreeSet<String> {
    let kinds = [
        ("", "v1", "Namespace"),
        ("", "v1", "ServiceAccount"),
        ("", "v1", "Secret"),
        ("", "v1", "ConfigMap"),
        ("", "v1", "Pod"),
        ("apps", "v1", "Deployment"),
        ("apps", "v1", "ReplicaSet"),
        ("apps", "v1", "DaemonSet"),
        ("rbac.authorization.k8s.io", "v1", "Role"),
        ("rbac.authorization.k8s.io", "v1", "RoleBinding"),
        ("rbac.authorization.k8s.io", "v1", "ClusterRole"),
        ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"),
        ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
    ];
    let mut all = BTreeSet::new();
    for (group, version, kind) in kinds {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        for object in api.list_metadata(&ListParams::default()).await.unwrap() {
            let namespace = object.namespace().unwrap_or_default();
            all.insert(format!("{kind} {namespace}/{}", object.name_any()));
        }
    }
    all
}

fn apply(cluster: &RealCluster, manifest: &str) {
    let mut command: Command = cluster.kubectl().unwrap();
    let mut child = command.args(["apply", "-f", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(manifest.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

/// A client with exactly the rights that the manifest gives the agent.
async fn as_agent(cluster: &RealCluster) -> Client {
    let accounts: Api<ServiceAccount> = Api::namespaced(admin(cluster).await, keys::SYSTEM_NS);
    let request = TokenRequest::default();
    let token = accounts.create_token_request("cattle", &PostParams::default(), &request).await;
    let mut config = config(cluster).await;
    config.auth_info = kube::config::AuthInfo {
        token: Some(token.unwrap().status.unwrap().token.unwrap_or_default().into()),
        ..kube::config::AuthInfo::default()
    };
    Client::try_from(config).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_manifests_rights_are_enough_for_a_clusters_whole_life_and_nothing_remains() {
    let real = tokio::task::spawn_blocking(start).await.unwrap();
    let client = admin(&real).await;
    let nodes: Api<KubeNode> = Api::all(client.clone());
    let mut node = KubeNode::default();
    node.metadata.name = Some("n1".to_owned());
    nodes.create(&PostParams::default(), &node).await.unwrap();
    let capacity = json!({"status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "4"}}});
    nodes.patch_status("n1", &PatchParams::default(), &Patch::Merge(capacity)).await.unwrap();
    let before = everything(&client).await;

    let world = World::start().await;
    world.create_cluster("c-abcde").await;
    let token = world.token("c-abcde").await.status.token;
    let manifest = render(&Import {
        cluster: "c-abcde",
        server_url: "https://drover.example",
        ca_certs: "PEM",
        token: &token,
        image: "drover-agent:test",
        env: &[],
    });
    apply(&real, &manifest);
    apply(&real, &manifest);
    let agent = as_agent(&real).await;
    let key = AgentKey::generate().unwrap();
    world.connect(&key, Some(&token), agent).await.unwrap();
    world.active("c-abcde").await;
    let cluster = world.stored("clusters/c-abcde").await;
    let version = cluster["status"]["version"]["gitVersion"].as_str().unwrap();
    assert!(version.starts_with('v'), "{version}");
    eventually("capacity and roles", async || {
        let cpu = world.stored("clusters/c-abcde").await["status"]["capacity"]["cpu"].take();
        let there = everything(&client).await;
        let role = there.contains("ClusterRole /drover:cluster:cluster-owner");
        if cpu == "4" && role { Ok(()) } else { Err((cpu, role)) }
    })
    .await;

    members_get_what_rbac_gives(&world, &real).await;

    world.remove("c-abcde").await;
    eventually("the cluster as it was", async || {
        let after = everything(&client).await;
        let left: Vec<_> = after.difference(&before).cloned().collect();
        let missing: Vec<_> = before.difference(&after).cloned().collect();
        if left.is_empty() && missing.is_empty() { Ok(()) } else { Err((left, missing)) }
    })
    .await;
    let reports: Api<ConfigMap> = Api::namespaced(world.admin(), keys::SYSTEM_NS);
    let report = reports.get("removal-c-abcde").await.unwrap().data.unwrap();
    assert!(report["report.json"].contains("\"outcome\": \"complete\""), "{report:?}");
}

/// Acts like the proxy: the agent's token, the user's name, the role groups of this cluster.
async fn members_get_what_rbac_gives(world: &World, real: &RealCluster) {
    use feature_kit::{Membership, RoleResolver};
    let bindings: Api<ClusterRoleTemplateBinding> = Api::namespaced(world.admin(), "c-abcde");
    for (user, role) in [("u-owner", "cluster-owner"), ("u-member", "cluster-member")] {
        let mut binding = ClusterRoleTemplateBinding {
            role_template_name: role.to_owned(),
            user_name: user.to_owned(),
            ..ClusterRoleTemplateBinding::default()
        };
        binding.metadata.name = Some(user.to_owned());
        bindings.create(&PostParams::default(), &binding).await.unwrap();
    }
    let code = async |user: &str, namespaces: bool| {
        let person = Membership { user, groups: &[] };
        let mut groups = world.graph.cluster_groups("c-abcde", person);
        groups.push("system:authenticated".to_owned());
        let account: Api<ServiceAccount> = Api::namespaced(admin(real).await, keys::SYSTEM_NS);
        let request = TokenRequest::default();
        let token = account.create_token_request("cattle", &PostParams::default(), &request).await;
        let mut config = config(real).await;
        config.auth_info = kube::config::AuthInfo {
            token: Some(token.unwrap().status.unwrap().token.unwrap_or_default().into()),
            impersonate: Some(user.to_owned()),
            impersonate_groups: Some(groups),
            ..kube::config::AuthInfo::default()
        };
        let client = Client::try_from(config).unwrap();
        let answer = if namespaces {
            Api::<Namespace>::all(client).list(&ListParams::default()).await.map(drop)
        } else {
            Api::<KubeNode>::all(client).list(&ListParams::default()).await.map(drop)
        };
        match answer {
            Ok(()) => 200,
            Err(kube::Error::Api(status)) => status.code,
            Err(error) => panic!("{error}"),
        }
    };
    eventually("rights of owner, member and stranger", async || {
        let mut codes = Vec::new();
        for user in ["u-owner", "u-member", "u-stranger"] {
            codes.push((code(user, true).await, code(user, false).await));
        }
        if codes == [(200, 200), (403, 200), (403, 403)] { Ok(()) } else { Err(codes) }
    })
    .await;
}
