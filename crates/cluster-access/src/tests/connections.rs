//! The pool: sharing, rotation, failure.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use http::{Request, StatusCode, Version};
use http_body_util::BodyExt;
use tokio::time::Instant;

use super::downstream::{Downstream, InMemory, SECOND, by_name, get};
use super::wait::pass;
use crate::body::full;
use crate::dialer::Dialer;
use crate::limits::{
    DIRECT_PROBE_INTERVAL, EXCLUSIVE_IDLE_MAX, IDLE_MAX, READY_TIME, STREAMS_PER_CONNECTION_MAX,
    SWEEP_INTERVAL,
};
use crate::{AccessError, BearerToken, ClusterAccess, Endpoint, Reachability, Route};

const BOTH: &[&str] = &["h2", "http/1.1"];

fn in_memory(alpn: &[&str]) -> (Downstream, Arc<std::sync::atomic::AtomicUsize>, ClusterAccess) {
    let downstream = Downstream::new(6443, alpn);
    let dialer = InMemory::to(&downstream);
    let dials = dialer.dials.clone();
    let access = ClusterAccess::with_dialer(Arc::new(dialer));
    access.set_endpoint("c-1", downstream.endpoint.clone()).unwrap();
    (downstream, dials, access)
}

async fn text(access: &ClusterAccess, cluster: &str, path: &str) -> Result<String, AccessError> {
    let response = access.send(cluster, get(path)).await?;
    let body = response.into_body().collect().await.unwrap().to_bytes();
    Ok(String::from_utf8_lossy(&body).into_owned())
}

#[tokio::test]
async fn an_endpoint_on_the_network_is_reached_with_its_own_ca_and_token() {
    let downstream = Downstream::start(BOTH).await;
    let access = ClusterAccess::new(tunnel::Sessions::new(), by_name());
    access.set_endpoint("c-1", downstream.endpoint.clone()).unwrap();
    let client = access.kube_client("c-1");
    let request = Request::get("/api/v1/nodes").body(Vec::new()).unwrap();
    assert_eq!(client.request_text(request).await.unwrap(), "{\"bytes\":0}");
    let seen = downstream.last();
    assert_eq!(seen.version, Version::HTTP_2);
    assert_eq!(seen.values("authorization"), ["Bearer downstream-token"]);
    assert_eq!(*access.watch_reachability("c-1").borrow(), Reachability::Reachable);
}

#[tokio::test(start_paused = true)]
async fn many_requests_share_few_connections() {
    let (downstream, dials, access) = in_memory(BOTH);
    let requests = (0..200).map(|_| access.send("c-1", get("/api/watch")));
    let watches: Vec<_> = futures::future::join_all(requests).await;
    let watches: Vec<_> = watches.into_iter().map(Result::unwrap).collect();
    assert_eq!(dials.load(Ordering::SeqCst), 200_usize.div_ceil(STREAMS_PER_CONNECTION_MAX));
    assert_eq!(downstream.connection_count(), access.connection_count("c-1"));
    drop(watches);
    text(&access, "c-1", "/api").await.unwrap();
    assert_eq!(downstream.connection_count(), 3, "a pooled connection is used again");
}

