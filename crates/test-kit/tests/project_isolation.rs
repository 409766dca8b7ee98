//! Isolation of projects: the policies in a cluster follow what it has.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::sync::Arc;

use api_management::{Project, condition, keys};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use test_kit::{KubeApi, Profile, World, eventually, until};

const CLUSTER: &str = "c-abcde";

/// A management plane with one connected cluster of one project, with the namespace `web`.
struct Setup {
    world: World,
    cluster: Arc<KubeApi>,
    project: String,
}

impl Setup {
    async fn start() -> Self {
        let world = World::start().await;
        world.create_cluster(CLUSTER).await;
        world.token(CLUSTER).await;
        let cluster = KubeApi::start(Profile::Cluster).await;
        world.join(CLUSTER, &cluster).await;
        let setup = Self { project: project(&world).await, world, cluster };
        let clusters = setup.world.clusters();
        until("the controllers of the cluster", true, async || {
            let status = clusters.get(CLUSTER).await.unwrap().status;
            let is_true = |name: &str| condition::is_true(&status.conditions, name);
            status.namespaces_assigned && is_true("ProjectIsolationApplied")
        })
        .await;
        setup.create_namespace("web", Some(&setup.project)).await;
        setup.create_namespace("loose", None).await;
        setup
    }

    /// In the cluster itself, with the assignment that Drover would have noted.
    async fn create_namespace(&self, name: &str, project: Option<&str>) {
        let namespaces: Api<Namespace> = Api::all(self.cluster.admin());
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(name.to_owned());
        let made = namespaces.create(&PostParams::default(), &namespace).await.unwrap();
        if let Some(project) = project {
            self.assign(name, &made.uid().unwrap(), project).await;
        }
    }

    async fn assign(&self, name: &str, uid: &str, project: &str) {
        let projects: Api<Project> = Api::namespaced(self.world.admin(), CLUSTER);
        let project = projects.get(project).await.unwrap();
        let assigned = json!({
            "project": project.name_any(), "projectUid": project.uid(), "namespaceUid": uid});
        let mut assignment = api_management::NamespaceAssignment::default();
        assignment.metadata.name = Some(name.to_owned());
        assignment.assign(Some(serde_json::from_value(assigned).unwrap()));
        let api = Api::namespaced(self.world.admin(), CLUSTER);
        let patch = Patch::Apply(json!({
            "apiVersion": "management.cattle.io/v3", "kind": "NamespaceAssignment",
            "metadata": {"name": name}, "spec": assignment.spec}));
        let options = PatchParams::apply("test").force();
        let _: api_management::NamespaceAssignment =
            api.patch(name, &options, &patch).await.unwrap();
    }

    async fn switch(&self, on: bool) {
        let patch = Patch::Merge(json!({"spec": {"enableNetworkPolicy": on}}));
        self.world.clusters().patch(CLUSTER, &PatchParams::default(), &patch).await.unwrap();
    }

    fn policies(&self) -> Api<NetworkPolicy> {
        Api::all(self.cluster.admin())
    }

    /// `namespace/name` of all policies.
    async fn names(&self) -> BTreeSet<String> {
        let found = self.policies().list(&ListParams::default()).await.unwrap().items;
        let name = |it: &NetworkPolicy| format!("{}/{}", it.namespace().unwrap(), it.name_any());
        found.iter().map(name).collect()
    }

    async fn ingress(&self, namespace: &str, name: &str) -> Value {
        let api: Api<NetworkPolicy> = Api::namespaced(self.cluster.admin(), namespace);
        let found = api.get_opt(name).await.unwrap().and_then(|policy| policy.spec);
        json!(found.map(|spec| spec.ingress))
    }
}

async fn project(world: &World) -> String {
    let project: Project = serde_json::from_value(json!({
        "metadata": {"generateName": "p-"}, "spec": {"displayName": "shop"}}))
    .unwrap();
    let projects: Api<Project> = Api::namespaced(world.admin(), CLUSTER);
    let made = eventually("a new project", async || {
        projects.create(&PostParams::default(), &project).await
    })
    .await;
    made.name_any()
}

