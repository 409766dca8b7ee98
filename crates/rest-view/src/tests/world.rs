//! A small world: a global type `depot` with a sub-context, a namespaced type `widget` in depots, a
//! public type, and a store in memory that behaves like the API server where the view relies on it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use serde_json::{Value, json};

use crate::types::store::DeleteOptions;
use crate::{
    Action, ActionRequest, ActionResponse, ApiError, ApiVersion, Caller, Context, Descriptor,
    Field, FieldType, Key, KubeResource, ListScope, Methods, RestView, Store, StructType,
};

/// Objects by namespace and name; conflicts, generated names and removals as the API server has.
#[derive(Default)]
pub struct MemoryStore {
    objects: Mutex<BTreeMap<(String, String), Value>>,
    /// Conflicts still to be returned for updates.
    pub conflicts: Mutex<u32>,
    made: Mutex<u32>,
}

impl MemoryStore {
    /// Stores an object as it is, under its namespace and name.
    pub fn put(&self, object: Value) {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let key = (text("namespace"), text("name"));
        self.objects.lock().unwrap().insert(key, object);
    }
    /// The object as it is stored.
    pub fn stored(&self, namespace: &str, name: &str) -> Option<Value> {
        let key = (namespace.to_owned(), name.to_owned());
        self.objects.lock().unwrap().get(&key).cloned()
    }
}

fn absent(key: &Key) -> ApiError {
    ApiError::new(404, "NotFound", format!("widgets.example.io \"{}\" not found", key.name))
}

impl Store for MemoryStore {
    fn list<'a>(
        &'a self,
        _: &'a Context<'a>,
        scope: &'a ListScope,
    ) -> BoxFuture<'a, Result<Vec<Value>, ApiError>> {
        let objects = self.objects.lock().unwrap();
        let of_scope = |((namespace, _), _): &(&(String, String), &Value)| {
            scope.namespace.as_ref().is_none_or(|requested| requested == namespace)
        };
        let found = objects.iter().filter(of_scope).map(|(_, object)| object.clone()).collect();
        Box::pin(async move { Ok(found) })
    }
    fn get<'a>(
        &'a self,
        _: &'a Context<'a>,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(async move { self.stored(&key.namespace, &key.name).ok_or_else(|| absent(key)) })
    }
    fn create<'a>(
        &'a self,
        _: &'a Context<'a>,
        mut object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        if let Some(prefix) = object["metadata"]["generateName"].as_str() {
            let mut made = self.made.lock().unwrap();
            *made += 1;
            object["metadata"]["name"] = format!("{prefix}{:05}", *made).into();
        }
        self.put(object.clone());
        Box::pin(async move { Ok(object) })
    }
    fn replace<'a>(
        &'a self,
        _: &'a Context<'a>,
        key: &'a Key,
        object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(async move {
            let mut conflicts = self.conflicts.lock().unwrap();
            if *conflicts > 0 {
                *conflicts -= 1;
                return Err(ApiError::new(409, "Conflict", "the object has been modified"));
            }
            if self.stored(&key.namespace, &key.name).is_none() {
                return Err(absent(key));
            }
            self.put(object.clone());
            Ok(object)
        })
    }
    fn delete<'a>(
        &'a self,
        _: &'a Context<'a>,
        key: &'a Key,
        _: &'a DeleteOptions,
    ) -> BoxFuture<'a, Result<Option<Value>, ApiError>> {
        Box::pin(async move {
            let mut objects = self.objects.lock().unwrap();
            let id = (key.namespace.clone(), key.name.clone());
            let object = objects.get_mut(&id).ok_or_else(|| absent(key))?;
            if object["metadata"]["finalizers"][0].is_string() {
                object["metadata"]["deletionTimestamp"] = "2024-01-01T00:00:00Z".into();
                return Ok(Some(object.clone()));
            }
            objects.remove(&id);
            Ok(None)
        })
    }
}

/// The global type, with a sub-context.
pub fn depot() -> Descriptor {
    Descriptor::new(
        "depot",
        "depots",
        KubeResource::new("example.io", "v1", "depots", "Depot", false),
    )
    .display_name(Field::new("name", FieldType::DnsLabel).create_update().at("spec.displayName"))
    .spec([Field::string("description").create_update()])
    .with_state()
    .public_ids(&["front"])
}

/// The type in depots, with fields of many sorts.
pub fn widget() -> Descriptor {
    Descriptor::new(
        "widget",
        "widgets",
        KubeResource::new("example.io", "v1", "widgets", "Widget", true),
    )
    .display_name(Field::string("name").create_update().required().at("spec.displayName"))
    .in_namespace_of("depotId")
    .spec([
        Field::reference("depotId", "depot").create().required().at("spec.depotName"),
        Field::string("color").create_update(),
        Field::options("size", &["small", "large"]).create_update().default("small"),
        Field::boolean("enabled").create_update().default(true),
        Field::int("weight").create_update().range(0, 100),
        Field::of("dimensions", "dimensions").create_update(),
        Field::map("parts", FieldType::Int).create_update(),
        Field::array("tags", FieldType::String).create_update(),
        Field::reference("ownerId", "owner").create_update(),
        Field::string("secret").create().write_only(),
        Field::new("pin", FieldType::Password).create_update(),
    ])
    .root([Field::string("note").create_update().annotation("field.cattle.io/note")])
    .status([Field::int("count"), Field::array("conditions", FieldType::of("widgetCondition"))])
    .types([
        StructType::writable(
            "dimensions",
            vec![
                Field::int("height").without_default(),
                Field::int("width").without_default(),
                Field::of("depth", "depth"),
            ],
        ),
        StructType::writable(
            "depth",
            vec![Field::int("inner").without_default(), Field::int("outer").without_default()],
        ),
        StructType::condition("widgetCondition"),
        StructType::writable("paintInput", vec![Field::string("color").required()]),
    ])
    .with_state()
    .action(
        Action::new("paint", paint)
            .input("paintInput")
            .output("widget")
            .available_when(|stored, _| stored["spec"]["size"] == "small"),
    )
    .collection_action(Action::new("audit", audit))
}

