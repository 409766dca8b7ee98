//! The text, parsed by an independent parser.

use http::Method;
use prometheus_parse::{Scrape, Value};

use super::*;

fn labels(method: &Method, path: &str, served: bool) -> Labels {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let query = Query::parse(Some(query));
    Labels::new(&RequestInfo::parse(method, path, &query), &query, served, false)
}

/// Parses all lines, and fails when one is not understood.
fn scrape(text: &str) -> Scrape {
    let lines = text.lines().map(|line| Ok(line.to_owned()));
    let scrape = Scrape::parse(lines).unwrap();
    let is_part = |line: &&str| {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        line.contains("le=\"") || name.ends_with("_sum") || name.ends_with("_count")
    };
    let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let plain = samples.iter().filter(|line| !is_part(line)).count();
    let parsed = scrape.samples.iter().filter(|s| !matches!(s.value, Value::Histogram(_)));
    let parsed = parsed.filter(|s| !s.metric.ends_with("_sum") && !s.metric.ends_with("_count"));
    assert_eq!(plain, parsed.count(), "a line was not understood");
    scrape
}

fn value(scrape: &Scrape, name: &str, expected: &[(&str, &str)]) -> f64 {
    let found = scrape.samples.iter().find(|sample| {
        let fits = |(key, value): &(&str, &str)| sample.labels.get(key) == Some(*value);
        sample.metric == name && expected.iter().all(fits)
    });
    match &found.unwrap_or_else(|| panic!("no {name} {expected:?}")).value {
        Value::Counter(value) | Value::Gauge(value) | Value::Untyped(value) => *value,
        Value::Histogram(buckets) => buckets.last().unwrap().count,
        other => panic!("{name} is {other:?}"),
    }
}

#[test]
fn requests_are_counted_with_the_names_and_labels_of_kube_apiserver() {
    let metrics = Metrics::default();
    let list = labels(&Method::GET, "/api/v1/namespaces/x/pods", true);
    metrics.record_response(&list, 200, Duration::from_millis(30));
    metrics.record_response(&list, 200, Duration::from_millis(30));
    let create = labels(&Method::POST, "/apis/apps/v1/namespaces/x/deployments?dryRun=All", true);
    metrics.record_response(&create, 422, Duration::from_millis(3));
    let unknown = labels(&Method::GET, "/api/v1/whatever-\"you\\like", false);
    metrics.record_response(&unknown, 404, Duration::from_millis(1));
    metrics.record_response(&labels(&Method::GET, "/readyz", false), 200, Duration::from_millis(1));
    let held = metrics.in_flight(true);
    metrics.set_objects("apps", "deployments", 7);
    let scrape = scrape(&metrics.text());
    let of_list = [
        ("verb", "LIST"),
        ("group", ""),
        ("version", "v1"),
        ("resource", "pods"),
        ("subresource", ""),
        ("scope", "namespace"),
        ("component", "apiserver"),
        ("dry_run", ""),
    ];
    let mut counted = of_list.to_vec();
    counted.push(("code", "200"));
    assert_eq!(value(&scrape, "apiserver_request_total", &counted), 2.0);
    assert_eq!(value(&scrape, "apiserver_request_duration_seconds", &of_list), 2.0);
    let of_create = [("verb", "POST"), ("scope", "resource"), ("dry_run", "All"), ("code", "422")];
    assert_eq!(value(&scrape, "apiserver_request_total", &of_create), 1.0);
    let of_unknown = [("code", "404"), ("resource", ""), ("group", ""), ("subresource", "")];
    assert_eq!(value(&scrape, "apiserver_request_total", &of_unknown), 1.0);
    assert_eq!(value(&scrape, "apiserver_request_total", &[("subresource", "/readyz")]), 1.0);
    let in_flight = "apiserver_current_inflight_requests";
    assert_eq!(value(&scrape, in_flight, &[("request_kind", "readOnly")]), 1.0);
    let objects = [("resource", "deployments.apps")];
    assert_eq!(value(&scrape, "apiserver_storage_objects", &objects), 7.0);
    drop(held);
    let later = self::scrape(&metrics.text());
    assert_eq!(value(&later, in_flight, &[("request_kind", "readOnly")]), 0.0);
}

#[test]
fn the_metrics_of_the_process_are_exported() {
    let scrape = scrape(&Metrics::default().text());
    assert!(value(&scrape, "process_resident_memory_bytes", &[]) > 1e6);
    assert!(value(&scrape, "process_open_fds", &[]) >= 3.0);
    assert!(value(&scrape, "process_start_time_seconds", &[]) > 1.6e9);
}

#[test]
fn to_name_and_count_a_request_takes_little() {
    const COUNT: u32 = 10_000;
    /// Several times what it takes without optimisation.
    const COST_MAX: Duration = Duration::from_micros(300);
    let metrics = Metrics::default();
    let begun = std::time::Instant::now();
    for _ in 0..COUNT {
        let list = labels(&Method::GET, "/api/v1/namespaces/x/pods", true);
        metrics.record_response(&list, 200, Duration::from_millis(30));
    }
    let cost = begun.elapsed() / COUNT;
    println!("{} ns each", cost.as_nanos());
    assert!(cost < COST_MAX, "{cost:?}");
}
