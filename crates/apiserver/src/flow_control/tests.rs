//! The levels together, as requests see them.

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

fn user(name: &str) -> UserInfo {
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
async fn a_flood_is_rejected_when_its_own_queues_are_full_and_others_are_admitted() {
    let control = whole();
    let own = seats(&control, "global-default");
    let mut executing_requests = Vec::new();
    for _ in 0..own {
        executing_requests.push(control.admit(&user("flood"), &pods(), 1).await.unwrap());
    }
    let mut waits = Vec::new();
    let mut refused = 0;
    for _ in 0..1000 {
        let control = control.clone();
        let mut wait = Box::pin(async move { control.admit(&user("flood"), &pods(), 1).await });
        match futures::poll!(wait.as_mut()) {
            std::task::Poll::Ready(Err(refusal)) => {
                assert_eq!(refusal.rejection, Rejection::QueueFull);
                refused += 1;
            }
            std::task::Poll::Ready(Ok(_)) => panic!("there was a seat"),
            // A request that gets a seat is ready at the first poll.
            std::task::Poll::Pending => waits.push(tokio::spawn(wait.map(drop))),
        }
    }
    assert_eq!((waits.len(), refused), (300, 700), "a hand of 6 queues with 50 slots each");
    // Another user waits in another queue.
    let other = tokio::spawn({
        let control = control.clone();
        async move { control.admit(&user("other"), &pods(), 1).await.map(drop) }
    });
    tokio::task::yield_now().await;
    executing_requests.pop();
    tokio::time::timeout(Duration::from_secs(5), other).await.unwrap().unwrap().unwrap();
    // Requests of other levels do not wait at all.
    let master = UserInfo::new("root", &["system:masters"]);
    assert!(control.admit(&master, &pods(), 1).now_or_never().unwrap().is_ok());
    let scheduler = user("system:kube-scheduler");
    assert!(control.admit(&scheduler, &pods(), 1).now_or_never().unwrap().is_ok());
}

#[tokio::test]
async fn levels_lend_seats_and_get_them_back() {
    let control = whole();
    assert_eq!(seats(&control, "global-default"), 49);
    let mut executing_requests = Vec::new();
    for _ in 0..49 {
        executing_requests.push(control.admit(&user("a"), &pods(), 1).await.unwrap());
    }
    let waiting: Vec<_> = (0..60)
        .map(|n| {
            let control = control.clone();
            let name = format!("user-{n}");
            let wait = async move { control.admit(&user(&name), &pods(), 1).await };
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
    drop(executing_requests);
    for _ in 0..60 {
        control.adjust();
    }
    assert_eq!(seats(&control, "global-default"), 49);
}

#[tokio::test]
async fn objects_take_effect_and_running_levels_continue() {
    let control = whole();
    let executing_requests = control.admit(&user("a"), &pods(), 1).await.unwrap();
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
    let first = control.admit(&user("a"), &pods(), 1).await.unwrap();
    assert_eq!(first.headers.flow_schema_uid, "schema-uid");
    assert_eq!(first.headers.priority_level_uid, "level-uid");
    let refused = control.admit(&user("a"), &pods(), 1).await.err().unwrap();
    assert_eq!(refused.rejection, Rejection::ConcurrencyLimit);
    let executing = |name: &str| {
        let loads = control.loads();
        loads.iter().find(|(level, _)| **level == *name).unwrap().1.executing
    };
    assert_eq!((executing("jail"), executing("global-default")), (1, 1));
    drop(executing_requests);
    assert_eq!(executing("global-default"), 0);

    // A FlowSchema of a missing level decides nothing, and the mandatory ones are always there.
    control.configure(&[], &[]);
    let fallback = control.admit(&user("a"), &pods(), 1).await.unwrap();
    assert_eq!(fallback.headers.flow_schema_uid, "");
    assert!(control.loads().iter().any(|(level, _)| **level == *bootstrap::EXEMPT));
}

#[tokio::test]
async fn a_request_with_a_free_seat_is_admitted_at_once() {
    const COUNT: u32 = 10_000;
    /// Ten times what it takes without optimisation; with it, it is about a microsecond.
    const COST_MAX: Duration = Duration::from_micros(200);
    let control = whole();
    let (caller, info) = (user("a"), pods());
    let begun = Instant::now();
    for _ in 0..COUNT {
        drop(control.admit(&caller, &info, 1).await.unwrap());
    }
    let cost = begun.elapsed() / COUNT;
    println!("{} ns each", cost.as_nanos());
    assert!(cost < COST_MAX, "{cost:?}");
}
