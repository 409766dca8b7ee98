//! The Rust client of Kubernetes against `drover sim`, over the network: watchers with streamed
//! lists, a controller with its own kind, finalizer and events, and a lease that one of two holds.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

#[path = "kube_rs/wait.rs"]
mod wait;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use e2e::Sim;
use futures::StreamExt;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::controller::Action;
use kube::runtime::events::{Event as NewEvent, EventType, Recorder, Reporter};
use kube::runtime::finalizer::{Event as Life, finalizer};
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::{Controller, watcher};
use kube::{Client, Config, CustomResource, CustomResourceExt, Resource, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use wait::{PATIENCE, eventually};

const NAMESPACE: &str = "default";
const FINALIZER: &str = "rs.example.com/unwind";
/// Pause before a failed reconciliation is retried.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// A kind that the test defines.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "rs.example.com", version = "v1", kind = "Clock", namespaced)]
#[kube(status = "ClockStatus")]
struct ClockSpec {
    zone: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct ClockStatus {
    shows: String,
}

async fn client(sim: &Sim) -> Client {
    let kubeconfig = Kubeconfig::read_from(sim.kubeconfig()).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    Client::try_from(config).unwrap()
}

/// Starting one blocks.
async fn start() -> Sim {
    tokio::task::spawn_blocking(|| Sim::start(&["--nodes", "1"]).unwrap()).await.unwrap()
}

fn map(name: &str) -> ConfigMap {
    let labels = BTreeMap::from([("made-by".to_owned(), "kube-rs".to_owned())]);
    let metadata =
        ObjectMeta { name: Some(name.to_owned()), labels: Some(labels), ..ObjectMeta::default() };
    ConfigMap { metadata, ..ConfigMap::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_streams_its_list_and_then_every_change() {
    let sim = start().await;
    let maps: Api<ConfigMap> = Api::namespaced(client(&sim).await, NAMESPACE);
    let create = async |name: &str| maps.create(&PostParams::default(), &map(name)).await.unwrap();
    for name in ["a", "b", "c"] {
        create(name).await;
    }
    let config = watcher::Config::default().labels("made-by=kube-rs").streaming_lists();
    let mut events = watcher(maps.clone(), config).boxed();
    let mut next = async || {
        let event = tokio::time::timeout(PATIENCE, events.next()).await.expect("an event in time");
        event.expect("no end").expect("no error")
    };
    assert!(matches!(next().await, watcher::Event::Init));
    // It requests any state, which may be slightly old; later changes follow as events.
    let all = BTreeSet::from(["a", "b", "c"].map(str::to_owned));
    let (mut seen, mut is_listed) = (BTreeSet::new(), false);
    while !is_listed || seen != all {
        match next().await {
            watcher::Event::InitApply(map) if !is_listed => drop(seen.insert(map.name_any())),
            watcher::Event::InitDone if !is_listed => is_listed = true,
            watcher::Event::Apply(map) if is_listed => {
                assert!(seen.insert(map.name_any()), "delivered twice");
            }
            other => panic!("{other:?}"),
        }
    }
    create("d").await;
    let watcher::Event::Apply(added) = next().await else { panic!("it was added") };
    assert_eq!(added.name_any(), "d");
    let change = Patch::Merge(json!({"data": {"key": "value"}}));
    maps.patch("a", &PatchParams::default(), &change).await.unwrap();
    let watcher::Event::Apply(changed) = next().await else { panic!("it was changed") };
    assert_eq!(changed.data.unwrap()["key"], "value");
    maps.delete("b", &DeleteParams::default()).await.unwrap();
    let watcher::Event::Delete(deleted) = next().await else { panic!("it was deleted") };
    assert_eq!(deleted.name_any(), "b");
}

/// The context of the controller.
struct Shop {
    client: Client,
    recorder: Recorder,
}

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct Broken(#[from] kube::Error);

/// Reconciles a ConfigMap for each clock, and another that only the finalizer removes.
async fn reconcile_clock(clock: Arc<Clock>, shop: &Shop) -> Result<Action, Broken> {
    let maps: Api<ConfigMap> = Api::namespaced(shop.client.clone(), NAMESPACE);
    let clocks: Api<Clock> = Api::namespaced(shop.client.clone(), NAMESPACE);
    let name = clock.name_any();
    let mut owned = map(&name);
    owned.metadata.owner_references = clock.controller_owner_ref(&()).map(|owner| vec![owner]);
    owned.data = Some(BTreeMap::from([("zone".to_owned(), clock.spec.zone.clone())]));
    let desired = owned.data.clone();
    let entry = maps.entry(&name).await?.or_insert(|| owned);
    let mut entry = entry.and_modify(|map| map.data = desired);
    entry.commit(&PostParams::default()).await.map_err(committed)?;
    maps.entry(&format!("{name}-spring"))
        .await?
        .or_insert(|| map(&format!("{name}-spring")))
        .commit(&PostParams::default())
        .await
        .map_err(committed)?;
    let shows = format!("time of {}", clock.spec.zone);
    if clock.status.as_ref().is_none_or(|status| status.shows != shows) {
        let status = Patch::Merge(json!({"status": {"shows": shows}}));
        clocks.patch_status(&name, &PatchParams::default(), &status).await?;
        let event = NewEvent {
            type_: EventType::Normal,
            reason: "Wound".to_owned(),
            note: Some(shows),
            action: "Wind".to_owned(),
            secondary: None,
        };
        shop.recorder.publish(&event, &clock.object_ref(&())).await?;
    }
    Ok(Action::await_change())
}

fn committed(error: kube::api::entry::CommitError) -> kube::Error {
    match error {
        kube::api::entry::CommitError::Save(error) => error,
        kube::api::entry::CommitError::Validate(error) => panic!("{error}"),
    }
}

async fn unwind(clock: Arc<Clock>, shop: &Shop) -> Result<Action, Broken> {
    let maps: Api<ConfigMap> = Api::namespaced(shop.client.clone(), NAMESPACE);
    match maps.delete(&format!("{}-spring", clock.name_any()), &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => {}
        other => drop(other?),
    }
    Ok(Action::await_change())
}

async fn reconcile(
    clock: Arc<Clock>,
    shop: Arc<Shop>,
) -> Result<Action, kube::runtime::finalizer::Error<Broken>> {
    let clocks: Api<Clock> = Api::namespaced(shop.client.clone(), NAMESPACE);
    finalizer(&clocks, FINALIZER, clock, async |life| match life {
        Life::Apply(clock) => reconcile_clock(clock, &shop).await,
        Life::Cleanup(clock) => unwind(clock, &shop).await,
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_reconciles_owns_records_events_and_finalizes() {
    let sim = start().await;
    let client = client(&sim).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.create(&PostParams::default(), &Clock::crd()).await.unwrap();
    let name = Clock::crd_name();
    let served = await_condition(definitions, name, conditions::is_crd_established());
    tokio::time::timeout(PATIENCE, served).await.unwrap().unwrap();

    let clocks: Api<Clock> = Api::namespaced(client.clone(), NAMESPACE);
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let reporter = Reporter { controller: "clockmaker".to_owned(), instance: None };
    let shop = Shop { client: client.clone(), recorder: Recorder::new(client.clone(), reporter) };
    let streamed = || watcher::Config::default().streaming_lists();
    let controller = Controller::new(clocks.clone(), streamed())
        .owns(maps.clone(), streamed())
        .run(reconcile, |_, _, _| Action::requeue(RETRY_PAUSE), Arc::new(shop))
        .for_each(async |_| ());
    let running = tokio::spawn(controller);

    let clock = Clock::new("tower", ClockSpec { zone: "UTC".to_owned() });
    let made = clocks.create(&PostParams::default(), &clock).await.unwrap();
    let shows = async |expected: &str| {
        let clock = clocks.get("tower").await.unwrap();
        clock.status.is_some_and(|status| status.shows == expected)
    };
    eventually("the status shows it", || shows("time of UTC")).await;
    let owned = maps.get("tower").await.unwrap();
    assert_eq!(owned.owner_references()[0].uid, made.uid().unwrap());
    assert_eq!(clocks.get("tower").await.unwrap().finalizers(), [FINALIZER]);

    maps.delete("tower", &DeleteParams::default()).await.unwrap();
    eventually("what it owns comes again", async || {
        let found = maps.get_opt("tower").await.unwrap();
        found.is_some_and(|found| found.uid() != owned.uid())
    })
    .await;
    let change = Patch::Merge(json!({"spec": {"zone": "CET"}}));
    clocks.patch("tower", &PatchParams::default(), &change).await.unwrap();
    eventually("the status follows", || shows("time of CET")).await;
    assert_eq!(maps.get("tower").await.unwrap().data.unwrap()["zone"], "CET");

    let events: Api<k8s_openapi::api::events::v1::Event> = Api::namespaced(client, NAMESPACE);
    // The second event of the same kind makes a series of the first.
    eventually("both are reported", async || {
        let list = events.list(&ListParams::default()).await.unwrap();
        list.items.iter().any(|event| {
            event.regarding.as_ref().and_then(|about| about.uid.clone()) == made.uid()
                && event.reporting_controller.as_deref() == Some("clockmaker")
                && event.series.as_ref().is_some_and(|series| series.count == 2)
        })
    })
    .await;

    clocks.delete("tower", &DeleteParams::default()).await.unwrap();
    eventually("it is deleted", async || clocks.get_opt("tower").await.unwrap().is_none()).await;
    assert!(maps.get_opt("tower-spring").await.unwrap().is_none(), "the finalizer came before");
    eventually("what it owned goes", async || maps.get_opt("tower").await.unwrap().is_none()).await;
    running.abort();
}

fn held_by(holder: &str, renewed: Timestamp) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(holder.to_owned()),
        lease_duration_seconds: Some(15),
        renew_time: Some(MicroTime(renewed)),
        ..LeaseSpec::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_held_by_one_at_a_time() {
    let sim = start().await;
    let leases: Api<Lease> = Api::namespaced(client(&sim).await, NAMESPACE);
    let take = async |holder: String| {
        let metadata = ObjectMeta { name: Some("lock".to_owned()), ..ObjectMeta::default() };
        let lease = Lease { metadata, spec: Some(held_by(&holder, Timestamp::now())) };
        leases.create(&PostParams::default(), &lease).await
    };
    let contenders: Vec<String> = (0..8).map(|number| format!("contender-{number}")).collect();
    let attempts = futures::future::join_all(contenders.iter().cloned().map(take)).await;
    let (won, lost): (Vec<_>, Vec<_>) = attempts.into_iter().partition(Result::is_ok);
    assert_eq!(won.len(), 1);
    for error in lost {
        let kube::Error::Api(status) = error.unwrap_err() else { panic!("not a response") };
        assert!(status.is_already_exists(), "{status:?}");
    }

    let first = won.into_iter().next().unwrap().unwrap();
    let written = first.spec.clone().unwrap().renew_time.unwrap().0;
    assert_eq!(written.as_microsecond() * 1000, i64::try_from(written.as_nanosecond()).unwrap());
    let renew = async |seen: &Lease, holder: &str| {
        let mut lease = seen.clone();
        lease.spec = Some(held_by(holder, Timestamp::now()));
        leases.replace("lock", &PostParams::default(), &lease).await
    };
    // An expired lease is replaced; of several writers with the same version one succeeds.
    let names = ["left", "right"];
    let attempts = futures::future::join_all(names.map(|name| renew(&first, name))).await;
    let (won, lost): (Vec<_>, Vec<_>) = attempts.into_iter().partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 1));
    let kube::Error::Api(status) = lost.into_iter().next().unwrap().unwrap_err() else {
        panic!("not a response")
    };
    assert!(status.is_conflict(), "{status:?}");
    let holder = won.into_iter().next().unwrap().unwrap().spec.unwrap().holder_identity;
    let stored = leases.get("lock").await.unwrap();
    assert_eq!(stored.spec.clone().unwrap().holder_identity, holder);
    let again = renew(&stored, holder.as_deref().unwrap()).await.unwrap();
    assert_ne!(again.resource_version(), stored.resource_version());
    let mut unseen = again;
    unseen.metadata.resource_version = None;
    let refused = leases.replace("lock", &PostParams::default(), &unseen).await.unwrap_err();
    let kube::Error::Api(status) = refused else { panic!("not a response") };
    assert_eq!(status.code, 422, "{status:?}");
}
