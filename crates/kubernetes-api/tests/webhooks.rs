//! Admission by webhooks, policies, limits and built-in plugins. A real HTTPS server receives the
//! reviews of this API server, and those of a real kube-apiserver where responses are compared.

#![allow(clippy::unwrap_used)]

#[path = "webhooks/behaviours.rs"]
mod behaviours;
#[path = "webhooks/built_in.rs"]
mod built_in;
#[path = "webhooks/certificates.rs"]
mod certificates;
#[path = "webhooks/configurations.rs"]
mod configurations;
#[path = "webhooks/conversion.rs"]
mod conversion;
#[path = "webhooks/decisions.rs"]
mod decisions;
#[path = "webhooks/faults.rs"]
mod faults;
#[path = "webhooks/field_owners.rs"]
mod field_owners;
#[path = "webhooks/hook_server.rs"]
mod hook_server;
#[path = "webhooks/limits.rs"]
mod limits;
#[path = "webhooks/matching.rs"]
mod matching;
#[path = "webhooks/mutation_cases.rs"]
mod mutation_cases;
#[path = "webhooks/mutations.rs"]
mod mutations;
#[path = "webhooks/old_annotations.rs"]
mod old_annotations;
#[path = "webhooks/owners.rs"]
mod owners;
#[path = "webhooks/pod_security.rs"]
mod pod_security;
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
#[path = "webhooks/services.rs"]
mod services;
#[path = "webhooks/side.rs"]
mod side;
#[path = "wait/wait.rs"]
mod wait;

use faults::Servers;
use hook_server::HookServer;
use serde_json::json;
use side::Side;
use testbed::{Guarantee, no_second_try};

const KINDS: [&str; 2] = ["Mutating", "Validating"];

