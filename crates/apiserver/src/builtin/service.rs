//! Service: ports, families, and addresses and node ports that the server hands out.

mod addresses;

use std::sync::Arc;

use api_meta::labels::validate_labels;
use api_meta::names;
use api_meta::status::{Cause, Status};
use serde_json::{Value, json};

pub use addresses::Addresses;

use super::cells;
use super::fields::{Object, child, each, ensure, items, map, preset, str_of, text};
use super::kind::{AGE, Hooks, Kind, NAME};
use super::{ip, status};
use crate::strategy::{Operation, Write};

const ADDRESS_MODES: [&str; 2] = ["Proxy", "VIP"];

/// `clusterIP` of a service without an address.
const HEADLESS: &str = "None";
/// Seconds that a client sticks to one endpoint.
const AFFINITY_SECONDS: i64 = 10_800;

pub fn kind() -> Kind {
    let addresses = Arc::new(Addresses::default());
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
        fields: &[("spec.clusterIP", "spec.clusterIP"), ("spec.type", "spec.type")],
        hooks: Hooks {
            default,
            prepare,
            validate: |_, object, old| validate(object, old),
            validate_status,
            cells: row,
            ..Hooks::default()
        },
        allocate: Some(Box::new(move |write, object, _old| allocate(&addresses, write, object))),
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
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        preset(spec, "externalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        preset(spec, "allocateLoadBalancerNodePorts", true);
    }
    default_families(spec);
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

/// One address family, unless a headless service without selector leaves it to its endpoints.
fn default_families(spec: &mut Object) {
    let listed = items(spec.get("clusterIPs").unwrap_or(&Value::Null)).first().cloned();
    match (text(spec, "clusterIP"), listed) {
        ("", Some(first)) => {
            spec.insert("clusterIP".to_owned(), first);
        }
        ("", None) => {}
        (address, None) => {
            let list = json!([address]);
            spec.insert("clusterIPs".to_owned(), list);
        }
        (_, Some(_)) => {}
    }
    let bare = text(spec, "clusterIP") == HEADLESS && !spec.contains_key("selector");
    let (families, policy) = if bare {
        (json!(["IPv4", "IPv6"]), "RequireDualStack")
    } else {
        (json!(["IPv4"]), "SingleStack")
    };
    preset(spec, "ipFamilies", families);
    preset(spec, "ipFamilyPolicy", policy);
}

/// What was handed out stays while the type needs it.
fn prepare(write: &Write<'_>, object: &mut Value, old: Option<&Value>) {
    let (Operation::Update, Some(old)) = (write.operation, old) else { return };
    let old = &old["spec"];
    let Some(spec) = map(object).and_then(|object| ensure(object, "spec")) else { return };
    if text(spec, "type") == "ExternalName" {
        return;
    }
    if text(spec, "clusterIP").is_empty() && !str_of(&old["clusterIP"]).is_empty() {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            if let Some(value) = old.get(field) {
                spec.insert(field.to_owned(), value.clone());
            }
        }
    }
    if !needs_node_ports(text(spec, "type")) {
        return;
    }
    each(spec, "ports", |port| {
        let before = items(&old["ports"]).iter().find(|before| {
            let same = |field: &str| port.get(field).unwrap_or(&Value::Null) == &before[field];
            same("port") && same("protocol")
        });
        if let Some(node_port) = before.and_then(|before| before.get("nodePort")) {
            preset(port, "nodePort", node_port.clone());
        }
    });
}

fn needs_node_ports(kind: &str) -> bool {
    matches!(kind, "NodePort" | "LoadBalancer")
}

