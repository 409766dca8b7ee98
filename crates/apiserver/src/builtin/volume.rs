//! PersistentVolume, PersistentVolumeClaim, StorageClass.

use api_meta::names;
use api_meta::quantity::Quantity;
use api_meta::status::Cause;
use api_meta::time;
use serde_json::{Value, json};

use super::cells::{self, UNSET};
use super::fields::{Object, child, ensure, items, map, preset, str_of, texts};
use super::kind::{AGE, Hooks, Kind, NAME};
use super::normal::{quantity_problem, quantity_problem_of_both};
use super::{old_annotations, pod, status};
use crate::strategy::{Operation, Write};

/// How far the growth of a claim may be.
const RESIZE_STATES: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];
const ACCESS_MODES: [&str; 4] =
    ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

pub fn persistent_volume() -> Kind {
    Kind {
        namespaced: false,
        short_names: &["pv"],
        columns: &[
            NAME,
            ("Capacity", "string", "", 0),
            ("Access Modes", "string", "", 0),
            ("Reclaim Policy", "string", "", 0),
            ("Status", "string", "", 0),
            ("Claim", "string", "", 0),
            ("StorageClass", "string", "", 0),
            ("VolumeAttributesClass", "string", "", 0),
            ("Reason", "string", "", 0),
            AGE,
            ("VolumeMode", "string", "", 1),
        ],
        hooks: Hooks {
            default: default_volume,
            prepare: prepare_volume,
            validate: |_, object, _| validate_volume(object),
            warnings: old_annotations::of_volume,
            decode_problem: |object| quantity_problem(&object["spec"]),
            cells: volume_row,
            ..Hooks::default()
        },
        ..Kind::new("", "persistentvolumes", "persistentvolume", "PersistentVolume")
            .with_status()
            .deleted_as_object()
    }
}

fn default_volume(object: &mut Value) {
    let Some(object) = map(object) else { return };
    if let Some(spec) = ensure(object, "spec") {
        preset(spec, "persistentVolumeReclaimPolicy", "Retain");
        preset(spec, "volumeMode", "Filesystem");
        if let Some(path) = child(spec, "hostPath") {
            preset(path, "type", "");
        }
    }
    if let Some(status) = ensure(object, "status") {
        preset(status, "phase", "Pending");
    }
}

/// Tells since when a volume has its phase.
fn prepare_volume(write: &Write<'_>, object: &mut Value, old: Option<&Value>) {
    const SINCE: &str = "lastPhaseTransitionTime";
    let created = object["metadata"]["creationTimestamp"].clone();
    let Some(status) = map(object).and_then(|object| ensure(object, "status")) else { return };
    match (write.operation, old) {
        (Operation::Create, _) => preset(status, SINCE, created),
        (Operation::UpdateStatus, Some(old)) => {
            let old = &old["status"];
            let before = old.get(SINCE);
            if status.get("phase") == old.get("phase") {
                before.into_iter().for_each(|before| preset(status, SINCE, before.clone()));
            } else if status.get(SINCE).is_none_or(|since| Some(since) == before) {
                let now = time::format_seconds(jiff::Timestamp::now().as_second());
                status.insert(SINCE.to_owned(), now.into());
            }
        }
        _ => {}
    }
}

fn validate_volume(object: &Value) -> Vec<Cause> {
    let spec = &object["spec"];
    let mut causes = Vec::new();
    if items(&spec["accessModes"]).is_empty() {
        causes.push(Cause::required("spec.accessModes", ""));
    }
    if spec["capacity"]["storage"].is_null() {
        causes.push(Cause::required("spec.capacity", ""));
        causes.push(Cause::not_supported("spec.capacity", &spec["capacity"], &["storage"]));
    }
    let known = [
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    ];
    let sourced =
        spec.as_object().is_some_and(|map| map.keys().any(|key| !known.contains(&key.as_str())));
    if !sourced {
        causes.push(Cause::required("spec", "must specify a volume type"));
    }
    causes
}

fn volume_row(object: &Value, now: i64) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let claim = &spec["claimRef"];
    let claim = match str_of(&claim["name"]) {
        "" => String::new(),
        name => format!("{}/{name}", str_of(&claim["namespace"])),
    };
    let phase = match object["metadata"]["deletionTimestamp"].is_string() {
        true => "Terminating",
        false => str_of(&status["phase"]),
    };
    vec![
        cells::name(object),
        str_of(&spec["capacity"]["storage"]).into(),
        cells::access_modes(&spec["accessModes"]),
        str_of(&spec["persistentVolumeReclaimPolicy"]).into(),
        phase.into(),
        claim.into(),
        str_of(&spec["storageClassName"]).into(),
        spec["volumeAttributesClassName"].as_str().unwrap_or(UNSET).into(),
        str_of(&status["reason"]).into(),
        cells::age(object, now),
        spec["volumeMode"].as_str().unwrap_or(UNSET).into(),
    ]
}

