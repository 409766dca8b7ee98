//! PersistentVolume, PersistentVolumeClaim, StorageClass.

pub mod claim;
pub mod class;
pub mod persistent;

use api_meta::time;
use apiserver::fields::{Object, child, ensure, map, preset, str_of, texts};
use apiserver::kind::cells::{self, UNSET};
use apiserver::kind::normal::{quantity_problem, quantity_problem_of_both};
use apiserver::kind::{AGE, Hooks, Kind, NAME};
use apiserver::strategy::{Operation, Write};
use serde_json::{Value, json};

use super::old_annotations;

const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

/// The kind PersistentVolume of the core group: cluster-scoped, with the defaults, validation and
/// columns of kube-apiserver.
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
            validate: |_, object, old| persistent::validate(object, old),
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

/// Sets the time of the last change of a volume's phase.
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

/// The kind PersistentVolumeClaim of the core group: namespaced, with the defaults, validation and
/// columns of kube-apiserver.
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
            prepare: |write, object, old| {
                if write.operation != Operation::UpdateStatus {
                    claim::prepare(object, old);
                }
            },
            validate: |_, object, old| claim::validate(object, old),
            validate_status: |object, _| claim::validate_status(&object["status"]),
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

/// Sets the defaults of a claim or of a claim template.
pub fn default_claim(claim: &mut Object) {
    ensure(claim, "metadata");
    if let Some(spec) = ensure(claim, "spec") {
        preset(spec, "volumeMode", "Filesystem");
        ensure(spec, "resources");
    }
    if let Some(status) = ensure(claim, "status") {
        preset(status, "phase", "Pending");
        apiserver::kind::default_conditions(status, &["lastProbeTime"]);
    }
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

/// The kind StorageClass of the group `storage.k8s.io`: cluster-scoped, with the defaults,
/// validation and columns of kube-apiserver.
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
            validate: |_, object, old| class::validate(object, old),
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