fn validate(object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let spec = &object["spec"];
    let mut causes = Vec::new();
    let kind = str_of(&spec["type"]);
    let headless = str_of(&spec["clusterIP"]) == HEADLESS;
    if items(&spec["ports"]).is_empty() && !headless && kind != "ExternalName" {
        causes.push(Cause::required("spec.ports", ""));
    }
    causes.extend(ports(spec, kind));
    causes.extend(validate_labels("spec.selector", &spec["selector"]));
    let one_of = |field: &str, allowed: &[&str]| {
        let value = &spec[field];
        let path = format!("spec.{field}");
        (!allowed.contains(&str_of(value))).then(|| Cause::not_supported(path, value, allowed))
    };
    causes.extend(one_of("sessionAffinity", &["ClientIP", "None"]));
    let kinds = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    causes.extend(one_of("type", &kinds));
    if kind == "ExternalName" && str_of(&spec["externalName"]).is_empty() {
        causes.push(Cause::required("spec.externalName", ""));
    }
    for (index, address) in items(&spec["clusterIPs"]).iter().enumerate() {
        let text = str_of(address);
        let problems = if text == HEADLESS { Vec::new() } else { ip::problems(text) };
        let field = format!("spec.clusterIPs[{index}]");
        causes.extend(problems.iter().map(|problem| Cause::invalid(&*field, address, problem)));
    }
    if let Some(old) = old {
        let old = &old["spec"];
        let stays = str_of(&old["type"]) != "ExternalName" && kind != "ExternalName";
        if stays && !old["clusterIP"].is_null() && spec["clusterIP"] != old["clusterIP"] {
            let text = "field is immutable";
            let shown = json!([spec["clusterIP"]]);
            causes.push(Cause::invalid("spec.clusterIPs[0]", &shown, "may not change once set"));
            causes.push(Cause::invalid("spec.clusterIP", &spec["clusterIP"], text));
        }
    }
    causes
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

/// How packets come to an address of a load balancer.
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

fn ports(spec: &Value, kind: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    let list = items(&spec["ports"]);
    let mut names_seen = Vec::new();
    let mut pairs_seen = Vec::new();
    for (index, port) in list.iter().enumerate() {
        let path = format!("spec.ports[{index}]");
        let name = str_of(&port["name"]);
        if name.is_empty() {
            if list.len() > 1 {
                causes.push(Cause::required(format!("{path}.name"), ""));
            }
        } else {
            for problem in names::dns1123_label(name) {
                causes.push(Cause::invalid(format!("{path}.name"), &port["name"], &problem));
            }
            if names_seen.contains(&name) {
                causes.push(Cause::duplicate(format!("{path}.name"), &port["name"]));
            }
            names_seen.push(name);
        }
        causes.extend(port_number(&format!("{path}.port"), &port["port"]));
        let protocols = ["SCTP", "TCP", "UDP"];
        if !protocols.contains(&str_of(&port["protocol"])) {
            let field = format!("{path}.protocol");
            causes.push(Cause::not_supported(field, &port["protocol"], &protocols));
        }
        match &port["targetPort"] {
            Value::String(name) => {
                for problem in names::port_name(name) {
                    let field = format!("{path}.targetPort");
                    causes.push(Cause::invalid(field, &port["targetPort"], &problem));
                }
            }
            number => causes.extend(port_number(&format!("{path}.targetPort"), number)),
        }
        if port["nodePort"].is_number() && !needs_node_ports(kind) {
            let text = format!("may not be used when `type` is '{kind}'");
            causes.push(Cause::forbidden(format!("{path}.nodePort"), &text));
        }
        let pair = (&port["protocol"], &port["port"]);
        if pairs_seen.contains(&pair) {
            // Upstream shows its own struct here.
            let message = format!(
                "Duplicate value: {{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{},\
                 \"TargetPort\":0,\"NodePort\":0}}",
                pair.0, pair.1
            );
            causes.push(Cause::new("FieldValueDuplicate", path, message));
        }
        pairs_seen.push(pair);
    }
    causes
}

fn port_number(field: &str, value: &Value) -> Option<Cause> {
    let number = value.as_i64().unwrap_or_default();
    let text = "must be between 1 and 65535, inclusive";
    (!(1..=65535).contains(&number)).then(|| Cause::invalid(field, &number.into(), text))
}

/// Hands out the addresses that are not given, and takes back those of a deleted service.
fn allocate(addresses: &Addresses, write: &Write<'_>, object: &mut Value) -> Result<(), Status> {
    let owner = format!("{}/{}", write.namespace, write.name);
    let refuse = |cause: Cause| Err(Status::invalid("", "Service", write.name, vec![cause]));
    let Some(spec) = map(object).and_then(|object| ensure(object, "spec")) else {
        return Ok(());
    };
    let kind = text(spec, "type").to_owned();
    if kind == "ExternalName" || write.operation == Operation::UpdateStatus {
        return Ok(());
    }
    let wanted = text(spec, "clusterIP").to_owned();
    if wanted != HEADLESS {
        match addresses.address(&owner, &wanted, write.dry_run) {
            Ok(address) => {
                spec.insert("clusterIPs".to_owned(), json!([address]));
                spec.insert("clusterIP".to_owned(), address.into());
            }
            Err(problem) => {
                return refuse(Cause::invalid("spec.clusterIPs", &json!([wanted]), &problem));
            }
        }
    }
    if !needs_node_ports(&kind) || spec.get("allocateLoadBalancerNodePorts") == Some(&false.into())
    {
        return Ok(());
    }
    let mut problem = None;
    let mut index = 0;
    each(spec, "ports", |port| {
        let protocol = text(port, "protocol").to_owned();
        let wanted = port.get("nodePort").and_then(Value::as_i64).unwrap_or_default();
        match addresses.node_port(&format!("{owner}/{index}"), &protocol, wanted, write.dry_run) {
            Ok(number) => {
                port.insert("nodePort".to_owned(), number.into());
            }
            Err(text) => {
                let field = format!("spec.ports[{index}].nodePort");
                problem.get_or_insert(Cause::invalid(field, &wanted.into(), &text));
            }
        }
        index += 1;
    });
    problem.map_or(Ok(()), refuse)
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
