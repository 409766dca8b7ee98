//! The levels together, as requests meet them.

use std::time::{Duration, Instant};

use futures::FutureExt;
use http::Method;

use super::*;
use crate::request::Query;

fn control() -> Arc<FlowControl> {
    FlowControl::new(Arc::default())
}

/// With all initial objects in force.
fn whole() -> Arc<FlowControl> {
    let control = control();
    control.configure(&bootstrap::flow_schemas(), &bootstrap::priority_levels());
    control
}

fn person(name: &str) -> UserInfo {
    UserInfo::new(name, &["system:authenticated"])
}

fn pods() -> RequestInfo {
    RequestInfo::parse(&Method::GET, "/api/v1/pods", &Query::default())
}

fn seats(control: &FlowControl, name: &str) -> u32 {
    let loads = control.loads();
    loads.iter().find(|(level, _)| **level == *name).unwrap().1.seats
}

#[tokio::test]
async fn a_flood_is_refused_at_the_end_of_its_own_queues_and_others_get_in() {
    let control = whole();
    let own = seats(&control, "global-default");
    let mut held = Vec::new();
    for _ in 0..own {
        held.push(control.admit(&person("flood"), &pods(), 1).await.unwrap());
    }
    let mut waits = Vec::new();
    let mut refused = 0;
    for _ in 0..1000 {
        let control = control.clone();
        let mut wait = Box::pin(async move { control.admit(&person("flood"), &pods(), 1).await });
        match futures::poll!(wait.as_mut()) {
            std::task::Poll::Ready(Err(refusal)) => {
                assert_eq!(refusal.rejection, Rejection::QueueFull);
                refused += 1;
            }
            std::task::Poll::Ready(Ok(_)) => panic!("there was a seat"),
            // Whose turn it is, is done at once.
            std::task::Poll::Pending => waits.push(tokio::spawn(wait.map(drop))),
        }
    }
    assert_eq!((waits.len(), refused), (300, 700), "a hand of 6 queues with 50 places each");
    // Another person waits in another queue.
    let other = tokio::spawn({
        let control = control.clone();
        async move { control.admit(&person("other"), &pods(), 1).await.map(drop) }
    });
    tokio::task::yield_now().await;
    held.pop();
    tokio::time::timeout(Duration::from_secs(5), other).await.unwrap().unwrap().unwrap();
    // Those of other levels do not wait at all.
    let master = UserInfo::new("root", &["system:masters"]);
    assert!(control.admit(&master, &pods(), 1).now_or_never().unwrap().is_ok());
    let scheduler = person("system:kube-scheduler");
    assert!(control.admit(&scheduler, &pods(), 1).now_or_never().unwrap().is_ok());
}

#[tokio::test]
async fn levels_lend_seats_and_get_them_back() {
    let control = whole();
    assert_eq!(seats(&control, "global-default"), 49);
    let mut held = Vec::new();
    for _ in 0..49 {
        held.push(control.admit(&person("a"), &pods(), 1).await.unwrap());
    }
    let waiting: Vec<_> = (0..60)
        .map(|n| {
            let control = control.clone();
            let name = format!("user-{n}");
            let wait = async move { control.admit(&person(&name), &pods(), 1).await };
            let mut wait = Box::pin(wait);
            assert!(futures::FutureExt::now_or_never(wait.as_mut()).is_none());
            wait
        })
        .collect();
    control.adjust();
    assert_eq!(seats(&control, "global-default"), 109, "others do not need theirs");
    let total: u32 = control.loads().iter().map(|(_, load)| load.seats).sum();
    assert!(total <= SEATS, "{total}");
    drop(waiting);
    drop(held);
    for _ in 0..60 {
        control.adjust();
    }
    assert_eq!(seats(&control, "global-default"), 49);
}

#[tokio::test]
async fn objects_take_effect_and_levels_at_work_go_on() {
    let control = whole();
    let held = control.admit(&person("a"), &pods(), 1).await.unwrap();
    let mut schemas = bootstrap::flow_schemas();
    let mut levels = bootstrap::priority_levels();
    levels.push(serde_json::json!({
        "metadata": {"name": "jail", "uid": "level-uid"},
        "spec": {"type": "Limited", "limited": {
            "nominalConcurrencyShares": 0, "borrowingLimitPercent": 0,
            "limitResponse": {"type": "Reject"},
        }},
    }));
    let everything = schemas.last().unwrap()["spec"]["rules"][0].clone();
    schemas.push(serde_json::json!({
        "metadata": {"name": "jail", "uid": "schema-uid"},
        "spec": {
            "priorityLevelConfiguration": {"name": "jail"}, "matchingPrecedence": 50,
            "rules": [{
                "subjects": [{"kind": "User", "user": {"name": "a"}}],
                "resourceRules": everything["resourceRules"],
            }],
        },
    }));
    control.configure(&schemas, &levels);
    let first = control.admit(&person("a"), &pods(), 1).await.unwrap();
    assert_eq!(first.marks.flow_schema_uid, "schema-uid");
    assert_eq!(first.marks.priority_level_uid, "level-uid");
    let refused = control.admit(&person("a"), &pods(), 1).await.err().unwrap();
    assert_eq!(refused.rejection, Rejection::ConcurrencyLimit);
    let executing = |name: &str| {
        let loads = control.loads();
        loads.iter().find(|(level, _)| **level == *name).unwrap().1.executing
    };
    assert_eq!((executing("jail"), executing("global-default")), (1, 1));
    drop(held);
    assert_eq!(executing("global-default"), 0);

    // A schema of a level that is not there decides nothing, and the mandatory ones are always there.
    control.configure(&[], &[]);
    let fallback = control.admit(&person("a"), &pods(), 1).await.unwrap();
    assert_eq!(fallback.marks.flow_schema_uid, "");
    assert!(control.loads().iter().any(|(level, _)| **level == *bootstrap::EXEMPT));
}

#[tokio::test]
async fn a_request_that_need_not_wait_is_let_in_at_once() {
    const COUNT: u32 = 10_000;
    /// Ten times what it takes without optimisation; with it, it is about a microsecond.
    const COST_MAX: Duration = Duration::from_micros(200);
    let control = whole();
    let (user, info) = (person("a"), pods());
    let begun = Instant::now();
    for _ in 0..COUNT {
        drop(control.admit(&user, &info, 1).await.unwrap());
    }
    let cost = begun.elapsed() / COUNT;
    println!("{} ns each", cost.as_nanos());
    assert!(cost < COST_MAX, "{cost:?}");
}
