//! Validation of a StorageClass, with kube-apiserver's messages and order.

use std::collections::{BTreeMap, BTreeSet};

use api_meta::names;
use api_meta::status::Cause;
use apiserver::fields::{items, str_of};
use serde_json::Value;

const PARAMETERS_MAX: usize = 512;
/// Total size of the keys and values of all parameters, in bytes.
const PARAMETERS_LENGTH_MAX: usize = 256 << 10;
const RECLAIM_POLICIES: [&str; 2] = ["Delete", "Retain"];
const BINDING_MODES: [&str; 2] = ["Immediate", "WaitForFirstConsumer"];
const IMMUTABLE: [&str; 4] = ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"];

/// Requested values by label.
type Topology<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Returns all causes to refuse `class`. `old` is the class before an update.
pub fn validate(class: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = provisioner("provisioner", &class["provisioner"]);
    causes.extend(parameters(&class["parameters"]));
    let policy = &class["reclaimPolicy"];
    if !str_of(policy).is_empty() && !RECLAIM_POLICIES.contains(&str_of(policy)) {
        causes.push(Cause::not_supported("reclaimPolicy", policy, &RECLAIM_POLICIES));
    }
    let mode = &class["volumeBindingMode"];
    if !BINDING_MODES.contains(&str_of(mode)) {
        causes.push(Cause::not_supported("volumeBindingMode", mode, &BINDING_MODES));
    }
    topologies("allowedTopologies", &class["allowedTopologies"], &mut causes);
    let changed =
        IMMUTABLE.iter().filter(|field| old.is_some_and(|old| old[field] != class[field]));
    causes.extend(changed.map(|field| Cause::invalid(*field, &class[field], "field is immutable")));
    causes
}

/// Causes for the name of a provisioner at `field`.
pub fn provisioner(field: &str, name: &Value) -> Vec<Cause> {
    let name = str_of(name).to_lowercase();
    if name.is_empty() {
        return vec![Cause::required(field, "")];
    }
    let problems = names::qualified_name(&name);
    problems.iter().map(|why| Cause::invalid(field, &name.as_str().into(), why)).collect()
}

/// Causes for the parameters of a provisioner.
pub fn parameters(parameters: &Value) -> Vec<Cause> {
    let (field, mut causes) = ("parameters", Vec::new());
    let Some(parameters) = parameters.as_object() else { return causes };
    if parameters.len() > PARAMETERS_MAX {
        return vec![Cause::too_long(field, PARAMETERS_MAX)];
    }
    if parameters.contains_key("") {
        causes.push(Cause::invalid(field, &"".into(), "field can not be empty."));
    }
    let length: usize = parameters.iter().map(|(key, value)| key.len() + str_of(value).len()).sum();
    if length > PARAMETERS_LENGTH_MAX {
        causes.push(Cause::too_long(field, PARAMETERS_LENGTH_MAX));
    }
    causes
}

fn topologies(field: &str, list: &Value, causes: &mut Vec<Cause>) {
    let list = items(list);
    // Upstream also compares with as many empty terms.
    let mut seen = vec![Topology::new(); list.len()];
    for (index, term) in list.iter().enumerate() {
        let path = format!("{field}[{index}].matchLabelExpressions");
        let topology = topology(&path, &term["matchLabelExpressions"], causes);
        for _ in seen.iter().filter(|before| **before == topology) {
            causes.push(Cause::duplicate(&*path, &"".into()));
        }
        seen.push(topology);
    }
}

fn topology<'a>(field: &str, expressions: &'a Value, causes: &mut Vec<Cause>) -> Topology<'a> {
    let mut topology = Topology::new();
    for (index, expression) in items(expressions).iter().enumerate() {
        let path = format!("{field}[{index}]");
        let (of_key, of_values) = (format!("{path}.key"), format!("{path}.values"));
        let (key, values) = (str_of(&expression["key"]), items(&expression["values"]));
        if values.is_empty() {
            causes.push(Cause::required(&*of_values, ""));
        }
        let mut set = BTreeSet::new();
        for (index, value) in values.iter().enumerate() {
            if !set.insert(str_of(value)) {
                causes.push(Cause::duplicate(format!("{of_values}[{index}]"), value));
            }
        }
        let problems = names::qualified_name(key);
        causes.extend(problems.iter().map(|why| Cause::invalid(&*of_key, &key.into(), why)));
        if topology.insert(key, set).is_some() {
            causes.push(Cause::duplicate(of_key, &key.into()));
        }
    }
    topology
}
