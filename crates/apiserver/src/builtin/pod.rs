//! Pod: defaults, status at birth, what an update may change, grace.

mod binding;
pub mod cells;
mod ephemeral;
mod eviction;
pub mod quality;
mod resize;
pub mod spec;
mod status;
pub mod validate;

use std::sync::{Arc, Weak};

use api_meta::status::{Cause, Status};
use serde_json::{Value, json};

use super::fields::{Object, child, each, ensure, items, map, preset, str_of};
use super::kind::{AGE, Hooks, Kind, NAME, Part};
use super::normal::quantity_problem;
use super::old_annotations;
use crate::registry::Registry;
use crate::resource::{Endpoint, Resource, Subresource, SubresourceHandler};
use crate::reviews;
use crate::strategy::{Operation, Write};

/// Writes of this identity may bind a pod to a node by an update.
pub const SCHEDULER: &str = "system:kube-scheduler";

const UPDATE_FORBIDDEN: &str = "pod updates may not change fields other than \
    `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub fn kind() -> Kind {
    Kind {
        kept_by_status: &[
            &["spec"],
            &["metadata", "deletionTimestamp"],
            &["metadata", "ownerReferences"],
        ],
        parts: &[
            Part { name: ephemeral::NAME, writes: ephemeral::WRITES, through_endpoint: false },
            Part { name: resize::NAME, writes: resize::WRITES, through_endpoint: false },
            Part { name: binding::NAME, writes: binding::WRITES, through_endpoint: true },
        ],
        gives_grace: true,
        short_names: &["po"],
        categories: &["all"],
        columns: &[
            NAME,
            ("Ready", "string", "", 0),
            ("Status", "string", "", 0),
            ("Restarts", "string", "", 0),
            AGE,
            ("IP", "string", "", 1),
            ("Node", "string", "", 1),
            ("Nominated Node", "string", "", 1),
            ("Readiness Gates", "string", "", 1),
        ],
        fields: &[
            ("spec.nodeName", "spec.nodeName"),
            ("spec.restartPolicy", "spec.restartPolicy"),
            ("spec.schedulerName", "spec.schedulerName"),
            ("spec.serviceAccountName", "spec.serviceAccountName"),
            ("spec.hostNetwork", "spec.hostNetwork"),
            ("status.phase", "status.phase"),
            ("status.podIP", "status.podIP"),
            ("status.podIPs", "status.podIP"),
            ("status.nominatedNodeName", "status.nominatedNodeName"),
        ],
        hooks: Hooks {
            default,
            prepare,
            validate: validate_pod,
            decode_problem: |object| quantity_problem(&object["spec"]),
            warnings: old_annotations::of_pod,
            cells: cells::row,
            grace_seconds,
            ..Hooks::default()
        },
        ..Kind::new("", "pods", "pod", "Pod").with_status().counted().deleted_as_object()
    }
}

/// Gives pods their subresources that are more than a part of them, and adds the resource
/// `bindings`. Pods are read and written through `registry`, which must serve them later.
pub fn add_endpoints(registry: &Arc<Registry>, resources: &mut Vec<Resource>) {
    let Some(pods) = resources.iter_mut().find(|r| r.group.is_empty() && r.plural == "pods") else {
        return;
    };
    let create = |name, endpoint: Arc<dyn Endpoint>, gvk| Subresource {
        name,
        verbs: vec!["create"],
        handler: SubresourceHandler::Endpoint(endpoint),
        gvk: Some(gvk),
    };
    let bindings = || Arc::new(binding::Bindings(Arc::downgrade(registry)));
    let evictions = Arc::new(eviction::Evictions(Arc::downgrade(registry)));
    pods.subresources.push(create(binding::NAME, bindings(), ("", "v1", "Binding")));
    pods.subresources.push(create(eviction::NAME, evictions, ("policy", "v1", "Eviction")));
    resources.push(reviews::computed("", "Binding", true, bindings()));
}

fn registry(registry: &Weak<Registry>) -> Result<Arc<Registry>, Status> {
    registry.upgrade().ok_or_else(|| Status::unavailable("the server is shutting down"))
}

/// Answers what was done and has nothing to show.
fn success() -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
}

