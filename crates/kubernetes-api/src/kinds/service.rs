//! Service: ports, families, and the addresses and node ports that the server allocates.

pub mod addresses;
mod families;
mod validate;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use api_meta::status::{Cause, Status};
use serde_json::{Value, json};

pub use addresses::Addresses;

use super::status;
use apiserver::fields::{Object, child, each, ensure, items, map, preset, str_of, text};
use apiserver::kind::cells;
use apiserver::kind::{AGE, FieldSpec, Hooks, Kind, NAME};
use apiserver::strategy::{Operation, Write};

const ADDRESS_MODES: [&str; 2] = ["Proxy", "VIP"];

/// `clusterIP` of a headless service.
const HEADLESS: &str = "None";
/// Default duration of client affinity, in seconds.
const AFFINITY_SECONDS: i64 = 10_800;

/// The kind Service. Services get their addresses from `addresses`, which are those of one cluster.
pub fn kind(addresses: &Arc<Addresses>) -> Kind {
    let addresses = addresses.clone();
    let mut kind = Kind {
        short_names: &["svc"],
        categories: &["all"],
        columns: &[
            NAME,
            ("Type", "string", "", 0),
            ("Cluster-IP", "string", "", 0),
            ("External-IP", "string", "", 0),
            ("Port(s)", "string", "", 0),
            AGE,
            ("Selector", "string", "", 1),
        ],
        fields: vec![FieldSpec::text("spec.clusterIP"), FieldSpec::text("spec.type")],
        hooks: Hooks {
            default,
            prepare,
            validate: |_, object, old| validate::validate(object, old),
            validate_status,
            cells: row,
            ..Hooks::default()
        },
        allocate: Some(Box::new(move |write, object, _| {
            Box::pin(allocate(addresses.clone(), write, object))
        })),
        ..Kind::new("", "services", "service", "Service").with_status().deleted_as_object()
    };
    kind.rules.create_on_update = true;
    kind
}

