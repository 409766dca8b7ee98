//! `/metrics`, read as Prometheus reads it.

use http::Method;
use http_body_util::BodyExt;
use prometheus_parse::{Scrape, Value};
use serde_json::json;

use super::world::{MAPS, World};

async fn scrape(world: &World) -> Scrape {
    let response = world.get("monitor", "/metrics").await;
    assert_eq!(response.code, 200);
    assert_eq!(response.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    Scrape::parse(response.text.lines().map(|line| Ok(line.to_owned()))).unwrap()
}

/// The sum over all samples of these labels; for a histogram the number of observations.
fn sum(scrape: &Scrape, name: &str, labels: &[(&str, &str)]) -> f64 {
    let fits = |sample: &&prometheus_parse::Sample| {
        let has = |(key, value): &(&str, &str)| sample.labels.get(key) == Some(*value);
        sample.metric == name && labels.iter().all(has)
    };
    let value = |sample: &prometheus_parse::Sample| match &sample.value {
        Value::Counter(value) | Value::Gauge(value) | Value::Untyped(value) => *value,
        Value::Histogram(buckets) => buckets.last().unwrap().count,
        Value::Summary(_) => panic!("{name} is a summary"),
    };
    scrape.samples.iter().filter(fits).map(value).sum()
}

#[tokio::test]
async fn metrics_move_with_what_happens_and_are_for_those_who_may_read_them() {
    let world = World::start(None).await;
    assert_eq!(world.get("alice", "/metrics").await.code, 403);
    assert_eq!(world.get("", "/metrics").await.code, 403);
    let before = scrape(&world).await;

    let watch = world.open("admin", Method::GET, &format!("{MAPS}?watch=1"), &[], "").await;
    let mut watch = watch.into_body();
    for number in 0..3 {
        let object = json!({"metadata": {"name": format!("m-{number}")}});
        world.create(MAPS, &object).await;
        watch.frame().await.unwrap().unwrap();
    }
    world.get("admin", MAPS).await;
    let during = scrape(&world).await;
    let grown = |name: &str, labels: &[(&str, &str)]| {
        sum(&during, name, labels) - sum(&before, name, labels)
    };
    let maps = [("resource", "configmaps"), ("group", "")];
    let of = |more: &[(&'static str, &'static str)]| [&maps[..], more].concat();
    let created = [("verb", "POST"), ("code", "201"), ("version", "v1"), ("scope", "resource")];
    assert_eq!(grown("apiserver_request_total", &of(&created)), 3.0);
    let listed = [("verb", "LIST"), ("code", "200"), ("scope", "namespace")];
    assert_eq!(grown("apiserver_request_total", &of(&listed)), 1.0);
    assert_eq!(grown("apiserver_request_duration_seconds", &of(&[("verb", "POST")])), 3.0);
    assert_eq!(grown("etcd_request_duration_seconds", &of(&[("operation", "create")])), 3.0);
    assert_eq!(grown("apiserver_watch_events_total", &of(&[("version", "v1")])), 3.0);
    assert_eq!(grown("apiserver_longrunning_requests", &of(&[("verb", "WATCH")])), 1.0);
    assert_eq!(grown("apiserver_storage_objects", &[("resource", "configmaps")]), 3.0);
    assert_eq!(grown("apiserver_resource_objects", &maps), 3.0);
    let exempt = [("flow_schema", "exempt"), ("priority_level", "exempt")];
    assert!(grown("apiserver_flowcontrol_dispatched_requests_total", &exempt) >= 5.0);
    let reads = [("request_kind", "readOnly")];
    assert_eq!(sum(&during, "apiserver_current_inflight_requests", &reads), 1.0, "this one");
    let level = [("priority_level", "global-default")];
    assert_eq!(sum(&during, "apiserver_flowcontrol_nominal_limit_seats", &level), 49.0);
    assert!(sum(&during, "process_resident_memory_bytes", &[]) > 1e6);

    drop(watch);
    let after = scrape(&world).await;
    assert_eq!(sum(&after, "apiserver_longrunning_requests", &maps), 0.0);
    assert_eq!(sum(&after, "apiserver_request_total", &of(&[("verb", "WATCH")])), 1.0);

    // The number of series does not depend on the requested paths.
    let count = scrape(&world).await.samples.len();
    for number in 0..20 {
        world.get("admin", &format!("/apis/example.com/v1/things-{number}/x")).await;
        world.get("admin", &format!("/nosuch/{number}")).await;
        world.get("admin", &format!("/api/v1/namespaces/n-{number}/configmaps/x")).await;
    }
    let more = scrape(&world).await.samples.len();
    assert!(more <= count + 10, "{count} series became {more}");
}
