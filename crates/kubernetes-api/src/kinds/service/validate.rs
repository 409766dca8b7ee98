//! Validation of a service, with kube-apiserver's messages and order.

use std::collections::HashSet;

use api_meta::labels::validate_labels;
use api_meta::names;
use api_meta::status::Cause;
use apiserver::fields::{items, str_of};
use serde_json::{Value, json};

use super::families::{self, is_headless};
use super::{has_node_ports, is_balancer, is_named, is_reached_from_outside, needs_health_port};
use crate::kinds::endpoints::PROTOCOLS;
use crate::kinds::ip;
use crate::kinds::networking::port_problem;

const AFFINITIES: [&str; 2] = ["ClientIP", "None"];
const AFFINITY_SECONDS_MAX: i64 = 86_400;
const DISTRIBUTIONS: [&str; 3] = ["PreferClose", "PreferSameZone", "PreferSameNode"];
const KINDS: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const ONLY_BALANCERS: &str = "may only be used when `type` is 'LoadBalancer'";
const REACHES: [&str; 2] = ["Cluster", "Local"];
/// Annotations: the ranges before there was a field for them, and a name and its successor.
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";

/// Returns all causes to refuse a service. `old` is the object before an update.
pub fn validate(object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let spec = &object["spec"];
    let before = old.map(|old| &old["spec"]);
    if !is_named(spec) {
        let causes = families::problems(spec, before);
        if !causes.is_empty() {
            return causes;
        }
    }
    let mut causes = before.map(|before| validate_change(spec, before)).unwrap_or_default();
    causes.extend(topology(object));
    if items(&spec["ports"]).is_empty() && !is_headless(spec) && !is_named(spec) {
        causes.push(Cause::required("spec.ports", ""));
    }
    causes.extend(of_kind(spec));
    causes.extend(ports(spec));
    causes.extend(validate_labels("spec.selector", &spec["selector"]));
    causes.extend(affinity(spec));
    causes.extend(external_addresses(spec, before));
    causes.extend(one_of("spec.type", &spec["type"], &KINDS));
    causes.extend(node_ports(spec));
    causes.extend(distinct(spec));
    causes.extend(source_ranges(object, old));
    let allocates = &spec["allocateLoadBalancerNodePorts"];
    if allocates.is_boolean() && !is_balancer(spec) {
        causes.push(Cause::forbidden("spec.allocateLoadBalancerNodePorts", ONLY_BALANCERS));
    }
    causes.extend(class(spec));
    causes.extend(traffic(spec));
    causes
}

fn validate_change(spec: &Value, old: &Value) -> Vec<Cause> {
    let mut causes = families::validate_change(spec, old);
    let field = "loadBalancerClass";
    if is_balancer(spec) && is_balancer(old) && spec[field] != old[field] {
        let path = "spec.loadBalancerClass";
        causes.push(Cause::invalid(path, &spec[field], "may not change once set"));
    }
    // Upstream validates the class again among the other rules.
    causes.extend(class(spec));
    let field = "healthCheckNodePort";
    if needs_health_port(spec) && needs_health_port(old) && spec[field] != old[field] {
        causes.push(Cause::forbidden("spec.healthCheckNodePort", "field is immutable"));
    }
    causes
}

fn one_of(field: &str, value: &Value, known: &[&str]) -> Option<Cause> {
    let is_known = value.is_null() || known.contains(&str_of(value));
    (!is_known).then(|| Cause::not_supported(field, value, known))
}

fn invalid(field: &str, value: &Value, problems: &[String]) -> Vec<Cause> {
    problems.iter().map(|why| Cause::invalid(field, value, why)).collect()
}

fn topology(object: &Value) -> Option<Cause> {
    let annotations = &object["metadata"]["annotations"];
    let (mode, hints) = (&annotations[TOPOLOGY_MODE], &annotations[TOPOLOGY_HINTS]);
    let differs = mode.is_string() && hints.is_string() && mode != hints;
    let why = format!("must match annotations[{TOPOLOGY_HINTS}] when both are specified");
    let field = format!("metadata.annotations[{TOPOLOGY_MODE}]");
    differs.then(|| Cause::invalid(field, mode, &why))
}