async fn servers() -> Servers {
    let hooks = HookServer::start(&["127.0.0.1", "localhost", "hook.default.svc"]).await;
    let misnamed = HookServer::start(&["other.example"]).await;
    Servers { hooks, misnamed }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_written_when_a_required_webhook_cannot_be_called() {
    no_second_try(Guarantee::Rights);
    let servers = servers().await;
    let own = Side::own().await;
    for kind in KINDS {
        faults::run(&own, &servers, kind).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endless_response_is_a_failed_call() {
    let servers = servers().await;
    let own = Side::own().await;
    let huge = side::case("huge", own.client(&servers.hooks, "huge"), "Fail");
    own.configure(&servers.hooks, "Validating", "huge", vec![huge]).await;
    let response = own.send("POST", side::MAPS, side::map("huge", "huge")).await;
    assert_eq!(response.code, 500, "{}", response.body);
    assert!(response.message().ends_with("length limit exceeded"), "{}", response.message());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions_patches_and_their_order_are_applied() {
    let servers = servers().await;
    decisions::run(&Side::own().await, &servers.hooks).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn webhooks_are_called_for_the_writes_that_their_rules_and_selectors_match() {
    let servers = servers().await;
    matching::run(&Side::own().await, &servers.hooks).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_to_missing_targets_are_not_found_and_call_no_webhook() {
    matching::connections(&Side::own().await, &servers().await.hooks).await;
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watchers_of_a_version_share_one_call_of_its_webhook() {
    let servers = servers().await;
    conversion::watched_by_many(&Side::own().await, &servers.hooks).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn field_owners_follow_renames_between_versions() {
    field_owners::check(&field_owners::run(&Side::own().await, &servers().await.hooks).await);
}

/// One test, so that the real server is started once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reviews_and_responses_equal_those_of_a_real_api_server() {
    let servers = servers().await;
    let (own, real) = (Side::own().await, Side::real().await);
    // Each on the heap: together they are too large for a thread's stack.
    Box::pin(compare_webhooks(&own, &real, &servers)).await;
    Box::pin(compare_owners(&own, &real, &servers)).await;
    Box::pin(compare_plugins(&own, &real)).await;
    Box::pin(compare_policies(&own, &real, &servers)).await;
}

async fn compare_webhooks(own: &Side, real: &Side, servers: &Servers) {
    configurations::compare(own, real).await;
    requests::compare(own, real, &servers.hooks).await;
    for kind in KINDS {
        let found = faults::run(own, servers, kind).await;
        decisions::compare(&found, &faults::run(real, servers, kind).await);
    }
    let found = decisions::run(own, &servers.hooks).await;
    decisions::compare(&found, &decisions::run(real, &servers.hooks).await);
    conversion::compare_definitions(own, real).await;
    let found = conversion::sound(own, &servers.hooks).await;
    decisions::compare(&found, &conversion::sound(real, &servers.hooks).await);
    let found = matching::service(own, &servers.hooks).await;
    decisions::compare(&found, &matching::service(real, &servers.hooks).await);
    let found = matching::run(own, &servers.hooks).await;
    decisions::compare(&found, &matching::run(real, &servers.hooks).await);
}

async fn compare_owners(own: &Side, real: &Side, servers: &Servers) {
    let found = Box::pin(field_owners::run(own, &servers.hooks)).await;
    field_owners::compare(&found, &Box::pin(field_owners::run(real, &servers.hooks)).await);
}

async fn compare_plugins(own: &Side, real: &Side) {
    decisions::compare(&limits::run(own).await, &limits::run(real).await);
    decisions::compare(&built_in::run(own).await, &built_in::run(real).await);
    decisions::compare(&certificates::run(own).await, &certificates::run(real).await);
    decisions::compare(&pod_security::run(own).await, &pod_security::run(real).await);
    let found = Box::pin(old_annotations::run(own)).await;
    decisions::compare(&found, &Box::pin(old_annotations::run(real)).await);
    rows::compare(own, real).await;
}

async fn compare_policies(own: &Side, real: &Side, servers: &Servers) {
    let found = mutations::with_webhooks(own, &servers.hooks).await;
    let real_response = mutations::with_webhooks(real, &servers.hooks).await;
    assert_eq!((found.code, &found.body), (real_response.code, &real_response.body));
    Box::pin(mutations::compare(own, real)).await;
    Box::pin(policies::compare(own, real)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_volumes_and_nodes_are_defaulted_and_refused_without_configuration() {
    built_in::check(&built_in::run(&Side::own().await).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replaced_annotations_cause_warnings() {
    old_annotations::check(&old_annotations::run(&Side::own().await).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn approving_and_signing_certificates_needs_rights_on_the_signer() {
    no_second_try(Guarantee::Rights);
    certificates::check(&certificates::run(&Side::own().await).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_meet_the_security_standard_of_their_namespace() {
    pod_security::check(&pod_security::run(&Side::own().await).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_of_a_namespace_default_and_bound_the_requests_of_pods() {
    limits::check(&limits::run(&Side::own().await).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scales_are_applied_and_stored_versions_follow_their_definition() {
    rows::check(&rows::run(&Side::own().await).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_validate_writes_by_their_expressions() {
    policies::check(&policies::run(&Side::own().await).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_change_objects_by_their_expressions() {
    mutations::check(&mutations::run(&Side::own().await).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_are_reinvoked_after_webhooks_change_objects() {
    mutations::with_webhooks(&Side::own().await, &servers().await.hooks).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_unchanged_passes_a_policy_that_cannot_change_it() {
    no_second_try(Guarantee::Rights);
    mutations::faults(&Side::own().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_status_of_a_policy_reports_type_errors_of_its_expressions() {
    let types = policies::types(&Side::own().await).await;
    assert_eq!(types[0], json!(["types-right", {"observedGeneration": 1, "typeChecking": {}}]));
    let warnings = &types[1][1]["typeChecking"]["expressionWarnings"];
    assert_eq!(warnings[0]["fieldRef"], "spec.validations[0].expression");
    let text = warnings[0]["warning"].as_str().unwrap();
    let begin = "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'nothing'\n";
    assert!(text.starts_with(begin), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_passes_a_policy_that_cannot_be_evaluated() {
    no_second_try(Guarantee::Rights);
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
async fn audit_annotations_of_admission_are_part_of_the_audit_event() {
    policies::annotations(Side::own().await, &servers().await.hooks).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owners_are_named_by_who_may_delete_and_finalize() {
    owners::run(&Side::own_guarded().await, true).await;
    owners::run(&Side::own().await, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_behind_a_service_is_called_at_its_endpoints() {
    if services::entered("a_webhook_behind_a_service_is_called_at_its_endpoints") {
        services::run().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn storage_in_use_is_deleted_only_after_its_last_use() {
    built_in::in_use(&Side::own().await).await;
}