#[tokio::test(start_paused = true)]
async fn unused_connections_are_closed() {
    let (_downstream, dials, access) = in_memory(BOTH);
    let watch = access.send("c-1", get("/api/watch")).await.unwrap();
    pass(IDLE_MAX * 3).await;
    assert_eq!(access.connection_count("c-1"), 1, "a watch is a use");
    drop(watch);
    pass(IDLE_MAX * 2).await;
    assert_eq!(access.connection_count("c-1"), 0);
    text(&access, "c-1", "/api").await.unwrap();
    assert_eq!(dials.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_rotated_token_is_used_by_the_next_request_and_cuts_nothing() {
    let (downstream, dials, access) = in_memory(BOTH);
    let mut watch = access.send("c-1", get("/api/watch")).await.unwrap().into_body();
    let token = BearerToken::new("second");
    access.set_endpoint("c-1", Endpoint { token, ..downstream.endpoint.clone() }).unwrap();
    text(&access, "c-1", "/api").await.unwrap();
    assert_eq!(downstream.last().values("authorization"), ["Bearer second"]);
    assert_eq!(dials.load(Ordering::SeqCst), 1);
    downstream.events.send("line".into()).unwrap();
    let frame = watch.frame().await.unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap(), "line");
}

#[tokio::test(start_paused = true)]
async fn a_new_address_or_a_removed_cluster_cuts_its_connections() {
    let (downstream, _, access) = in_memory(BOTH);
    let mut watch = access.send("c-1", get("/api/watch")).await.unwrap().into_body();
    let moved = Endpoint {
        address: tunnel::Address::new("127.0.0.1", 6444).unwrap(),
        ..downstream.endpoint.clone()
    };
    access.set_endpoint("c-1", moved).unwrap();
    assert!(watch.frame().await.unwrap().is_err());
    let mut watch = access.send("c-1", get("/api/watch")).await.unwrap().into_body();
    access.forget("c-1");
    assert!(watch.frame().await.unwrap().is_err());
    let unknown = AccessError::Unknown { cluster: "c-1".to_owned() };
    assert_eq!(text(&access, "c-1", "/api").await, Err(unknown));
}

#[tokio::test(start_paused = true)]
async fn a_dead_cluster_fails_its_callers_together_and_no_others() {
    let (downstream, dials, access) = in_memory(BOTH);
    access.set_endpoint("hole", downstream.endpoint.clone()).unwrap();
    access.set_endpoint("gone", downstream.endpoint.clone()).unwrap();
    let started = Instant::now();
    let dead = (0..50).map(|_| text(&access, "hole", "/api"));
    let (dead, alive) = tokio::join!(futures::future::join_all(dead), async {
        let response = text(&access, "c-1", "/api").await;
        (response, started.elapsed())
    });
    assert!(alive.0.is_ok() && alive.1 < SECOND, "{alive:?}");
    assert!(dead.iter().all(|response| *response == Err(AccessError::TimedOut)));
    assert!(started.elapsed() < 11 * SECOND, "the waiters share one failure");
    assert_eq!(dials.load(Ordering::SeqCst), 2);
    assert_eq!(text(&access, "gone", "/api").await, Err(AccessError::NotConnected));
    assert!(matches!(
        *access.watch_reachability("gone").borrow(),
        Reachability::Unreachable { .. }
    ));
}

#[tokio::test(start_paused = true)]
async fn an_api_server_without_http2_is_used_over_http1() {
    let (downstream, _, access) = in_memory(&["http/1.1"]);
    for _ in 0..3 {
        let request = Request::post("/api").body(full("hello")).unwrap();
        let response = access.send("c-1", request).await.unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body, "{\"bytes\":5}");
        // The connection is pooled once its task has seen the end of the response.
        tokio::time::timeout(SECOND, async {
            while access.connection_count("c-1") == 0 {
                tokio::task::yield_now().await;
            }
        })
        .await
        .unwrap();
    }
    let seen = downstream.last();
    assert_eq!((seen.version, seen.target.as_str()), (Version::HTTP_11, "/api"));
    assert_eq!(seen.values("host"), ["127.0.0.1:6443"]);
    assert_eq!(downstream.connection_count(), 1);
}

/// The HTTP version of the response to a user's request.
async fn forwarded(downstream: &Downstream, access: &ClusterAccess, path: &str) -> Version {
    let response = access.forward("c-1", get(path)).await.unwrap();
    response.into_body().collect().await.unwrap();
    downstream.last().version
}

/// Like [`in_memory`], with a connection of its own for a user's request.
async fn in_use() -> (Downstream, Arc<std::sync::atomic::AtomicUsize>, ClusterAccess) {
    let (downstream, dials, access) = in_memory(BOTH);
    for _ in 0..2 {
        assert_eq!(forwarded(&downstream, &access, "/api").await, Version::HTTP_2);
    }
    pass(SECOND).await;
    assert_eq!(dials.load(Ordering::SeqCst), 2);
    assert_eq!(forwarded(&downstream, &access, "/api").await, Version::HTTP_11);
    (downstream, dials, access)
}

