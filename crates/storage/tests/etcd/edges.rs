//! Limits, refusals, sharing and expiry.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt as _;
use futures::future::join_all;
use storage::etcd::{EtcdConfig, EtcdStorage};
use storage::{
    Event, Expect, RangeRequest, Revision, Storage, StorageError, WatchItem, WatchStream,
};

use super::cluster::Cluster;
use super::wait;

/// Longest wait for something that must happen.
const WAIT_MAX: Duration = Duration::from_secs(30);

async fn create(storage: &impl Storage, key: &str, ttl: Option<Duration>) -> Revision {
    let put = storage.put(key, Bytes::from_static(b"x"), Expect::Absent, ttl).await;
    put.expect("the key was absent").mod_revision
}

/// The next batch of events.
async fn events(watch: &mut WatchStream) -> Vec<Event> {
    loop {
        let item = tokio::time::timeout(WAIT_MAX, watch.next()).await.expect("something comes");
        if let WatchItem::Events(events) = item.expect("the watch goes on").expect("it is whole") {
            return events.iter().map(|event| Event::clone(event)).collect();
        }
    }
}

fn refusal(result: Result<std::sync::Arc<EtcdStorage>, StorageError>) -> String {
    result.expect_err("it cannot be used").to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_above_the_limit_of_etcd_is_too_large() {
    let cluster = Cluster::start(1, false, &[]);
    let storage = cluster.connect(cluster.config(0)).await;
    let size = 2 * 1024 * 1024;
    let put = storage.put("/big", Bytes::from(vec![1; size]), Expect::Absent, None).await;
    assert!(
        matches!(put, Err(StorageError::TooLarge { size: reported }) if reported == size),
        "{put:?}"
    );
    let most = Bytes::from(vec![1; size / 2]);
    storage.put("/big", most, Expect::Absent, None).await.expect("1 MiB is accepted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_etcd_is_reported_and_can_still_be_read() {
    let cluster = Cluster::start(1, false, &["--quota-backend-bytes=8000000"]);
    let storage = cluster.connect(cluster.config(0)).await;
    let value = Bytes::from(vec![1; 256 * 1024]);
    let mut error = None;
    let mut written = 0;
    // The quota counts the file, which lags by about 100 ms.
    while error.is_none() && written < 1000 {
        let key = format!("/f/{written:03}");
        match storage.put(&key, value.clone(), Expect::Absent, None).await {
            Ok(_) => written += 1,
            // The write that exceeds the quota is refused, but happens.
            Err(StorageError::Unknown { reason }) => {
                assert!(reason.contains("space exceeded"), "{reason}");
                let found = storage.get(&key, None).await.expect("reads go on").1;
                written += usize::from(found.is_some());
            }
            Err(refused) => error = Some(refused),
        }
    }
    assert!(matches!(&error, Some(StorageError::Full { .. })), "{error:?} after {written}");
    assert!(error.is_some_and(|error| error.to_string().contains("etcdctl alarm disarm")));
    let list = storage.range(RangeRequest::prefix("/f/")).await.expect("reads go on");
    assert_eq!(list.items.len(), written);
    let refused = refusal(EtcdStorage::connect(cluster.config(0)).await);
    assert!(refused.contains("NOSPACE") && refused.contains("etcdctl alarm disarm"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_etcd_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    drop(listener);
    let config: EtcdConfig = format!("etcd://{address}").parse().expect("it is an address");
    let started = Instant::now();
    let refused = refusal(EtcdStorage::connect(config).await);
    assert!(refused.contains(&address.to_string()) && refused.contains("check that it runs"));
    assert!(refused.contains("Connection refused"), "{refused}");
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_untrusted_client_or_server_is_refused() {
    let cluster = Cluster::single_with_tls();
    let stranger = Cluster::single_with_tls();
    cluster.connect(cluster.config(0)).await;
    let mut nameless = cluster.config(0);
    nameless.tls.as_mut().expect("it is there").client_pem = None;
    let mut plain = cluster.config(0);
    plain.tls = None;
    let mut misled = cluster.config(0);
    misled.tls = stranger.config(0).tls;
    for config in [nameless, plain, misled] {
        let refused = refusal(EtcdStorage::connect(config).await);
        assert!(refused.contains("cannot be reached"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn members_of_different_clusters_are_refused() {
    let (one, other) = (Cluster::single(), Cluster::single());
    let mut config = one.config(0);
    one.connect(config.clone()).await;
    other.connect(other.config(0)).await;
    config.endpoints.extend(other.config(0).endpoints);
    let refused = refusal(EtcdStorage::connect(config).await);
    assert!(refused.contains("different clusters"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn key_prefixes_separate_their_users() {
    let cluster = Cluster::single();
    let one = cluster.connect(cluster.config(0)).await;
    let config = EtcdConfig { key_prefix: "/drover2".to_owned(), ..cluster.config(0) };
    let other = cluster.connect(config).await;
    let mut watch = other.watch("/", 1).await.expect("the past is there");
    create(&*one, "/k", None).await;
    let last = create(&*other, "/k", None).await;
    let all = cluster.connect(EtcdConfig { key_prefix: String::new(), ..cluster.config(0) }).await;
    let keys = async |storage: &EtcdStorage| {
        let list = storage.range(RangeRequest::prefix("/")).await.expect("reads work");
        list.items.iter().map(|item| item.key.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(keys(&one).await, ["/k"]);
    assert_eq!(keys(&all).await, ["/drover/k", "/drover2/k"]);
    let seen = events(&mut watch).await;
    assert_eq!(seen.iter().map(|event| event.revision).collect::<Vec<_>>(), [last]);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_expire_together_have_revisions_of_their_own() {
    const TTL: Duration = Duration::from_secs(3);
    let cluster = Cluster::single();
    let storage = cluster.connect(cluster.config(0)).await;
    let keys: Vec<_> = (0..20).map(|number| format!("/e/{number:02}")).collect();
    let created = Instant::now();
    let last = join_all(keys.iter().map(|key| create(&*storage, key, Some(TTL)))).await;
    let last = last.into_iter().max().expect("there are keys");
    let mut watch = storage.watch("/e/", last).await.expect("the past is there");
    let mut expired = Vec::new();
    while expired.len() < keys.len() {
        expired.extend(events(&mut watch).await);
    }
    assert!(created.elapsed() >= TTL, "expired after {:?}", created.elapsed());
    assert!(expired.iter().all(|event| event.current.is_none()));
    assert!(expired.is_sorted_by(|one, next| one.revision < next.revision));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_that_does_not_read_is_dropped_and_can_resume() {
    const WRITES: usize = 20;
    let cluster = Cluster::single();
    let storage = cluster.connect(cluster.config(0)).await;
    let start = storage.revision().await.expect("it is up");
    let mut unread = storage.watch("/big", start).await.expect("the past is there");
    let mut expect = Expect::Absent;
    for number in 0..WRITES {
        let value = Bytes::from(vec![number as u8; 3 * 1024 * 1024]);
        let put = storage.put("/big", value, expect, None).await.expect("nobody else writes");
        expect = Expect::Revision(put.mod_revision);
    }
    let (mut seen, mut complete) = (0, start);
    let error = loop {
        let item = tokio::time::timeout(WAIT_MAX, unread.next()).await.expect("something comes");
        match item.expect("an error comes first") {
            Ok(WatchItem::Events(events)) => seen += events.len(),
            Ok(WatchItem::Progress(revision)) => complete = revision,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StorageError::Lagged), "{error}");
    assert!(unread.next().await.is_none(), "the error is the end");
    assert!((1..WRITES).contains(&seen), "{seen} events waited");
    let mut resumed = storage.watch("/big", complete).await.expect("the past is there");
    while seen < WRITES {
        for event in events(&mut resumed).await {
            let current = event.current.expect("nothing was deleted");
            assert_eq!(usize::from(current.value[0]), seen, "the next event comes next");
            seen += 1;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_several_processes_compacts() {
    let cluster = Cluster::single();
    let every = Duration::from_millis(500);
    let config =
        EtcdConfig { key_prefix: String::new(), compact_every: Some(every), ..cluster.config(0) };
    let storages = [cluster.connect(config.clone()).await, cluster.connect(config.clone()).await];
    let mut watch = storages[0].watch("/", 1).await.expect("the past is there");
    let first = create(&*storages[0], "/a", None).await;
    let started = Instant::now();
    let know = async || storages.iter().all(|one| one.compacted() >= first).then_some(());
    wait::until(WAIT_MAX, "all processes learn of the compaction", know).await;
    let look = async || match storages[1].get("/a", Some(first - 1)).await {
        Err(StorageError::Compacted { oldest, .. }) => Some(oldest),
        other => other.map(|_| None).expect("reads work"),
    };
    let compacted = wait::until(WAIT_MAX, "somebody compacts", look).await;
    assert!(compacted >= first);
    let refused = storages[0].watch("/", first - 1).await.err();
    assert!(matches!(refused, Some(StorageError::Compacted { .. })), "{refused:?}");
    assert_eq!(events(&mut watch).await.len(), 1, "what was watched already is not lost");
    let election = storages[0].get("compact_rev_key", None).await.expect("reads work").1;
    let election = election.expect("it was compacted through this key");
    let writes = storages[0].range(RangeRequest::prefix("compact_rev_key")).await;
    assert_eq!(writes.expect("reads work").items.len(), 1);
    let rounds = started.elapsed().as_millis() / every.as_millis() + 2;
    let changes = election.mod_revision - election.create_revision;
    assert!(u128::from(changes) <= rounds, "{changes} turns in {rounds} rounds");
}
