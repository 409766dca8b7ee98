//! Volumes of a pod.

mod files;
pub mod network;

use std::collections::{BTreeMap, BTreeSet};

use api_meta::names;
use api_meta::quantity::Quantity;
use api_meta::status::Cause;
use apiserver::fields::{Object, str_of};
use serde_json::Value;

use super::{container, each, no_backsteps, require_text, required_name};
use crate::kinds::volume::claim;

/// Volumes by name.
pub type Volumes<'a> = BTreeMap<&'a str, &'a Value>;

type SourceCheck = fn(&str, &Value, &mut Vec<Cause>);

/// Sources in the order of validation; when several are set, the first one counts.
const SOURCES: [(&str, SourceCheck); 30] = [
    ("emptyDir", empty_dir),
    ("hostPath", host_path),
    ("gitRepo", git_repo),
    ("gcePersistentDisk", network::gce_disk),
    ("awsElasticBlockStore", network::aws_store),
    ("secret", files::secret),
    ("nfs", network::nfs),
    ("iscsi", network::iscsi),
    ("glusterfs", |path, source, causes| texts(path, source, &["endpoints", "path"], causes)),
    ("flocker", network::flocker),
    ("persistentVolumeClaim", |path, source, causes| texts(path, source, &["claimName"], causes)),
    ("rbd", network::rbd),
    ("cinder", network::cinder),
    ("cephfs", network::ceph),
    ("quobyte", network::quobyte),
    ("downwardAPI", files::downward),
    ("fc", network::fibre_channel),
    ("flexVolume", network::flex),
    ("configMap", files::config_map),
    ("azureFile", |path, source, causes| texts(path, source, &["secretName", "shareName"], causes)),
    ("vsphereVolume", |path, source, causes| texts(path, source, &["volumePath"], causes)),
    ("photonPersistentDisk", |path, source, causes| texts(path, source, &["pdID"], causes)),
    ("portworxVolume", |path, source, causes| texts(path, source, &["volumeID"], causes)),
    ("azureDisk", network::azure_disk),
    ("storageos", network::storage_os),
    ("projected", files::projected),
    ("scaleIO", |path, source, causes| {
        texts(path, source, &["gateway", "system", "volumeName"], causes);
    }),
    ("csi", csi),
    ("ephemeral", ephemeral),
    ("image", image),
];
const HOST_PATH_TYPES: [&str; 8] = [
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];
const DRIVER_LENGTH_MAX: usize = 63;

/// Validates volumes, and returns the valid ones.
pub fn all<'a>(field: &str, list: &'a Value, causes: &mut Vec<Cause>) -> Volumes<'a> {
    let mut good = Volumes::new();
    for (path, volume) in each(field, list) {
        let mut found = Vec::new();
        source(&path, volume, &mut found);
        let path = format!("{path}.name");
        required_name(&path, &volume["name"], names::dns1123_label, &mut found);
        let name = str_of(&volume["name"]);
        if good.contains_key(name) {
            found.push(Cause::duplicate(path, &name.into()));
        }
        if found.is_empty() {
            good.insert(name, volume);
        }
        causes.append(&mut found);
    }
    good
}

fn source(path: &str, volume: &Value, causes: &mut Vec<Cause>) {
    let mut given = SOURCES.iter().filter(|(kind, _)| volume[kind].is_object());
    if let Some((kind, check)) = given.next() {
        // One source is reported by the name that it has inside upstream.
        let reported = if *kind == "gcePersistentDisk" { "persistentDisk" } else { kind };
        check(&format!("{path}.{reported}"), &volume[kind], causes);
    }
    for (kind, _) in given {
        // Upstream spells two of them differently here.
        let reported = match *kind {
            "cephfs" => "cephFS",
            "downwardAPI" => "downwarAPI",
            kind => kind,
        };
        let text = "may not specify more than 1 volume type";
        causes.push(Cause::forbidden(format!("{path}.{reported}"), text));
    }
}

/// Checks that all texts are set; appends a cause for each that is not.
pub fn texts(path: &str, source: &Value, names: &[&str], causes: &mut Vec<Cause>) {
    for name in names {
        require_text(&format!("{path}.{name}"), &source[name], causes);
    }
}

fn empty_dir(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    let limit = str_of(&source["sizeLimit"]).parse();
    if limit.is_ok_and(|limit: Quantity| limit.is_negative()) {
        let text = "SizeLimit field must be a valid resource quantity";
        causes.push(Cause::forbidden(format!("{path}.sizeLimit"), text));
    }
}

/// Validates a `hostPath` source at `path`.
pub fn host_path(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    texts(path, source, &["path"], causes);
    no_backsteps(&format!("{path}.path"), &source["path"], causes);
    super::require_one_of(&format!("{path}.type"), &source["type"], &HOST_PATH_TYPES, causes);
}

fn git_repo(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    texts(path, source, &["repository"], causes);
    super::descending_path(&format!("{path}.directory"), &source["directory"], causes);
}

/// Validates the name of a volume driver at `path`.
pub fn driver(path: &str, driver: &Value, causes: &mut Vec<Cause>) {
    if require_text(path, driver, causes) {
        if str_of(driver).len() > DRIVER_LENGTH_MAX {
            causes.push(Cause::too_long(path, DRIVER_LENGTH_MAX));
        }
        let check = |name: &str| names::dns1123_subdomain(&name.to_lowercase());
        super::name(path, driver, check, causes);
    }
}

fn csi(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    driver(&format!("{path}.driver"), &source["driver"], causes);
    let secret = &source["nodePublishSecretRef"];
    if secret.is_object()
        && require_text(&format!("{path}.nodePublishSecretRef.name"), &secret["name"], causes)
    {
        super::name(&format!("{path}.name"), &secret["name"], names::dns1123_subdomain, causes);
    }
}

fn ephemeral(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    let path = format!("{path}.volumeClaimTemplate");
    let template = &source["volumeClaimTemplate"];
    if template.is_null() {
        causes.push(Cause::required(path, ""));
        return;
    }
    let metadata = template["metadata"].as_object().cloned().unwrap_or_else(Object::new);
    let at = format!("{path}.metadata");
    causes.extend(api_meta::labels::validate_labels(
        &format!("{at}.labels"),
        &template["metadata"]["labels"],
    ));
    let annotations = &template["metadata"]["annotations"];
    causes
        .extend(api_meta::labels::validate_annotations(&format!("{at}.annotations"), annotations));
    let allowed = ["annotations", "labels"];
    for name in metadata.keys().filter(|name| !allowed.contains(&name.as_str())) {
        causes.push(Cause::forbidden(format!("{at}.{name}"), "cannot be set"));
    }
    causes.extend(claim::spec(&format!("{path}.spec"), &template["spec"]));
}

fn image(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    texts(path, source, &["reference"], causes);
    super::one_of(path, source, "pullPolicy", &container::PULL_POLICIES, causes);
}

/// Paths of files in a volume.
type Paths<'a> = BTreeSet<&'a str>;
