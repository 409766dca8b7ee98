//! Devices and claims of them: DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice.
//!
//! They are stored for drivers and the scheduler; their expressions are not compiled.

use api_meta::quantity::canonical;
use api_meta::status::Cause;
use api_meta::{names, time};
use apiserver::fields::{Object, child, each, ensure, items, map, preset, str_of, text};
use apiserver::kind::cells;
use apiserver::kind::{AGE, FieldSpec, Hooks, Kind, NAME};
use apiserver::strategy::Write;
use serde_json::Value;

const GROUP: &str = "resource.k8s.io";
const IMMUTABLE: &str = "field is immutable";
const ALLOCATION_MODES: [&str; 2] = ["All", "ExactCount"];
/// The fields that say which nodes reach the devices of a slice; exactly one is set.
const PLACES: [&str; 4] = ["nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection"];

/// The kind DeviceClass of the group `resource.k8s.io`: cluster-scoped, with the defaults and
/// validation of kube-apiserver.
pub fn device_class() -> Kind {
    Kind {
        namespaced: false,
        opaque: &["spec"],
        hooks: Hooks {
            default: |object| {
                map(object).and_then(|object| ensure(object, "spec"));
            },
            validate: |_, object, _| {
                let spec = &object["spec"];
                let mut causes = Vec::new();
                for (index, selector) in items(&spec["selectors"]).iter().enumerate() {
                    if selector["cel"].is_null() {
                        causes.push(Cause::required(format!("spec.selectors[{index}].cel"), ""));
                    }
                }
                causes.extend(parameters("spec", spec));
                causes
            },
            ..Hooks::default()
        },
        ..Kind::new(GROUP, "deviceclasses", "deviceclass", "DeviceClass")
            .deleted_as_object()
            .counted()
    }
}

/// Causes for parameters of drivers.
fn parameters(field: &str, spec: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (index, config) in items(&spec["config"]).iter().enumerate() {
        let field = format!("{field}.config[{index}].opaque");
        if config["opaque"].is_null() {
            causes.push(Cause::required(field, ""));
            continue;
        }
        causes.extend(driver(&format!("{field}.driver"), str_of(&config["opaque"]["driver"])));
        if config["opaque"]["parameters"].is_null() {
            causes.push(Cause::required(format!("{field}.parameters"), ""));
        }
    }
    causes
}

fn driver(field: &str, name: &str) -> Vec<Cause> {
    if name.is_empty() {
        return vec![Cause::required(field, "")];
    }
    check_text(field, name, names::dns1123_subdomain)
}

fn check_text(field: &str, text: &str, check: fn(&str) -> Vec<String>) -> Vec<Cause> {
    check(text).iter().map(|problem| Cause::invalid(field, &text.into(), problem)).collect()
}

/// The kind ResourceClaim of the group `resource.k8s.io`: namespaced, with the defaults, validation
/// and columns of kube-apiserver.
pub fn resource_claim() -> Kind {
    Kind {
        opaque: &["spec", "status"],
        columns: &[NAME, ("State", "string", "", 0), AGE],
        hooks: Hooks {
            default: |object| {
                let Some(object) = map(object) else { return };
                if let Some(spec) = ensure(object, "spec") {
                    default_claim(spec);
                }
                ensure(object, "status");
            },
            validate: |_, object, old| {
                let kept = immutable_change("spec", &object["spec"], old.map(|old| &old["spec"]));
                let mut causes: Vec<Cause> = kept.into_iter().collect();
                if old.is_none() {
                    causes.extend(claim("spec", &object["spec"]));
                }
                causes
            },
            cells: |object, now| {
                vec![cells::name(object), state(object).into(), cells::age(object, now)]
            },
            ..Hooks::default()
        },
        ..Kind::new(GROUP, "resourceclaims", "resourceclaim", "ResourceClaim")
            .with_status()
            .deleted_as_object()
    }
}

/// The state of a claim in its table row.
fn state(claim: &Value) -> String {
    let mut states = Vec::new();
    let deleted = claim["metadata"]["deletionTimestamp"].is_string();
    if deleted {
        states.push("deleted");
    }
    if claim["status"]["allocation"].is_object() {
        states.push("allocated");
        if !items(&claim["status"]["reservedFor"]).is_empty() {
            states.push("reserved");
        }
    } else if !deleted {
        states.push("pending");
    }
    states.join(",")
}

