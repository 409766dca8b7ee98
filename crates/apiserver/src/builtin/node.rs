//! Node: what a kubelet says of its machine. Stored as it is said.

use api_meta::names;
use api_meta::status::Cause;
use serde_json::{Value, json};

use super::cells::{self, NONE, UNKNOWN};
use super::fields::{child, each, ensure, items, map, preset, str_of};
use super::kind::{AGE, Hooks, Kind, NAME};
use super::normal::quantity_problem;
use super::{pod, status};
use crate::strategy::Operation;

const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE_LABEL: &str = "kubernetes.io/role";
const INFO: &[&str] = &[
    "architecture",
    "bootID",
    "containerRuntimeVersion",
    "kernelVersion",
    "kubeProxyVersion",
    "kubeletVersion",
    "machineID",
    "operatingSystem",
    "osImage",
    "systemUUID",
];

pub fn kind() -> Kind {
    Kind {
        namespaced: false,
        short_names: &["no"],
        columns: &[
            NAME,
            ("Status", "string", "", 0),
            ("Roles", "string", "", 0),
            AGE,
            ("Version", "string", "", 0),
            ("Internal-IP", "string", "", 1),
            ("External-IP", "string", "", 1),
            ("OS-Image", "string", "", 1),
            ("Kernel-Version", "string", "", 1),
            ("Container-Runtime", "string", "", 1),
        ],
        fields: &[("spec.unschedulable", "spec.unschedulable")],
        keeps_status: true,
        hooks: Hooks {
            default,
            prepare: |write, object, old| {
                let was_configured = old.is_some_and(|old| !old["status"]["config"].is_null());
                let status = map(object).and_then(|object| child(object, "status"));
                if write.operation == Operation::UpdateStatus && !was_configured {
                    status.and_then(|status| status.remove("config"));
                }
            },
            validate: |_, object, old| validate(object, old),
            validate_status: |object, old| validate(object, Some(old)),
            decode_problem: |object| quantity_problem(&object["status"]),
            cells: row,
            ..Hooks::default()
        },
        ..Kind::new("", "nodes", "node", "Node").with_status()
    }
}

fn default(object: &mut Value) {
    let Some(object) = map(object) else { return };
    if let Some(spec) = ensure(object, "spec")
        && let Some(cidr) = spec.get("podCIDR").cloned()
    {
        preset(spec, "podCIDRs", json!([cidr]));
    }
    let Some(status) = ensure(object, "status") else { return };
    if let Some(endpoints) = ensure(status, "daemonEndpoints")
        && let Some(kubelet) = ensure(endpoints, "kubeletEndpoint")
    {
        preset(kubelet, "Port", 0);
    }
    if let Some(info) = ensure(status, "nodeInfo") {
        for field in INFO {
            preset(info, field, "");
        }
    }
    status::default_conditions(status, &["lastHeartbeatTime"]);
    each(status, "images", |image| preset(image, "names", Value::Null));
}

fn validate(object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = Vec::new();
    for kind in ["capacity", "allocatable"] {
        let amounts = &object["status"][kind];
        pod::validate::of_node(&format!("status.{kind}"), amounts, &mut causes);
    }
    if old.is_some() {
        causes.extend(addresses(&object["status"]["addresses"]));
    }
    for (index, taint) in items(&object["spec"]["taints"]).iter().enumerate() {
        let path = format!("metadata.taints[{index}]");
        let key = Value::from(str_of(&taint["key"]));
        for problem in names::qualified_name(str_of(&key)) {
            causes.push(Cause::invalid(format!("{path}.key"), &key, &problem));
        }
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        if !effects.contains(&str_of(&taint["effect"])) {
            let field = format!("{path}.effect");
            causes.push(Cause::not_supported(field, &taint["effect"], &effects));
        }
    }
    causes
}

fn addresses(list: &Value) -> Vec<Cause> {
    let list = items(list);
    let is_again = |(index, address): &(usize, &Value)| list[..*index].contains(address);
    let tell = |(index, address): (usize, &Value)| {
        // In the form of the type that upstream keeps for itself.
        let (kind, text) = (str_of(&address["type"]), str_of(&address["address"]));
        let message = format!(r#"Duplicate value: {{"Type":"{kind}","Address":"{text}"}}"#);
        Cause::new("FieldValueDuplicate", format!("status.addresses[{index}]"), message)
    };
    list.iter().enumerate().filter(is_again).map(tell).collect()
}

fn row(object: &Value, now: i64) -> Vec<Value> {
    let status = &object["status"];
    let ready = items(&status["conditions"]).iter().find(|c| c["type"] == "Ready");
    let mut words = match ready.map(|condition| str_of(&condition["status"])) {
        Some("True") => vec!["Ready"],
        Some(_) => vec!["NotReady"],
        None => vec!["Unknown"],
    };
    if object["spec"]["unschedulable"] == true {
        words.push("SchedulingDisabled");
    }
    let address = |kind: &str| {
        let found = items(&status["addresses"]).iter().find(|address| address["type"] == kind);
        cells::or_none(found.map(|address| str_of(&address["address"])).unwrap_or_default())
    };
    let info = |field: &str| match str_of(&status["nodeInfo"][field]) {
        "" => UNKNOWN.into(),
        text => Value::from(text),
    };
    vec![
        cells::name(object),
        words.join(",").into(),
        roles(object).into(),
        cells::age(object, now),
        str_of(&status["nodeInfo"]["kubeletVersion"]).into(),
        address("InternalIP"),
        address("ExternalIP"),
        info("osImage"),
        info("kernelVersion"),
        info("containerRuntimeVersion"),
    ]
}

fn roles(object: &Value) -> String {
    let mut roles: Vec<&str> = object["metadata"]["labels"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix(ROLE_PREFIX) {
            Some(role) => Some(role),
            None if key == ROLE_LABEL => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    roles.dedup();
    if roles.is_empty() { NONE.to_owned() } else { roles.join(",") }
}
