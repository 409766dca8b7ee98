//! Validation of a PersistentVolume, with kube-apiserver's messages and order.

use api_meta::names;
use api_meta::quantity::Quantity;
use api_meta::status::Cause;
use apiserver::fields::{items, str_of};
use serde_json::Value;

use super::claim::{VOLUME_MODES, access_modes, class_name};
use crate::kinds::pod::validate::volume::{driver, host_path, network, texts};
use crate::kinds::pod::validate::{
    name, no_backsteps, node_selector, require_one_of, require_text,
};
use crate::kinds::status::basic_amount;

type VolumeSourceCheck = fn(&str, &Value, &mut Vec<Cause>);

/// Sources in the order of validation; when several are set, the first one is validated.
const SOURCES: [(&str, VolumeSourceCheck); 21] = [
    ("hostPath", host_path),
    ("gcePersistentDisk", network::gce_disk),
    ("awsElasticBlockStore", network::aws_store),
    ("glusterfs", gluster),
    ("flocker", network::flocker),
    ("nfs", network::nfs),
    ("rbd", network::rbd),
    ("quobyte", network::quobyte),
    ("cephfs", network::ceph),
    ("iscsi", iscsi),
    ("cinder", cinder),
    ("fc", network::fibre_channel),
    ("flexVolume", network::flex),
    ("azureFile", azure_file),
    ("vsphereVolume", |path, source, causes| texts(path, source, &["volumePath"], causes)),
    ("photonPersistentDisk", |path, source, causes| texts(path, source, &["pdID"], causes)),
    ("portworxVolume", |path, source, causes| texts(path, source, &["volumeID"], causes)),
    ("azureDisk", network::azure_disk),
    ("scaleIO", |path, source, causes| {
        texts(path, source, &["gateway", "system", "volumeName"], causes);
    }),
    ("local", local),
    ("storageos", storage_os),
];
/// Validated after all others.
const CSI: &str = "csi";
/// Sources for which an annotation may contain mount options.
const MOUNTED: [&str; 13] = [
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "cinder",
    "cephfs",
    "azureFile",
    "vsphereVolume",
    "azureDisk",
    "photonPersistentDisk",
];
const MOUNT_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";
const RECLAIM_POLICIES: [&str; 3] = ["Delete", "Recycle", "Retain"];
const INLINE: &str = "may not be specified in the context of inline volumes";
/// Total length of the volume's name and of its target's portal, in bytes.
const PORTAL_LENGTH_MAX: usize = 64;
/// Node labels that have been renamed.
const RENAMED_LABELS: [(&str, &str); 5] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
];

/// Returns all causes to refuse `volume`. `old` is the volume before an update.
pub fn validate(volume: &Value, old: Option<&Value>) -> Vec<Cause> {
    let of_spec = || {
        let mut causes = Vec::new();
        spec(volume, &mut causes);
        causes
    };
    let mut causes = of_spec();
    let has_mount_options = !volume["metadata"]["annotations"][MOUNT_OPTIONS].is_null();
    if has_mount_options && !MOUNTED.iter().any(|source| volume["spec"][source].is_object()) {
        let field = format!("metadata.annotations.{MOUNT_OPTIONS}");
        causes.push(Cause::forbidden(field, "may not specify mount options for this volume type"));
    }
    if let Some(old) = old {
        // Upstream checks it again.
        causes.extend(of_spec());
        changes(&volume["spec"], &old["spec"], &mut causes);
    }
    causes
}

