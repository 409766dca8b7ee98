//! Validation of a PersistentVolumeClaim, with kube-apiserver's messages and order.

use api_meta::names;
use api_meta::quantity::Quantity;
use api_meta::status::Cause;
use apiserver::fields::{Object, child, items, map, str_of, text};
use serde_json::{Value, json};

use crate::kinds::{pod, status};

/// States of the resize of a claim.
const RESIZE_STATES: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];
const ACCESS_MODES: [&str; 4] =
    ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
pub const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];
const CLAIM: &str = "PersistentVolumeClaim";
/// The annotation that named the class before there was a field.
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const IMMUTABLE: &str = "field is immutable";

/// Copies the source of the volume's data to both fields that name it, `dataSource` and
/// `dataSourceRef`. Sources that the older field never accepted are dropped from it.
pub fn prepare(claim: &mut Value, old: Option<&Value>) {
    let Some(spec) = map(claim).and_then(|claim| child(claim, "spec")) else { return };
    let had = |field: &str| old.is_some_and(|old| old["spec"][field].is_object());
    // Sources in other namespaces are behind a feature gate that is disabled.
    let is_foreign =
        child(spec, "dataSourceRef").is_some_and(|it| !text(it, "namespace").is_empty());
    if is_foreign && !had("dataSourceRef") {
        spec.remove("dataSourceRef");
    }
    let was_filled = had("dataSource") || had("dataSourceRef");
    if !was_filled && !spec.contains_key("dataSourceRef") {
        let is_taken = child(spec, "dataSource").is_some_and(|source| {
            matches!(
                (text(source, "apiGroup"), text(source, "kind")),
                ("", CLAIM) | ("snapshot.storage.k8s.io", "VolumeSnapshot")
            )
        });
        if !is_taken {
            spec.remove("dataSource");
        }
    }
    copy_data_source(spec);
}

fn copy_data_source(spec: &mut Object) {
    match (spec.get("dataSource").cloned(), spec.get("dataSourceRef").cloned()) {
        (Some(source), None) => {
            spec.insert("dataSourceRef".to_owned(), source);
        }
        (None, Some(mut source)) if str_of(&source["namespace"]).is_empty() => {
            map(&mut source).and_then(|source| source.remove("namespace"));
            spec.insert("dataSource".to_owned(), source);
        }
        _ => {}
    }
}

/// Returns all causes to refuse `claim`. `old` is the claim before an update.
pub fn validate(claim: &Value, old: Option<&Value>) -> Vec<Cause> {
    // An existing group may stay.
    let has_group = |old: &Value| {
        ["dataSource", "dataSourceRef"].iter().any(|from| old["spec"][from]["apiGroup"].is_string())
    };
    let mut causes = validate_spec("spec", &claim["spec"], old.is_some_and(has_group));
    if let Some(old) = old {
        changes(claim, old, &mut causes);
    }
    causes
}

/// Causes for the spec at `field` of a claim that does not exist yet.
pub fn spec(field: &str, spec: &Value) -> Vec<Cause> {
    validate_spec(field, spec, false)
}

fn validate_spec(field: &str, spec: &Value, takes_any_group: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    let at = |name: &str| format!("{field}.{name}");
    if items(&spec["accessModes"]).is_empty() {
        causes.push(Cause::required(at("accessModes"), "at least 1 access mode is required"));
    }
    if !spec["selector"].is_null() {
        causes.extend(api_meta::labels::validate_selector(&at("selector"), &spec["selector"]));
    }
    access_modes(&at("accessModes"), &spec["accessModes"], &mut causes);
    let (path, size) = (at("resources[storage]"), &spec["resources"]["requests"]["storage"]);
    if size.is_null() {
        causes.push(Cause::required(path, ""));
    } else if quantity(size) <= Quantity::from_whole(0) {
        causes.push(Cause::invalid(path, size, "must be greater than zero"));
    }
    class_name(&at("storageClassName"), &spec["storageClassName"], &mut causes);
    let mode = &spec["volumeMode"];
    if mode.is_string() && !VOLUME_MODES.contains(&str_of(mode)) {
        causes.push(Cause::not_supported(at("volumeMode"), mode, &VOLUME_MODES));
    }
    sources(field, spec, takes_any_group, &mut causes);
    class_name(&at("volumeAttributesClassName"), &spec["volumeAttributesClassName"], &mut causes);
    causes
}

/// Validates how a volume can be used, and by how many nodes.
pub fn access_modes(field: &str, modes: &Value, causes: &mut Vec<Cause>) {
    let modes = items(modes).iter();
    let (known, unknown): (Vec<_>, Vec<_>) =
        modes.partition(|mode| ACCESS_MODES.contains(&str_of(mode)));
    causes.extend(unknown.iter().map(|mode| Cause::not_supported(field, mode, &ACCESS_MODES)));
    let is_exclusive = |mode: &&&Value| **mode == "ReadWriteOncePod";
    let exclusive = known.iter().filter(is_exclusive).count();
    if exclusive > 0 && exclusive < known.len() {
        let text = "may not use ReadWriteOncePod with other access modes";
        causes.push(Cause::forbidden(field, text));
    }
}

/// Validates the name of a class. An absent name is valid.
pub fn class_name(field: &str, class: &Value, causes: &mut Vec<Cause>) {
    if !str_of(class).is_empty() {
        let problems = names::dns1123_subdomain(str_of(class));
        causes.extend(problems.iter().map(|why| Cause::invalid(field, class, why)));
    }
}

/// A quantity; zero when it is absent.
fn quantity(value: &Value) -> Quantity {
    str_of(value).parse().unwrap_or(Quantity::from_whole(0))
}