fn default(object: &mut Value) {
    let Some(object) = map(object) else { return };
    if let Some(spec) = ensure(object, "spec") {
        spec::default(spec);
        preset(spec, "enableServiceLinks", true);
        for field in ["containers", "initContainers"] {
            each(spec, field, request_limits);
        }
        if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
            for field in ["containers", "initContainers"] {
                each(spec, field, |container| each(container, "ports", bind_host_port));
            }
        }
    }
    if let Some(status) = child(object, "status") {
        each(status, "conditions", |condition| {
            preset(condition, "lastProbeTime", Value::Null);
            preset(condition, "lastTransitionTime", Value::Null);
        });
    }
}

/// A limit without a request is also the request.
fn request_limits(container: &mut Object) {
    let Some(resources) = child(container, "resources") else { return };
    let Some(Value::Object(limits)) = resources.get("limits").cloned() else { return };
    if let Some(requests) = ensure(resources, "requests") {
        for (name, limit) in limits {
            requests.entry(name).or_insert(limit);
        }
    }
}

fn bind_host_port(port: &mut Object) {
    if let Some(number) = port.get("containerPort").cloned() {
        preset(port, "hostPort", number);
    }
}

fn prepare(write: &Write<'_>, object: &mut Value, old: Option<&Value>) {
    if let (Operation::Part(resize::NAME), Some(old)) = (write.operation, old) {
        resize::prepare(object, old);
    }
    if write.operation != Operation::Create {
        return;
    }
    let class = quality::of(&object["spec"]);
    object["status"] = json!({"phase": "Pending", "qosClass": class});
}

fn validate_pod(write: &Write<'_>, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    match (write.operation, old) {
        (Operation::Create, _) => {
            let mut causes = validate::spec("spec", &object["spec"]);
            if !items(&object["spec"]["ephemeralContainers"]).is_empty() {
                let field = "spec.ephemeralContainers";
                causes.push(Cause::forbidden(field, "cannot be set on create"));
            }
            causes
        }
        (Operation::Update, Some(old)) => validate_update(write, object, old),
        (Operation::Part(ephemeral::NAME), Some(old)) => ephemeral::validate(object, old),
        (Operation::Part(resize::NAME), Some(old)) => {
            let mut causes = validate::spec("spec", &object["spec"]);
            causes.extend(resize::validate(object, old));
            causes
        }
        _ => Vec::new(),
    }
}

fn validate_update(write: &Write<'_>, object: &Value, old: &Value) -> Vec<Cause> {
    let mut allowed = old["spec"].clone();
    let new = &object["spec"];
    for field in ["containers", "initContainers"] {
        let images = items(&new[field]);
        for (index, container) in
            allowed.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten().enumerate()
        {
            if let Some(image) = images.get(index).and_then(|container| container.get("image")) {
                container["image"] = image.clone();
            }
        }
    }
    let mut free = vec!["activeDeadlineSeconds"];
    let added_only = items(&old["spec"]["tolerations"])
        .iter()
        .all(|toleration| items(&new["tolerations"]).contains(toleration));
    if added_only {
        free.push("tolerations");
    }
    if old["spec"]["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        free.push("terminationGracePeriodSeconds");
    }
    if write.user.name == SCHEDULER && str_of(&old["spec"]["nodeName"]).is_empty() {
        free.push("nodeName");
    }
    if let (Some(allowed), Some(new)) = (map(&mut allowed), new.as_object()) {
        for field in free {
            match new.get(field) {
                Some(value) => allowed.insert(field.to_owned(), value.clone()),
                None => allowed.remove(field),
            };
        }
    }
    if &allowed == new {
        return validate::spec("spec", new);
    }
    vec![Cause::forbidden("spec", UPDATE_FORBIDDEN)]
}

/// Pods that run somewhere get time to stop.
fn grace_seconds(object: &Value, requested: Option<i64>) -> i64 {
    let spec = &object["spec"];
    let over = matches!(str_of(&object["status"]["phase"]), "Failed" | "Succeeded");
    if over || str_of(&spec["nodeName"]).is_empty() {
        return 0;
    }
    requested.or_else(|| spec["terminationGracePeriodSeconds"].as_i64()).unwrap_or(0).max(0)
}
