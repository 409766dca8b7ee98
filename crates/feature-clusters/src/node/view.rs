//! Node in the REST view: what the downstream node says, in the fields that clients know.

use api_management::Node;
use feature_kit::view::{in_clusters, resource_of};
use rest_view::{Descriptor, Field, FieldType, Methods, Presentation, Resource, StructType};
use serde_json::{Map, Value, json};

pub fn view() -> Descriptor {
    let text_map = || FieldType::map(FieldType::String);
    Descriptor::new("node", "nodes", resource_of::<Node>())
        .store(in_clusters::<Node>())
        // Nodes follow the downstream cluster; making machines is the node drivers' part.
        .methods(Methods::READ)
        .display_name(Field::string("name").create_update().at("spec.displayName"))
        .in_namespace_of("clusterId")
        .root([
            Field::reference("clusterId", "cluster").create().required().at("metadata.namespace"),
            Field::new("labels", text_map()).at("status.nodeLabels"),
            Field::new("annotations", text_map()).at("status.nodeAnnotations"),
            Field::boolean("controlPlane").at("status.controlPlane"),
            Field::boolean("etcd").at("status.etcd"),
            Field::boolean("worker").at("status.worker"),
            Field::boolean("unschedulable").at("status.internalNodeSpec.unschedulable"),
            Field::string("podCidr").at("status.internalNodeSpec.podCIDR"),
            Field::array("podCidrs", FieldType::String).at("status.internalNodeSpec.podCIDRs"),
            Field::string("providerId").at("status.internalNodeSpec.providerID"),
            Field::array("taints", FieldType::of("taint")).at("status.internalNodeSpec.taints"),
            Field::array("volumesInUse", FieldType::String)
                .at("status.internalNodeStatus.volumesInUse"),
            Field::array("conditions", FieldType::of("nodeCondition")).computed(),
            Field::of("info", "nodeInfo").computed(),
        ])
        .spec([
            Field::string("description"),
            Field::new("requestedHostname", FieldType::Hostname),
            Field::boolean("imported"),
            Field::reference("nodePoolId", "nodePool").at("spec.nodePoolName"),
            Field::reference("nodeTemplateId", "nodeTemplate").at("spec.nodeTemplateName"),
        ])
        .status([
            Field::string("nodeName"),
            Field::string("hostname"),
            Field::string("ipAddress"),
            Field::string("externalIpAddress"),
            Field::new("capacity", text_map()),
            Field::new("allocatable", text_map()),
            Field::new("requested", text_map()),
            Field::new("limits", text_map()),
            Field::array("nodeTaints", FieldType::of("taint")),
        ])
        .types(types())
        .with_state()
        .formatter(format)
}

fn types() -> Vec<StructType> {
    let text = |names: &[&str]| names.iter().map(|&name| Field::string(name)).collect::<Vec<_>>();
    let mut taint = text(&["effect", "key", "value"]);
    taint.push(Field::date("timeAdded"));
    let mut condition = text(&["message", "reason", "status", "type"]);
    condition.extend(["lastHeartbeatTime", "lastTransitionTime"].map(Field::date));
    vec![
        StructType::new("taint", taint),
        StructType::new("nodeCondition", condition),
        StructType::new(
            "nodeInfo",
            vec![
                Field::of("cpu", "cpuInfo"),
                Field::of("kubernetes", "kubernetesInfo"),
                Field::of("memory", "memoryInfo"),
                Field::of("os", "osInfo"),
            ],
        ),
        StructType::new("cpuInfo", vec![Field::int("count")]),
        StructType::new("kubernetesInfo", text(&["kubeProxyVersion", "kubeletVersion"])),
        StructType::new("memoryInfo", vec![Field::int("memTotalKiB")]),
        StructType::new("osInfo", text(&["dockerVersion", "kernelVersion", "operatingSystem"])),
    ]
}

fn format(context: &Presentation<'_>, stored: &Value, resource: &mut Resource) {
    let status = &stored["status"];
    let fields = &mut resource.fields;
    if fields.get("name").and_then(Value::as_str).unwrap_or_default().is_empty() {
        fields.insert("name".to_owned(), status["nodeName"].clone());
    }
    let conditions = conditions(status);
    let summary = rest_view::state::summarise(
        &json!({"metadata": stored["metadata"], "status": {"conditions": conditions}}),
        context.now,
    );
    let cordoned = status["internalNodeSpec"]["unschedulable"] == true;
    let state = match summary.state.as_str() {
        "active" if cordoned => "cordoned".to_owned(),
        _ => summary.state,
    };
    fields.insert("state".to_owned(), state.into());
    fields.insert("transitioning".to_owned(), summary.transitioning.as_str().into());
    fields.insert("transitioningMessage".to_owned(), summary.message.into());
    fields.insert("conditions".to_owned(), conditions.into());
    if let Some(info) = info(&status["internalNodeStatus"]) {
        fields.insert("info".to_owned(), info);
    }
}

/// Ours and the downstream node's, in one list.
fn conditions(status: &Value) -> Vec<Value> {
    let lists = [&status["conditions"], &status["internalNodeStatus"]["conditions"]];
    let all = lists.into_iter().filter_map(Value::as_array).flatten();
    let mut merged: Vec<Value> = Vec::new();
    for condition in all {
        // Where both have a type, the node's own word counts.
        merged.retain(|known| known["type"] != condition["type"]);
        merged.push(condition.clone());
    }
    merged
}

fn info(node: &Value) -> Option<Value> {
    let system = node["nodeInfo"].as_object()?;
    let text = |name: &str| system.get(name).cloned().unwrap_or_default();
    let capacity = |name: &str| node["capacity"][name].as_str().unwrap_or_default();
    let mut info = json!({
        "kubernetes": {
            "kubeletVersion": text("kubeletVersion"), "kubeProxyVersion": text("kubeProxyVersion"),
        },
        "os": {
            "dockerVersion": text("containerRuntimeVersion"),
            "kernelVersion": text("kernelVersion"), "operatingSystem": text("osImage"),
        },
    });
    let map = info.as_object_mut()?;
    insert_number(map, "cpu", "count", capacity("cpu").parse().ok());
    insert_number(map, "memory", "memTotalKiB", kibibytes(capacity("memory")));
    Some(info)
}

fn insert_number(map: &mut Map<String, Value>, part: &str, field: &str, number: Option<i64>) {
    if let Some(number) = number {
        map.insert(part.to_owned(), json!({ field: number }));
    }
}

/// Kubernetes writes a node's memory in whole units: `16384Ki`, `16Gi`, or bytes.
fn kibibytes(quantity: &str) -> Option<i64> {
    let digits = quantity.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: i64 = digits.parse().ok()?;
    match &quantity[digits.len()..] {
        "Ki" => Some(number),
        "Mi" => number.checked_mul(1 << 10),
        "Gi" => number.checked_mul(1 << 20),
        "Ti" => number.checked_mul(1 << 30),
        "" => Some(number / 1024),
        _ => None,
    }
}
