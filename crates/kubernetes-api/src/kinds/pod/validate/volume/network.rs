//! Volumes on network disks and file systems.

use api_meta::status::Cause;
use apiserver::fields::{items, str_of};
use serde_json::Value;

use super::super::{require_text, within};
use super::texts;

const NUMBER_MAX: i64 = 255;
const CACHING_MODES: [&str; 3] = ["None", "ReadOnly", "ReadWrite"];
const DISK_KINDS: [&str; 3] = ["Dedicated", "Managed", "Shared"];
const MANAGED_DISK: &str = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/\
    microsoft.compute/disks/{disk-id}";
const BLOB_DISK: &str =
    "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
const REGISTRY_TEXT: &str = "must be a host:port pair or multiple pairs separated by commas";
const TENANT_LENGTH_MAX: usize = 64;
/// Domains whose option names are reserved.
const RESERVED: [&str; 2] = [".kubernetes.io", ".k8s.io"];

/// Zero means the whole disk.
fn partition(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    let text = "must be between 1 and 255, inclusive";
    within(&format!("{path}.partition"), &source["partition"], 0..=NUMBER_MAX, text, causes);
}

/// Validates a logical unit number at `path`: 0 to 255.
pub fn lun(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    let text = "must be between 0 and 255, inclusive";
    within(&format!("{path}.lun"), &source["lun"], 0..=NUMBER_MAX, text, causes);
}

/// Validates a `gcePersistentDisk` source at `path`.
pub fn gce_disk(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    texts(path, source, &["pdName"], causes);
    partition(path, source, causes);
}

/// Validates an `awsElasticBlockStore` source at `path`.
pub fn aws_store(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    texts(path, source, &["volumeID"], causes);
    partition(path, source, causes);
}

/// Validates an `nfs` source at `path`.
pub fn nfs(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    texts(path, source, &["server", "path"], causes);
    let given = str_of(&source["path"]);
    if !given.starts_with('/') {
        let path = format!("{path}.path");
        causes.push(Cause::invalid(path, &given.into(), "must be an absolute path"));
    }
}

/// Validates an `iscsi` source at `path`.
pub fn iscsi(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    texts(path, source, &["targetPortal"], causes);
    let iqn = &source["iqn"];
    if require_text(&format!("{path}.iqn"), iqn, causes) {
        iscsi_name(&format!("{path}.iqn"), str_of(iqn), causes);
    }
    lun(path, source, causes);
    let has_secret = source["secretRef"].is_object();
    if !has_secret && (source["chapAuthDiscovery"] == true || source["chapAuthSession"] == true) {
        causes.push(Cause::required(format!("{path}.secretRef"), ""));
    }
    if let Value::String(name) = &source["initiatorName"] {
        iscsi_name(&format!("{path}.initiatorname"), name, causes);
    }
}

fn iscsi_name(path: &str, name: &str, causes: &mut Vec<Cause>) {
    if !["iqn", "eui", "naa"].iter().any(|kind| name.starts_with(kind)) {
        let text = "must be valid format starting with iqn, eui, or naa";
        causes.push(Cause::invalid(path, &name.into(), text));
    } else if !is_iscsi_name(name) {
        causes.push(Cause::invalid(path, &name.into(), "must be valid format"));
    }
}

