//! Quotas and limits of projects: what a cluster enforces, and what is refused before.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Debug;
use std::sync::Arc;

use api_management::{Project, condition, keys};
use apiserver::UserInfo;
use http::Request;
use k8s_openapi::api::core::v1::{LimitRange, Namespace, ResourceQuota};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use test_kit::{KubeApi, Profile, World, eventually, proxied, until};

const CLUSTER: &str = "c-abcde";
const NAME: &str = "default-drover";

fn refusal(result: Result<impl Debug, kube::Error>) -> String {
    match result {
        Err(kube::Error::Api(status)) => format!("{} {}", status.code, status.message),
        other => panic!("{other:?}"),
    }
}

/// A management plane with one connected cluster.
struct Setup {
    world: World,
    cluster: Arc<KubeApi>,
}

impl Setup {
    async fn start() -> Self {
        let world = World::start().await;
        world.create_cluster(CLUSTER).await;
        world.token(CLUSTER).await;
        let cluster = KubeApi::start(Profile::Cluster).await;
        world.join(CLUSTER, &cluster).await;
        let clusters = world.clusters();
        until("the controllers of the cluster", true, async || {
            let status = clusters.get(CLUSTER).await.unwrap().status;
            let is_true = |name: &str| condition::is_true(&status.conditions, name);
            status.namespaces_assigned
                && is_true("NamespaceProjectsRoleApplied")
                && is_true("ProjectQuotasApplied")
        })
        .await;
        Self { world, cluster }
    }

    fn projects(&self) -> Api<Project> {
        Api::namespaced(self.world.admin(), CLUSTER)
    }

    async fn project(&self, spec: Value) -> String {
        let project: Project =
            serde_json::from_value(json!({"metadata": {"generateName": "p-"}, "spec": spec}))
                .unwrap();
        let made = eventually("a new project", async || {
            self.projects().create(&PostParams::default(), &project).await
        })
        .await;
        made.name_any()
    }

    async fn change(&self, project: &str, spec: Value) -> Result<Project, kube::Error> {
        let patch = Patch::Merge(json!({"spec": spec}));
        self.projects().patch(project, &PatchParams::default(), &patch).await
    }

    /// Acts in the cluster through Drover, as administrator.
    fn through(&self) -> Client {
        let (cluster, features) = (self.cluster.clone(), self.world.features.clone());
        let service = move |request: Request<kube::client::Body>| {
            let (features, cluster) = (features.clone(), cluster.clone());
            async move {
                let root = UserInfo::new("root", &["system:masters"]);
                let server = &cluster.server;
                let sent = proxied::send(&features, CLUSTER, server, &root, request).await;
                Ok::<_, Infallible>(sent)
            }
        };
        Client::new(tower::service_fn(service), "default")
    }

    async fn create(
        &self,
        name: &str,
        project: &str,
        quota: Option<Value>,
    ) -> Result<Namespace, kube::Error> {
        let mut annotations =
            BTreeMap::from([(keys::PROJECT_ID.to_owned(), format!("{CLUSTER}:{project}"))]);
        annotations.extend(
            quota.map(|quota| {
                (keys::RESOURCE_QUOTA.to_owned(), json!({"limit": quota}).to_string())
            }),
        );
        let mut namespace = Namespace::default();
        namespace.metadata.name = Some(name.to_owned());
        namespace.metadata.annotations = Some(annotations);
        Api::all(self.through()).create(&PostParams::default(), &namespace).await
    }

    async fn annotate(
        &self,
        client: Client,
        name: &str,
        annotations: Value,
    ) -> Result<Namespace, kube::Error> {
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        Api::<Namespace>::all(client).patch(name, &PatchParams::default(), &patch).await
    }

    async fn request(&self, client: Client, name: &str, quota: Value) -> Result<(), kube::Error> {
        let annotation = json!({"limit": quota}).to_string();
        let annotations = json!({keys::RESOURCE_QUOTA: annotation});
        self.annotate(client, name, annotations).await.map(drop)
    }

    /// What the quota of a namespace allows.
    async fn hard(&self, namespace: &str) -> BTreeMap<String, String> {
        let quotas: Api<ResourceQuota> = Api::namespaced(self.cluster.admin(), namespace);
        let spec = quotas.get_opt(NAME).await.unwrap().and_then(|quota| quota.spec);
        let hard = spec.and_then(|spec| spec.hard).unwrap_or_default();
        hard.into_iter().map(|(name, amount)| (name, amount.0)).collect()
    }

    async fn pods(&self, namespace: &str) -> String {
        self.hard(namespace).await.remove("pods").unwrap_or_default()
    }

    async fn used(&self, project: &str) -> String {
        let status = self.projects().get(project).await.unwrap().status;
        status.used_limit.get("pods").cloned().unwrap_or_default()
    }

