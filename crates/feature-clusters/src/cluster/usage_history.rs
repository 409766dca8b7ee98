//! How the requests of each cluster's pods changed in the last hour, and what was in use where the
//! cluster measures that, for charts: a bounded ring of samples in memory. It is empty after a
//! restart. While a cluster is not connected it has no samples, so that gaps are gaps.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use api_management::Cluster;
use api_meta::quantity::Quantity;
use controller::Whole;
use feature_kit::{ControllerIdentity, ManagementContext, ManagementSpec};
use futures::future::BoxFuture;
use jiff::Timestamp;
use parking_lot::Mutex;
use rest_view::{ActionHandler, ActionRequest, ActionResponse, ApiError, Link};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::time::{MissedTickBehavior, interval};

use crate::node::usage::Amounts;

/// Interval between samples.
pub const SAMPLE_EVERY: Duration = Duration::from_secs(30);
/// Samples of one cluster: an hour, in 13 KB.
pub const SAMPLES_MAX: usize = 120;
/// Name of the link.
const LINK: &str = "usage";
/// Type of what it returns.
const TYPE: &str = "clusterUsage";

/// One moment of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct UsageSample {
    /// Unix seconds.
    at: i64,
    /// Cores.
    cpu: UsageShare,
    /// Bytes.
    memory: UsageShare,
    /// Number of pods.
    pods: UsageShare,
}

/// What pods request, what the nodes have for them, and what is in use on the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct UsageShare {
    requested: f64,
    allocatable: f64,
    /// `None` where the cluster does not measure it.
    used: Option<f64>,
}

/// The samples of all clusters.
#[derive(Default)]
pub struct UsageHistory(Mutex<HashMap<String, ClusterHistory>>);

#[derive(Default)]
struct ClusterHistory {
    /// What holds now; `None` while the cluster is not connected.
    current: Option<UsageNow>,
    /// What was measured last, by resource name.
    used: Option<Amounts>,
    samples: VecDeque<UsageSample>,
}

/// What the pods of a cluster request, and what its nodes have for them, by resource name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UsageNow {
    pub requested: Amounts,
    pub pods: i64,
    pub nodes: usize,
    pub allocatable: Amounts,
}

impl UsageHistory {
    /// Replaces what holds now for a connected cluster.
    pub fn set(&self, cluster: &str, now: UsageNow) {
        self.0.lock().entry(cluster.to_owned()).or_default().current = Some(now);
    }
    /// The cluster is not connected any more: a gap begins.
    pub fn pause(&self, cluster: &str) {
        if let Some(history) = self.0.lock().get_mut(cluster) {
            history.current = None;
            history.used = None;
        }
    }
    /// How many nodes a connected cluster has; `None` while that is not known.
    pub fn nodes(&self, cluster: &str) -> Option<usize> {
        self.0.lock().get(cluster)?.current.as_ref().map(|now| now.nodes)
    }
    /// What is in use on the nodes of a connected cluster; `None`: it does not measure that.
    pub fn set_used(&self, cluster: &str, used: Option<Amounts>) {
        self.0.lock().entry(cluster.to_owned()).or_default().used = used;
    }
    /// Takes a sample of each connected cluster. `at`: Unix seconds.
    fn take(&self, at: i64) {
        for history in self.0.lock().values_mut() {
            let Some(now) = &history.current else { continue };
            if history.samples.len() >= SAMPLES_MAX {
                history.samples.pop_front();
            }
            let sample = now.to_sample(at, history.used.as_ref());
            history.samples.push_back(sample);
        }
    }
    fn retain(&self, exists: impl Fn(&str) -> bool) {
        self.0.lock().retain(|cluster, _| exists(cluster));
    }
    fn of(&self, cluster: &str) -> Vec<UsageSample> {
        let clusters = self.0.lock();
        clusters.get(cluster).map(|it| it.samples.iter().copied().collect()).unwrap_or_default()
    }
}

