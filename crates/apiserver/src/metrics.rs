//! What the server counts, in the names and labels of kube-apiserver, as Prometheus text.
//!
//! Counting is cheap: a few atomic additions for each request. What can be looked up is not counted
//! but read when somebody asks ([`Metrics::text`]): stored objects, and what the process uses.
//! Labels come from bounded sets: resources that are served, and paths that exist.

/// Makes and registers; names and labels are constants of this module, so that it cannot fail.
macro_rules! made {
    ($registry:expr, $made:expr) => {{
        let made = $made.expect("name and labels are valid");
        $registry.register(Box::new(made.clone())).expect("each name is registered once");
        made
    }};
}

mod audit;
mod mutations;
mod process;
pub mod shown;
pub mod storage;
mod watches;

use std::time::Duration;

use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry, TextEncoder,
};

use crate::request::{Query, RequestInfo};

/// The media type of [`Metrics::text`].
pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Seconds; upstream's bounds for requests, and for the storage.
const REQUEST_BUCKETS: &[f64] = &[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0,
    10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
];
/// Seconds; upstream's bounds for waits in a queue.
const WAIT_BUCKETS: &[f64] =
    &[0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0];
/// Paths that requests are told apart by when they are for no resource.
const PATHS: &[&str] = &[
    "/api",
    "/apis",
    "/healthz",
    "/livez",
    "/metrics",
    "/openapi/v2",
    "/openapi/v3",
    "/readyz",
    "/version",
];
const OF_REQUEST: [&str; 8] =
    ["component", "dry_run", "group", "resource", "scope", "subresource", "verb", "version"];

pub use audit::AuditCounts;

/// See the module. One for each server.
pub struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    durations: HistogramVec,
    reads: IntGauge,
    writes: IntGauge,
    long_running: IntGaugeVec,
    watches: watches::Watches,
    objects: IntGaugeVec,
    objects_by_group: IntGaugeVec,
    storage: HistogramVec,
    flow: Flow,
    pub audit: AuditCounts,
    rejections: IntCounterVec,
    mutations: mutations::Mutations,
    process: process::Process,
}

struct Flow {
    dispatched: IntCounterVec,
    rejected: IntCounterVec,
    executing: IntGaugeVec,
    executing_seats: IntGaugeVec,
    waiting: IntGaugeVec,
    waits: HistogramVec,
    nominal: IntGaugeVec,
    least: IntGaugeVec,
    most: IntGaugeVec,
    current: IntGaugeVec,
}

/// What is counted of the requests under one FlowSchema. Cheap to clone.
#[derive(Clone)]
pub struct FlowCounts {
    flow_schema: String,
    priority_level: String,
    dispatched: IntCounter,
    executing: IntGauge,
    executing_seats: IntGauge,
    waiting: IntGauge,
    waits: Histogram,
}

/// The seats of a priority level.
#[derive(Clone, Copy, Debug)]
pub struct LevelSeats {
    /// Seats it owns.
    pub nominal: u32,
    /// Seats it always keeps.
    pub least: u32,
    /// Seats it may have at most.
    pub most: u32,
    pub current: u32,
}

/// Adds to a gauge while it lives.
pub struct Counted {
    gauge: IntGauge,
    by: i64,
}

impl Counted {
    pub fn new(gauge: &IntGauge, by: i64) -> Self {
        gauge.add(by);
        Self { gauge: gauge.clone(), by }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.gauge.sub(self.by);
    }
}

/// The labels of a request, in the order of [`OF_REQUEST`].
#[derive(Clone)]
pub struct Labels([String; 8]);

