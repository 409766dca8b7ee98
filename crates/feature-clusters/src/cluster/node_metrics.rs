//! Reads what is in use on the nodes of each connected cluster that serves `metrics.k8s.io`, for
//! the [`UsageHistory`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use controller::{DownstreamController, DownstreamScope};
use feature_kit::{ControllerIdentity, DownstreamSpec};
use futures::future::BoxFuture;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Api, Client};
use tokio::time::sleep;
use tracing::debug;

use super::usage_history::{SAMPLE_EVERY, UsageHistory};
use crate::node::usage::{Amounts, add};

const CONTROLLER: &str = "node-metrics";
/// How long a cluster that does not serve metrics, or not to the agent, is left alone.
const UNSERVED_PAUSE: Duration = Duration::from_secs(300);
/// How soon it is looked again whether the nodes are known.
const UNKNOWN_PAUSE: Duration = Duration::from_secs(1);
/// Clusters with more nodes are not measured: metrics have no pages, and each has the labels of its
/// node, so that the response would be larger than a cluster may send at once.
const NODES_MAX: usize = 2_000;

/// The controller, which runs once per connected cluster. It has no rights in the management API.
pub fn spec(history: Arc<UsageHistory>) -> DownstreamSpec {
    let identity = ControllerIdentity::new(CONTROLLER, Vec::new());
    DownstreamSpec::new(identity, move |_, _| Arc::new(NodeMetrics(history.clone()))).except_local()
}

struct NodeMetrics(Arc<UsageHistory>);

impl DownstreamController for NodeMetrics {
    fn name(&self) -> &'static str {
        CONTROLLER
    }
    fn run(&self, scope: DownstreamScope) -> BoxFuture<'static, ()> {
        let history = self.0.clone();
        Box::pin(async move {
            loop {
                let pause = measure(&history, &scope).await;
                tokio::select! {
                    () = scope.stop.cancelled() => return,
                    () = sleep(pause) => {}
                }
            }
        })
    }
}

/// Reads once; returns after which time it is done again.
async fn measure(history: &UsageHistory, scope: &DownstreamScope) -> Duration {
    let Some(nodes) = history.nodes(&scope.cluster) else { return UNKNOWN_PAUSE };
    if nodes > NODES_MAX {
        history.set_used(&scope.cluster, None);
        return UNSERVED_PAUSE;
    }
    match read(&scope.client).await {
        Ok(used) => {
            history.set_used(&scope.cluster, Some(used));
            SAMPLE_EVERY
        }
        Err(error) => {
            debug!(cluster = scope.cluster, %error, "cannot read metrics of nodes");
            history.set_used(&scope.cluster, None);
            match error {
                kube::Error::Api(status) if matches!(status.code, 403 | 404) => UNSERVED_PAUSE,
                _ => SAMPLE_EVERY,
            }
        }
    }
}

/// What is in use on all nodes.
async fn read(client: &Client) -> kube::Result<Amounts> {
    let kind = GroupVersionKind::gvk("metrics.k8s.io", "v1beta1", "NodeMetrics");
    let resource = ApiResource::from_gvk_with_plural(&kind, "nodes");
    let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
    let mut used = Amounts::new();
    for node in api.list(&ListParams::default()).await?.items {
        add(&mut used, usage(&node.data).as_ref());
    }
    Ok(used)
}

/// What is in use on one node, by resource name; nothing where the answer has another form.
fn usage(metrics: &serde_json::Value) -> Option<BTreeMap<String, Quantity>> {
    serde_json::from_value(metrics.get("usage")?.clone()).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_in_use_is_summed_and_other_forms_count_nothing() {
        let mut used = Amounts::new();
        for metrics in [
            json!({"usage": {"cpu": "250123456n", "memory": "1024Ki"}}),
            json!({"usage": {"cpu": "1", "memory": "1Mi"}}),
            json!({"usage": "much"}),
            json!({}),
        ] {
            add(&mut used, usage(&metrics).as_ref());
        }
        assert!((used["cpu"].to_f64() - 1.250_123_456).abs() < 1e-9);
        assert!((used["memory"].to_f64() - 2_097_152.0).abs() < 0.5);
    }
}