    async fn annotation(&self, namespace: &str, key: &str) -> String {
        let namespaces: Api<Namespace> = Api::all(self.cluster.admin());
        let found = namespaces.get(namespace).await.unwrap();
        found.annotations().get(key).cloned().unwrap_or_default()
    }
}

fn quota(limit: &str, default: &str) -> Value {
    json!({
        "resourceQuota": {"limit": {"pods": limit}},
        "namespaceDefaultResourceQuota": {"limit": {"pods": default}},
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn namespaces_share_the_quota_of_their_project_and_get_it_back() {
    let setup = Setup::start().await;
    let project = setup.project(quota("10", "3")).await;
    setup.create("first", &project, None).await.unwrap();
    setup.create("second", &project, Some(json!({"pods": "5"}))).await.unwrap();
    until("the default", "3".to_owned(), async || setup.pods("first").await).await;
    until("the quota of its own", "5".to_owned(), async || setup.pods("second").await).await;
    until("the sum", "8".to_owned(), async || setup.used(&project).await).await;
    let default = r#"{"limit":{"pods":"3"}}"#;
    until("the default as annotation", default.to_owned(), async || {
        setup.annotation("first", keys::RESOURCE_QUOTA).await
    })
    .await;

    // What does not fit is refused, and says by how much.
    let over = refusal(setup.create("third", &project, None).await);
    assert!(over.starts_with("422") && over.contains("by 1: 2 of 10 is left"), "{over}");
    let over = refusal(setup.request(setup.through(), "first", json!({"pods": "6"})).await);
    assert!(over.starts_with("422") && over.contains("by 1: 5 of 10 is left"), "{over}");
    setup.request(setup.through(), "first", json!({"pods": "4"})).await.unwrap();
    until("the raised quota", "4".to_owned(), async || setup.pods("first").await).await;

    // Neither more in the cluster itself than is left, nor a change of the quota there.
    setup.request(setup.cluster.admin(), "first", json!({"pods": "9"})).await.unwrap();
    until("what is left", "5".to_owned(), async || setup.pods("first").await).await;
    assert_eq!(setup.pods("second").await, "5");
    until("the reason", true, async || {
        let status = setup.annotation("first", keys::STATUS).await;
        status.contains("exceeds project limit") && status.contains("pods=9, of which 5 is left")
    })
    .await;
    let quotas: Api<ResourceQuota> = Api::namespaced(setup.cluster.admin(), "second");
    let more = Patch::Merge(json!({"spec": {"hard": {"pods": "50", "services": "1"}}}));
    quotas.patch(NAME, &PatchParams::default(), &more).await.unwrap();
    let of_project = BTreeMap::from([("pods".to_owned(), "5".to_owned())]);
    until("the quota as it was", of_project, async || setup.hard("second").await).await;
    quotas.delete(NAME, &DeleteParams::default()).await.unwrap();
    until("the quota again", "5".to_owned(), async || setup.pods("second").await).await;

    // The limit cannot be less than what is used, and can go.
    until("all of it is used", "10".to_owned(), async || setup.used(&project).await).await;
    let less = refusal(setup.change(&project, quota("8", "3")).await);
    assert!(less.starts_with("422") && less.contains("have 10 of it, 2 more"), "{less}");
    let namespaces: Api<Namespace> = Api::all(setup.cluster.admin());
    let left = json!({keys::PROJECT_ID: null});
    setup.annotate(setup.through(), "second", left).await.unwrap();
    until("no quota outside", String::new(), async || setup.pods("second").await).await;
    until("all that it requests", "9".to_owned(), async || setup.pods("first").await).await;
    until("no reason any more", false, async || {
        setup.annotation("first", keys::STATUS).await.contains("exceeds")
    })
    .await;
    let none = json!({"resourceQuota": null, "namespaceDefaultResourceQuota": null});
    setup.change(&project, none).await.unwrap();
    until("no quota at all", 0, async || {
        let quotas: Api<ResourceQuota> = Api::all(setup.cluster.admin());
        quotas.list(&ListParams::default()).await.unwrap().items.len()
    })
    .await;
    until("no sum", String::new(), async || setup.used(&project).await).await;
    until("no condition", false, async || {
        setup.annotation("first", keys::STATUS).await.contains("ResourceQuotaValidated")
    })
    .await;
    assert!(namespaces.get("first").await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_moves_only_into_a_project_that_has_room_for_it() {
    let setup = Setup::start().await;
    let small = setup.project(quota("4", "1")).await;
    let large = setup.project(quota("40", "5")).await;
    setup.create("here", &small, Some(json!({"pods": "2"}))).await.unwrap();
    setup.create("web", &large, Some(json!({"pods": "20"}))).await.unwrap();
    until("its quota", "20".to_owned(), async || setup.pods("web").await).await;
    until("what is used", "2".to_owned(), async || setup.used(&small).await).await;
    let to = |project: &str| json!({keys::PROJECT_ID: format!("{CLUSTER}:{project}")});
    let over = refusal(setup.annotate(setup.through(), "web", to(&small)).await);
    assert!(over.starts_with("422") && over.contains("2 of 4 is left"), "{over}");
    let mut with_less = to(&small);
    with_less[keys::RESOURCE_QUOTA] = json!({"limit": {"pods": "2"}}).to_string().into();
    setup.annotate(setup.through(), "web", with_less).await.unwrap();
    until("its smaller quota", "2".to_owned(), async || setup.pods("web").await).await;
    until("nothing is used", "0".to_owned(), async || setup.used(&large).await).await;
    until("it is used here", "4".to_owned(), async || setup.used(&small).await).await;
    assert_eq!(setup.pods("here").await, "2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn containers_get_the_limits_of_the_project_and_a_namespace_may_have_others() {
    let setup = Setup::start().await;
    let limits = json!({"limitsCpu": "1000m", "requestsMemory": "64Mi"});
    let project = setup.project(json!({"containerDefaultResourceLimit": limits})).await;
    setup.create("web", &project, None).await.unwrap();
    let ranges: Api<LimitRange> = Api::namespaced(setup.cluster.admin(), "web");
    let shown = async || {
        let found = ranges.get_opt(NAME).await.unwrap().and_then(|range| range.spec);
        json!(found.map(|spec| spec.limits))
    };
    let of = |cpu: &str| {
        json!([{"type": "Container", "default": {"cpu": cpu},
            "defaultRequest": {"cpu": cpu, "memory": "64Mi"}}])
    };
    until("the limits", of("1"), shown).await;
    let own = json!({keys::CONTAINER_LIMITS: json!({"limitsCpu": "2"}).to_string()});
    setup.annotate(setup.through(), "web", own).await.unwrap();
    until("its own limit", of("2"), shown).await;
    let wrong = json!({keys::CONTAINER_LIMITS: json!({"limitsCpu": "much"}).to_string()});
    let refused = refusal(setup.annotate(setup.through(), "web", wrong).await);
    assert!(refused.starts_with("422") && refused.contains("must be a quantity"), "{refused}");
    // The version does not change when there is nothing to do.
    let version = ranges.get(NAME).await.unwrap().resource_version();
    setup.change(&project, json!({"description": "other"})).await.unwrap();
    setup.create("later", &project, None).await.unwrap();
    let later: Api<LimitRange> = Api::namespaced(setup.cluster.admin(), "later");
    until("the limits there", true, async || later.get_opt(NAME).await.unwrap().is_some()).await;
    assert_eq!(ranges.get(NAME).await.unwrap().resource_version(), version);
    setup.change(&project, json!({"containerDefaultResourceLimit": null})).await.unwrap();
    let own =
        json!([{"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "2"}}]);
    until("only its own", own, shown).await;
    until("none", false, async || later.get_opt(NAME).await.unwrap().is_some()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_quota_is_refused_with_the_field() {
    let setup = Setup::start().await;
    let project = setup.project(quota("4", "1")).await;
    for (spec, said) in [
        (quota("4", "5"), "spec.namespaceDefaultResourceQuota.limit.pods: Invalid value: \"5\""),
        (json!({"resourceQuota": {"limit": {"pods": 4}}}), "spec.resourceQuota.limit.pods"),
        (json!({"resourceQuota": {"limit": {"pod": "4"}}}), "Unsupported value: \"pod\""),
        (json!({"containerDefaultResourceLimit": {"pods": "4"}}), "Unsupported value: \"pods\""),
    ] {
        let refused = refusal(setup.change(&project, spec).await);
        assert!(refused.starts_with("422") && refused.contains(said), "{refused}");
    }
    // Clients send back what they read.
    let mut used = quota("4", "1");
    used["resourceQuota"]["usedLimit"] = json!({"pods": "400"});
    let kept = setup.change(&project, used).await.unwrap();
    assert!(kept.status.used_limit.get("pods").is_none_or(|used| used == "0"), "{kept:?}");
    let projects: Api<Project> = Api::namespaced(setup.world.admin(), "local");
    let local: Project = serde_json::from_value(
        json!({"metadata": {"generateName": "p-"}, "spec": quota("4", "1")}),
    )
    .unwrap();
    let refused = refusal(projects.create(&PostParams::default(), &local).await);
    assert!(refused.contains("nothing enforces a quota or limits there"), "{refused}");
}
