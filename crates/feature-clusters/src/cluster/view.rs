//! Cluster in the REST view.

use api_management::cluster::{DRIVER_IMPORTED, DRIVER_LOCAL};
use api_management::{Condition, state};
use feature_kit::table;
use rest_view::{
    Action, ActionHandler, ApiError, Descriptor, Field, Mapper, Presentation, Resource, StructType,
};
use serde_json::{Map, Value, json};

/// `kubeconfig`: runs the action `generateKubeconfig`; `configs` maps the options of drivers.
pub fn view(kubeconfig: impl ActionHandler, configs: impl Mapper) -> Descriptor {
    table::descriptor("cluster")
        // The namespace that holds what belongs to the cluster has the cluster's id.
        .root([Field::reference("namespaceId", "namespace").at("metadata.name")])
        .types([StructType::writable("generateKubeConfigOutput", vec![Field::string("config")])])
        .action(Action::new("generateKubeconfig", kubeconfig).output("generateKubeConfigOutput"))
        .mapper(configs)
        .validator(is_named)
        .formatter(format)
        .personal(&[])
}

/// People find a cluster by its name, so a new one has one, though the schema does not require it.
fn is_named(
    _: &Presentation<'_>,
    input: &Map<String, Value>,
    stored: Option<&Value>,
) -> Result<(), ApiError> {
    let name = input.get("name").and_then(Value::as_str).unwrap_or_default();
    if stored.is_none() && name.is_empty() {
        let text = "a new cluster needs a name";
        return Err(ApiError::invalid_field("MissingRequired", "name", text));
    }
    Ok(())
}

/// The state is the one that all parts of the server know.
fn format(_: &Presentation<'_>, stored: &Value, resource: &mut Resource) {
    let conditions: Vec<Condition> =
        serde_json::from_value(stored["status"]["conditions"].clone()).unwrap_or_default();
    let terminating = stored["metadata"]["deletionTimestamp"].is_string();
    let summary = state::of_cluster(&conditions, terminating);
    let fields = &mut resource.fields;
    // Also before there is any.
    fields.entry("conditions").or_insert_with(|| json!([]));
    fields.insert("state".to_owned(), summary.state.into());
    fields.insert("transitioning".to_owned(), summary.transitioning.into());
    fields.insert("transitioningMessage".to_owned(), summary.message.into());
    if let Some(capabilities) = capabilities(&stored["status"]["driver"]) {
        fields.entry("capabilities").or_insert(capabilities);
    }
    if stored["spec"]["internal"] == true {
        // The management API itself stays.
        resource.links.remove("remove");
    }
}

/// What can be done with a cluster from here. Whether it has load balancers and which ingress
/// controller, if any, nobody here knows of a cluster that was imported, so nothing is said of
/// that.
fn capabilities(driver: &Value) -> Option<Value> {
    // Taints are set on nodes; the management API has none.
    let has_nodes = match driver.as_str() {
        Some(DRIVER_IMPORTED) => true,
        Some(DRIVER_LOCAL) => false,
        _ => return None,
    };
    Some(json!({
        "loadBalancerCapabilities": {"healthCheckSupported": false},
        "nodePoolScalingSupported": false,
        "pspEnabled": false,
        "taintSupport": has_nodes,
    }))
}

#[cfg(test)]
mod tests;
