//! The contents of a namespace in APIs of aggregated servers.

use api_meta::object::ObjectExt;
use apiserver::aggregation::AggregatedApi;
use apiserver::fields::{items, str_of};
use apiserver::registry::Registry;
use http::header::ACCEPT;
use http::{Method, StatusCode};
use serde_json::Value;

use super::{RemainingContents, Server};

/// Deletes the contents, if `delete`, and counts what remains. A server whose discovery is not
/// current may have some.
pub(super) async fn delete_contents(
    server: &Server,
    namespace: &str,
    delete: bool,
    remaining: &mut RemainingContents,
) {
    let registry = &server.registry;
    for (api, aggregated) in server.aggregation.table().remotes() {
        if !aggregated.is_current() {
            let version = format!("{}/{}", api.group, api.version);
            remaining.unknown.push(format!("{version}: stale GroupVersion discovery: {version}"));
            continue;
        }
        for resource in aggregated.resources() {
            let can = |verb: &str| items(&resource["verbs"]).iter().any(|one| one == verb);
            if resource["scope"] != "Namespaced" || !can("list") || !can("delete") {
                continue;
            }
            let plural = str_of(&resource["resource"]);
            let collection = Collection {
                registry,
                api: aggregated,
                path: format!("{}/namespaces/{namespace}/{plural}", api.path()),
                has_delete_collection: can("deletecollection"),
            };
            match collection.delete_contents(delete).await {
                Ok(left) if left.is_empty() => {}
                Ok(left) => {
                    let name = format!("{plural}.{}", api.group);
                    remaining.aggregated = true;
                    remaining.instances.insert(name, left.len());
                    for finalizer in left.iter().flat_map(|object| object.finalizers()) {
                        *remaining.finalizers.entry(finalizer.to_owned()).or_default() += 1;
                    }
                }
                Err(problem) => {
                    remaining.aggregated = true;
                    remaining.failures.push(problem);
                }
            }
        }
    }
}

/// The objects of one kind in the namespace.
struct Collection<'a> {
    registry: &'a Registry,
    api: &'a AggregatedApi,
    path: String,
    /// The server supports `deletecollection`.
    has_delete_collection: bool,
}

impl Collection<'_> {
    /// Deletes the objects, if `delete`; returns those that remain.
    async fn delete_contents(&self, delete: bool) -> Result<Vec<Value>, String> {
        let found = self.list().await?;
        if found.is_empty() || !delete {
            return Ok(found);
        }
        if self.has_delete_collection {
            self.request(Method::DELETE, &self.path).await?;
        } else {
            for object in &found {
                self.request(Method::DELETE, &format!("{}/{}", self.path, object.name())).await?;
            }
        }
        self.list().await
    }

    async fn list(&self) -> Result<Vec<Value>, String> {
        let mut list = self.request(Method::GET, &self.path).await?;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            // A resource that was removed has no objects.
            _ => Ok(Vec::new()),
        }
    }

    async fn request(&self, method: Method, path: &str) -> Result<Value, String> {
        let accept = [(ACCEPT, "application/json")];
        let response = self.api.request(self.registry, method, path, &accept).await;
        let response = response.map_err(|error| error.to_string())?;
        let code = response.status();
        let body: Value = serde_json::from_slice(response.body()).unwrap_or_default();
        if code.is_success() {
            return Ok(body);
        }
        if code == StatusCode::NOT_FOUND {
            return Ok(Value::Null);
        }
        let message = body["message"].as_str();
        Err(message.map_or_else(|| format!("{path} returned {code}"), str::to_owned))
    }
}
