//! Pod: defaults, initial status, allowed updates, grace period.

mod binding;
pub mod cells;
mod ephemeral;
mod eviction;
mod resize;
pub mod spec;
mod status;
mod update;
pub mod validate;

use std::sync::{Arc, Weak};

use api_meta::status::{Cause, Status};
use apiserver::fields::{Object, child, each, ensure, items, map, preset, str_of};
use apiserver::kind::normal::quantity_problem_of_both;
use apiserver::kind::{AGE, FieldSpec, Hooks, Kind, NAME, PartialSubresource};
use apiserver::quota::quality;
use apiserver::registry::Registry;
use apiserver::resource::{Endpoint, Resource, Subresource, SubresourceHandler};
use apiserver::strategy::{Operation, Write};
use serde_json::{Value, json};

use super::old_annotations;
use crate::reviews;

/// The identity that may bind a pod to a node with an update.
pub const SCHEDULER: &str = "system:kube-scheduler";

/// The kind Pod with its defaults, rules and columns. [`add_endpoints`] adds the subresources with
/// logic of their own.
pub fn kind() -> Kind {
    Kind {
        preserved_by_status: &[
            &["spec"],
            &["metadata", "deletionTimestamp"],
            &["metadata", "ownerReferences"],
        ],
        parts: &[
            PartialSubresource {
                name: ephemeral::NAME,
                writes: ephemeral::WRITES,
                through_endpoint: false,
            },
            PartialSubresource {
                name: resize::NAME,
                writes: resize::WRITES,
                through_endpoint: false,
            },
            PartialSubresource {
                name: binding::NAME,
                writes: binding::WRITES,
                through_endpoint: true,
            },
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
        fields: vec![
            FieldSpec::text("spec.nodeName"),
            FieldSpec::named("spec.host", "spec.nodeName"),
            FieldSpec::text("spec.restartPolicy"),
            FieldSpec::text("spec.schedulerName"),
            FieldSpec::text("spec.serviceAccountName"),
            FieldSpec::text("spec.hostNetwork").unset("false"),
            FieldSpec::text("status.phase"),
            FieldSpec::text("status.podIP"),
            FieldSpec::named("status.podIPs", "status.podIP"),
            FieldSpec::text("status.nominatedNodeName"),
        ],
        hooks: Hooks {
            default,
            prepare,
            validate: validate_pod,
            validate_status: validate::status,
            decode_problem: quantity_problem_of_both,
            warnings: old_annotations::of_pod,
            cells: cells::row,
            grace_seconds,
            ..Hooks::default()
        },
        ..Kind::new("", "pods", "pod", "Pod").with_status().counted().deleted_as_object()
    }
}

/// Adds the subresources of pods that do more than write a part of the pod, and the resource
/// `bindings`. They read and write pods through `registry`, which must serve pods when the first
/// request arrives.
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
    resources.push(reviews::computed_resource("", "Binding", true, bindings()));
}

fn registry(registry: &Weak<Registry>) -> Result<Arc<Registry>, Status> {
    registry.upgrade().ok_or_else(|| Status::unavailable("the server is shutting down"))
}

/// The response to a successful request that returns no object.
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
        request_together(spec);
        if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
            for field in ["containers", "initContainers"] {
                each(spec, field, |container| each(container, "ports", bind_host_port));
            }
        }
    }
    if let Some(status) = child(object, "status") {
        status::default(status);
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

/// The requests of a pod as a whole: those of its containers, else its limits.
fn request_together(spec: &mut Object) {
    let is_limited = |spec: &Object| spec.get("resources")?.get("limits")?.as_object().cloned();
    let Some(limits) = is_limited(spec) else { return };
    let whole = Value::Object(spec.clone());
    let of_containers = validate::requests_of_containers(&whole);
    let Some(resources) = child(spec, "resources") else { return };
    let Some(requests) = ensure(resources, "requests") else { return };
    for (name, amount) in of_containers {
        if resize::RESIZABLE.contains(&name) {
            requests.entry(name).or_insert_with(|| amount.to_string().into());
        }
    }
    for (name, limit) in limits {
        if resize::RESIZABLE.contains(&name.as_str()) || name.starts_with("hugepages-") {
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
    if let (Operation::UpdateStatus, Some(old)) = (write.operation, old) {
        status::retain_old_fields(object, old);
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
            causes.extend(validate::pod_only(&object["spec"]));
            if !items(&object["spec"]["ephemeralContainers"]).is_empty() {
                let field = "spec.ephemeralContainers";
                causes.push(Cause::forbidden(field, "cannot be set on create"));
            }
            let is_gated = !items(&object["spec"]["schedulingGates"]).is_empty();
            if is_gated && !str_of(&object["spec"]["nodeName"]).is_empty() {
                let text = "cannot be set until all schedulingGates have been cleared";
                causes.push(Cause::forbidden("spec.nodeName", text));
            }
            causes
        }
        (Operation::Update, Some(old)) => update::validate(write, object, old),
        (Operation::Part(ephemeral::NAME), Some(old)) => ephemeral::validate(object, old),
        (Operation::Part(resize::NAME), Some(old)) => {
            let mut causes = validate::spec("spec", &object["spec"]);
            causes.extend(resize::validate(object, old));
            causes
        }
        _ => Vec::new(),
    }
}

/// Only pods on a node have a grace period. In seconds.
fn grace_seconds(object: &Value, requested: Option<i64>) -> i64 {
    let spec = &object["spec"];
    let over = matches!(str_of(&object["status"]["phase"]), "Failed" | "Succeeded");
    if over || str_of(&spec["nodeName"]).is_empty() {
        return 0;
    }
    requested.or_else(|| spec["terminationGracePeriodSeconds"].as_i64()).unwrap_or(0).max(0)
}