pub fn persistent_volume_claim() -> Kind {
    Kind {
        short_names: &["pvc"],
        columns: &[
            NAME,
            ("Status", "string", "", 0),
            ("Volume", "string", "", 0),
            ("Capacity", "string", "", 0),
            ("Access Modes", "string", "", 0),
            ("StorageClass", "string", "", 0),
            ("VolumeAttributesClass", "string", "", 0),
            AGE,
            ("VolumeMode", "string", "", 1),
        ],
        hooks: Hooks {
            default: |object| {
                if let Some(object) = map(object) {
                    default_claim(object);
                }
            },
            validate: |_, object, old| validate_claim(object, old),
            validate_status: |object, _| validate_claim_status(&object["status"]),
            warnings: old_annotations::of_claim,
            decode_problem: quantity_problem_of_both,
            cells: claim_row,
            ..Hooks::default()
        },
        ..Kind::new("", "persistentvolumeclaims", "persistentvolumeclaim", "PersistentVolumeClaim")
            .with_status()
            .deleted_as_object()
    }
}

/// Defaults of a claim, also of those in templates.
pub fn default_claim(claim: &mut Object) {
    ensure(claim, "metadata");
    if let Some(spec) = ensure(claim, "spec") {
        preset(spec, "volumeMode", "Filesystem");
        ensure(spec, "resources");
    }
    if let Some(status) = ensure(claim, "status") {
        preset(status, "phase", "Pending");
        status::default_conditions(status, &["lastProbeTime"]);
    }
}

fn validate_claim_status(status: &Value) -> Vec<Cause> {
    let entries = |map: &'static str| status[map].as_object().into_iter().flatten();
    let mut causes = Vec::new();
    for (name, amount) in entries("capacity") {
        causes.extend(status::basic_amount(&format!("status.capacity[{name}]"), amount));
    }
    let field = "status.allocatedResourceStatuses";
    for (name, state) in entries("allocatedResourceStatuses") {
        causes.extend(resizable(field, name));
        if !RESIZE_STATES.contains(&str_of(state)) {
            causes.push(Cause::not_supported(field, &name.as_str().into(), &RESIZE_STATES));
        }
    }
    let field = "status.allocatedResources";
    for (name, amount) in entries("allocatedResources") {
        let problems = resizable(field, name);
        if problems.is_empty() {
            causes.extend(status::basic_amount(&format!("{field}[{name}]"), amount));
        }
        causes.extend(problems);
    }
    causes
}

/// Of what is not of a driver's own, nothing but the storage grows.
fn resizable(field: &str, name: &str) -> Vec<Cause> {
    let given = Value::from(name);
    let problems = names::qualified_name(name);
    if problems.is_empty() && pod::validate::is_native(name) && name != "storage" {
        return vec![Cause::not_supported(field, &given, &["storage"])];
    }
    problems.iter().map(|problem| Cause::invalid(field, &given, problem)).collect()
}

fn validate_claim(object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = claim_spec("spec", &object["spec"]);
    if let Some(old) = old {
        causes.extend(claim_changes(object, old));
    }
    causes
}

/// Problems of the spec of a claim, at `field`.
pub fn claim_spec(field: &str, spec: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if !spec["selector"].is_null() {
        let path = format!("{field}.selector");
        causes.extend(api_meta::labels::validate_selector(&path, &spec["selector"]));
    }
    let (path, modes) = (format!("{field}.accessModes"), items(&spec["accessModes"]));
    if modes.is_empty() {
        causes.push(Cause::required(&path, "at least 1 access mode is required"));
    }
    let unknown = modes.iter().filter(|mode| !ACCESS_MODES.contains(&str_of(mode)));
    causes.extend(unknown.map(|mode| Cause::not_supported(&path, mode, &ACCESS_MODES)));
    let exclusive = modes.iter().any(|mode| mode == "ReadWriteOncePod");
    if exclusive && modes.iter().any(|mode| mode != "ReadWriteOncePod") {
        let text = "may not use ReadWriteOncePod with other access modes";
        causes.push(Cause::forbidden(&path, text));
    }
    let path = format!("{field}.resources[storage]");
    let size = &spec["resources"]["requests"]["storage"];
    match str_of(size).parse::<Quantity>() {
        _ if size.is_null() => causes.push(Cause::required(path, "")),
        Ok(amount) if amount <= Quantity::from_whole(0) => {
            causes.push(Cause::invalid(path, size, "must be greater than zero"));
        }
        _ => {}
    }
    let class = str_of(&spec["storageClassName"]);
    if !class.is_empty() {
        let path = format!("{field}.storageClassName");
        let problems = api_meta::names::dns1123_subdomain(class);
        causes.extend(problems.iter().map(|why| Cause::invalid(&path, &class.into(), why)));
    }
    let mode = &spec["volumeMode"];
    if mode.is_string() && !VOLUME_MODES.contains(&str_of(mode)) {
        let path = format!("{field}.volumeMode");
        causes.push(Cause::not_supported(path, mode, &VOLUME_MODES));
    }
    causes
}