impl Labels {
    /// `is_served`: the request is for a resource that exists. Others share one set of labels.
    pub fn new(info: &RequestInfo, query: &Query, is_served: bool, is_apply: bool) -> Self {
        let text = |text: &str| text.to_owned();
        let dry_run = if query.text("dryRun").is_empty() { "" } else { "All" };
        let verb = match info.verb {
            "create" | "post" => "POST".to_owned(),
            "update" | "put" => "PUT".to_owned(),
            "patch" if is_apply => "APPLY".to_owned(),
            "" => "other".to_owned(),
            verb => verb.to_ascii_uppercase(),
        };
        if !is_served {
            let exists = |path: &&&str| {
                let rest = info.path.strip_prefix(**path);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            let path = PATHS.iter().filter(|_| !info.is_resource).rfind(exists);
            let path = path.map(|&path| text(path)).unwrap_or_default();
            let none = String::new;
            return Self([none(), text(dry_run), none(), none(), none(), path, verb, none()]);
        }
        let scope = match info {
            _ if info.verb == "create" || info.names_object() => "resource",
            _ if !info.namespace.is_empty() => "namespace",
            _ => "cluster",
        };
        Self([
            text("apiserver"),
            text(dry_run),
            info.group.clone(),
            info.resource.clone(),
            text(scope),
            info.subresource.clone(),
            verb,
            info.version.clone(),
        ])
    }

    fn values(&self) -> [&str; 8] {
        self.0.each_ref().map(String::as_str)
    }
}

fn counters(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    made!(registry, IntCounterVec::new(Opts::new(name, help), labels))
}

fn gauges(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
    made!(registry, IntGaugeVec::new(Opts::new(name, help), labels))
}

fn histograms(
    registry: &Registry,
    name: &str,
    help: &str,
    buckets: &[f64],
    labels: &[&str],
) -> HistogramVec {
    let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
    made!(registry, HistogramVec::new(options, labels))
}

impl Default for Metrics {
    fn default() -> Self {
        let registry = Registry::new();
        let all = &registry;
        let in_flight = gauges(
            all,
            "apiserver_current_inflight_requests",
            "Requests that are being handled, without watches, by whether they change something.",
            &["request_kind"],
        );
        let mut with_code = OF_REQUEST.to_vec();
        with_code.push("code");
        Self {
            requests: counters(
                all,
                "apiserver_request_total",
                "Requests, by what they asked for and the HTTP code of the answer.",
                &with_code,
            ),
            durations: histograms(
                all,
                "apiserver_request_duration_seconds",
                "Time from a request to its answer, by what it asked for.",
                REQUEST_BUCKETS,
                &OF_REQUEST,
            ),
            reads: in_flight.with_label_values(&["readOnly"]),
            writes: in_flight.with_label_values(&["mutating"]),
            long_running: gauges(
                all,
                "apiserver_longrunning_requests",
                "Watches that are open.",
                &["component", "group", "resource", "scope", "subresource", "verb", "version"],
            ),
            watches: watches::Watches::new(all),
            objects: gauges(
                all,
                "apiserver_storage_objects",
                "Stored objects of each resource.",
                &["resource"],
            ),
            objects_by_group: gauges(
                all,
                "apiserver_resource_objects",
                "Stored objects of each resource.",
                &["group", "resource"],
            ),
            storage: histograms(
                all,
                "etcd_request_duration_seconds",
                "Time that the storage takes, whichever it is, by operation and resource.",
                REQUEST_BUCKETS,
                &["group", "operation", "resource"],
            ),
            flow: Flow::new(all),
            audit: AuditCounts::new(all),
            mutations: mutations::Mutations::new(all),
            rejections: counters(
                all,
                "drover_rejected_total",
                "What was rejected because a limit was reached, by limit.",
                &["limit"],
            ),
            process: process::Process::new(all),
            registry: registry.clone(),
        }
    }
}

impl Metrics {
    /// A request is being handled while the answer lives.
    pub fn in_flight(&self, reads: bool) -> Counted {
        Counted::new(if reads { &self.reads } else { &self.writes }, 1)
    }

    /// A request was answered.
    pub fn answered(&self, labels: &Labels, code: u16, took: Duration) {
        let values = labels.values();
        let [a, b, c, d, e, f, g, h] = values;
        let code = http::StatusCode::from_u16(code);
        let code = code.as_ref().map_or("", http::StatusCode::as_str);
        self.requests.with_label_values(&[a, b, c, d, e, f, g, h, code]).inc();
        self.durations.with_label_values(&values).observe(took.as_secs_f64());
    }

    /// A watch is open while the answer lives.
    pub fn long_running(&self, labels: &Labels) -> Counted {
        let [component, _, group, resource, scope, subresource, verb, version] = labels.values();
        let of = [component, group, resource, scope, subresource, verb, version];
        Counted::new(&self.long_running.with_label_values(&of), 1)
    }

    /// A mutation of a policy was evaluated: the names of the policy and its binding, and what came of
    /// it.
    pub fn mutation(&self, [policy, binding, result]: [&str; 3], took: Duration) {
        self.mutations.evaluated([policy, binding, result], took);
    }

    /// Where the events sent to one watch are counted.
    pub fn watch_events(&self, [group, version, resource]: [&str; 3]) -> IntCounter {
        self.watches.events.with_label_values(&[group, resource, version])
    }

    /// Where the events encoded for one watch are counted.
    pub fn watch_encodings(&self, [group, version, resource]: [&str; 3]) -> IntCounter {
        self.watches.encodings.with_label_values(&[group, resource, version])
    }