fn paint(request: ActionRequest<'_>) -> BoxFuture<'_, Result<ActionResponse, ApiError>> {
    Box::pin(async move {
        let mut object = request.object.cloned().unwrap_or_default();
        object["spec"]["color"] = request.input["color"].clone();
        Ok(ActionResponse::Object(object))
    })
}

fn audit(_: ActionRequest<'_>) -> BoxFuture<'_, Result<ActionResponse, ApiError>> {
    Box::pin(async { Ok(ActionResponse::Empty(StatusCode::NO_CONTENT)) })
}

fn greet(request: ActionRequest<'_>) -> BoxFuture<'_, Result<ActionResponse, ApiError>> {
    Box::pin(async move { Ok(ActionResponse::value("greeting", request.input)) })
}

/// The view over stores in memory, with one caller.
pub struct World {
    pub view: RestView,
    pub widgets: Arc<MemoryStore>,
    pub depots: Arc<MemoryStore>,
    pub caller: Caller,
    client: kube::Client,
}

impl World {
    /// A world without objects.
    pub fn new() -> Self {
        let (widgets, depots) = (Arc::<MemoryStore>::default(), Arc::<MemoryStore>::default());
        let versions = [
            ApiVersion::new("example.io", "v3", "/v3"),
            ApiVersion::new("depot.example.io", "v3", "/v3/depot").inside("depot"),
            ApiVersion::new("example.io", "v3public", "/v3-public").public(),
        ];
        let door = Descriptor::with_store("door", "doors", Arc::new(MemoryStore::default()))
            .version("/v3-public")
            .methods(Methods::READ)
            .collection_action(Action::new("greet", greet));
        let view = RestView::new(
            versions,
            [depot().store(depots.clone()), widget().store(widgets.clone()), door],
        );
        // Every type here has a store of its own: nothing may reach for a cluster.
        let nowhere = tower::service_fn(|request: Request<kube::client::Body>| async move {
            Err::<Response<kube::client::Body>, _>(std::io::Error::other(request.uri().to_string()))
        });
        let client = kube::Client::new(nowhere, "default");
        Self { view, widgets, depots, caller: Caller::user("u-alice"), client }
    }

    /// Sends any request as the caller.
    pub async fn send(&self, request: http::request::Builder, body: &str) -> Reply {
        let request = request.body(Bytes::copy_from_slice(body.as_bytes())).unwrap();
        let response = self.view.handle(request, &self.caller, &self.client).await;
        let (parts, bytes) = response.into_parts();
        let body = serde_json::from_slice(&bytes).unwrap_or_default();
        Reply { status: parts.status.as_u16(), headers: parts.headers, body, bytes }
    }
    /// Sends a request as the caller; a null body is none.
    pub async fn call(&self, method: &str, path: &str, body: Value) -> Reply {
        let request = Request::builder().method(method).uri(path).header("host", "host.example");
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.send(request, &body).await
    }
    /// Sends a GET as the caller.
    pub async fn get(&self, path: &str) -> Reply {
        self.call("GET", path, Value::Null).await
    }
}

/// A response, with its body as JSON.
pub struct Reply {
    pub status: u16,
    pub headers: http::HeaderMap,
    pub body: Value,
    pub bytes: Bytes,
}

impl Reply {
    /// The code of an error; empty without one.
    pub fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }
    /// The ids of a collection, in its order.
    pub fn ids(&self) -> Vec<&str> {
        let data = self.body["data"].as_array().expect("a collection");
        data.iter().map(|item| item["id"].as_str().unwrap()).collect()
    }
}

/// A widget as the API server stores it.
pub fn stored_widget(depot: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "example.io/v1",
        "kind": "Widget",
        "metadata": {
            "name": name, "namespace": depot, "uid": "uid-1", "resourceVersion": "7",
            "creationTimestamp": "2024-01-01T00:00:00Z",
            "generation": 3,
            "managedFields": [{"manager": "x"}],
            "ownerReferences": [{"kind": "Depot", "name": depot}],
            "annotations": {
                "field.cattle.io/creatorId": "u-bob", "field.cattle.io/note": "hello", "plain": "1",
            },
            "labels": {"region": "north"},
        },
        "spec": spec,
        "status": {"count": 2, "conditions": [{"type": "Ready", "status": "True", "hidden": 1}]},
    })
}
