//! What the specs of quotas and of disruption budgets may say, and what of them an update may change.

use futures::{StreamExt, stream};
use serde_json::{Value, json};

use super::pods::{AT_ONCE, Tally};
use super::side::Side;
use super::world::run;

/// A line says what its JSON is: the spec of a new quota or budget, or what is merged into that of the
/// quota that is there.
const CASES: &str = include_str!("specs.txt");
const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
/// A quota with a scope.
const SCOPED: &str = "of-spec-scoped";

/// What a line is about, and its JSON.
fn cases() -> impl Iterator<Item = (&'static str, Value)> {
    let lines = CASES.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let (about, spec) = line.split_once(' ').unwrap();
        (about, serde_json::from_str(spec).unwrap_or_else(|error| panic!("{line}: {error}")))
    })
}

async fn ask(side: &Side, about: &str, spec: &Value) -> super::side::Answer {
    if about == "scoped" {
        let path = format!("{QUOTAS}/{SCOPED}?dryRun=All");
        return side.patch(&path, "merge-patch+json", json!({"spec": spec}).to_string()).await;
    }
    let folder = if about == "quota" { QUOTAS } else { BUDGETS };
    let object = json!({"metadata": {"name": "of-spec"}, "spec": spec});
    side.post(&format!("{folder}?dryRun=All"), &object).await
}

#[test]
fn quotas_and_budgets_are_judged_as_kube_apiserver_judges_them() {
    run(async |world| {
        // No pod is so many seconds from its end: it limits nobody.
        let spec = json!({"hard": {"pods": "1000"}, "scopes": ["Terminating"]});
        let quota = json!({"metadata": {"name": SCOPED}, "spec": spec});
        for side in world.sides() {
            side.post(QUOTAS, &quota).await.success();
        }
        let mut tally = Tally::default();
        let both = async |(about, spec): (&'static str, Value)| {
            let (real, ours) =
                tokio::join!(ask(&world.real, about, &spec), ask(&world.ours, about, &spec));
            (format!("{about} {spec}"), real, ours)
        };
        let mut answers = stream::iter(cases()).map(both).buffered(AT_ONCE);
        while let Some((line, real, ours)) = answers.next().await {
            tally.add(&line, &real, &ours);
        }
        tally.check(25, 10);
    });
}