/// Fields that a type of service requires or forbids.
fn of_kind(spec: &Value) -> Vec<Cause> {
    let kind = str_of(&spec["type"]);
    if has_node_ports(kind) && is_headless(spec) {
        let why = format!("may not be set to 'None' for {kind} services");
        return vec![Cause::invalid("spec.clusterIPs[0]", &"None".into(), &why)];
    }
    if !is_named(spec) {
        return Vec::new();
    }
    let mut causes = Vec::new();
    for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        let given = &spec[field];
        if given.is_string() || !items(given).is_empty() {
            let why = "may not be set for ExternalName services";
            causes.push(Cause::forbidden(format!("spec.{field}"), why));
        }
    }
    let name = str_of(&spec["externalName"]);
    match name.strip_suffix('.').unwrap_or(name) {
        "" => causes.push(Cause::required("spec.externalName", "")),
        name => causes.extend(invalid(
            "spec.externalName",
            &name.into(),
            &names::dns1123_subdomain(name),
        )),
    }
    causes
}

fn ports(spec: &Value) -> Vec<Cause> {
    let list = items(&spec["ports"]);
    let mut causes = Vec::new();
    let mut seen = HashSet::new();
    for (index, port) in list.iter().enumerate() {
        let field = format!("spec.ports[{index}]");
        let path = format!("{field}.name");
        match str_of(&port["name"]) {
            "" if list.len() > 1 => causes.push(Cause::required(path, "")),
            "" => {}
            name => {
                causes.extend(invalid(&path, &port["name"], &names::dns1123_label(name)));
                if !seen.insert(name) {
                    causes.push(Cause::duplicate(path, &port["name"]));
                }
            }
        }
        causes.extend(port_problem(&format!("{field}.port"), &port["port"]));
        causes.extend(one_of(&format!("{field}.protocol"), &port["protocol"], &PROTOCOLS));
        let (path, target) = (format!("{field}.targetPort"), &port["targetPort"]);
        match target.as_str() {
            Some(name) => causes.extend(invalid(&path, target, &names::port_name(name))),
            None => causes.extend(port_problem(&path, target)),
        }
        let protocol = &port["appProtocol"];
        let problems = protocol.as_str().map(names::qualified_name).unwrap_or_default();
        causes.extend(invalid(&format!("{field}.appProtocol"), protocol, &problems));
    }
    causes
}

fn affinity(spec: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    causes.extend(one_of("spec.sessionAffinity", &spec["sessionAffinity"], &AFFINITIES));
    let seconds = &spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"];
    let fits = seconds.as_i64().is_none_or(|seconds| (1..=AFFINITY_SECONDS_MAX).contains(&seconds));
    if spec["sessionAffinity"] == "ClientIP" && !fits {
        let why = format!("must be greater than 0 and less than {AFFINITY_SECONDS_MAX}");
        let field = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
        causes.push(Cause::invalid(field, seconds, &why));
    }
    causes
}

fn external_addresses(spec: &Value, old: Option<&Value>) -> Vec<Cause> {
    let before = old.map(|old| items(&old["externalIPs"]).iter().map(str_of).collect());
    let before = before.unwrap_or_default();
    let validate_address = |(index, address): (usize, &Value)| {
        let field = format!("spec.externalIPs[{index}]");
        let causes = ip::new_address(&field, address, &before);
        if causes.is_empty() { ip::of_endpoint(&field, str_of(address)) } else { causes }
    };
    items(&spec["externalIPs"]).iter().enumerate().flat_map(validate_address).collect()
}

fn node_ports(spec: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut seen = HashSet::new();
    let given = items(&spec["ports"]).iter().enumerate();
    let given = given.filter(|(_, port)| port["nodePort"].as_i64().unwrap_or_default() != 0);
    for (index, _) in given.clone().filter(|_| spec["type"] == "ClusterIP") {
        let why = "may not be used when `type` is 'ClusterIP'";
        causes.push(Cause::forbidden(format!("spec.ports[{index}].nodePort"), why));
    }
    for (index, port) in given {
        if !seen.insert((&port["protocol"], &port["nodePort"])) {
            let field = format!("spec.ports[{index}].nodePort");
            causes.push(Cause::duplicate(field, &port["nodePort"]));
        }
    }
    causes
}