/// Whether a text is an iSCSI name: by date and owner (`iqn`), or by a number of 64 (`eui`) or 128
/// bits (`naa`).
pub fn is_iscsi_name(name: &str) -> bool {
    let digits = |text: &str, count| {
        text.len() == count && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    is_iqn(name)
        || name.strip_prefix("eui.").is_some_and(|text| digits(text, 16))
        || name.strip_prefix("naa.").is_some_and(|text| digits(text, 32))
}

/// `iqn.<year>-<month>.<owner>:<name>`.
fn is_iqn(name: &str) -> bool {
    let is_number =
        |text: &str, count| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    let parts = name.strip_prefix("iqn.").and_then(|rest| rest.split_once('.'));
    let Some((date, rest)) = parts else { return false };
    let dated = date.split_once('-').is_some_and(|(y, m)| is_number(y, 4) && is_number(m, 2));
    let Some((owner, own)) = rest.split_once(':') else { return false };
    let of_owner = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    let refused = |character: char| character.is_whitespace() || ",;*&$|".contains(character);
    dated
        && !owner.is_empty()
        && owner.bytes().all(of_owner)
        && !own.is_empty()
        && !own.chars().any(refused)
}

/// Validates a `flocker` source at `path`.
pub fn flocker(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    let (name, id) = (str_of(&source["datasetName"]), str_of(&source["datasetUUID"]));
    match (name.is_empty(), id.is_empty()) {
        (true, true) => {
            let text = "one of datasetName and datasetUUID is required";
            causes.push(Cause::required(path, text));
        }
        (false, false) => {
            let text = "datasetName and datasetUUID can not be specified simultaneously";
            causes.push(Cause::invalid(path, &"resource".into(), text));
        }
        _ => {}
    }
    if name.contains('/') {
        let path = format!("{path}.datasetName");
        causes.push(Cause::invalid(path, &name.into(), "must not contain '/'"));
    }
}

fn monitors(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    if items(&source["monitors"]).is_empty() {
        causes.push(Cause::required(format!("{path}.monitors"), ""));
    }
}

/// Validates an `rbd` source at `path`.
pub fn rbd(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    monitors(path, source, causes);
    texts(path, source, &["image"], causes);
}

/// Validates a `cephfs` source at `path`.
pub fn ceph(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    monitors(path, source, causes);
}

fn secret(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    if source["secretRef"].is_object() {
        require_text(&format!("{path}.secretRef.name"), &source["secretRef"]["name"], causes);
    }
}

/// Validates a `cinder` source at `path`.
pub fn cinder(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    texts(path, source, &["volumeID"], causes);
    secret(path, source, causes);
}

/// Validates a `storageos` source at `path`.
pub fn storage_os(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    texts(path, source, &["volumeName"], causes);
    secret(path, source, causes);
}

/// Validates a `quobyte` source at `path`.
pub fn quobyte(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    let (field, registry) = (format!("{path}.registry"), str_of(&source["registry"]));
    let is_pair = |pair: &str| pair.split(':').count() == 2 && !pair.split(':').any(str::is_empty);
    if registry.is_empty() {
        causes.push(Cause::required(field, REGISTRY_TEXT));
    } else if !registry.split(',').all(is_pair) {
        causes.push(Cause::invalid(field, &registry.into(), REGISTRY_TEXT));
    }
    if str_of(&source["tenant"]).len() > TENANT_LENGTH_MAX {
        let text =
            format!("must be a UUID and may not exceed a length of {TENANT_LENGTH_MAX} characters");
        causes.push(Cause::required(format!("{path}.tenant"), &text));
    }
    texts(path, source, &["volume"], causes);
}

/// Validates an `fc` source at `path`.
pub fn fibre_channel(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    let (field, targets) = (format!("{path}.targetWWNs"), &source["targetWWNs"]);
    match (items(targets).is_empty(), items(&source["wwids"]).is_empty()) {
        (true, true) => {
            let text = "must specify either targetWWNs or wwids, but not both";
            causes.push(Cause::required(field, text));
        }
        (false, false) => {
            let text = "targetWWNs and wwids can not be specified simultaneously";
            causes.push(Cause::invalid(field, targets, text));
        }
        _ => {}
    }
    if items(targets).is_empty() {
        return;
    }
    if source["lun"].is_null() {
        let text = "lun is required if targetWWNs is specified";
        causes.push(Cause::required(format!("{path}.lun"), text));
    }
    lun(path, source, causes);
}

/// Validates a `flexVolume` source at `path`. Refuses options in reserved domains.
pub fn flex(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    texts(path, source, &["driver"], causes);
    for name in source["options"].as_object().into_iter().flat_map(|options| options.keys()) {
        let owner = name.split_once('/').map_or(name.as_str(), |(owner, _)| owner);
        let owner = format!(".{}", owner.to_lowercase());
        if RESERVED.iter().any(|end| owner.ends_with(end)) {
            let text = "kubernetes.io and k8s.io namespaces are reserved";
            let path = format!("{path}.options[{name}]");
            causes.push(Cause::invalid(path, &name.as_str().into(), text));
        }
    }
}

/// Validates an `azureDisk` source at `path`.
pub fn azure_disk(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    texts(path, source, &["diskName", "diskURI"], causes);
    super::super::one_of(path, source, "cachingMode", &CACHING_MODES, causes);
    super::super::one_of(path, source, "kind", &DISK_KINDS, causes);
    let (form, start) = match str_of(&source["kind"]) {
        "Managed" => (MANAGED_DISK, "/subscriptions/"),
        _ => (BLOB_DISK, "https://"),
    };
    let address = str_of(&source["diskURI"]);
    if !address.starts_with(start) {
        let path = format!("{path}.diskURI");
        causes.push(Cause::not_supported(path, &address.into(), &[form]));
    }
}
