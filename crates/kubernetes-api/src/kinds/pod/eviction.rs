//! `POST …/pods/<name>/eviction`: a delete that respects disruption budgets.

use std::sync::{Arc, Weak};

use api_meta::labels::LabelSelector;
use api_meta::object::ObjectExt;
use api_meta::status::{Cause, Status};
use api_meta::time;
use apiserver::fields::{items, str_of};
use apiserver::registry::{DeleteOptions, ListQuery, Registry, WriteOptions, WriteTarget};
use apiserver::resource::{Call, Endpoint, Resource};
use apiserver::strategy::Operation;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::status::set_condition;

pub const NAME: &str = "eviction";
/// Seconds until a budget that is not yet up to date is trusted.
const PROCESSED_SECONDS: u32 = 10;
/// Number of evicted pods that a budget records before its controller observes their deletion.
const DISRUPTED_MAX: usize = 2000;

/// Evicts the pods of a registry.
pub struct Evictions(pub Weak<Registry>);

/// One eviction in progress.
struct Eviction {
    registry: Arc<Registry>,
    pods: Arc<Resource>,
    budgets: Arc<Resource>,
    namespace: String,
    name: String,
    options: WriteOptions,
    delete: DeleteOptions,
}

impl Evictions {
    async fn evict(&self, call: Call) -> Result<Value, Status> {
        if call.body.name() != call.name {
            let text = "name in URL does not match name in Eviction object";
            return Err(Status::bad_request(text));
        }
        let registry = super::registry(&self.0)?;
        let find = |group: &str, plural: &str| {
            registry.find(group, plural).ok_or_else(Status::unknown_resource)
        };
        let requested = &call.body["deleteOptions"];
        let precondition =
            |field: &str| requested["preconditions"][field].as_str().map(str::to_owned);
        let delete = DeleteOptions {
            grace_seconds: requested["gracePeriodSeconds"].as_i64(),
            uid: precondition("uid"),
            resource_version: precondition("resourceVersion"),
            ..DeleteOptions::default()
        };
        // Admission saw the eviction instead of the delete.
        let options = WriteOptions {
            dry_run: call.dry_run || items(&requested["dryRun"]).iter().any(|mode| mode == "All"),
            manager: call.manager.clone(),
            admitted: true,
            ..WriteOptions::of(call.user.clone())
        };
        let eviction = Eviction {
            pods: find("", "pods")?,
            budgets: find("policy", "poddisruptionbudgets")?,
            registry,
            namespace: call.namespace,
            name: call.name,
            options,
            delete,
        };
        eviction.run().await
    }
}

impl Eviction {
    async fn run(self) -> Result<Value, Status> {
        let pod = self.registry.get(&self.pods, &self.namespace, &self.name).await?.value();
        if !is_free(&pod) {
            self.charge_budget(&pod).await?;
        }
        let target =
            WriteTarget { resource: &self.pods, namespace: &self.namespace, name: &self.name };
        if !self.options.dry_run && self.delete.uid.as_deref().is_none_or(|uid| uid == pod.uid()) {
            let change = |old: &Value| {
                let mut new = old.clone();
                let now = time::format_seconds(jiff::Timestamp::now().as_second());
                let condition = json!({
                    "type": "DisruptionTarget", "status": "True", "lastTransitionTime": now,
                    "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
                });
                set_condition(&mut new["status"], condition);
                Ok(new)
            };
            let operation = Operation::UpdateStatus;
            self.registry.modify(&target, operation, &self.options, &change).await?;
        }
        self.registry.delete(&target, &self.delete, &self.options).await?;
        Ok(super::success())
    }