fn default_claim(spec: &mut Object) {
    let Some(devices) = ensure(spec, "devices") else { return };
    each(devices, "requests", |request| {
        if let Some(exactly) = child(request, "exactly") {
            default_request(exactly);
        }
        each(request, "firstAvailable", default_request);
    });
    // Set even when it is empty.
    if devices.get("requests").is_none_or(|requests| items(requests).is_empty()) {
        devices.insert("requests".to_owned(), Value::Null);
    }
}

fn default_request(request: &mut Object) {
    if text(request, "allocationMode").is_empty() {
        request.insert("allocationMode".to_owned(), "ExactCount".into());
    }
    let uncounted = request.get("count").is_none_or(|count| count.is_null() || *count == 0);
    if text(request, "allocationMode") == "ExactCount" && uncounted {
        request.insert("count".to_owned(), 1.into());
    }
    each(request, "tolerations", |toleration| preset(toleration, "operator", "Equal"));
}

/// A cause when an immutable field changes.
fn immutable_change(field: &str, new: &Value, old: Option<&Value>) -> Option<Cause> {
    let changed = old.is_some_and(|old| old != new);
    changed.then(|| Cause::invalid(field, new, IMMUTABLE))
}

fn claim(field: &str, spec: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut seen = Vec::new();
    let mut repeated = Vec::new();
    for (index, request) in items(&spec["devices"]["requests"]).iter().enumerate() {
        let field = format!("{field}.devices.requests[{index}]");
        let name = str_of(&request["name"]);
        causes.extend(check_text(&format!("{field}.name"), name, names::dns1123_label));
        if seen.contains(&name) {
            repeated.push(Cause::duplicate(&*field, &name.into()));
        }
        seen.push(name);
        let several = items(&request["firstAvailable"]);
        match (request["exactly"].is_null(), several.is_empty()) {
            (false, true) => {
                causes.extend(exact(&format!("{field}.exactly"), &request["exactly"]));
            }
            (true, false) => {
                for (index, request) in several.iter().enumerate() {
                    let field = format!("{field}.firstAvailable[{index}]");
                    let name = str_of(&request["name"]);
                    causes.extend(check_text(&format!("{field}.name"), name, names::dns1123_label));
                    causes.extend(exact(&field, request));
                }
            }
            (neither, _) => {
                let text = "exactly one of `exactly` or `firstAvailable` is required";
                causes.push(match neither {
                    true => Cause::required(field, text),
                    false => Cause::invalid(field, request, text),
                });
            }
        }
    }
    causes.extend(repeated);
    causes.extend(parameters(&format!("{field}.devices"), &spec["devices"]));
    causes
}

fn exact(field: &str, request: &Value) -> Vec<Cause> {
    let mut causes = match str_of(&request["deviceClassName"]) {
        "" => vec![Cause::required(format!("{field}.deviceClassName"), "")],
        class => check_text(&format!("{field}.deviceClassName"), class, names::dns1123_subdomain),
    };
    let (mode, count) = (&request["allocationMode"], &request["count"]);
    match str_of(mode) {
        "ExactCount" if count.as_i64().is_some_and(|count| count <= 0) => {
            let text = "must be greater than zero";
            causes.push(Cause::invalid(format!("{field}.count"), count, text));
        }
        "All" if count.as_i64().is_some_and(|count| count != 0) => {
            let text = "must not be specified when allocationMode is 'All'";
            causes.push(Cause::invalid(format!("{field}.count"), count, text));
        }
        mode if ALLOCATION_MODES.contains(&mode) => {}
        _ => {
            let field = format!("{field}.allocationMode");
            causes.push(Cause::not_supported(field, mode, &ALLOCATION_MODES));
        }
    }
    causes
}

/// The kind ResourceClaimTemplate of the group `resource.k8s.io`: namespaced, with the defaults and
/// validation of kube-apiserver.
pub fn resource_claim_template() -> Kind {
    Kind {
        opaque: &["spec"],
        hooks: Hooks {
            default: |object| {
                let template = map(object).and_then(|object| ensure(object, "spec"));
                let Some(template) = template else { return };
                ensure(template, "metadata");
                if let Some(spec) = ensure(template, "spec") {
                    default_claim(spec);
                }
            },
            validate: |_, object, old| match old {
                Some(old) => immutable_change("spec", &object["spec"], Some(&old["spec"]))
                    .into_iter()
                    .collect(),
                None => claim("spec.spec", &object["spec"]["spec"]),
            },
            ..Hooks::default()
        },
        ..Kind::new(
            GROUP,
            "resourceclaimtemplates",
            "resourceclaimtemplate",
            "ResourceClaimTemplate",
        )
        .deleted_as_object()
    }
}

