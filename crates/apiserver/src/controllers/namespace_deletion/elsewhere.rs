//! What a namespace holds in APIs that other servers serve.

use api_meta::object::ObjectExt;
use http::header::ACCEPT;
use http::{Method, StatusCode};
use serde_json::Value;

use super::{Remains, Server};
use crate::aggregation::Remote;
use crate::fields::{items, str_of};
use crate::registry::Registry;

/// Deletes what there is, when `delete`, and counts what stays. A server that cannot say what it
/// serves may hold something.
pub(super) async fn sweep(server: &Server, namespace: &str, delete: bool, remains: &mut Remains) {
    let registry = &server.registry;
    for (api, elsewhere) in server.aggregation.table().remotes() {
        if !elsewhere.available || !elsewhere.published.is_current {
            let version = format!("{}/{}", api.group, api.version);
            remains.unknown.push(format!("{version}: stale GroupVersion discovery: {version}"));
            continue;
        }
        for resource in &elsewhere.published.resources {
            let can = |verb: &str| items(&resource["verbs"]).iter().any(|one| one == verb);
            if resource["scope"] != "Namespaced" || !can("list") || !can("delete") {
                continue;
            }
            let plural = str_of(&resource["resource"]);
            let collection = Collection {
                registry,
                remote: &elsewhere.remote,
                path: format!("{}/namespaces/{namespace}/{plural}", api.path()),
                at_once: can("deletecollection"),
            };
            match collection.sweep(delete).await {
                Ok(left) if left.is_empty() => {}
                Ok(left) => {
                    let name = format!("{plural}.{}", api.group);
                    remains.elsewhere = true;
                    remains.instances.insert(name, left.len());
                    for finalizer in left.iter().flat_map(|object| object.finalizers()) {
                        *remains.finalizers.entry(finalizer.to_owned()).or_default() += 1;
                    }
                }
                Err(problem) => {
                    remains.elsewhere = true;
                    remains.failures.push(problem);
                }
            }
        }
    }
}

/// The objects of one kind in the namespace.
struct Collection<'a> {
    registry: &'a Registry,
    remote: &'a Remote,
    path: String,
    /// They can be deleted in one request.
    at_once: bool,
}

impl Collection<'_> {
    /// Those that are left.
    async fn sweep(&self, delete: bool) -> Result<Vec<Value>, String> {
        let found = self.list().await?;
        if found.is_empty() || !delete {
            return Ok(found);
        }
        if self.at_once {
            self.ask(Method::DELETE, &self.path).await?;
        } else {
            for object in &found {
                self.ask(Method::DELETE, &format!("{}/{}", self.path, object.name())).await?;
            }
        }
        self.list().await
    }

    async fn list(&self) -> Result<Vec<Value>, String> {
        let mut list = self.ask(Method::GET, &self.path).await?;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            // A resource that is gone has no objects.
            _ => Ok(Vec::new()),
        }
    }

    async fn ask(&self, method: Method, path: &str) -> Result<Value, String> {
        let accept = [(ACCEPT, "application/json")];
        let answer = self.remote.ask(self.registry, method, path, &accept).await;
        let answer = answer.map_err(|error| error.to_string())?;
        let code = answer.status();
        let body: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
        if code.is_success() {
            return Ok(body);
        }
        if code == StatusCode::NOT_FOUND {
            return Ok(Value::Null);
        }
        let told = body["message"].as_str();
        Err(told.map_or_else(|| format!("{path} answers {code}"), str::to_owned))
    }
}