/// Clients must be able to distinguish all ports.
fn distinct(spec: &Value) -> Vec<Cause> {
    let mut seen = HashSet::new();
    let again = |(_, port): &(usize, &Value)| {
        !seen.insert((port["protocol"].to_string(), port["port"].to_string()))
    };
    items(&spec["ports"])
        .iter()
        .enumerate()
        .filter(again)
        .map(|(index, port)| {
            // In the notation of upstream's internal type.
            let message = format!(
                "Duplicate value: {{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{},\
                 \"TargetPort\":0,\"NodePort\":0}}",
                port["protocol"], port["port"]
            );
            Cause::new("FieldValueDuplicate", format!("spec.ports[{index}]"), message)
        })
        .collect()
}

/// The sources that a load balancer accepts: in the field, or else in the annotation.
fn source_ranges(object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let list = |object: &Value| -> Vec<Value> {
        let list = items(&object["spec"]["loadBalancerSourceRanges"]).iter();
        list.map(|range| str_of(range).trim().into()).collect()
    };
    let annotation = |object: &Value| object["metadata"]["annotations"][SOURCE_RANGES].clone();
    let (ranges, annotated) = (list(object), annotation(object));
    let mut causes = Vec::new();
    let mut only_balancers = |field: &str| {
        if !is_balancer(&object["spec"]) {
            causes.push(Cause::forbidden(field, ONLY_BALANCERS));
        }
    };
    if !ranges.is_empty() {
        let field = "spec.LoadBalancerSourceRanges";
        only_balancers(field);
        let before = old.map(list).unwrap_or_default();
        let before = before.iter().map(str_of).collect();
        let each = ranges.iter().enumerate();
        causes.extend(each.filter_map(|(index, range)| {
            ip::new_range(&format!("{field}[{index}]"), range, &before)
        }));
    } else if annotated.is_string() {
        let field = format!("metadata.annotations[{SOURCE_RANGES}]");
        only_balancers(&field);
        let stays = old.is_some_and(|old| annotation(old) == annotated);
        if !stays && !str_of(&annotated).trim().is_empty() {
            let each = str_of(&annotated).split(',').map(|range| json!(range.trim()));
            causes.extend(each.filter_map(|one| ip::new_range(&field, &one, &HashSet::new())));
        }
    }
    causes
}

fn class(spec: &Value) -> Vec<Cause> {
    let (field, class) = ("spec.loadBalancerClass", &spec["loadBalancerClass"]);
    match class.as_str() {
        None => Vec::new(),
        Some(name) if is_balancer(spec) => invalid(field, class, &names::qualified_name(name)),
        Some(_) => vec![Cause::forbidden(field, ONLY_BALANCERS)],
    }
}

/// The policies for where traffic is sent.
fn traffic(spec: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let (field, outside) = ("spec.externalTrafficPolicy", &spec["externalTrafficPolicy"]);
    if is_reached_from_outside(spec) {
        causes.extend(one_of(field, outside, &REACHES));
    } else if !str_of(outside).is_empty() {
        let why = "may only be set for externally-accessible services";
        causes.push(Cause::invalid(field, outside, why));
    }
    let (field, health) = ("spec.healthCheckNodePort", &spec["healthCheckNodePort"]);
    let given = health.as_i64().unwrap_or_default();
    if !needs_health_port(spec) && given != 0 {
        let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is \
                   'Local'";
        causes.push(Cause::invalid(field, health, why));
    } else if given != 0 {
        causes.extend(port_problem(field, health));
    }
    let inside = &spec["internalTrafficPolicy"];
    causes.extend(one_of("spec.internalTrafficPolicy", inside, &REACHES));
    let nearness = &spec["trafficDistribution"];
    causes.extend(one_of("spec.trafficDistribution", nearness, &DISTRIBUTIONS));
    causes
}
