//! The metrics of the server, with the names and labels of kube-apiserver, as Prometheus text.
//!
//! Counting is cheap: a few atomic additions for each request. Values that can be read at any time
//! are not counted but collected by [`Metrics::text`]: the numbers of stored objects and the
//! resources of the process. Labels come from bounded sets: served resources and known paths.

/// Creates and registers a metric. It cannot fail: names and labels are constants of this module.
macro_rules! made {
    ($registry:expr, $metric:expr) => {{
        let metric = $metric.expect("name and labels are valid");
        $registry.register(Box::new(metric.clone())).expect("each name is registered once");
        metric
    }};
}

mod audit;
pub mod external;
mod mutations;
mod process;
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
/// Seconds: the buckets of kube-apiserver for requests, also used for the storage.
const REQUEST_BUCKETS: &[f64] = &[
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0,
    10.0, 15.0, 20.0, 30.0, 45.0, 60.0,
];
/// Seconds: the buckets of kube-apiserver for waits in a queue.
const WAIT_BUCKETS: &[f64] =
    &[0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0];
/// The paths that distinguish requests without a resource in labels.
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

/// The metrics of one server.
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
    /// Audit events, by outcome.
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

/// The metrics of requests of one FlowSchema. Cheap to clone.
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

/// The numbers of seats of a priority level.
#[derive(Clone, Copy, Debug)]
pub struct LevelSeats {
    /// Seats it owns.
    pub nominal: u32,
    /// Seats that it never lends.
    pub least: u32,
    /// Seats it may have at most.
    pub most: u32,
    /// Seats that it has at present.
    pub current: u32,
}

/// Adds to a gauge until it is dropped.
pub struct Counted {
    gauge: IntGauge,
    by: i64,
}

impl Counted {
    /// Adds `by` to the gauge until the result is dropped.
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
    /// Labels of a request. `is_served`: it addresses a resource that exists; all others share one
    /// set of labels. `is_apply`: the patch is a server-side apply.
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
                "Requests, by what they address and the HTTP code of the response.",
                &with_code,
            ),
            durations: histograms(
                all,
                "apiserver_request_duration_seconds",
                "Time from a request to its response, by what it addresses.",
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
    /// Counts a request as being handled until the result is dropped. `reads`: it changes nothing.
    pub fn in_flight(&self, reads: bool) -> Counted {
        Counted::new(if reads { &self.reads } else { &self.writes }, 1)
    }

    /// Records a response: its HTTP code and the time that the request took.
    pub fn record_response(&self, labels: &Labels, code: u16, took: Duration) {
        let values = labels.values();
        let [a, b, c, d, e, f, g, h] = values;
        let code = http::StatusCode::from_u16(code);
        let code = code.as_ref().map_or("", http::StatusCode::as_str);
        self.requests.with_label_values(&[a, b, c, d, e, f, g, h, code]).inc();
        self.durations.with_label_values(&values).observe(took.as_secs_f64());
    }

    /// Counts a long-running request as open until the result is dropped.
    pub fn long_running(&self, labels: &Labels) -> Counted {
        let [component, _, group, resource, scope, subresource, verb, version] = labels.values();
        let of = [component, group, resource, scope, subresource, verb, version];
        Counted::new(&self.long_running.with_label_values(&of), 1)
    }

    /// Records the evaluation of a mutation of a policy: the names of the policy and of its
    /// binding, the result, and the time it took.
    pub fn record_mutation(&self, [policy, binding, result]: [&str; 3], took: Duration) {
        self.mutations.record([policy, binding, result], took);
    }

    /// The counter of events that are sent to watches of a resource.
    pub fn watch_events(&self, [group, version, resource]: [&str; 3]) -> IntCounter {
        self.watches.events.with_label_values(&[group, resource, version])
    }

    /// The counter of events that are encoded for watches of a resource.
    pub fn watch_encodings(&self, [group, version, resource]: [&str; 3]) -> IntCounter {
        self.watches.encodings.with_label_values(&[group, resource, version])
    }

    /// Sets the number of stored objects of a resource.
    pub fn set_objects(&self, group: &str, resource: &str, count: usize) {
        let qualified = api_meta::status::qualified(resource, group);
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.objects.with_label_values(&[&qualified]).set(count);
        self.objects_by_group.with_label_values(&[group, resource]).set(count);
    }

    /// Removes the numbers of stored objects of all resources, before those of the present
    /// resources are set.
    pub fn reset_objects(&self) {
        self.objects.reset();
        self.objects_by_group.reset();
    }

    /// The metrics of requests of a FlowSchema on a priority level.
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

    /// Counts a request that was rejected with 429, after it had waited for `waited`. `reason` is
    /// that of [`Rejection::as_str`](crate::flow_control::level::Rejection::as_str).
    pub fn count_rejection(&self, of: &FlowCounts, reason: &str, waited: Duration) {
        let (schema, level) = (of.flow_schema.as_str(), of.priority_level.as_str());
        self.flow.rejected.with_label_values(&[schema, level, reason]).inc();
        let waits = self.flow.waits.with_label_values(&[schema, level, "false"]);
        waits.observe(waited.as_secs_f64());
    }

    /// Sets the numbers of seats of a level.
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

    /// All metrics in the text format of Prometheus. Takes some milliseconds on a busy server.
    pub fn text(&self) -> String {
        self.process.update();
        for (limit, count) in crate::rejections::all() {
            let counter = self.rejections.with_label_values(&[limit]);
            counter.inc_by(count.saturating_sub(counter.get()));
        }
        let mut text = String::new();
        let mut families = self.registry.gather();
        families.extend(external::families());
        TextEncoder::new()
            .encode_utf8(&families, &mut text)
            .expect("gathered metric families have a text encoding");
        text
    }
}

impl FlowCounts {
    /// Counts a request as waiting until the result is dropped.
    pub fn wait(&self) -> Counted {
        Counted::new(&self.waiting, 1)
    }

    /// Counts a request that got its seats after `waited`, and counts it as executing until the
    /// result is dropped.
    pub fn count_dispatch(&self, waited: Duration, seats: u32) -> [Counted; 2] {
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