fn spec(volume: &Value, causes: &mut Vec<Cause>) {
    let spec = &volume["spec"];
    modes("spec", spec, causes);
    capacity(&spec["capacity"], causes);
    let policy = &spec["persistentVolumeReclaimPolicy"];
    if !str_of(policy).is_empty() {
        require_one_of("spec.persistentVolumeReclaimPolicy", policy, &RECLAIM_POLICIES, causes);
    }
    let affinity = &spec["nodeAffinity"];
    if affinity["required"].is_object() {
        node_selector("spec.nodeAffinity.required", &affinity["required"], causes);
    } else if affinity.is_object() {
        let text = "must specify required node constraints";
        causes.push(Cause::required("spec.nodeAffinity.required", text));
    }
    source("spec", spec, str_of(&volume["metadata"]["name"]), causes);
    let is_root = is_root(str_of(&spec["hostPath"]["path"]));
    if spec["hostPath"].is_object() && is_root && policy == "Recycle" {
        let text = "may not be 'recycle' for a hostPath mount of '/'";
        causes.push(Cause::forbidden("spec.persistentVolumeReclaimPolicy", text));
    }
    class_name("spec.storageClassName", &spec["storageClassName"], causes);
    let mode = &spec["volumeMode"];
    if mode.is_string() {
        require_one_of("spec.volumeMode", mode, &VOLUME_MODES, causes);
    }
    let (field, class) = ("spec.volumeAttributesClassName", &spec["volumeAttributesClassName"]);
    if class.is_null() {
        return;
    }
    if class == "" {
        causes.push(Cause::required(field, "an empty string is disallowed"));
    }
    class_name(field, class, causes);
    if !spec[CSI].is_object() {
        let text = "has to be specified when using volumeAttributesClassName";
        causes.push(Cause::required("spec.csi", text));
    }
}

/// Causes for the spec at `field` of an inline volume.
pub fn inline(field: &str, spec: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let refused = |names: &[&str], causes: &mut Vec<Cause>| {
        let given = names.iter().filter(|name| !spec[name].is_null());
        causes.extend(given.map(|name| Cause::forbidden(format!("{field}.{name}"), INLINE)));
    };
    refused(&["claimRef", "capacity"], &mut causes);
    if !spec[CSI].is_object() {
        let text = "has to be specified in the context of inline volumes";
        causes.push(Cause::required(format!("{field}.{CSI}"), text));
    }
    modes(field, spec, &mut causes);
    if !matches!(str_of(&spec["persistentVolumeReclaimPolicy"]), "" | "Retain") {
        let text = "may only be Retain in the context of inline volumes";
        causes.push(Cause::forbidden(format!("{field}.persistentVolumeReclaimPolicy"), text));
    }
    refused(&["nodeAffinity"], &mut causes);
    source(field, spec, "", &mut causes);
    if !str_of(&spec["storageClassName"]).is_empty() {
        refused(&["storageClassName"], &mut causes);
    }
    let mode = &spec["volumeMode"];
    if !mode.is_null() && mode != "Filesystem" {
        let text = "may not specify volumeMode other than Filesystem in the context of inline \
                    volumes";
        causes.push(Cause::forbidden(format!("{field}.volumeMode"), text));
    }
    causes
}

fn modes(field: &str, spec: &Value, causes: &mut Vec<Cause>) {
    let field = format!("{field}.accessModes");
    if items(&spec["accessModes"]).is_empty() {
        causes.push(Cause::required(&*field, ""));
    }
    access_modes(&field, &spec["accessModes"], causes);
}

fn capacity(capacity: &Value, causes: &mut Vec<Cause>) {
    let amounts = capacity.as_object();
    let count = amounts.map_or(0, |amounts| amounts.len());
    if count == 0 {
        causes.push(Cause::required("spec.capacity", ""));
    }
    if count > 1 || capacity["storage"].is_null() {
        causes.push(Cause::not_supported("spec.capacity", capacity, &["storage"]));
    }
    for (name, value) in amounts.into_iter().flatten() {
        let field = format!("spec.capacity[{name}]");
        causes.extend(basic_amount(&field, value));
        let amount = str_of(value).parse::<Quantity>();
        if amount.is_ok_and(|amount| amount <= Quantity::from_whole(0)) {
            causes.push(Cause::invalid(field, value, "must be greater than zero"));
        }
    }
}