/// The sources of the volume's data.
fn sources(field: &str, spec: &Value, takes_any_group: bool, causes: &mut Vec<Cause>) {
    let [older, newer] = ["dataSource", "dataSourceRef"].map(|from| {
        let source = Some(&spec[from]).filter(|source| source.is_object());
        if let Some(source) = source {
            data_source(&format!("{field}.{from}"), source, takes_any_group, causes);
        }
        source
    });
    let (Some(older), Some(newer)) = (older, newer) else { return };
    let parts = ["apiGroup", "kind", "name"];
    let text = if !str_of(&newer["namespace"]).is_empty() {
        "may not be specified when dataSourceRef.namespace is specified"
    } else if parts.iter().any(|part| older[part] != newer[part]) {
        "must match dataSourceRef"
    } else {
        return;
    };
    // Upstream intends to print the other field, but prints an empty one.
    causes.push(Cause::invalid(field, &json!({}), text));
}

fn data_source(field: &str, source: &Value, takes_any_group: bool, causes: &mut Vec<Cause>) {
    for part in ["name", "kind"] {
        if str_of(&source[part]).is_empty() {
            causes.push(Cause::required(format!("{field}.{part}"), ""));
        }
    }
    let (group, kind) = (str_of(&source["apiGroup"]), str_of(&source["kind"]));
    if group.is_empty() && kind != CLAIM {
        let text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        causes.push(Cause::invalid(field, &kind.into(), text));
    }
    if !takes_any_group {
        class_name(&format!("{field}.apiGroup"), &source["apiGroup"], causes);
    }
    let namespace = &source["namespace"];
    if !str_of(namespace).is_empty() {
        let path = format!("{field}.namespace");
        let problems = names::dns1123_label(str_of(namespace));
        causes.extend(problems.iter().map(|why| Cause::invalid(&*path, namespace, why)));
    }
}

/// Changes of a claim that are not allowed.
fn changes(claim: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let (mut new, mut before) = (claim["spec"].clone(), old["spec"].clone());
    if str_of(&before["volumeName"]).is_empty() {
        before["volumeName"] = new["volumeName"].clone();
    }
    storage_class(claim, old, &mut new, causes);
    // Only a bound claim can grow or change its attributes.
    if old["status"]["phase"] == "Bound" {
        if new["resources"]["requests"].is_object() {
            new["resources"]["requests"]["storage"] =
                before["resources"]["requests"]["storage"].clone();
        }
        new["volumeAttributesClassName"] = before["volumeAttributesClassName"].clone();
    }
    map(&mut before).into_iter().for_each(copy_data_source);
    let null = Value::Null;
    let fields = |spec: &Value| spec.as_object().cloned().unwrap_or_default();
    let (new, before) = (fields(&new), fields(&before));
    let mut names = new.keys().chain(before.keys());
    if names.any(|name| new.get(name).unwrap_or(&null) != before.get(name).unwrap_or(&null)) {
        let text = "spec is immutable after creation except resources.requests and \
                    volumeAttributesClassName for bound claims";
        causes.push(Cause::forbidden("spec", text));
    }
    let size = |claim: &Value| quantity(&claim["spec"]["resources"]["requests"]["storage"]);
    if size(claim) < size(old) && size(claim) <= quantity(&old["status"]["capacity"]["storage"]) {
        let text = "field can not be less than status.capacity";
        causes.push(Cause::forbidden("spec.resources.requests.storage", text));
    }
    let [mode, old_mode] = [claim, old].map(|claim| &claim["spec"]["volumeMode"]);
    if mode != old_mode {
        causes.push(Cause::invalid("volumeMode", mode, IMMUTABLE));
    }
    attributes_class(claim, old, causes);
}

/// The class is set once, in an annotation or later in a field. `new` is the new spec for the
/// comparison with the old one.
fn storage_class(claim: &Value, old: &Value, new: &mut Value, causes: &mut Vec<Cause>) {
    const FIELD: &str = "storageClassName";
    let [annotated, old_annotated] =
        [claim, old].map(|claim| &claim["metadata"]["annotations"][CLASS]);
    let class = claim["spec"][FIELD].clone();
    let is_new = old["spec"][FIELD].is_null() && class.is_string();
    let is_moved =
        is_new && class == *old_annotated && (annotated.is_null() || annotated == old_annotated);
    if !is_moved && str_of(annotated) != str_of(old_annotated) {
        let field = format!("metadata.annotations.{CLASS}");
        causes.push(Cause::invalid(field, &str_of(annotated).into(), IMMUTABLE));
    }
    if is_moved || is_new && (old_annotated.is_null() || *old_annotated == class) {
        new[FIELD] = Value::Null;
    }
}

/// The attributes class of a volume can be replaced, but not removed.
fn attributes_class(claim: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let [class, before] = [claim, old].map(|claim| &claim["spec"]["volumeAttributesClassName"]);
    if class == before || old["status"]["currentVolumeAttributesClassName"].is_null() {
        return;
    }
    let to = match class {
        Value::Null => "nil",
        class if class == "" => "empty string",
        _ => return,
    };
    let text = format!(
        "update to {to} is forbidden when status.currentVolumeAttributesClassName is not nil"
    );
    causes.push(Cause::forbidden("spec.volumeAttributesClassName", &text));
}

/// Returns all causes to refuse the status of a claim.
pub fn validate_status(status: &Value) -> Vec<Cause> {
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

/// Of the resources without a driver's prefix, only storage can be resized.
fn resizable(field: &str, name: &str) -> Vec<Cause> {
    let given = Value::from(name);
    let problems = names::qualified_name(name);
    if problems.is_empty() && pod::validate::is_native(name) && name != "storage" {
        return vec![Cause::not_supported(field, &given, &["storage"])];
    }
    problems.iter().map(|problem| Cause::invalid(field, &given, problem)).collect()
}
