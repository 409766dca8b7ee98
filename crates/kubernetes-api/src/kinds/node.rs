//! Node: what a kubelet reports about its machine. Stored as reported.

mod validate;

use apiserver::fields::{Object, child, each, ensure, items, map, preset, str_of, text};
use apiserver::kind::cells::{self, NONE, UNKNOWN};
use apiserver::kind::normal::quantity_problem;
use apiserver::kind::{AGE, FieldSpec, Hooks, Kind, NAME};
use apiserver::strategy::{Operation, Write};
use serde_json::{Value, json};

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

/// The kind Node of the core group: cluster-scoped, with the defaults, validation, columns and
/// selectable fields of kube-apiserver.
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
        fields: vec![FieldSpec::text("spec.unschedulable").unset("false")],
        keeps_status: true,
        hooks: Hooks {
            default,
            prepare,
            validate: |_, object, old| validate::validate(object, old),
            validate_status: validate::changes,
            decode_problem: |object| quantity_problem(&object["status"]),
            cells: row,
            ..Hooks::default()
        },
        ..Kind::new("", "nodes", "node", "Node").with_status()
    }
}

fn default(object: &mut Value) {
    let Some(object) = map(object) else { return };
    if let Some(spec) = ensure(object, "spec") {
        default_ranges(spec);
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
    apiserver::kind::default_conditions(status, &["lastHeartbeatTime"]);
    each(status, "images", |image| preset(image, "names", Value::Null));
}

/// The oldest field has the first range. It takes precedence when the two differ.
fn default_ranges(spec: &mut Object) {
    let first = text(spec, "podCIDR").to_owned();
    let among = spec.get("podCIDRs").and_then(|ranges| ranges.get(0)?.as_str()).unwrap_or_default();
    if first.is_empty() && !among.is_empty() {
        spec.insert("podCIDR".to_owned(), among.into());
    } else if first != among {
        spec.insert("podCIDRs".to_owned(), json!([first]));
    }
}

/// The source of a kubelet's configuration is no longer set, only retained on old objects.
fn prepare(write: &Write<'_>, object: &mut Value, old: Option<&Value>) {
    let was_set = |path: &str| old.is_some_and(|old| !old.pointer(path).is_none_or(Value::is_null));
    let Some(object) = map(object) else { return };
    let is_of_status = write.operation == Operation::UpdateStatus;
    if !is_of_status && !was_set("/spec/configSource") {
        child(object, "spec").and_then(|spec| spec.remove("configSource"));
    }
    if (is_of_status || old.is_none()) && !was_set("/status/config") {
        child(object, "status").and_then(|status| status.remove("config"));
    }
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