/// The single source of the volume with this name.
fn source(field: &str, spec: &Value, name: &str, causes: &mut Vec<Cause>) {
    let mut found = false;
    let all = SOURCES.iter().copied().chain([(CSI, csi as VolumeSourceCheck)]);
    for (kind, check) in all.filter(|(kind, _)| spec[kind].is_object()) {
        // Upstream spells one of them differently when it is one too many, and another one when it
        // is the first.
        let (path, too_many) = match kind {
            "gcePersistentDisk" => (format!("{field}.persistentDisk"), kind),
            "cephfs" => (format!("{field}.{kind}"), "cephFS"),
            _ => (format!("{field}.{kind}"), kind),
        };
        // It never counts a flex volume as one too many.
        if found && kind != "flexVolume" {
            let text = "may not specify more than 1 volume type";
            causes.push(Cause::forbidden(format!("{field}.{too_many}"), text));
            continue;
        }
        found = true;
        if kind == "iscsi" {
            portal(&path, name, &spec[kind], causes);
        }
        check(&path, &spec[kind], causes);
        if kind == "local" && !spec["nodeAffinity"].is_object() {
            let text = "Local volume requires node affinity";
            causes.push(Cause::required(format!("{field}.nodeAffinity"), text));
        }
    }
    if !found {
        causes.push(Cause::required(field, "must specify a volume type"));
    }
}

fn gluster(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    texts(path, source, &["endpoints", "path"], causes);
    let (path, namespace) = (format!("{path}.endpointsNamespace"), &source["endpointsNamespace"]);
    if namespace == "" {
        let text = "if the endpointnamespace is set, it must be a valid namespace name";
        causes.push(Cause::invalid(path, namespace, text));
    } else if !namespace.is_null() {
        name(&path, namespace, names::dns1123_label, causes);
    }
}

/// The length that the name of the volume leaves for that of the portal.
fn portal(path: &str, name: &str, source: &Value, causes: &mut Vec<Cause>) {
    let portal = str_of(&source["targetPortal"]);
    require_text(&format!("{path}.targetPortal"), &source["targetPortal"], causes);
    let is_long = name.len() + ":".len() + portal.len() > PORTAL_LENGTH_MAX;
    if !source["initiatorName"].is_null() && is_long {
        let text = format!(
            "Total length of <volume name>:<iscsi.targetPortal> must be under {PORTAL_LENGTH_MAX} \
             characters if iscsi.initiatorName is specified."
        );
        causes.push(Cause::invalid(format!("{path}.targetportal"), &portal.into(), &text));
    }
}

fn iscsi(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    let initiator = |field: &str, value: &Value, causes: &mut Vec<Cause>| {
        if !network::is_iscsi_name(str_of(value)) {
            causes.push(Cause::invalid(format!("{path}.{field}"), value, "must be valid format"));
        }
    };
    if require_text(&format!("{path}.iqn"), &source["iqn"], causes) {
        initiator("iqn", &source["iqn"], causes);
    }
    network::lun(path, source, causes);
    let is_proven = ["chapAuthDiscovery", "chapAuthSession"].iter().any(|it| source[it] == true);
    if is_proven && source["secretRef"].is_null() {
        causes.push(Cause::required(format!("{path}.secretRef"), ""));
    }
    secret(path, source, &["name"], causes);
    if source["initiatorName"].is_string() {
        initiator("initiatorname", &source["initiatorName"], causes);
    }
}

/// The location of a secret, if one is needed.
fn secret(path: &str, source: &Value, parts: &[&str], causes: &mut Vec<Cause>) {
    if source["secretRef"].is_object() {
        texts(&format!("{path}.secretRef"), &source["secretRef"], parts, causes);
    }
}

fn cinder(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    texts(path, source, &["volumeID"], causes);
    secret(path, source, &["name", "namespace"], causes);
}

fn azure_file(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    texts(path, source, &["secretName", "shareName"], causes);
    if !source["secretNamespace"].is_null() {
        texts(path, source, &["secretNamespace"], causes);
    }
}

fn local(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    let path = format!("{path}.path");
    if require_text(&path, &source["path"], causes) {
        no_backsteps(&path, &source["path"], causes);
    }
}

fn storage_os(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    let (field, volume) = (format!("{path}.volumeName"), &source["volumeName"]);
    if require_text(&field, volume, causes) {
        name(&field, volume, names::dns1123_label, causes);
    }
    let namespace = &source["volumeNamespace"];
    if !str_of(namespace).is_empty() {
        name(&format!("{path}.volumeNamespace"), namespace, names::dns1123_label, causes);
    }
    secret(path, source, &["name", "namespace"], causes);
}

