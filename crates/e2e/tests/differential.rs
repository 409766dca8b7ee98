//! The same random requests to kube-apiserver and to a simulated cluster: every answer must be alike.

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
#[path = "differential/words.rs"]
mod words;

use std::time::{Duration, Instant};

use e2e::{Kubeconfig, Sim, eventually};
use serde_json::json;
use testbed::{Program, RealCluster};

use crate::side::Side;
use crate::stream::{NAMESPACES, Stream};
use crate::words::Words;

const STEPS: usize = 10_000;
/// The same in every run but the long ones, so that a failure is nobody else's.
const SEED: u64 = 1;
/// How long to go on, in seconds, each time with another seed.
const SOAK_ENV: &str = "DROVER_SOAK_SECONDS";
/// Differences shown of a run.
const SHOWN_MAX: usize = 20;

#[test]
fn random_requests_are_answered_as_kube_apiserver_answers_them() {
    let soak = std::env::var(SOAK_ENV).ok().map(|text| Duration::from_secs(text.parse().unwrap()));
    let start = Instant::now();
    let mut seed = SEED;
    loop {
        compare(seed);
        match soak {
            Some(soak) if start.elapsed() < soak => seed += 1,
            _ => return,
        }
    }
}

/// # Panics
/// When the servers differ; the seed and the first differences are told.
fn compare(seed: u64) {
    let cluster = RealCluster::start().unwrap();
    let sim = Sim::start(&["--nodes", "0"]).unwrap();
    let real = Kubeconfig::parse(cluster.kubeconfig()).unwrap();
    let mut real = Side::new("kube-apiserver", &real).unwrap();
    let mut ours = Side::new("drover", &Kubeconfig::read(&sim.kubeconfig()).unwrap()).unwrap();
    furnish(&real);
    furnish(&ours);
    // From here on only the requests act.
    let mut cluster = cluster;
    cluster.crash(Program::KubeControllerManager);

    let mut stream = Stream::new(seed);
    let mut found = Vec::new();
    let since = Instant::now();
    for number in 0..STEPS {
        let step = stream.next();
        let (one, other) = (real.send(&step).unwrap(), ours.send(&step).unwrap());
        if alike::may_be_stale(&step, &one, &other) {
            // What one side shows of the past, the other need not have seen.
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
            continue;
        }
        found.push(format!("step {number}: {step}\n    {}", differences.join("\n    ")));
        // What they hold may differ by now: both begin anew there.
        real.forget(&step.path).unwrap();
        ours.forget(&step.path).unwrap();
    }
    println!("seed {seed}: {STEPS} steps in {:.0?}", since.elapsed());
    let shown = found.len().min(SHOWN_MAX);
    assert!(
        found.is_empty(),
        "seed {seed}: {} steps were answered differently (kube-apiserver | drover), such as\n{}",
        found.len(),
        found[..shown].join("\n")
    );
}

/// Makes what the stream needs, and waits until every kind of it is served.
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
