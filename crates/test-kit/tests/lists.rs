//! Lists of `/v3` from an index and from full scans: the same pages, for every user, immediately
//! after each write.

#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use feature_kit::Clients;
use http::Request;
use kube::Client;
use rest_view::{Caller, Index, RestView};
use serde_json::{Value, json};
use server::journal::Caches;
use test_kit::{World, eventually};

/// Number of objects from which on types get an index here.
const INDEXED_FROM: usize = 5;

struct Lists {
    world: World,
    index: Index,
    indexed: RestView,
    scanning: RestView,
    requested: AtomicU64,
    before: u64,
}

impl Lists {
    async fn start() -> Self {
        let world = World::start().await;
        let view = || feature_kit::view::rest_view(&world.features, &world.context);
        let index = Index::from_objects(Caches(world.api.registry.clone()), INDEXED_FROM);
        let (indexed, scanning) = (view().with_lists(index.clone()), view());
        Self { index, indexed, scanning, requested: AtomicU64::new(0), before: 0, world }
    }

    async fn get(&self, view: &RestView, who: &Who, path: &str) -> Value {
        let request = Request::get(path).header("host", "drover.example");
        let request = request.body(Bytes::new()).unwrap();
        let response = view.handle(request, &who.caller, &who.client).await;
        assert_eq!(response.status(), 200, "{path}: {:?}", response.body());
        serde_json::from_slice(response.body()).unwrap()
    }

    /// The page that both return. Repeats the requests when they differ: a write may have come
    /// between.
    async fn page(&self, who: &Who, path: &str) -> Value {
        eventually("the same page", async || {
            self.requested.fetch_add(1, Ordering::Relaxed);
            let indexed = self.get(&self.indexed, who, path).await;
            let read = self.get(&self.scanning, who, path).await;
            if indexed == read { Ok(indexed) } else { Err((path.to_owned(), indexed, read)) }
        })
        .await
    }

    /// Pages that [`Self::page`] requested and that did not come from the index.
    fn missed(&self) -> u64 {
        self.requested.load(Ordering::Relaxed) + self.before - self.index.pages()
    }

    /// Resets the count of pages.
    fn count(&mut self) {
        self.before = self.index.pages();
    }

    /// Repeats a list until it comes from the index.
    async fn indexed(&self, path: &str) {
        let admin = self.user("system:drover:server", &["system:masters"]);
        eventually("an index", async || {
            let before = self.index.pages();
            self.get(&self.indexed, &admin, path).await;
            if self.index.pages() > before { Ok(()) } else { Err("the list read all objects") }
        })
        .await;
    }

    fn user(&self, user: &str, groups: &[&str]) -> Who {
        let mut groups: Vec<String> = groups.iter().map(|&group| group.to_owned()).collect();
        groups.push("system:authenticated".to_owned());
        let client = self.world.api.client_as(user, &groups);
        Who { caller: Caller { groups, ..Caller::user(user) }, client }
    }

    async fn write(&self, method: &str, path: &str, body: Value) -> Value {
        let request = Request::builder().method(method).uri(path);
        let request = request.header("content-type", "application/json");
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = request.body(body).unwrap();
        self.world.admin().request(request).await.unwrap()
    }

    /// Grants the user these verbs on catalogs, or on alert groups of a namespace.
    async fn allow(&self, user: &str, namespace: &str, verbs: &[&str], names: &[String]) {
        let plural = if namespace.is_empty() { "catalogs" } else { "clusteralertgroups" };
        let rule = json!({"apiGroups": ["management.cattle.io"], "resources": [plural],
                          "verbs": verbs, "resourceNames": names});
        let (path, kind) = match namespace {
            "" => ("/apis/rbac.authorization.k8s.io/v1".to_owned(), "ClusterRole"),
            _ => (format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"), "Role"),
        };
        let metadata = json!({"name": format!("test-{user}")});
        let plural = kind.to_lowercase();
        let role = json!({"metadata": metadata, "rules": [rule]});
        self.write("POST", &format!("{path}/{plural}s"), role).await;
        let group = "rbac.authorization.k8s.io";
        let binding = json!({
            "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": kind, "name": format!("test-{user}")},
            "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
        });
        self.write("POST", &format!("{path}/{plural}bindings"), binding).await;
    }
}

struct Who {
    caller: Caller,
    client: Client,
}

const CATALOGS: &str = "/apis/management.cattle.io/v3/catalogs";

fn catalog(number: usize) -> Value {
    let mut spec = json!({"url": format!("https://{}.example", number % 7), "branch": "main"});
    if number.is_multiple_of(3) {
        spec["branch"] = "old".into();
    }
    if number.is_multiple_of(4) {
        spec["description"] = format!("Number {number}").into();
    }
    json!({
        "apiVersion": "management.cattle.io/v3", "kind": "Catalog",
        "metadata": {"name": format!("catalog-{number:02}")}, "spec": spec,
    })
}

