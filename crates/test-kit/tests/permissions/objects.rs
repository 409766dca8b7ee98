//! Objects of every type that `/v3` has a schema of, in both clusters where they belong to
//! clusters.

use std::sync::atomic::{AtomicU64, Ordering};

use api_management::table::TypeTable;
use api_management::types;
use http::Request;
use serde_json::{Value, json};

use super::samples::Samples;
use super::setup::{OTHER, Setup, TestCluster, TestUser};

/// The cluster that an object belongs to, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    A,
    B,
}

/// The methods of a schema.
pub struct Type {
    pub id: String,
    pub plural: String,
    pub schema: Value,
    table: TypeTable,
}

impl Type {
    pub fn path(&self) -> String {
        format!("/v3/{}", self.plural.to_lowercase())
    }
    pub fn path_of(&self, id: &str) -> String {
        format!("{}/{}", self.path(), id.replace('/', "%2F"))
    }
    /// `l`ist, `g`et, `c`reate, `u`pdate, `d`elete.
    pub fn offers(&self, verb: char) -> bool {
        let (methods, method) = match verb {
            'l' => ("collectionMethods", "GET"),
            'c' => ("collectionMethods", "POST"),
            'g' => ("resourceMethods", "GET"),
            'u' => ("resourceMethods", "PUT"),
            _ => ("resourceMethods", "DELETE"),
        };
        self.schema[methods].as_array().unwrap().iter().any(|known| known == method)
    }
    /// The clusters that can have objects of the type.
    pub fn sides(&self) -> &'static [Side] {
        let anywhere = self.table.namespaced && self.table.namespace.is_none();
        let in_clusters = self.table.parent.is_some() || anywhere || self.id == "cluster";
        // Every user has their own preferences.
        if in_clusters && self.id != "preference" { &[Side::A, Side::B] } else { &[Side::A] }
    }
}

/// Creates objects with unique names.
pub struct Objects<'a> {
    pub setup: &'a Setup,
    samples: [Samples; 2],
    made: AtomicU64,
}

impl<'a> Objects<'a> {
    pub fn new(setup: &'a Setup) -> Self {
        let samples = |cluster: &TestCluster| Samples::of(cluster.cluster, &cluster.project);
        let samples = [samples(&setup.a), samples(&setup.b)];
        Self { setup, samples, made: AtomicU64::new(0) }
    }

    /// The types that have a method for objects.
    pub async fn types(&self) -> Vec<Type> {
        let (status, body) = self.setup.get(TestUser::Admin, "/v3/schemas").await;
        assert_eq!(status, 200);
        let types = body["data"].as_array().unwrap().iter().filter_map(|schema| {
            let text = |key: &str| schema[key].as_str().unwrap().to_owned();
            let found = Type {
                table: types::table(schema["id"].as_str().unwrap())?,
                id: text("id"),
                plural: text("pluralName"),
                schema: schema.clone(),
            };
            "lgcud".chars().any(|verb| found.offers(verb)).then_some(found)
        });
        types.collect()
    }

    /// The body of a POST.
    pub fn body(&self, kind: &Type, side: Side) -> Value {
        let name = self.name(kind);
        match kind.id.as_str() {
            // Without a login name, so that it needs no password.
            "user" => json!({"name": name}),
            "token" => json!({"description": name}),
            "setting" => json!({"name": name, "value": "x"}),
            "cluster" => json!({"name": name}),
            _ => {
                let mut body = self.samples[side as usize].body(&kind.table);
                body["name"] = name.into();
                body
            }
        }
    }

    fn name(&self, kind: &Type) -> String {
        format!("{}-{}", kind.id.to_lowercase(), self.made.fetch_add(1, Ordering::Relaxed))
    }

    /// Creates one as administrator, with this label, and returns its id.
    pub async fn make(&self, kind: &Type, side: Side, label: &str) -> String {
        let id = match kind.id.as_str() {
            "principal" => format!("local://{OTHER}"),
            _ if kind.offers('c') => {
                let mut body = self.body(kind, side);
                body["labels"] = json!({"probe": label});
                let made = self.setup.must(201, "POST", &kind.path(), &body).await;
                made["id"].as_str().unwrap().to_owned()
            }
            _ if kind.table.base.is_some() => self.provider(kind).await,
            _ => self.store(kind, side, label).await,
        };
        if kind.id == "cluster" && side == Side::A {
            self.setup.bind(&id).await;
        }
        id
    }

    /// An object of a type that no request can create.
    async fn store(&self, kind: &Type, side: Side, label: &str) -> String {
        let cluster = if side == Side::A { &self.setup.a } else { &self.setup.b };
        let resource = feature_kit::table::resource_of(&kind.table).unwrap();
        let namespace = match (kind.table.namespace, kind.table.parent) {
            _ if !resource.namespaced => "",
            (Some(one), _) => one,
            (None, Some("projectId")) => cluster.project.split_once(':').unwrap().1,
            (None, _) => cluster.cluster,
        };
        let name = self.name(kind);
        let mut object = json!({
            "apiVersion": resource.api_version(), "kind": resource.kind,
            "metadata": {"name": name, "namespace": namespace, "labels": {"probe": label}},
        });
        match kind.id.as_str() {
            // Shows the labels of the machine instead of its own.
            "node" => object["status"] = json!({"nodeName": label}),
            "authConfig" => {
                object["type"] = "githubConfig".into();
                object["accessMode"] = "restricted".into();
            }
            _ => {}
        }
        let request = Request::post(resource.collection_path(namespace));
        let request = request.header("content-type", "application/json");
        let request = request.body(object.to_string().into_bytes()).unwrap();
        let _: Value = self.setup.world.admin().request(request).await.unwrap();
        if namespace.is_empty() { name } else { format!("{namespace}:{name}") }
    }

    /// The identity provider of a type that is one.
    async fn provider(&self, kind: &Type) -> String {
        let (_, list) = self.setup.get(TestUser::Admin, "/v3/authConfigs").await;
        let found = list["data"].as_array().unwrap().iter().find(|item| item["type"] == kind.id);
        let found = found.unwrap_or_else(|| panic!("nothing makes a {}", kind.id));
        found["id"].as_str().unwrap().to_owned()
    }
}