/// What of a claim may not change so.
fn claim_changes(claim: &Value, old: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let (mut new, mut before) = (claim["spec"].clone(), old["spec"].clone());
    if str_of(&before["volumeName"]).is_empty() {
        before["volumeName"] = new["volumeName"].clone();
    }
    if before["storageClassName"].is_null() {
        before["storageClassName"] = new["storageClassName"].clone();
    }
    // Only what is bound grows, and changes its attributes.
    if old["status"]["phase"] == "Bound" {
        new["resources"]["requests"]["storage"] =
            before["resources"]["requests"]["storage"].clone();
        new["volumeAttributesClassName"] = before["volumeAttributesClassName"].clone();
    }
    let null = Value::Null;
    let fields = |spec: &Value| spec.as_object().cloned().unwrap_or_default();
    let (new, before) = (fields(&new), fields(&before));
    let mut names = new.keys().chain(before.keys());
    if names.any(|name| new.get(name).unwrap_or(&null) != before.get(name).unwrap_or(&null)) {
        let text = "spec is immutable after creation except resources.requests and \
                    volumeAttributesClassName for bound claims";
        causes.push(Cause::forbidden("spec", text));
    }
    let amount = |value: &Value| str_of(value).parse::<Quantity>().ok();
    let size = |claim: &Value| amount(&claim["spec"]["resources"]["requests"]["storage"]);
    if size(claim) < size(old) && size(claim) <= amount(&old["status"]["capacity"]["storage"]) {
        let text = "field can not be less than status.capacity";
        causes.push(Cause::forbidden("spec.resources.requests.storage", text));
    }
    causes
}

fn claim_row(object: &Value, now: i64) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let bound = !str_of(&spec["volumeName"]).is_empty();
    let phase = match object["metadata"]["deletionTimestamp"].is_string() {
        true => "Terminating",
        false => str_of(&status["phase"]),
    };
    let (capacity, modes) = if bound {
        (status["capacity"]["storage"].clone(), cells::access_modes(&status["accessModes"]))
    } else {
        (Value::Null, json!(""))
    };
    vec![
        cells::name(object),
        phase.into(),
        str_of(&spec["volumeName"]).into(),
        str_of(&capacity).into(),
        modes,
        str_of(&spec["storageClassName"]).into(),
        spec["volumeAttributesClassName"].as_str().unwrap_or(UNSET).into(),
        cells::age(object, now),
        spec["volumeMode"].as_str().unwrap_or(UNSET).into(),
    ]
}

pub fn storage_class() -> Kind {
    Kind {
        namespaced: false,
        short_names: &["sc"],
        columns: &[
            NAME,
            ("Provisioner", "string", "", 0),
            ("ReclaimPolicy", "string", "", 0),
            ("VolumeBindingMode", "string", "", 0),
            ("AllowVolumeExpansion", "string", "", 0),
            AGE,
        ],
        hooks: Hooks {
            default: |object| {
                if let Some(object) = map(object) {
                    texts(object, "parameters");
                    preset(object, "provisioner", "");
                    preset(object, "reclaimPolicy", "Delete");
                    preset(object, "volumeBindingMode", "Immediate");
                }
            },
            validate: |_, object, old| {
                let mut causes = Vec::new();
                for field in ["provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"] {
                    if old.is_some_and(|old| old[field] != object[field]) {
                        causes.push(Cause::invalid(field, &object[field], "field is immutable"));
                    }
                }
                if str_of(&object["provisioner"]).is_empty() {
                    causes.push(Cause::required("provisioner", ""));
                }
                for (field, known) in [
                    ("reclaimPolicy", ["Delete", "Retain"]),
                    ("volumeBindingMode", ["Immediate", "WaitForFirstConsumer"]),
                ] {
                    if !known.contains(&str_of(&object[field])) {
                        causes.push(Cause::not_supported(field, &object[field], &known));
                    }
                }
                causes
            },
            cells: |object, now| {
                let annotations = &object["metadata"]["annotations"];
                let default = str_of(&annotations[DEFAULT_CLASS]) == "true";
                let mut name = str_of(&object["metadata"]["name"]).to_owned();
                if default {
                    name.push_str(" (default)");
                }
                vec![
                    name.into(),
                    str_of(&object["provisioner"]).into(),
                    str_of(&object["reclaimPolicy"]).into(),
                    str_of(&object["volumeBindingMode"]).into(),
                    (object["allowVolumeExpansion"] == true).into(),
                    cells::age(object, now),
                ]
            },
            ..Hooks::default()
        },
        text_maps: &["parameters"],
        ..Kind::new("storage.k8s.io", "storageclasses", "storageclass", "StorageClass")
            .deleted_as_object()
    }
}