fn csi(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    driver(&format!("{path}.driver"), &source["driver"], causes);
    texts(path, source, &["volumeHandle"], causes);
    // The secret for staging is not validated.
    let acts = ["controllerPublish", "controllerExpand", "nodePublish", "nodeExpand"];
    for field in acts.map(|act| format!("{act}SecretRef")) {
        let reference = &source[&field];
        if !reference.is_object() {
            continue;
        }
        let checks: [(&str, names::NameCheck); 2] =
            [("name", names::dns1123_subdomain), ("namespace", names::dns1123_label)];
        for (part, check) in checks {
            let path = format!("{path}.{field}.{part}");
            if require_text(&path, &reference[part], causes) {
                name(&path, &reference[part], check, causes);
            }
        }
    }
}

/// Whether a path leads to the root of the file system.
fn is_root(path: &str) -> bool {
    let mut depth = 0_usize;
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        depth = if part == ".." { depth.saturating_sub(1) } else { depth + 1 };
    }
    path.starts_with('/') && depth == 0
}

/// Changes of a volume that are not allowed.
fn changes(spec: &Value, old: &Value, causes: &mut Vec<Cause>) {
    let kinds = || SOURCES.iter().map(|(kind, _)| *kind);
    // The secret for expansion can be set once, at any time.
    let mut csi = spec[CSI].clone();
    let late = "controllerExpandSecretRef";
    if old[CSI].is_object() && old[CSI][late].is_null() {
        csi.as_object_mut().and_then(|csi| csi.remove(late));
    }
    if csi != old[CSI] || kinds().any(|kind| spec[kind] != old[kind]) {
        let text = "spec.persistentvolumesource is immutable after creation";
        causes.push(Cause::forbidden("spec.persistentvolumesource", text));
    }
    if spec["volumeMode"] != old["volumeMode"] {
        causes.push(Cause::invalid("volumeMode", &spec["volumeMode"], "field is immutable"));
    }
    let (affinity, before) = (&spec["nodeAffinity"], &old["nodeAffinity"]);
    if !before.is_null() && !is_same(affinity, before) {
        let text = "field is immutable, except for updating from beta label to GA";
        let message = format!("Invalid value: {}: {text}", format_affinity(affinity));
        causes.push(Cause::new("FieldValueInvalid", "nodeAffinity", message));
    }
    let class = "volumeAttributesClassName";
    if spec[class].is_null() && !old[class].is_null() {
        let text = "update from non-nil value to nil is forbidden";
        causes.push(Cause::forbidden(format!("spec.{class}"), text));
    }
}

/// Whether two affinities are equal, except for renamed labels.
fn is_same(new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Array(new), Value::Array(old)) => {
            new.len() == old.len() && new.iter().zip(old).all(|(new, old)| is_same(new, old))
        }
        (Value::Object(new), Value::Object(old)) => {
            let is_renamed = |field: &str, value: &Value| {
                let names = (str_of(&old[field]), str_of(value));
                field == "key" && RENAMED_LABELS.contains(&names)
            };
            let fits = |(field, value): (&String, &Value)| {
                let before = old.get(field);
                before.is_some_and(|old| is_same(value, old) || is_renamed(field, value))
            };
            new.len() == old.len() && new.iter().all(fits)
        }
        _ => new == old,
    }
}

/// An affinity in the notation of upstream's internal type.
fn format_affinity(affinity: &Value) -> String {
    if affinity.is_null() {
        return affinity.to_string();
    }
    let list = |list: &Value, shown: fn(&Value) -> String| match list.as_array() {
        Some(list) => {
            format!("[{}]", list.iter().map(shown).collect::<Vec<_>>().join(","))
        }
        None => Value::Null.to_string(),
    };
    let requirement: fn(&Value) -> String = |it| {
        let [key, operator] = ["key", "operator"].map(|part| Value::from(str_of(&it[part])));
        format!(r#"{{"Key":{key},"Operator":{operator},"Values":{}}}"#, it["values"])
    };
    let terms = items(&affinity["required"]["nodeSelectorTerms"]).iter().map(|term| {
        let [labels, fields] =
            ["matchExpressions", "matchFields"].map(|part| list(&term[part], requirement));
        format!(r#"{{"MatchExpressions":{labels},"MatchFields":{fields}}}"#)
    });
    let terms = terms.collect::<Vec<_>>().join(",");
    format!(r#"{{"Required":{{"NodeSelectorTerms":[{terms}]}}}}"#)
}