impl UsageNow {
    #[expect(clippy::cast_precision_loss, reason = "a number of pods on a chart")]
    fn to_sample(&self, at: i64, used: Option<&Amounts>) -> UsageSample {
        let amount = |amounts: &Amounts, name: &str| amounts.get(name).map(Quantity::to_f64);
        let share = |name: &str| UsageShare {
            requested: amount(&self.requested, name).unwrap_or_default(),
            allocatable: amount(&self.allocatable, name).unwrap_or_default(),
            used: used.and_then(|used| amount(used, name)),
        };
        let pods = UsageShare { requested: self.pods as f64, ..share("pods") };
        UsageSample { at, cpu: share("cpu"), memory: share("memory"), pods }
    }
}

/// The controller that takes the samples. It has no rights in the management API.
pub fn spec(history: Arc<UsageHistory>) -> ManagementSpec {
    ManagementSpec::new(ControllerIdentity::new("usage-history", Vec::new()), move |context, _| {
        run(context, history.clone())
    })
}

/// Takes samples until the server stops.
async fn run(context: ManagementContext, history: Arc<UsageHistory>) {
    let clusters = context.scope.reflectors.get::<Whole<Cluster>>();
    let mut ticks = interval(SAMPLE_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = context.scope.stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        history.take(Timestamp::now().as_second());
        history.retain(|name| clusters.named(name).is_some());
    }
}

/// The link `usage` of clusters.
pub fn link(history: Arc<UsageHistory>) -> Link {
    Link::new(LINK, UsageLink(history))
        .available_when(|cluster, _| cluster["spec"]["internal"] != true)
}

struct UsageLink(Arc<UsageHistory>);

impl ActionHandler for UsageLink {
    fn run<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<ActionResponse, ApiError>> {
        Box::pin(async move {
            let object = request.object.ok_or_else(ApiError::no_such_id)?;
            let id = object["metadata"]["name"].as_str().unwrap_or_default();
            let samples = json!(self.0.of(id));
            let fields: [(String, Value); 2] = [
                ("intervalSeconds".to_owned(), SAMPLE_EVERY.as_secs().into()),
                ("samples".to_owned(), samples),
            ];
            Ok(ActionResponse::value(TYPE, Map::from_iter(fields)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amounts(pairs: &[(&str, &str)]) -> Amounts {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), text.parse().unwrap())).collect()
    }

    fn now() -> UsageNow {
        UsageNow {
            requested: amounts(&[("cpu", "500m")]),
            pods: 3,
            nodes: 1,
            allocatable: amounts(&[("cpu", "4"), ("memory", "8Gi"), ("pods", "110")]),
        }
    }

    #[test]
    fn a_connected_cluster_has_samples_and_others_have_gaps() {
        let history = UsageHistory::default();
        history.set("c-1", now());
        history.set_used("c-1", Some(amounts(&[("cpu", "100m")])));
        history.take(7);
        history.pause("c-1");
        history.take(37);
        history.set("c-1", now());
        history.take(67);
        let samples = history.of("c-1");
        assert_eq!(samples.iter().map(|sample| sample.at).collect::<Vec<_>>(), [7, 67]);
        let UsageSample { cpu, memory, pods, .. } = samples[0];
        assert_eq!(cpu, UsageShare { requested: 0.5, allocatable: 4.0, used: Some(0.1) });
        let allocatable = 8_589_934_592.0;
        assert_eq!(memory, UsageShare { requested: 0.0, allocatable, used: None });
        assert_eq!(pods, UsageShare { requested: 3.0, allocatable: 110.0, used: None });
        // After the gap nothing is measured yet.
        assert_eq!(samples[1].cpu.used, None);
    }

    #[test]
    fn the_ring_is_bounded_and_forgets_deleted_clusters() {
        let history = UsageHistory::default();
        history.set("c-1", now());
        (0..200).for_each(|at| history.take(at));
        let samples = history.of("c-1");
        assert_eq!((samples.len(), samples[0].at), (SAMPLES_MAX, 80));
        history.retain(|name| name != "c-1");
        assert!(history.of("c-1").is_empty());
    }
}