fn read<K: controller::ensure::Object>(object: Value) -> K {
    serde_json::from_value(object).unwrap()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_policies_of_a_project_follow_the_cluster() {
    let setup = Setup::start().await;
    assert!(setup.names().await.is_empty());
    setup.switch(true).await;
    // `default` begins in the project Default. Neither the system nor what is in no project.
    let closed = set(&["default/drover-project", "web/drover-project"]);
    until("the policies", closed.clone(), async || setup.names().await).await;
    until("the status", json!(true), async || {
        setup.world.stored("clusters/c-abcde").await["status"]["appliedEnableNetworkPolicy"].take()
    })
    .await;

    let admin = setup.cluster.admin();
    let (options, nodes): (_, Api<Node>) = (PostParams::default(), Api::all(admin.clone()));
    let node = json!({"metadata": {"name": "one"}, "spec": {"podCIDR": "10.42.0.0/24"}});
    nodes.create(&options, &read(node)).await.unwrap();
    let blocks = json!([{"from": [
        {"ipBlock": {"cidr": "10.42.0.0/32"}}, {"ipBlock": {"cidr": "10.42.0.1/32"}}]}]);
    until("the node", blocks, async || setup.ingress("web", "drover-nodes").await).await;
    nodes.delete("one", &DeleteParams::default()).await.unwrap();
    let none = async || setup.ingress("web", "drover-nodes").await;
    until("no node", Value::Null, none).await;

    let services: Api<Service> = Api::namespaced(admin.clone(), "web");
    let service = json!({"metadata": {"name": "front"}, "spec": {"type": "NodePort",
        "selector": {"app": "front"}, "ports": [{"port": 80, "targetPort": 8080}]}});
    services.create(&options, &read(service)).await.unwrap();
    let port = |port: u16| json!([{"ports": [{"port": port, "protocol": "TCP"}]}]);
    until("the service", port(8080), async || setup.ingress("web", "drover-service-front").await)
        .await;

    let pods: Api<Pod> = Api::namespaced(admin.clone(), "web");
    let pod = json!({"metadata": {"name": "edge", "labels": {"app": "edge"}}, "spec": {
        "containers": [{"name": "a", "image": "a", "ports": [
            {"containerPort": 443, "hostPort": 8443}]}]}});
    pods.create(&options, &read(pod)).await.unwrap();
    let open = async || {
        let names = setup.names().await;
        names.iter().any(|name| name.starts_with("web/drover-host-ports-"))
    };
    until("the port of the pod", true, open).await;
    pods.delete("edge", &DeleteParams::default().grace_period(0)).await.unwrap();
    until("no port of the pod", false, open).await;

    // Changes in the cluster are reverted.
    let inside: Api<NetworkPolicy> = Api::namespaced(admin.clone(), "web");
    let before = setup.ingress("web", "drover-project").await;
    let all = Patch::Merge(json!({"spec": {"ingress": [{}]}}));
    inside.patch("drover-project", &PatchParams::default(), &all).await.unwrap();
    until("as before", before.clone(), async || setup.ingress("web", "drover-project").await).await;
    inside.delete("drover-project", &DeleteParams::default()).await.unwrap();
    until("again", before, async || setup.ingress("web", "drover-project").await).await;

    // A namespace that moves belongs to the next project.
    let next = project(&setup.world).await;
    let namespaces: Api<Namespace> = Api::all(admin.clone());
    let uid = namespaces.get("web").await.unwrap().uid().unwrap();
    setup.assign("web", &uid, &next).await;
    until("the next project", true, async || {
        let ingress = setup.ingress("web", "drover-project").await.to_string();
        ingress.contains(&next) && !ingress.contains(&setup.project)
    })
    .await;
    let label = async || {
        let labels = namespaces.get("web").await.unwrap().labels().clone();
        labels.get(keys::PROJECT_ID).cloned().unwrap_or_default()
    };
    until("its label", next.clone(), label).await;

    setup.switch(false).await;
    until("nothing", BTreeSet::new(), async || setup.names().await).await;
    until("the status", json!(false), async || {
        setup.world.stored("clusters/c-abcde").await["status"]["appliedEnableNetworkPolicy"].take()
    })
    .await;
}