fn default(object: &mut Value) {
    let Some(object) = map(object) else { return };
    if let Some(status) = ensure(object, "status") {
        ensure(status, "loadBalancer");
    }
    let Some(spec) = ensure(object, "spec") else { return };
    if spec.get("selector").and_then(Value::as_object).is_some_and(|map| map.is_empty()) {
        spec.remove("selector");
    }
    preset(spec, "type", "ClusterIP");
    preset(spec, "sessionAffinity", "None");
    if text(spec, "sessionAffinity") == "None" {
        spec.remove("sessionAffinityConfig");
    }
    if text(spec, "sessionAffinity") == "ClientIP"
        && let Some(config) = ensure(spec, "sessionAffinityConfig")
        && let Some(client) = ensure(config, "clientIP")
    {
        preset(client, "timeoutSeconds", AFFINITY_SECONDS);
    }
    each(spec, "ports", |port| {
        preset(port, "protocol", "TCP");
        if port.get("nodePort").and_then(Value::as_i64) == Some(0) {
            port.remove("nodePort");
        }
        let unset = match port.get("targetPort") {
            None => true,
            Some(Value::String(name)) => name.is_empty(),
            Some(number) => number.as_i64() == Some(0),
        };
        if unset && let Some(number) = port.get("port").cloned() {
            port.insert("targetPort".to_owned(), number);
        }
    });
    let kind = text(spec, "type").to_owned();
    if kind == "ExternalName" {
        return;
    }
    preset(spec, "internalTrafficPolicy", "Cluster");
    let has_addresses = !items(spec.get("externalIPs").unwrap_or(&Value::Null)).is_empty();
    if has_node_ports(&kind) || (kind == "ClusterIP" && has_addresses) {
        preset(spec, "externalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        preset(spec, "allocateLoadBalancerNodePorts", true);
    }
    if kind == "LoadBalancer"
        && let Some(balancer) =
            child(object, "status").and_then(|status| child(status, "loadBalancer"))
    {
        each(balancer, "ingress", |ingress| {
            if !text(ingress, "ip").is_empty() {
                preset(ingress, "ipMode", "VIP");
            }
        });
    }
}

/// Allocated values stay while the type needs them, and are released when it does not.
fn prepare(write: &Write<'_>, object: &mut Value, old: Option<&Value>) {
    if !matches!(write.operation, Operation::Create | Operation::Update) {
        return;
    }
    let old = old.map_or(&Value::Null, |old| &old["spec"]);
    let Some(spec) = map(object).and_then(|object| ensure(object, "spec")) else { return };
    let is_named_now = text(spec, "type") == "ExternalName";
    if old.is_object() && !is_named(old) && !is_named_now {
        keep_addresses(spec, old);
    }
    families::follow_address(spec, old);
    if !is_named_now {
        families::fill(spec, old);
    }
    if old.is_object() {
        keep_ports(spec, old);
        drop_left_behind(spec, old);
    }
}

fn keep_addresses(spec: &mut Object, old: &Value) {
    if text(spec, "clusterIP").is_empty() {
        spec.insert("clusterIP".to_owned(), old["clusterIP"].clone());
    }
    if items(spec.get("clusterIPs").unwrap_or(&Value::Null)).is_empty()
        && spec.get("clusterIP") == old.get("clusterIP")
    {
        spec.insert("clusterIPs".to_owned(), old["clusterIPs"].clone());
    }
}

/// A port retains its node port by name, unless another port has taken it.
fn keep_ports(spec: &mut Object, old: &Value) {
    let now = Value::Object(spec.clone());
    let given: Vec<&Value> = items(&now["ports"]).iter().map(|port| &port["nodePort"]).collect();
    if has_node_ports(text(spec, "type")) && has_node_ports(str_of(&old["type"])) {
        each(spec, "ports", |port| {
            let name = text(port, "name").to_owned();
            let mut before = items(&old["ports"]).iter().rev();
            let same = before.find(|before| str_of(&before["name"]) == name);
            if let Some(number) = same.and_then(|same| same.get("nodePort"))
                && !given.contains(&number)
            {
                preset(port, "nodePort", number.clone());
            }
        });
    }
    if needs_health_port(&now)
        && needs_health_port(old)
        && let Some(number) = old.get("healthCheckNodePort")
    {
        preset(spec, "healthCheckNodePort", number.clone());
    }
}

/// Removes values that only the old type needed and that the client did not change.
fn drop_left_behind(spec: &mut Object, old: &Value) {
    let now = Value::Object(spec.clone());
    let mut drop = |is_needed: fn(&Value) -> bool, fields: &[&str]| {
        if is_needed(old) && !is_needed(&now) {
            let is_same = |field: &&&str| now[**field] == old[**field];
            for field in fields.iter().filter(is_same) {
                spec.remove(*field);
            }
        }
    };
    let same = |fields: &[&str]| fields.iter().all(|field| now[*field] == old[*field]);
    if same(&["clusterIP", "clusterIPs"]) {
        drop(|spec| !is_named(spec), &["clusterIP", "clusterIPs"]);
    }
    drop(|spec| !is_named(spec), &["ipFamilies", "ipFamilyPolicy"]);
    drop(needs_health_port, &["healthCheckNodePort"]);
    drop(is_balancer, &["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    drop(is_reached_from_outside, &["externalTrafficPolicy"]);
    let numbers = |spec: &Value| -> Vec<Value> {
        items(&spec["ports"]).iter().filter_map(|port| port.get("nodePort").cloned()).collect()
    };
    let before = numbers(old);
    let leaves = has_node_ports(str_of(&old["type"])) && !has_node_ports(str_of(&now["type"]));
    if leaves && numbers(&now).iter().all(|number| before.contains(number)) {
        each(spec, "ports", |port| {
            port.remove("nodePort");
        });
    }
}

fn has_node_ports(kind: &str) -> bool {
    matches!(kind, "NodePort" | "LoadBalancer")
}

/// Whether the service is a name for an external host and has no addresses.
fn is_named(spec: &Value) -> bool {
    spec["type"] == "ExternalName"
}

fn is_balancer(spec: &Value) -> bool {
    spec["type"] == "LoadBalancer"
}

fn is_reached_from_outside(spec: &Value) -> bool {
    has_node_ports(str_of(&spec["type"]))
        || (spec["type"] == "ClusterIP" && !items(&spec["externalIPs"]).is_empty())
}

/// Whether a load balancer must check which nodes have endpoints.
fn needs_health_port(spec: &Value) -> bool {
    is_balancer(spec) && spec["externalTrafficPolicy"] == "Local"
}

fn validate_status(object: &Value, old: &Value) -> Vec<Cause> {
    let field = "status.loadBalancer.ingress";
    let (new, old) = (&object["status"]["loadBalancer"], &old["status"]["loadBalancer"]);
    if object["spec"]["type"] != "LoadBalancer" && !items(&new["ingress"]).is_empty() {
        let text = "may only be used when `spec.type` is 'LoadBalancer'";
        return vec![Cause::forbidden(field, text)];
    }
    status::balancer(field, &new["ingress"], &old["ingress"], address_mode)
}

/// Validates how packets reach an address of a load balancer.
fn address_mode(field: &str, ingress: &Value) -> Option<Cause> {
    let mode = &ingress["ipMode"];
    if mode.is_null() {
        return None;
    }
    if str_of(&ingress["ip"]).is_empty() {
        return Some(Cause::forbidden(field, "may not be specified when `ip` is not set"));
    }
    let known = ADDRESS_MODES.contains(&str_of(mode));
    (!known).then(|| Cause::not_supported(field, mode, &ADDRESS_MODES))
}

/// Allocates the values that are not set. A value that seems to be taken may belong to a service
/// that was just deleted.
async fn allocate(
    addresses: Arc<Addresses>,
    write: &Write<'_>,
    object: &mut Value,
) -> Result<(), Status> {
    if hand_out(&addresses, write, object).is_err() {
        addresses.wait_until_caught_up().await;
        return hand_out(&addresses, write, object);
    }
    Ok(())
}

fn hand_out(addresses: &Addresses, write: &Write<'_>, object: &mut Value) -> Result<(), Status> {
    let owner = format!("{}/{}", write.namespace, write.name);
    let refuse = |cause: Cause| Err(Status::invalid("", "Service", write.name, vec![cause]));
    let Some(spec) = map(object).and_then(|object| ensure(object, "spec")) else {
        return Ok(());
    };
    let kind = text(spec, "type").to_owned();
    if kind == "ExternalName" || write.operation == Operation::UpdateStatus {
        return Ok(());
    }
    let requested = text(spec, "clusterIP").to_owned();
    if requested != HEADLESS {
        match addresses.address(&owner, &requested, write.dry_run) {
            Ok(address) => {
                spec.insert("clusterIPs".to_owned(), json!([address]));
                spec.insert("clusterIP".to_owned(), address.into());
            }
            Err(problem) => {
                return refuse(Cause::invalid("spec.clusterIPs", &json!([requested]), &problem));
            }
        }
    }
    if needs_health_port(&Value::Object(spec.clone())) {
        allocate_health_port(addresses, write, spec, &owner)?;
    }
    if !has_node_ports(&kind) || spec.get("allocateLoadBalancerNodePorts") == Some(&false.into()) {
        return Ok(());
    }
    allocate_node_ports(addresses, write, spec, &owner).map_or(Ok(()), refuse)
}

fn allocate_health_port(
    addresses: &Addresses,
    write: &Write<'_>,
    spec: &mut Object,
    owner: &str,
) -> Result<(), Status> {
    let requested = spec.get("healthCheckNodePort").and_then(Value::as_i64).unwrap_or_default();
    let number = addresses
        .node_port(owner, "TCP", requested, &node_ports_of(spec), write.dry_run)
        .map_err(|why| {
            let what = "failed to allocate requested HealthCheck NodePort";
            Status::internal(format!("{what} {requested}: {why}"))
        })?;
    spec.insert("healthCheckNodePort".to_owned(), number.into());
    Ok(())
}

/// Reports the first port that cannot be allocated. Ports with the same number have one node port,
/// whatever their protocols are.
fn allocate_node_ports(
    addresses: &Addresses,
    write: &Write<'_>,
    spec: &mut Object,
    owner: &str,
) -> Option<Cause> {
    let mut problem = None;
    let mut index = 0;
    let mut given = node_ports_of(spec);
    let mut by_port: HashMap<i64, i64> = HashMap::new();
    each(spec, "ports", |port| {
        let protocol = text(port, "protocol").to_owned();
        let number = |port: &Object, field| port.get(field).and_then(Value::as_i64).unwrap_or(0);
        let own_port = number(port, "nodePort");
        let of_other = by_port.get(&number(port, "port")).copied().unwrap_or(0);
        let requested = if own_port == 0 { of_other } else { own_port };
        match addresses.node_port(owner, &protocol, requested, &given, write.dry_run) {
            Ok(found) => {
                port.insert("nodePort".to_owned(), found.into());
                given.insert(found);
                by_port.entry(number(port, "port")).or_insert(found.into());
            }
            Err(text) => {
                let field = format!("spec.ports[{index}].nodePort");
                problem.get_or_insert(Cause::invalid(field, &requested.into(), &text));
            }
        }
        index += 1;
    });
    problem
}

/// Node ports that a service already has.
fn node_ports_of(spec: &Object) -> HashSet<u16> {
    let ports = items(spec.get("ports").unwrap_or(&Value::Null)).iter();
    let numbers = ports.map(|port| &port["nodePort"]).chain(spec.get("healthCheckNodePort"));
    numbers.filter_map(|number| u16::try_from(number.as_u64()?).ok()).collect()
}

fn row(object: &Value, now: i64) -> Vec<Value> {
    let spec = &object["spec"];
    let kind = str_of(&spec["type"]);
    let list = |value: &Value| items(value).iter().map(str_of).collect::<Vec<_>>().join(",");
    let external_ips = list(&spec["externalIPs"]);
    let external = match kind {
        "ExternalName" => str_of(&spec["externalName"]).to_owned(),
        "LoadBalancer" => {
            let given: Vec<&str> = items(&object["status"]["loadBalancer"]["ingress"])
                .iter()
                .map(|entry| match str_of(&entry["ip"]) {
                    "" => str_of(&entry["hostname"]),
                    ip => ip,
                })
                .collect();
            match (given.is_empty(), external_ips.is_empty()) {
                (true, true) => "<pending>".to_owned(),
                (true, false) => external_ips,
                (false, true) => given.join(","),
                (false, false) => format!("{},{external_ips}", given.join(",")),
            }
        }
        _ => external_ips,
    };
    let ports: Vec<String> = items(&spec["ports"])
        .iter()
        .map(|port| {
            let protocol = str_of(&port["protocol"]);
            match port["nodePort"].as_i64() {
                Some(node_port) if node_port > 0 => {
                    format!("{}:{node_port}/{protocol}", port["port"])
                }
                _ => format!("{}/{protocol}", port["port"]),
            }
        })
        .collect();
    vec![
        cells::name(object),
        kind.into(),
        cells::or_none(str_of(&spec["clusterIP"])),
        cells::or_none(&external),
        cells::or_none(&ports.join(",")),
        cells::age(object, now),
        cells::pairs(&spec["selector"]),
    ]
}