#[tokio::test]
async fn an_index_returns_the_same_lists_as_full_scans_to_every_user() {
    let mut lists = Lists::start().await;
    for number in 0..40 {
        lists.write("POST", CATALOGS, catalog(number)).await;
    }
    let names: Vec<String> = (0..40).step_by(5).map(|n| format!("catalog-{n:02}")).collect();
    lists.allow("ann", "", &["get"], &names).await;
    lists.allow("bob", "", &["get", "list"], &[]).await;
    eventually("ann's rights", async || {
        let seen = lists.get(&lists.scanning, &lists.user("ann", &[]), "/v3/catalogs").await;
        if seen["pagination"]["total"] == 8 { Ok(()) } else { Err(seen) }
    })
    .await;
    let people = ["system:drover:server", "ann", "bob", "eve"];
    let queries = [
        "limit=7",
        "limit=7&order=desc&marker=catalog-20",
        "limit=6&marker=catalog-22",
        "limit=5&marker=catalog-055",
        "limit=7&sort=url",
        "limit=7&sort=url&order=desc&marker=catalog-15",
        "limit=4&sort=description&marker=gone",
        "branch=old&limit=5",
        "branch_ne=old&sort=url&limit=5",
        "url_in=https://1.example&url_in=https://2.example&description=",
        "url_notin=https://1.example&branch=main&description_ne=&sort=created",
        "state=active&limit=3",
        "id=catalog-10",
        "name=catalog-05",
        "branch=none",
    ];
    for query in queries {
        lists.indexed(&format!("/v3/catalogs?{query}")).await;
    }
    lists.count();
    for user in people {
        let groups: &[&str] = if user == people[0] { &["system:masters"] } else { &[] };
        let who = lists.user(user, groups);
        for query in queries {
            lists.page(&who, &format!("/v3/catalogs?{query}")).await;
        }
    }
    assert_eq!(lists.missed(), 0, "each page comes from the index");
    let total = async |user: &str| {
        let who = lists.user(user, &[]);
        lists.page(&who, "/v3/catalogs?limit=3").await["pagination"]["total"].clone()
    };
    assert_eq!([total("ann").await, total("bob").await, total("eve").await], [8, 40, 0]);
}

#[tokio::test]
async fn a_list_shows_what_was_written_before_it() {
    let lists = Lists::start().await;
    for number in 0..20 {
        lists.write("POST", CATALOGS, catalog(number)).await;
    }
    let path = "/v3/catalogs?branch=fresh&sort=url";
    lists.indexed(path).await;
    let before = lists.index.pages();
    let who = lists.user("system:drover:server", &["system:masters"]);
    let ids = async |path: &str| {
        let page = lists.get(&lists.indexed, &who, path).await;
        let data = page["data"].as_array().unwrap();
        let ids = data.iter().map(|item| item["id"].as_str().unwrap().to_owned());
        ids.collect::<Vec<String>>()
    };
    let mut expected = Vec::new();
    for number in 0..20 {
        let path_of = format!("{CATALOGS}/catalog-{number:02}");
        let mut object = lists.write("GET", &path_of, Value::Null).await;
        object["spec"]["branch"] = "fresh".into();
        object["spec"]["url"] = format!("https://{:02}.example", 20 - number).into();
        lists.write("PUT", &path_of, object).await;
        expected.insert(0, format!("catalog-{number:02}"));
        assert_eq!(ids(path).await, expected);
    }
    for number in (0..20).rev() {
        lists.write("DELETE", &format!("{CATALOGS}/catalog-{number:02}"), json!({})).await;
        expected.remove(0);
        assert_eq!(ids(path).await, expected);
    }
    assert_eq!(lists.index.pages() - before, 40, "each page comes from the index");
}

#[tokio::test]
async fn objects_in_namespaces_are_indexed_for_those_who_see_some() {
    let mut lists = Lists::start().await;
    for cluster in ["c-a", "c-b", "c-c"] {
        lists.world.create_cluster(cluster).await;
        let path = format!("/api/v1/namespaces/{cluster}");
        eventually("the cluster's namespace", async || {
            let request = Request::get(&path).body(Vec::new()).unwrap();
            lists.world.admin().request::<Value>(request).await.map(drop)
        })
        .await;
        for number in 0..6 {
            let path =
                format!("/apis/management.cattle.io/v3/namespaces/{cluster}/clusteralertgroups");
            let group = json!({
                "apiVersion": "management.cattle.io/v3", "kind": "ClusterAlertGroup",
                "metadata": {"name": format!("group-{number}")},
                "spec": {"clusterId": cluster, "displayName": format!("Group {}", number % 4)},
            });
            lists.write("POST", &path, group).await;
        }
    }
    let queries = [
        "limit=4&marker=c-b:group-2",
        "clusterId=c-b",
        "sort=name&order=desc&limit=5",
        "name=Group 1&alertState=active",
    ];
    let queries = queries.map(|query| query.replace(' ', "%20"));
    for query in &queries {
        lists.indexed(&format!("/v3/clusterAlertGroups?{query}")).await;
    }
    // Sees two clusters; in one all alert groups, in the other one by name.
    let cluster_role = json!({
        "metadata": {"name": "test-clusters"},
        "rules": [{"apiGroups": ["management.cattle.io"], "resources": ["clusters"],
                   "verbs": ["get"], "resourceNames": ["c-a", "c-b"]}],
    });
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    lists.write("POST", &format!("{rbac}/clusterroles"), cluster_role).await;
    let binding = json!({
        "metadata": {"name": "test-clusters"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": "test-clusters"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}],
    });
    lists.write("POST", &format!("{rbac}/clusterrolebindings"), binding).await;
    lists.allow("ann", "c-a", &["get", "list"], &[]).await;
    lists.allow("ann", "c-b", &["get"], &["group-3".to_owned()]).await;

    let admin = lists.user("system:drover:server", &["system:masters"]);
    let ann = lists.user("ann", &[]);
    eventually("ann's rights", async || {
        let seen = lists.get(&lists.scanning, &ann, "/v3/clusterAlertGroups").await;
        if seen["pagination"]["total"] == 7 { Ok(()) } else { Err(seen) }
    })
    .await;
    lists.count();
    for who in [&admin, &ann] {
        for query in &queries {
            lists.page(who, &format!("/v3/clusterAlertGroups?{query}")).await;
        }
    }
    assert_eq!(lists.missed(), 0, "each page comes from the index");
    let seen = lists.page(&ann, "/v3/clusterAlertGroups?limit=2").await;
    assert_eq!(seen["pagination"]["total"], 7);
}
