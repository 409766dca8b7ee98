//! The scale subresource of the workload kinds.

use std::sync::{Arc, Weak};

use api_meta::labels::LabelSelector;
use api_meta::status::Status;
use apiserver::kind::SUBRESOURCE_VERBS;
use apiserver::registry::{Registry, WriteTarget};
use apiserver::resource::{Call, Endpoint, Resource, Subresource, SubresourceHandler};
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::custom::scale::{ScalePaths, write};

const SCALED: &[(&str, &str)] = &[
    ("", "replicationcontrollers"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
];

/// Adds `/scale` to the resources that have replicas. It reads and writes objects through
/// `registry`, which must serve the resources when the first request arrives.
pub fn add_scale(registry: &Arc<Registry>, resources: &mut [Resource]) {
    for resource in resources {
        let (group, plural) = (resource.group.as_str(), resource.plural.as_str());
        if !SCALED.contains(&(group, plural)) {
            continue;
        }
        let endpoint = Scale {
            registry: Arc::downgrade(registry),
            group: group.to_owned(),
            plural: plural.to_owned(),
        };
        resource.subresources.push(Subresource {
            name: "scale",
            verbs: SUBRESOURCE_VERBS.to_vec(),
            handler: SubresourceHandler::Endpoint(Arc::new(endpoint)),
            gvk: Some(("autoscaling", "v1", "Scale")),
        });
    }
}

struct Scale {
    registry: Weak<Registry>,
    group: String,
    plural: String,
}

fn paths() -> ScalePaths {
    let fields = json!({
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
    });
    ScalePaths::parse(&fields).expect("both paths are simple")
}

/// The `Scale` of a workload.
fn scale_of(object: &Value) -> Result<Value, Status> {
    let mut scale = paths().scale_of(object)?;
    let selector = &object["spec"]["selector"];
    let text = if selector["matchLabels"].is_object() || selector["matchExpressions"].is_array() {
        LabelSelector::from_object(selector).map(|selector| selector.to_string())
    } else {
        let pairs = selector.as_object().into_iter().flatten();
        let pairs = pairs.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()));
        Ok(LabelSelector::from_labels(pairs).to_string())
    };
    if let Ok(text) = text
        && !text.is_empty()
    {
        scale["status"]["selector"] = text.into();
    }
    Ok(scale)
}

impl Scale {
    async fn answer(&self, call: Call) -> Result<Value, Status> {
        let gone = || Status::unavailable("the server is shutting down");
        let registry = self.registry.upgrade().ok_or_else(gone)?;
        let resource =
            registry.find(&self.group, &self.plural).ok_or_else(Status::unknown_resource)?;
        let (namespace, name) = (call.namespace.as_str(), call.name.as_str());
        if matches!(call.verb, "get" | "patch") {
            return scale_of(&registry.get(&resource, namespace, name).await?.value());
        }
        if call.verb == "apply" {
            let object = registry.get(&resource, namespace, name).await?.value();
            return paths().apply_configuration(&scale_of(&object)?, &object, &call);
        }
        let target = WriteTarget { resource: &resource, namespace, name };
        let written = write(&registry, &target, &paths(), &call).await?;
        scale_of(&written.object.value())
    }
}

impl Endpoint for Scale {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<(u16, Value), Status>> {
        Box::pin(async move { self.answer(call).await.map(|scale| (200, scale)) })
    }

    fn is_applied(&self) -> bool {
        true
    }
}