    /// Sets the number of stored objects.
    pub fn set_objects(&self, group: &str, resource: &str, count: usize) {
        let qualified = api_meta::status::qualified(resource, group);
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.objects.with_label_values(&[&qualified]).set(count);
        self.objects_by_group.with_label_values(&[group, resource]).set(count);
    }

    /// Forgets resources, before the numbers of those that there are are set.
    pub fn reset_objects(&self) {
        self.objects.reset();
        self.objects_by_group.reset();
    }

    /// What is counted of the requests under a FlowSchema.
    pub fn flow(&self, flow_schema: &str, priority_level: &str) -> FlowCounts {
        let of = [flow_schema, priority_level];
        FlowCounts {
            flow_schema: flow_schema.to_owned(),
            priority_level: priority_level.to_owned(),
            dispatched: self.flow.dispatched.with_label_values(&of),
            executing: self.flow.executing.with_label_values(&of),
            executing_seats: self.flow.executing_seats.with_label_values(&of),
            waiting: self.flow.waiting.with_label_values(&of),
            waits: self.flow.waits.with_label_values(&[flow_schema, priority_level, "true"]),
        }
    }

    /// A request under a FlowSchema was turned away after `waited`.
    pub fn rejected(&self, of: &FlowCounts, reason: &str, waited: Duration) {
        let (schema, level) = (of.flow_schema.as_str(), of.priority_level.as_str());
        self.flow.rejected.with_label_values(&[schema, level, reason]).inc();
        let waits = self.flow.waits.with_label_values(&[schema, level, "false"]);
        waits.observe(waited.as_secs_f64());
    }

    /// The seats of a level: its limits, and what it has at present.
    pub fn level_seats(&self, level: &str, seats: LevelSeats) {
        for (gauge, value) in [
            (&self.flow.nominal, seats.nominal),
            (&self.flow.least, seats.least),
            (&self.flow.most, seats.most),
            (&self.flow.current, seats.current),
        ] {
            gauge.with_label_values(&[level]).set(i64::from(value));
        }
    }

    /// Everything, as text. Costs some milliseconds on a busy server.
    pub fn text(&self) -> String {
        self.process.look();
        for (limit, count) in crate::rejections::all() {
            let counter = self.rejections.with_label_values(&[limit]);
            counter.inc_by(count.saturating_sub(counter.get()));
        }
        let mut text = String::new();
        let mut families = self.registry.gather();
        families.extend(shown::families());
        TextEncoder::new()
            .encode_utf8(&families, &mut text)
            .expect("families that were gathered have a text form");
        text
    }
}

impl FlowCounts {
    pub fn wait(&self) -> Counted {
        Counted::new(&self.waiting, 1)
    }

    /// A request begins after `waited`, and executes while the answer lives.
    pub fn dispatched(&self, waited: Duration, seats: u32) -> [Counted; 2] {
        self.dispatched.inc();
        self.waits.observe(waited.as_secs_f64());
        [Counted::new(&self.executing, 1), Counted::new(&self.executing_seats, i64::from(seats))]
    }
}

impl Flow {
    fn new(all: &Registry) -> Self {
        const OF_FLOW: [&str; 2] = ["flow_schema", "priority_level"];
        const OF_LEVEL: [&str; 1] = ["priority_level"];
        let name = |name: &str| format!("apiserver_flowcontrol_{name}");
        let of_flow = |which: &str, help: &str| gauges(all, &name(which), help, &OF_FLOW);
        let of_level = |which: &str, help: &str| gauges(all, &name(which), help, &OF_LEVEL);
        Self {
            dispatched: counters(
                all,
                &name("dispatched_requests_total"),
                "Requests that got a seat.",
                &OF_FLOW,
            ),
            rejected: counters(
                all,
                &name("rejected_requests_total"),
                "Requests that got none, by why.",
                &["flow_schema", "priority_level", "reason"],
            ),
            executing: of_flow("current_executing_requests", "Requests that have a seat."),
            executing_seats: of_flow("current_executing_seats", "Seats that requests have."),
            waiting: of_flow("current_inqueue_requests", "Requests that wait for a seat."),
            waits: histograms(
                all,
                &name("request_wait_duration_seconds"),
                "Time that requests waited for a seat, by whether they got one.",
                WAIT_BUCKETS,
                &["flow_schema", "priority_level", "execute"],
            ),
            nominal: of_level("nominal_limit_seats", "Seats that a level owns."),
            least: of_level("lower_limit_seats", "Seats that a level keeps in any case."),
            most: of_level("upper_limit_seats", "Seats that a level can have with borrowed ones."),
            current: of_level("current_limit_seats", "Seats that a level has at present."),
        }
    }
}

#[cfg(test)]
mod tests;