/// The kind ResourceSlice of the group `resource.k8s.io`: cluster-scoped, with the defaults,
/// validation, columns and selectable fields of kube-apiserver.
pub fn resource_slice() -> Kind {
    Kind {
        namespaced: false,
        opaque: &["spec"],
        columns: &[
            NAME,
            ("Node", "string", "", 0),
            ("Driver", "string", "", 0),
            ("Pool", "string", "", 0),
            AGE,
        ],
        fields: vec![FieldSpec::text("spec.driver"), FieldSpec::text("spec.nodeName")],
        hooks: Hooks {
            default: default_slice,
            validate: validate_slice,
            cells: |object, now| {
                let spec = &object["spec"];
                vec![
                    cells::name(object),
                    str_of(&spec["nodeName"]).into(),
                    str_of(&spec["driver"]).into(),
                    str_of(&spec["pool"]["name"]).into(),
                    cells::age(object, now),
                ]
            },
            ..Hooks::default()
        },
        ..Kind::new(GROUP, "resourceslices", "resourceslice", "ResourceSlice")
            .deleted_as_object()
            .counted()
    }
}

fn default_slice(object: &mut Value) {
    let Some(spec) = map(object).and_then(|object| ensure(object, "spec")) else { return };
    preset(spec, "driver", "");
    if let Some(pool) = ensure(spec, "pool") {
        preset(pool, "name", "");
        preset(pool, "generation", 0);
        preset(pool, "resourceSliceCount", 0);
    }
    each(spec, "devices", |device| {
        for amount in device.get_mut("capacity").and_then(map).into_iter().flatten() {
            if let Some(text) = canonical(&amount.1["value"]) {
                amount.1["value"] = text.into();
            }
        }
        each(device, "taints", |taint| {
            preset(taint, "timeAdded", time::format_seconds(jiff::Timestamp::now().as_second()));
        });
    });
}

fn validate_slice(_: &Write<'_>, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let spec = &object["spec"];
    let pool = &spec["pool"];
    let mut causes = driver("spec.driver", str_of(&spec["driver"]));
    match str_of(&pool["name"]) {
        "" => causes.push(Cause::required("spec.pool.name", "")),
        name => {
            let problems = name.split('/').flat_map(names::dns1123_subdomain);
            let cause = |text: String| Cause::invalid("spec.pool.name", &name.into(), &text);
            causes.extend(problems.map(cause));
        }
    }
    if pool["resourceSliceCount"].as_i64().is_some_and(|count| count <= 0) {
        let (field, value) = ("spec.pool.resourceSliceCount", &pool["resourceSliceCount"]);
        causes.push(Cause::invalid(field, value, "must be greater than zero"));
    }
    if pool["generation"].as_i64().is_some_and(|generation| generation < 0) {
        let text = "must be greater than or equal to zero";
        causes.push(Cause::invalid("spec.pool.generation", &pool["generation"], text));
    }
    let is_set = |place: &&&str| {
        let value = &spec[**place];
        !value.is_null() && *value != false && *value != ""
    };
    let set: Vec<String> = PLACES.iter().filter(is_set).map(|place| format!("`{place}`")).collect();
    let text = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is \
                required";
    match set.len() {
        0 => causes.push(Cause::required("spec", text)),
        1 => {}
        _ => {
            let shown = format!("{{{}}}", set.join(", "));
            let text = format!("{text}, but multiple fields are set");
            causes.push(Cause::invalid("spec", &shown.into(), &text));
        }
    }
    let mut seen = Vec::new();
    let mut repeated = Vec::new();
    for (index, device) in items(&spec["devices"]).iter().enumerate() {
        let field = format!("spec.devices[{index}]");
        let name = str_of(&device["name"]);
        causes.extend(check_text(&format!("{field}.name"), name, names::dns1123_label));
        if seen.contains(&name) {
            repeated.push(Cause::duplicate(field, &name.into()));
        }
        seen.push(name);
    }
    causes.extend(repeated);
    if let Some(old) = old {
        let old = &old["spec"];
        for field in ["driver", "nodeName"] {
            causes.extend(immutable_change(
                &format!("spec.{field}"),
                &spec[field],
                Some(&old[field]),
            ));
        }
        causes.extend(immutable_change(
            "spec.pool.name",
            &pool["name"],
            Some(&old["pool"]["name"]),
        ));
    }
    causes
}
