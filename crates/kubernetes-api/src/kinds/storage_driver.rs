//! Settings and reports of volume drivers: CSIDriver, CSINode, CSIStorageCapacity,
//! VolumeAttachment, VolumeAttributesClass.

use api_meta::names;
use api_meta::object::ObjectExt;
use api_meta::quantity::{Quantity, QuantityError, canonical};
use api_meta::status::Cause;
use apiserver::fields::{each, ensure, items, map, preset, str_of, texts};
use apiserver::kind::cells::{self, UNSET};
use apiserver::kind::{AGE, Hooks, Kind, NAME};
use apiserver::strategy::Write;
use serde_json::{Value, json};

use super::pod;
use super::template::not_negative;
use super::volume::{class, persistent};

/// Total size of the keys and values of an attachment's metadata, in bytes.
const ATTACHMENT_METADATA_MAX: usize = 256 << 10;
const ERROR_LENGTH_MAX: usize = 1024;
const NODE_ID_LENGTH_MAX: usize = 256;
const GROUP: &str = "storage.k8s.io";
const IMMUTABLE: &str = "field is immutable";
/// Shortest lifetime of a token that a driver may request, in seconds.
const TOKEN_SECONDS_MIN: i64 = 600;
const TOKEN_SECONDS_MAX: i64 = 1 << 32;
const UPDATE_SECONDS_MIN: i64 = 10;

const MODES: [&str; 2] = ["Persistent", "Ephemeral"];
const GROUP_POLICIES: [&str; 3] = ["File", "None", "ReadWriteOnceWithFSType"];

