//! Admission by webhooks, policies and limits: a real HTTPS server is asked by this API server, and
//! by a real kube-apiserver in the same way where the answers are compared.

#![allow(clippy::unwrap_used)]

#[path = "webhooks/answers.rs"]
mod answers;
#[path = "webhooks/configurations.rs"]
mod configurations;
#[path = "webhooks/conversion.rs"]
mod conversion;
#[path = "webhooks/faults.rs"]
mod faults;
#[path = "webhooks/hook_server.rs"]
mod hook_server;
#[path = "webhooks/limits.rs"]
mod limits;
#[path = "webhooks/matching.rs"]
mod matching;
#[path = "webhooks/policies.rs"]
mod policies;
#[path = "webhooks/policy_cases.rs"]
mod policy_cases;
#[path = "webhooks/policy_faults.rs"]
mod policy_faults;
#[path = "webhooks/requests.rs"]
mod requests;
#[path = "webhooks/rows.rs"]
mod rows;
#[path = "webhooks/side.rs"]
mod side;
#[path = "webhooks/verdicts.rs"]
mod verdicts;
#[path = "webhooks/wait.rs"]
mod wait;

use faults::Servers;
use hook_server::HookServer;
use serde_json::json;
use side::Side;

const KINDS: [&str; 2] = ["Mutating", "Validating"];

async fn servers() -> Servers {
    let hooks = HookServer::start(&["127.0.0.1", "localhost", "hook.default.svc"]).await;
    let misnamed = HookServer::start(&["other.example"]).await;
    Servers { hooks, misnamed }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_written_when_a_webhook_that_must_be_asked_cannot_be_asked() {
    let servers = servers().await;
    let own = Side::own().await;
    for kind in KINDS {
        faults::run(&own, &servers, kind).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_without_end_is_a_failed_call() {
    let servers = servers().await;
    let own = Side::own().await;
    let huge = side::case("huge", own.client(&servers.hooks, "huge"), "Fail");
    own.configure(&servers.hooks, "Validating", "huge", vec![huge]).await;
    let answer = own.send("POST", side::MAPS, side::map("huge", "huge")).await;
    assert_eq!(answer.code, 500, "{}", answer.body);
    assert!(answer.message().ends_with("length limit exceeded"), "{}", answer.message());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verdicts_patches_and_their_order_are_honoured() {
    let servers = servers().await;
    verdicts::run(&Side::own().await, &servers.hooks).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn webhooks_are_asked_about_what_their_rules_and_selectors_name() {
    let servers = servers().await;
    matching::run(&Side::own().await, &servers.hooks).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_stands_for_its_address() {
    let servers = servers().await;
    let own = Side::own().await;
    matching::service(&own, &servers.hooks).await;
    matching::endpoint(&own, &servers.hooks).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn custom_resources_are_read_and_written_in_every_version() {
    let servers = servers().await;
    conversion::run(&Side::own().await, &servers.hooks).await;
}

/// One test, so that the real server is started once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_and_questions_are_those_of_a_real_api_server() {
    let servers = servers().await;
    let (own, real) = (Side::own().await, Side::real().await);
    configurations::compare(&own, &real).await;
    requests::compare(&own, &real, &servers.hooks).await;
    for kind in KINDS {
        let found = faults::run(&own, &servers, kind).await;
        verdicts::compare(&found, &faults::run(&real, &servers, kind).await);
    }
    let found = verdicts::run(&own, &servers.hooks).await;
    verdicts::compare(&found, &verdicts::run(&real, &servers.hooks).await);
    conversion::compare_definitions(&own, &real).await;
    let found = conversion::sound(&own, &servers.hooks).await;
    verdicts::compare(&found, &conversion::sound(&real, &servers.hooks).await);
    let found = matching::service(&own, &servers.hooks).await;
    verdicts::compare(&found, &matching::service(&real, &servers.hooks).await);
    let found = matching::run(&own, &servers.hooks).await;
    verdicts::compare(&found, &matching::run(&real, &servers.hooks).await);
    verdicts::compare(&limits::run(&own).await, &limits::run(&real).await);
    rows::compare(&own, &real).await;
    policies::compare(&own, &real).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_of_a_namespace_preset_and_bound_what_pods_ask_for() {
    limits::check(&limits::run(&Side::own().await).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scales_are_applied_and_stored_versions_follow_their_definition() {
    rows::check(&rows::run(&Side::own().await).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_judge_writes_by_their_expressions() {
    policies::check(&policies::run(&Side::own().await).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_of_a_policy_tells_what_its_expressions_get_wrong() {
    let told = policies::types(&Side::own().await).await;
    assert_eq!(told[0], json!(["types-right", {"observedGeneration": 1, "typeChecking": {}}]));
    let warnings = &told[1][1]["typeChecking"]["expressionWarnings"];
    assert_eq!(warnings[0]["fieldRef"], "spec.validations[0].expression");
    let text = warnings[0]["warning"].as_str().unwrap();
    let begin = "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'nothing'\n";
    assert!(text.starts_with(begin), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_passes_a_policy_that_cannot_be_asked() {
    policy_faults::run(&Side::own().await, &servers().await.hooks).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_policy_or_webhook_holds_within_a_second() {
    policy_faults::soon(&Side::own().await, &servers().await.hooks).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_with_side_effects_refuses_dry_runs() {
    faults::side_effects(&servers().await.hooks).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_admission_says_to_the_audit_log_goes_with_the_request() {
    policies::annotations(Side::own().await, &servers().await.hooks).await;
}
