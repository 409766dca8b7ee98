//! How much an object uses of the resources that quotas limit, and which writes change that.

use api_meta::object::ObjectExt;
use api_meta::quantity::Quantity;
use api_meta::status::qualified;
use serde_json::Value;

use super::amounts::{self, Amounts};
use super::pod;
use crate::fields::{items, str_of};
use crate::resource::Resource;
use crate::strategy::Operation;

const STORAGE: &str = "requests.storage";
const CLAIMS: &str = "persistentvolumeclaims";
/// Separates the name of a storage class from the limited resource.
const OF_CLASS: &str = ".storageclass.storage.k8s.io/";
/// Older than the field.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
/// Core kinds that are counted by their plain name too.
const PLAIN_NAMES: [&str; 4] =
    ["configmaps", "replicationcontrollers", "resourcequotas", "secrets"];

fn is_core(resource: &Resource, plural: &str) -> bool {
    resource.group.is_empty() && resource.plural == plural
}

/// Whether the resource is pods.
pub fn is_pod(resource: &Resource) -> bool {
    is_core(resource, "pods")
}

/// Whether the resource is PersistentVolumeClaims.
pub fn is_claim(resource: &Resource) -> bool {
    is_core(resource, CLAIMS)
}

/// Whether a write may change what is used. Events are never counted.
pub fn is_counted(
    operation: Operation,
    resource: &Resource,
    object: &Value,
    old: Option<&Value>,
) -> bool {
    if !resource.namespaced || resource.plural == "events" {
        return false;
    }
    match (operation, old) {
        (Operation::Create, _) => true,
        (Operation::Update, Some(old)) if is_pod(resource) => {
            pod::is_bounded(old) != pod::is_bounded(object)
        }
        (Operation::Update, _) => is_core(resource, "services") || is_claim(resource),
        (Operation::Part(part), _) => is_pod(resource) && part == RESIZE,
        _ => false,
    }
}

/// The subresource of pods that changes what they request.
const RESIZE: &str = "resize";

fn count_name(resource: &Resource) -> String {
    format!("count/{}", qualified(&resource.plural, &resource.group))
}

/// Whether objects of this resource can use the limited resource of this name.
pub fn is_measured(resource: &Resource, name: &str) -> bool {
    if name == count_name(resource) {
        return true;
    }
    match resource.plural.as_str() {
        _ if !resource.group.is_empty() => false,
        "pods" => pod::is_measured(name),
        "services" => {
            matches!(name, "services" | "services.nodeports" | "services.loadbalancers")
        }
        CLAIMS => {
            let name = name.split_once(OF_CLASS).map_or(name, |(_, name)| name);
            matches!(name, CLAIMS | STORAGE)
        }
        plural => name == plural && PLAIN_NAMES.contains(&plural),
    }
}

/// What an object uses, by the names of quotas.
pub fn of(resource: &Resource, object: &Value) -> Amounts {
    let mut taken = Amounts::from([(count_name(resource), Quantity::from_whole(1))]);
    if !resource.group.is_empty() {
        return taken;
    }
    match resource.plural.as_str() {
        "pods" => pod::add_usage(object, &mut taken),
        "services" => add_service(object, &mut taken),
        CLAIMS => add_claim(object, &mut taken),
        plural if PLAIN_NAMES.contains(&plural) => {
            taken.insert(plural.to_owned(), Quantity::from_whole(1));
        }
        _ => {}
    }
    taken
}

fn add_service(service: &Value, taken: &mut Amounts) {
    let spec = &service["spec"];
    let ports = items(&spec["ports"]);
    let balanced = spec["type"] == "LoadBalancer";
    // Node ports are allocated later, so the requested number is counted.
    let node_ports = match str_of(&spec["type"]) {
        "LoadBalancer" if spec["allocateLoadBalancerNodePorts"] == false => {
            ports.iter().filter(|port| port["nodePort"].as_i64().unwrap_or_default() != 0).count()
        }
        "LoadBalancer" | "NodePort" => ports.len(),
        _ => 0,
    };
    let node_ports = i64::try_from(node_ports).unwrap_or(i64::MAX);
    for (name, amount) in [
        ("services", 1),
        ("services.nodeports", node_ports),
        ("services.loadbalancers", i64::from(balanced)),
    ] {
        taken.insert(name.to_owned(), Quantity::from_whole(amount));
    }
}

fn add_claim(claim: &Value, taken: &mut Amounts) {
    let named = str_of(&claim["spec"]["storageClassName"]);
    let class = claim.annotation(CLASS_ANNOTATION).unwrap_or(named);
    let mut insert = |name: &str, amount: Quantity| {
        taken.insert(name.to_owned(), amount);
        if !class.is_empty() {
            taken.insert(format!("{class}{OF_CLASS}{name}"), amount);
        }
    };
    insert(CLAIMS, Quantity::from_whole(1));
    let requested = amounts::of(&claim["spec"]["resources"]["requests"]);
    let allocated = amounts::of(&claim["status"]["allocatedResources"]);
    if let Some(requested) = requested.get("storage") {
        let most =
            allocated.get("storage").map_or(*requested, |allocated| *requested.max(allocated));
        insert(STORAGE, whole(most));
    }
}

/// Whole bytes, rounded up.
fn whole(amount: Quantity) -> Quantity {
    match amount.whole() {
        Some(_) => amount,
        None => Quantity::from_whole(amount.value()),
    }
}
