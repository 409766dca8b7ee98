//! The same random requests to kube-apiserver and to a simulated cluster: all responses, and all
//! watch events, must be equivalent.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

#[path = "differential/alike.rs"]
mod alike;
#[path = "differential/kinds.rs"]
mod kinds;
#[path = "differential/recorded.rs"]
mod recorded;
#[path = "differential/recorded_known.rs"]
mod recorded_known;
#[path = "differential/side.rs"]
mod side;
#[path = "differential/stream.rs"]
mod stream;
#[path = "differential/watching.rs"]
mod watching;
#[path = "differential/words.rs"]
mod words;

use std::time::{Duration, Instant};

use e2e::{Kubeconfig, Sim, eventually};
use serde_json::json;
use testbed::{Program, RealCluster};

use crate::side::Side;
use crate::stream::{NAMESPACES, Stream};
use crate::watching::Watches;
use crate::words::Words;

const STEPS: usize = 10_000;
/// The seed of every normal run, so that failures are reproducible.
const SEED: u64 = 1;
/// Variable with another first seed.
const SEED_ENV: &str = "DROVER_SEED";
/// Variable with the duration of further runs, in seconds, each with another seed.
const SOAK_ENV: &str = "DROVER_SOAK_SECONDS";
/// Most differences that are shown of a run.
const SHOWN_MAX: usize = 20;

#[test]
fn random_requests_get_the_same_responses_as_from_kube_apiserver() {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let soak = number(SOAK_ENV).map(Duration::from_secs);
    let start = Instant::now();
    let mut seed = number(SEED_ENV).unwrap_or(SEED);
    loop {
        compare(seed);
        match soak {
            Some(soak) if start.elapsed() < soak => seed += 1,
            _ => return,
        }
    }
}

/// # Panics
/// When the servers differ; the message has the seed and the first differences.
fn compare(seed: u64) {
    let cluster = RealCluster::start().unwrap();
    let sim = Sim::start(&["--nodes", "0"]).unwrap();
    let real = Kubeconfig::parse(cluster.kubeconfig()).unwrap();
    let mut real = Side::new("kube-apiserver", &real).unwrap();
    let mut ours = Side::new("drover", &Kubeconfig::read(&sim.kubeconfig()).unwrap()).unwrap();
    furnish(&real);
    furnish(&ours);
    // From here on only the requests change objects.
    let mut cluster = cluster;
    cluster.crash(Program::KubeControllerManager);

    let watches = [&real, &ours].map(|side| Watches::open(side.client()).unwrap());
    let mut stream = Stream::new(seed);
    let mut found = Vec::new();
    let since = Instant::now();
    for number in 0..STEPS {
        let step = stream.next();
        let (one, other) = real.send_both(&mut ours, &step).unwrap();
        if alike::may_be_stale(&step, &one, &other) {
            // One side may show a past state that the other never served.
            real.words.forget_way_on();
            ours.words.forget_way_on();
            continue;
        }
        let one_body = real.words.share(&step.path, &one.body);
        let other_body = ours.words.share(&step.path, &other.body);
        if Words::has_more(&one_body) != Words::has_more(&other_body) {
            real.words.forget_way_on();
            ours.words.forget_way_on();
        }
        let differences = alike::differences(&step, (&one, &one_body), (&other, &other_body));
        if differences.is_empty() {
            if one.status.is_success() != other.status.is_success() {
                // A known difference, but only one of them has written.
                real.forget(&step.path).unwrap();
                ours.forget(&step.path).unwrap();
            }
            continue;
        }
        let stands = [&real, &ours].map(|side| side.stands(&step).unwrap()).join(" | ");
        let differences = differences.join("\n    ");
        found.push(format!("step {number}: {step}\n    {differences}\n    stands there: {stands}"));
        // The stored objects may differ now: both are deleted.
        real.forget(&step.path).unwrap();
        ours.forget(&step.path).unwrap();
    }
    found.extend(watches[0].differences(&watches[1]));
    let events = watches[0].count();
    println!("seed {seed}: {STEPS} steps and {events} events in {:.0?}", since.elapsed());
    let shown = found.len().min(SHOWN_MAX);
    assert!(
        found.is_empty(),
        "seed {seed}: {} steps or watches differ (kube-apiserver | drover), such as\n{}",
        found.len(),
        found[..shown].join("\n")
    );
    // Each write reaches several watches; many writes are refused.
    assert!(events > STEPS / 4, "so few events: {events}");
}

/// Creates the objects that the stream needs, and waits until all its kinds are served.
fn furnish(side: &Side) {
    let client = side.client();
    for namespace in NAMESPACES {
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        client.post("/api/v1/namespaces", &object).unwrap().success().unwrap();
    }
    for definition in kinds::definitions() {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        client.post(path, &definition).unwrap().success().unwrap();
    }
    for kind in &kinds::KINDS {
        eventually("the kind is served", || client.get(kind.path)?.success());
    }
    for namespace in NAMESPACES {
        let path = format!("/api/v1/namespaces/{namespace}/configmaps/kube-root-ca.crt");
        eventually("the namespace has what it starts with", || client.get(&path)?.success());
    }
}
