//! `POST …/pods/<name>/binding` and `POST …/bindings`: the scheduler binds a pod to a node.

use std::sync::Weak;

use api_meta::object::ObjectExt;
use api_meta::status::{Cause, Status};
use api_meta::time;
use apiserver::admission::built_in::topology_labels;
use apiserver::fields::{items, str_of};
use apiserver::registry::{Registry, WriteOptions, WriteTarget};
use apiserver::resource::{Call, Endpoint};
use apiserver::strategy::Operation;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::status::set_condition;

/// The name of the subresource and of the part of a pod that it writes.
pub const NAME: &str = "binding";
pub const WRITES: &[&[&str]] = &[&["metadata"], &["spec", "nodeName"], &["status", "conditions"]];

/// Binds the pods of a registry.
pub struct Bindings(pub Weak<Registry>);

impl Bindings {
    async fn bind(&self, call: Call) -> Result<Value, Status> {
        let body = &call.body;
        if call.name.is_empty() && body.name().is_empty() {
            return Err(Status::bad_request("Name parameter required."));
        }
        let name = if call.name.is_empty() { body.name() } else { call.name.as_str() };
        if body.name() != name {
            let text = "name in URL does not match name in Binding object";
            return Err(Status::bad_request(text));
        }
        if let Some(problem) = target_problem(&body["target"]) {
            let text = format!("{}: {}", problem.field, problem.message);
            return Err(Status::new(500, "", text));
        }
        let registry = super::registry(&self.0)?;
        let pods = registry.find("", "pods").ok_or_else(Status::unknown_resource)?;
        let target = WriteTarget { resource: &pods, namespace: &call.namespace, name };
        let place = match str_of(&body["target"]["kind"]) {
            "Node" => topology_labels(&registry, str_of(&body["target"]["name"])).await?,
            _ => Map::new(),
        };
        let change = |old: &Value| {
            if let Some(text) = refusal(old) {
                return Err(Status::conflict("", "pods/binding", name, &text));
            }
            let mut new = old.clone();
            new["spec"]["nodeName"] = body["target"]["name"].clone();
            if !body.uid().is_empty() {
                new.set_meta("uid", body.uid());
            }
            for field in ["annotations", "labels"] {
                for (key, value) in body["metadata"][field].as_object().into_iter().flatten() {
                    new["metadata"][field][key] = value.clone();
                }
            }
            for (key, value) in &place {
                new["metadata"]["labels"][key] = value.clone();
            }
            let now = time::format_seconds(jiff::Timestamp::now().as_second());
            let condition = json!({
                "type": "PodScheduled", "status": "True", "lastTransitionTime": now,
            });
            set_condition(&mut new["status"], condition);
            Ok(new)
        };
        // Admission saw the binding instead of the pod.
        let options = WriteOptions {
            dry_run: call.dry_run,
            manager: call.manager.clone(),
            admitted: true,
            ..WriteOptions::of(call.user.clone())
        };
        registry.modify(&target, Operation::Part(NAME), &options, &change).await?;
        Ok(super::success())
    }
}

/// A cause to refuse the target of a binding.
fn target_problem(target: &Value) -> Option<Cause> {
    if !matches!(str_of(&target["kind"]), "" | "Node") {
        let known = ["Node", "<empty>"];
        return Some(Cause::not_supported("target.kind", &target["kind"], &known));
    }
    str_of(&target["name"]).is_empty().then(|| Cause::required("target.name", ""))
}

/// The reason why a pod cannot be bound; `None` when it can.
fn refusal(pod: &Value) -> Option<String> {
    let name = pod.name();
    if pod.is_terminating() {
        return Some(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    match str_of(&pod["spec"]["nodeName"]) {
        "" if items(&pod["spec"]["schedulingGates"]).is_empty() => None,
        "" => Some(format!("pod {name} has non-empty .spec.schedulingGates")),
        node => Some(format!("pod {name} is already assigned to node \"{node}\"")),
    }
}

impl Endpoint for Bindings {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<(u16, Value), Status>> {
        Box::pin(async move { self.bind(call).await.map(|status| (201, status)) })
    }
}