/// The kind CSIDriver of the group `storage.k8s.io`: cluster-scoped, with the defaults, validation
/// and columns of kube-apiserver.
pub fn csi_driver() -> Kind {
    let mut kind = Kind {
        namespaced: false,
        columns: &[
            NAME,
            ("AttachRequired", "boolean", "", 0),
            ("PodInfoOnMount", "boolean", "", 0),
            ("StorageCapacity", "boolean", "", 0),
            ("TokenRequests", "string", "", 0),
            ("RequiresRepublish", "boolean", "", 0),
            ("Modes", "string", "", 0),
            AGE,
        ],
        hooks: Hooks {
            default: |object| {
                let spec = map(object).and_then(|object| ensure(object, "spec"));
                let Some(spec) = spec else { return };
                preset(spec, "attachRequired", true);
                preset(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
                preset(spec, "volumeLifecycleModes", json!(["Persistent"]));
                for off in
                    ["podInfoOnMount", "requiresRepublish", "seLinuxMount", "storageCapacity"]
                {
                    preset(spec, off, false);
                }
            },
            prepare: |_, object, old| {
                // Unlike other kinds, its generation begins at 0.
                if let Some(old) = old.filter(|old| old["spec"] != object["spec"]) {
                    object.set_meta("generation", old.generation() + 1);
                }
            },
            validate: validate_driver,
            cells: |object, now| {
                let spec = &object["spec"];
                let list = |values: Vec<&str>| match values.is_empty() {
                    true => UNSET.to_owned(),
                    false => values.join(","),
                };
                let requests = items(&spec["tokenRequests"]).iter();
                let audiences = requests.map(|request| str_of(&request["audience"])).collect();
                let modes = items(&spec["volumeLifecycleModes"]).iter().map(str_of).collect();
                vec![
                    cells::name(object),
                    spec["attachRequired"].clone(),
                    spec["podInfoOnMount"].clone(),
                    spec["storageCapacity"].clone(),
                    list(audiences).into(),
                    spec["requiresRepublish"].clone(),
                    list(modes).into(),
                    cells::age(object, now),
                ]
            },
            ..Hooks::default()
        },
        ..Kind::new(GROUP, "csidrivers", "csidriver", "CSIDriver").deleted_as_object()
    };
    kind.rules.unconditional_update = false;
    kind
}

fn validate_driver(_: &Write<'_>, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let spec = &object["spec"];
    let mut causes = Vec::new();
    if !GROUP_POLICIES.contains(&str_of(&spec["fsGroupPolicy"])) {
        let field = "spec.fsGroupPolicy";
        causes.push(Cause::not_supported(field, &spec["fsGroupPolicy"], &GROUP_POLICIES));
    }
    tokens(&spec["tokenRequests"], &mut causes);
    let modes = &spec["volumeLifecycleModes"];
    for mode in items(modes).iter().filter(|mode| !MODES.contains(&str_of(mode))) {
        causes.push(Cause::not_supported("spec.volumeLifecycleModes", mode, &MODES));
    }
    let period = &spec["nodeAllocatableUpdatePeriodSeconds"];
    if period.as_i64().is_some_and(|seconds| seconds < UPDATE_SECONDS_MIN) {
        let text = format!("must be greater than or equal to {UPDATE_SECONDS_MIN} seconds");
        causes.push(Cause::invalid("spec.nodeAllocatableUpdatePeriodSeconds", period, &text));
    }
    let in_secrets = &spec["serviceAccountTokenInSecrets"];
    if !in_secrets.is_null() && items(&spec["tokenRequests"]).is_empty() {
        let text = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        causes.push(Cause::invalid("spec.serviceAccountTokenInSecrets", in_secrets, text));
    }
    if let Some(old) = old {
        let old = &old["spec"];
        if old["attachRequired"] != spec["attachRequired"] {
            let field = "spec.attachedRequired";
            causes.push(Cause::invalid(field, &spec["attachRequired"], IMMUTABLE));
        }
        if old["volumeLifecycleModes"] != *modes {
            causes.push(Cause::invalid("spec.volumeLifecycleModes", modes, IMMUTABLE));
        }
    }
    causes
}

/// The audiences and lifetimes of tokens that a driver requests.
fn tokens(requests: &Value, causes: &mut Vec<Cause>) {
    let mut audiences = Vec::new();
    for (index, request) in items(requests).iter().enumerate() {
        let field = format!("spec.tokenRequests[{index}]");
        let audience = str_of(&request["audience"]);
        if audiences.contains(&audience) {
            causes.push(Cause::duplicate(format!("{field}.audience"), &request["audience"]));
            continue;
        }
        audiences.push(audience);
        let seconds = &request["expirationSeconds"];
        if seconds.as_i64().is_some_and(|seconds| seconds < TOKEN_SECONDS_MIN) {
            let text = "may not specify a duration less than 10 minutes";
            causes.push(Cause::invalid(format!("{field}.expirationSeconds"), seconds, text));
        }
        if seconds.as_i64().is_some_and(|seconds| seconds > TOKEN_SECONDS_MAX) {
            let text = "may not specify a duration larger than 2^32 seconds";
            causes.push(Cause::invalid(format!("{field}.expirationSeconds"), seconds, text));
        }
    }
}

/// The kind CSINode of the group `storage.k8s.io`: cluster-scoped, with the defaults, validation
/// and columns of kube-apiserver.
pub fn csi_node() -> Kind {
    let mut kind = Kind {
        namespaced: false,
        // `allocatable` is no map of quantities here.
        opaque: &["spec"],
        columns: &[NAME, ("Drivers", "integer", "", 0), AGE],
        hooks: Hooks {
            default: |object| {
                let spec = map(object).and_then(|object| ensure(object, "spec"));
                let Some(spec) = spec else { return };
                each(spec, "drivers", |driver| {
                    driver.retain(|_, value| !value.is_null() && *value != json!([]));
                });
                // Set even when it is empty.
                if spec.get("drivers").is_none_or(|drivers| items(drivers).is_empty()) {
                    spec.insert("drivers".to_owned(), Value::Null);
                }
            },
            validate: validate_node,
            cells: |object, now| {
                let drivers = items(&object["spec"]["drivers"]).len();
                vec![cells::name(object), drivers.into(), cells::age(object, now)]
            },
            ..Hooks::default()
        },
        ..Kind::new(GROUP, "csinodes", "csinode", "CSINode").deleted_as_object()
    };
    kind.rules.unconditional_update = false;
    kind
}

fn validate_node(_: &Write<'_>, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let drivers = items(&object["spec"]["drivers"]);
    let mut causes = Vec::new();
    for (index, driver) in drivers.iter().enumerate() {
        let field = format!("spec.drivers[{index}]");
        let name = str_of(&driver["name"]);
        causes.extend(driver_name(&format!("{field}.name"), &driver["name"]));
        node_id(&format!("{field}.nodeID"), &driver["nodeID"], &mut causes);
        let count = &driver["allocatable"]["count"];
        causes.extend(not_negative(&format!("{field}.allocatable.count"), count));
        if drivers[..index].iter().any(|before| str_of(&before["name"]) == name) {
            causes.push(Cause::duplicate(format!("{field}.name"), &name.into()));
        }
        topology(&field, &driver["topologyKeys"], &mut causes);
    }
    for before in old.map(|old| items(&old["spec"]["drivers"])).unwrap_or_default() {
        let after = drivers.iter().filter(|driver| driver["name"] == before["name"]);
        // The capacity may change.
        let kept = ["nodeID", "topologyKeys"];
        for driver in after.filter(|driver| kept.iter().any(|it| driver[it] != before[it])) {
            let shown = format!(
                "{{\"Name\":{},\"NodeID\":{},\"TopologyKeys\":{},\"Allocatable\":null}}",
                driver["name"], driver["nodeID"], driver["topologyKeys"],
            );
            let text = format!("Invalid value: {shown}: {IMMUTABLE}");
            causes.push(Cause::new("FieldValueInvalid", "spec.drivers", text));
        }
    }
    causes
}

/// The driver's identifier of the node.
fn node_id(field: &str, id: &Value, causes: &mut Vec<Cause>) {
    if str_of(id).is_empty() {
        causes.push(Cause::required(field, ""));
    }
    if str_of(id).len() > NODE_ID_LENGTH_MAX {
        let text = format!("must be {NODE_ID_LENGTH_MAX} characters or less");
        causes.push(Cause::invalid(field, id, &text));
    }
}

fn topology(field: &str, keys: &Value, causes: &mut Vec<Cause>) {
    let keys = items(keys);
    for (index, key) in keys.iter().enumerate() {
        if key == "" {
            causes.push(Cause::required(field, ""));
        }
        if keys[..index].contains(key) {
            causes.push(Cause::duplicate(field, key));
        }
        let problems = names::qualified_name(str_of(key));
        causes.extend(problems.iter().map(|text| Cause::invalid(field, key, text)));
    }
}

fn driver_name(field: &str, name: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    pod::validate::volume::driver(field, name, &mut causes);
    causes
}

/// The kind CSIStorageCapacity of the group `storage.k8s.io`: namespaced, with the defaults,
/// validation and columns of kube-apiserver.
pub fn csi_storage_capacity() -> Kind {
    Kind {
        columns: &[NAME, ("Created At", "date", "", 0)],
        hooks: Hooks {
            default: |object| {
                for field in SIZES {
                    if let Some(text) = object.get(field).and_then(canonical) {
                        object[field] = text.into();
                    }
                }
            },
            decode_problem: |object| {
                let mut sizes = SIZES.iter().filter_map(|field| object.get(*field));
                let wrong = sizes.any(|size| !size.is_null() && canonical(size).is_none());
                wrong.then(|| QuantityError.to_string())
            },
            validate: |_, object, old| {
                let class = &object["storageClassName"];
                let problems = names::dns1123_subdomain(str_of(class));
                let mut causes: Vec<Cause> = problems
                    .iter()
                    .map(|text| Cause::invalid("storageClassName", &str_of(class).into(), text))
                    .collect();
                let capacity = str_of(&object["capacity"]).parse::<Quantity>();
                if capacity.is_ok_and(|capacity| capacity.is_negative()) {
                    let text = "must be greater than or equal to 0";
                    causes.push(Cause::invalid("capacity", &object["capacity"], text));
                }
                for field in ["nodeTopology", "storageClassName"] {
                    if old.is_some_and(|old| old[field] != object[field]) {
                        causes.push(Cause::invalid(field, &object[field], IMMUTABLE));
                    }
                }
                causes
            },
            cells: |object, _| {
                vec![cells::name(object), object["metadata"]["creationTimestamp"].clone()]
            },
            ..Hooks::default()
        },
        ..Kind::new(GROUP, "csistoragecapacities", "csistoragecapacity", "CSIStorageCapacity")
    }
}

const SIZES: [&str; 2] = ["capacity", "maximumVolumeSize"];

/// The kind VolumeAttachment of the group `storage.k8s.io`: cluster-scoped, with the defaults,
/// validation and columns of kube-apiserver.
pub fn volume_attachment() -> Kind {
    let mut kind = Kind {
        namespaced: false,
        columns: &[
            NAME,
            ("Attacher", "string", "name", 0),
            ("PV", "string", "", 0),
            ("Node", "string", "", 0),
            ("Attached", "boolean", "", 0),
            AGE,
        ],
        hooks: Hooks {
            default: |object| {
                let Some(object) = map(object) else { return };
                if let Some(spec) = ensure(object, "spec") {
                    ensure(spec, "source");
                }
                if let Some(status) = ensure(object, "status") {
                    preset(status, "attached", false);
                }
            },
            validate: |_, object, old| validate_attachment(object, old),
            validate_status: |object, _| validate_attachment_status(object),
            cells: |object, now| {
                let spec = &object["spec"];
                vec![
                    cells::name(object),
                    str_of(&spec["attacher"]).into(),
                    str_of(&spec["source"]["persistentVolumeName"]).into(),
                    str_of(&spec["nodeName"]).into(),
                    (object["status"]["attached"] == true).into(),
                    cells::age(object, now),
                ]
            },
            ..Hooks::default()
        },
        ..Kind::new(GROUP, "volumeattachments", "volumeattachment", "VolumeAttachment")
            .with_status()
            .deleted_as_object()
    };
    kind.rules.unconditional_update = false;
    kind
}

fn validate_attachment_status(object: &Value) -> Vec<Cause> {
    let status = &object["status"];
    let mut causes = Vec::new();
    let metadata = status["attachmentMetadata"].as_object().into_iter().flatten();
    let size: usize = metadata.map(|(key, value)| key.len() + str_of(value).len()).sum();
    if size > ATTACHMENT_METADATA_MAX {
        causes.push(Cause::too_long("status.attachmentMetadata", ATTACHMENT_METADATA_MAX));
    }
    for kind in ["attachError", "detachError"] {
        let (field, error) = (format!("status.{kind}"), &status[kind]);
        if str_of(&error["message"]).len() > ERROR_LENGTH_MAX {
            // Upstream reports the limit of the metadata.
            causes.push(Cause::too_long(format!("{field}.message"), ATTACHMENT_METADATA_MAX));
        }
        let code = &error["errorCode"];
        if code.as_i64().is_some_and(|code| code < 0) {
            let text = "must be between 0 and 2147483647, inclusive";
            causes.push(Cause::invalid(format!("{field}.errorCode"), code, text));
        }
    }
    causes
}

fn validate_attachment(object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let spec = &object["spec"];
    let mut causes = driver_name("spec.attacher", &spec["attacher"]);
    let volume = &spec["source"]["persistentVolumeName"];
    let inline = &spec["source"]["inlineVolumeSpec"];
    if volume.is_null() == inline.is_null() {
        let text = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
        causes.push(if volume.is_null() {
            Cause::required("spec.source", text)
        } else {
            Cause::forbidden("spec.source", text)
        });
    }
    let field = "spec.source.persistentVolumeName";
    if volume == "" && inline.is_null() {
        causes.push(Cause::required(field, "must specify non empty persistentVolumeName"));
    }
    if volume.is_null() && !inline.is_null() {
        causes.extend(persistent::inline("spec.source.inlineVolumeSpec", inline));
    }
    let node = str_of(&spec["nodeName"]);
    let problems = names::dns1123_subdomain(node);
    causes.extend(problems.iter().map(|text| Cause::invalid("spec.nodeName", &node.into(), text)));
    if let Some(name) = volume.as_str() {
        let problems = names::dns1123_subdomain(name);
        causes.extend(problems.iter().map(|text| Cause::invalid(field, volume, text)));
    }
    if old.is_some_and(|old| old["spec"] != *spec) {
        let shown = format!(
            "{{\"Attacher\":{},\"Source\":{{\"PersistentVolumeName\":{volume},\
             \"InlineVolumeSpec\":{inline}}},\"NodeName\":{}}}",
            spec["attacher"], spec["nodeName"],
        );
        let text = format!("Invalid value: {shown}: {IMMUTABLE}");
        causes.push(Cause::new("FieldValueInvalid", "spec", text));
    }
    causes
}

/// The kind VolumeAttributesClass of the group `storage.k8s.io`: cluster-scoped, with the defaults,
/// validation and columns of kube-apiserver.
pub fn volume_attributes_class() -> Kind {
    Kind {
        namespaced: false,
        short_names: &["vac"],
        columns: &[NAME, ("DriverName", "string", "", 0), AGE],
        hooks: Hooks {
            default: |object| {
                if let Some(object) = map(object) {
                    texts(object, "parameters");
                    preset(object, "driverName", "");
                }
            },
            validate: |_, object, old| {
                let mut causes = Vec::new();
                for field in ["driverName", "parameters"] {
                    if old.is_some_and(|old| old[field] != object[field]) {
                        let text = format!("updates to {field} are forbidden.");
                        causes.push(Cause::forbidden(field, &text));
                    }
                }
                causes.extend(class::provisioner("driverName", &object["driverName"]));
                causes.extend(class::parameters(&object["parameters"]));
                if object["parameters"].as_object().is_none_or(|map| map.is_empty()) {
                    let text = "must contain at least one key/value pair";
                    causes.push(Cause::required("parameters", text));
                }
                causes
            },
            cells: |object, now| {
                let driver = str_of(&object["driverName"]);
                vec![cells::name(object), driver.into(), cells::age(object, now)]
            },
            ..Hooks::default()
        },
        text_maps: &["parameters"],
        ..Kind::new(
            GROUP,
            "volumeattributesclasses",
            "volumeattributesclass",
            "VolumeAttributesClass",
        )
        .deleted_as_object()
    }
}