    /// Charges one disruption to the pod's budget, if it has one.
    async fn charge_budget(&self, pod: &Value) -> Result<(), Status> {
        let all = self.registry.list(&self.budgets, &ListQuery::all(&self.namespace)).await?;
        let covers = |budget: &Value| {
            let selector = LabelSelector::from_object(&budget["spec"]["selector"]);
            let labels = &pod["metadata"]["labels"];
            budget["spec"]["selector"].is_object()
                && selector.is_ok_and(|selector| selector.matches_labels(labels))
        };
        let covering: Vec<Value> =
            all.items.iter().map(|budget| budget.value()).filter(covers).collect();
        let budget = match &covering[..] {
            [] => return Ok(()),
            [budget] => budget,
            _ => {
                let text = "This pod has more than one PodDisruptionBudget, which the eviction \
                            subresource does not support.";
                return Err(Status::new(500, "", text));
            }
        };
        if !is_ready(pod) && unready_may_go(budget) {
            return Ok(());
        }
        let target = WriteTarget {
            resource: &self.budgets,
            namespace: &self.namespace,
            name: budget.name(),
        };
        let charge = |old: &Value| charged_budget(old, &self.name);
        let operation = Operation::UpdateStatus;
        self.registry.modify(&target, operation, &self.options, &charge).await.map(drop)
    }
}

/// Whether a pod serves no traffic, so that budgets do not protect it.
fn is_free(pod: &Value) -> bool {
    let phase = str_of(&pod["status"]["phase"]);
    pod.is_terminating() || matches!(phase, "Succeeded" | "Failed" | "Pending")
}

fn is_ready(pod: &Value) -> bool {
    items(&pod["status"]["conditions"])
        .iter()
        .any(|c| c["type"] == "Ready" && c["status"] == "True")
}

fn unready_may_go(budget: &Value) -> bool {
    let number = |field: &str| budget["status"][field].as_i64().unwrap_or_default();
    budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
        || number("desiredHealthy") > 0 && number("currentHealthy") >= number("desiredHealthy")
}

/// The budget with one more disruption charged.
fn charged_budget(budget: &Value, pod: &str) -> Result<Value, Status> {
    let name = budget.name();
    let status = &budget["status"];
    let number = |field: &str| status[field].as_i64().unwrap_or_default();
    let refuse = |text: &str, again_after: Option<u32>| {
        let refused = "Cannot evict pod as it would violate the pod's disruption budget.";
        let cause = Cause::new("DisruptionBudget", "", text);
        let status = Status::new(429, "TooManyRequests", refused).causes(vec![cause]);
        Err(match again_after {
            Some(seconds) => status.retry_after(seconds),
            None => status,
        })
    };
    if number("observedGeneration") < budget.generation() {
        let text = format!("The disruption budget {name} is still being processed by the server.");
        return refuse(&text, Some(PROCESSED_SECONDS));
    }
    let forbidden =
        |text: &str| Err(Status::forbidden("policy", "poddisruptionbudgets", name, text));
    let allowed = number("disruptionsAllowed");
    if allowed < 0 {
        return forbidden("pdb disruptions allowed is negative");
    }
    if status["disruptedPods"].as_object().is_some_and(|pods| pods.len() > DISRUPTED_MAX) {
        return forbidden(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        );
    }
    if allowed == 0 {
        let text = format!(
            "The disruption budget {name} needs {} healthy pods and has {} currently",
            number("desiredHealthy"),
            number("currentHealthy"),
        );
        return refuse(&text, None);
    }
    let mut new = budget.clone();
    let now = time::format_seconds(jiff::Timestamp::now().as_second());
    new["status"]["disruptionsAllowed"] = (allowed - 1).into();
    new["status"]["disruptedPods"][pod] = now.clone().into();
    if allowed == 1 {
        let condition = json!({
            "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods",
            "message": "", "lastTransitionTime": now, "observedGeneration": budget.generation(),
        });
        set_condition(&mut new["status"], condition);
    }
    Ok(new)
}

impl Endpoint for Evictions {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<(u16, Value), Status>> {
        Box::pin(async move { self.evict(call).await.map(|status| (201, status)) })
    }
}