#[tokio::test(start_paused = true)]
async fn a_users_request_has_its_own_connection_and_watches_and_server_requests_share_one() {
    let (downstream, dials, access) = in_use().await;
    for _ in 0..3 {
        assert_eq!(forwarded(&downstream, &access, "/api").await, Version::HTTP_11);
    }
    text(&access, "c-1", "/api").await.unwrap();
    assert_eq!(downstream.last().version, Version::HTTP_2);
    let watch = access.forward("c-1", get("/api/watch?watch=true")).await.unwrap();
    assert_eq!(downstream.last().version, Version::HTTP_2);
    drop(watch);
    assert_eq!(dials.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_no_connection_and_an_unread_one_is_closed_with_its_connection() {
    let (downstream, _, access) = in_use().await;
    let mut floods = Vec::new();
    for version in [Version::HTTP_11, Version::HTTP_2, Version::HTTP_11, Version::HTTP_2] {
        floods.push(access.forward("c-1", get("/api/flood")).await.unwrap());
        assert_eq!(downstream.last().version, version);
        pass(SECOND).await;
    }
    assert_eq!(access.connection_count("c-1"), 2, "a shared one, and one for the next");
    drop(floods);
    pass(SECOND).await;
    assert_eq!(access.connection_count("c-1"), 2, "nobody reads what is left in the others");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_may_close_at_any_time_is_not_used() {
    let (downstream, _, access) = in_use().await;
    // The last one that was held ready begins shortly before the end of the time.
    pass(READY_TIME + EXCLUSIVE_IDLE_MAX).await;
    assert_eq!(forwarded(&downstream, &access, "/api").await, Version::HTTP_2);
}

#[tokio::test(start_paused = true)]
async fn a_fresh_connection_is_ready_for_users_who_return_soon_and_closed_when_they_do_not() {
    let (downstream, dials, access) = in_use().await;
    let before = dials.load(Ordering::SeqCst);
    pass(READY_TIME / 2).await;
    assert_eq!(forwarded(&downstream, &access, "/api").await, Version::HTTP_11);
    assert!(dials.load(Ordering::SeqCst) > before);
    pass(READY_TIME + IDLE_MAX + SWEEP_INTERVAL).await;
    assert_eq!(access.connection_count("c-1"), 0);
}

#[tokio::test(start_paused = true)]
async fn only_a_request_that_changes_nothing_is_sent_again_when_its_connection_ends() {
    let seen = |downstream: &Downstream| downstream.recorded.lock().len();
    let (downstream, _, access) = in_use().await;
    downstream.lost.store(1, Ordering::SeqCst);
    let before = seen(&downstream);
    let response = access.forward("c-1", get("/api/lost")).await.unwrap();
    assert_eq!((response.status(), seen(&downstream) - before), (StatusCode::OK, 2));

    let (downstream, _, access) = in_use().await;
    downstream.lost.store(1, Ordering::SeqCst);
    let before = seen(&downstream);
    let post = Request::post("/api/lost").body(full("hello")).unwrap();
    let error = access.forward("c-1", post).await.unwrap_err();
    assert!(matches!(error, AccessError::Lost { .. }), "{error:?}");
    assert_eq!(seen(&downstream) - before, 1);
}

#[tokio::test(start_paused = true)]
async fn another_ca_is_not_trusted() {
    let (_downstream, _, access) = in_memory(BOTH);
    let other = Downstream::new(6443, BOTH);
    access.set_endpoint("c-1", other.endpoint.clone()).unwrap();
    let error = text(&access, "c-1", "/api").await.unwrap_err();
    assert!(matches!(&error, AccessError::Setup { detail } if detail.contains("certificate")));
}

#[tokio::test(start_paused = true)]
async fn a_malformed_endpoint_is_refused_and_the_old_one_stays() {
    let (downstream, _, access) = in_memory(BOTH);
    let good = downstream.endpoint.clone();
    for bad in [
        Endpoint { ca_pem: "not pem".to_owned(), ..good.clone() },
        Endpoint { ca_pem: String::new(), route: Route::Tunnel, ..good.clone() },
        Endpoint { token: BearerToken::new("two\nlines"), ..good.clone() },
        Endpoint { ca_pem: good.ca_pem.repeat(1000), ..good.clone() },
        Endpoint { server_name: Some("a b".to_owned()), ..good.clone() },
    ] {
        assert!(access.set_endpoint("c-1", bad).is_err());
        text(&access, "c-1", "/api").await.unwrap();
    }
    assert!(!format!("{good:?}").contains("downstream-token"));
}

/// A dialer for two ways to the same fake: the direct one can be cut.
struct TwoWays {
    inner: InMemory,
    is_direct_cut: Arc<std::sync::atomic::AtomicBool>,
    /// Dials of the direct way.
    direct: Arc<std::sync::atomic::AtomicUsize>,
}

impl Dialer for TwoWays {
    fn dial<'a>(
        &'a self,
        cluster: &'a str,
        endpoint: &'a Endpoint,
        timeout: std::time::Duration,
    ) -> futures::future::BoxFuture<'a, Result<Box<dyn tunnel::Io>, AccessError>> {
        if endpoint.route == Route::Direct {
            self.direct.fetch_add(1, Ordering::SeqCst);
            if self.is_direct_cut.load(Ordering::SeqCst) {
                let detail = "cut".to_owned();
                return Box::pin(async { Err(AccessError::Unreachable { detail }) });
            }
        }
        self.inner.dial(cluster, endpoint, timeout)
    }
}

#[tokio::test(start_paused = true)]
async fn a_direct_endpoint_is_used_while_it_can_be_reached_and_the_agent_otherwise() {
    let downstream = Downstream::new(6443, BOTH);
    let is_direct_cut = Arc::<std::sync::atomic::AtomicBool>::default();
    let direct = Arc::<std::sync::atomic::AtomicUsize>::default();
    let inner = InMemory::to(&downstream);
    let dials = inner.dials.clone();
    let ways = TwoWays { inner, is_direct_cut: is_direct_cut.clone(), direct: direct.clone() };
    let access = ClusterAccess::with_dialer(Arc::new(ways));
    let through_agent = Endpoint { route: Route::Tunnel, ..downstream.endpoint.clone() };
    access.set_endpoint("c-1", through_agent).unwrap();
    let token = BearerToken::new("of-the-driver");
    let endpoint = Endpoint { route: Route::Direct, token, ..downstream.endpoint.clone() };
    assert!(access.direct_only().send("c-1", get("/api")).await.is_err(), "there is none yet");
    access.set_direct_endpoint("c-1", Some(endpoint)).unwrap();
    // It was tried in the background.
    pass(SECOND).await;
    assert!(access.is_direct("c-1"));
    text(&access, "c-1", "/api").await.unwrap();
    assert_eq!(downstream.last().values("authorization"), ["Bearer of-the-driver"]);

    is_direct_cut.store(true, Ordering::SeqCst);
    pass(IDLE_MAX * 2).await;
    text(&access, "c-1", "/api").await.unwrap();
    assert_eq!(downstream.last().values("authorization"), ["Bearer downstream-token"]);
    assert!(!access.is_direct("c-1"));
    assert!(access.direct_only().send("c-1", get("/api")).await.is_err());
    // While it is cut, few requests look whether it still is.
    let before = direct.load(Ordering::SeqCst);
    for _ in 0..20 {
        text(&access, "c-1", "/api").await.unwrap();
    }
    assert!(direct.load(Ordering::SeqCst) <= before + 1);

    is_direct_cut.store(false, Ordering::SeqCst);
    pass(DIRECT_PROBE_INTERVAL).await;
    text(&access, "c-1", "/api").await.unwrap();
    pass(SECOND).await;
    text(&access, "c-1", "/api").await.unwrap();
    assert_eq!(downstream.last().values("authorization"), ["Bearer of-the-driver"]);
    access.set_direct_endpoint("c-1", None).unwrap();
    text(&access, "c-1", "/api").await.unwrap();
    assert_eq!(downstream.last().values("authorization"), ["Bearer downstream-token"]);
    access.forget("c-1");
    assert!(text(&access, "c-1", "/api").await.is_err());
    assert!(dials.load(Ordering::SeqCst) > 2);
}
