//! The same random validation rules to kube-apiserver and to a simulated cluster: each must be
//! accepted or refused alike, and so must each of its objects.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

#[path = "validation_rules/definitions.rs"]
mod definitions;
#[path = "validation_rules/expressions.rs"]
mod expressions;
#[path = "validation_rules/validation.rs"]
mod validation;

use std::time::{Duration, Instant};

use e2e::http::Client;
use e2e::{Kubeconfig, Sim, eventually};
use serde_json::{Value, json};
use testbed::RealCluster;

use crate::definitions::{Rules, definition, object};
use crate::validation::ValidationResult;

/// Rules that are compared individually.
const RULES: usize = 1_000;
/// Definitions with objects.
const DEFINITIONS: usize = 4;
/// Rules of one definition.
const RULES_EACH: usize = 40;
/// Objects, and updates of objects, that are compared for each definition.
const OBJECTS_EACH: usize = 25;
/// The seed of every normal run, so that failures are reproducible.
const SEED: u64 = 1;
/// Variable with the duration of further runs, in seconds, each with another seed.
const SOAK_ENV: &str = "DROVER_SOAK_SECONDS";
/// Variable with the first seed of long runs.
const SEED_ENV: &str = "DROVER_SEED";
/// Most differences that are shown of a run.
const SHOWN_MAX: usize = 40;

const DEFINITIONS_PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

#[test]
fn random_rules_are_validated_like_kube_apiserver_validates_them() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let soak = number(SOAK_ENV).map(Duration::from_secs);
    let cluster = RealCluster::start().unwrap();
    let sim = Sim::start(&["--nodes", "0"]).unwrap();
    let real = Kubeconfig::parse(cluster.kubeconfig()).unwrap();
    let ours = Kubeconfig::read(&sim.kubeconfig()).unwrap();
    let sides = Sides { real: Client::of(&real).unwrap(), ours: Client::of(&ours).unwrap() };
    let start = Instant::now();
    let mut seed = number(SEED_ENV).unwrap_or(SEED);
    loop {
        compare(&sides, seed);
        match soak {
            Some(soak) if start.elapsed() < soak => seed += 1,
            _ => return,
        }
    }
}

struct Sides {
    real: Client,
    ours: Client,
}

/// Differences between the responses.
struct Found<'s> {
    sides: &'s Sides,
    differences: Vec<String>,
}

impl Found<'_> {
    /// Sends the same to both. Returns whether it was accepted; `None` when they differ.
    fn send_to_both(&mut self, what: &str, put: bool, path: &str, body: &Value) -> Option<bool> {
        let send = |client: &Client| match put {
            true => client.put(path, body).unwrap(),
            false => client.post(path, body).unwrap(),
        };
        let real = ValidationResult::of(&send(&self.sides.real));
        let ours = ValidationResult::of(&send(&self.sides.ours));
        let differences = real.differences(&ours);
        if differences.is_empty() {
            return Some(real.is_accepted());
        }
        self.differences.push(format!("{what}\n    {}", differences.join("\n    ")));
        None
    }
}

/// # Panics
/// When the servers differ; the message has the seed and the first differences.
fn compare(sides: &Sides, seed: u64) {
    let mut rules = Rules::new(seed);
    let mut found = Found { sides, differences: Vec::new() };
    let since = Instant::now();
    let mut accepted = Vec::new();
    for _ in 0..RULES {
        let rule = rules.rule();
        let crd = definition("single", std::slice::from_ref(&rule));
        let what = rule.to_string();
        if found.send_to_both(&what, false, &format!("{DEFINITIONS_PATH}?dryRun=All"), &crd)
            == Some(true)
        {
            accepted.push(rule);
        }
    }
    println!(
        "seed {seed}: {} of {RULES} rules accepted in {:.0?}",
        accepted.len(),
        since.elapsed()
    );
    let mut compared = 0;
    for (number, chosen) in accepted.chunks(RULES_EACH).take(DEFINITIONS).enumerate() {
        compared += objects(&mut found, &mut rules, &format!("seed{seed}of{number}"), chosen);
    }
    println!("seed {seed}: {compared} objects compared, {:.0?} in all", since.elapsed());
    let shown = found.differences.len().min(SHOWN_MAX);
    assert!(
        found.differences.is_empty(),
        "seed {seed}: {} were validated differently (kube-apiserver | drover), such as\n{}",
        found.differences.len(),
        found.differences[..shown].join("\n")
    );
    assert!(compared > 0, "seed {seed}: no rules were in force");
}

/// Compares objects of one definition with all rules of `chosen`. Returns their number.
fn objects(found: &mut Found<'_>, rules: &mut Rules, name: &str, chosen: &[Value]) -> usize {
    let crd = definition(name, chosen);
    if found.send_to_both(name, false, DEFINITIONS_PATH, &crd) != Some(true) {
        return 0;
    }
    let path = format!("/apis/rules.example.com/v1/{name}s");
    for client in [&found.sides.real, &found.sides.ours] {
        eventually("the kind is served", || client.get(&path)?.success());
    }
    let mut compared = 0;
    for _ in 0..OBJECTS_EACH {
        let (first, second) = (rules.spec(), rules.spec());
        let first = object(name, "first", first);
        found.send_to_both(&first.to_string(), false, &format!("{path}?dryRun=All"), &first);
        compared += 1;
        // The rules refuse most objects, so the update starts from one without validated fields.
        let mut second = object(name, "second", second);
        let base = object(name, "second", json!(null));
        if found.send_to_both(&base.to_string(), false, &path, &base) == Some(true) {
            second["spec"] = first["spec"].clone();
            let update = format!("{path}/second");
            found.send_to_both(&second.to_string(), true, &format!("{update}?dryRun=All"), &second);
            compared += 1;
            for client in [&found.sides.real, &found.sides.ours] {
                client.delete(&update).unwrap();
            }
        }
    }
    for client in [&found.sides.real, &found.sides.ours] {
        client.delete(&format!("{DEFINITIONS_PATH}/{name}s.rules.example.com")).unwrap();
    }
    compared
}
