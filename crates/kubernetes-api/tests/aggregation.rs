//! Aggregated APIs. The other server is a real kube-apiserver, which is also compared as an
//! aggregator whose servers are unavailable.

#![allow(clippy::unwrap_used)]

#[path = "aggregation/own.rs"]
mod own;
#[path = "aggregation/real.rs"]
mod real;
#[path = "aggregation/through.rs"]
mod through;
#[path = "aggregation/unavailable.rs"]
mod unavailable;
#[path = "wait/wait.rs"]
mod wait;

use own::Own;
use real::Real;
use serde_json::{Value, json};

const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The APIService of `v1` of a group, served behind a port of a Service in `default`.
fn api_service(group: &str, service: &str, port: u16) -> Value {
    json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": format!("v1.{group}")},
        "spec": {
            "group": group, "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10,
            "service": {"namespace": "default", "name": service, "port": port},
            "insecureSkipTLSVerify": true,
        },
    })
}

/// The definition of Gadgets of a group.
fn gadgets(group: &str) -> Value {
    let spec = json!({"type": "object", "properties": {
        "size": {"type": "integer", "description": "How large it is."}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("gadgets.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}],
        },
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn served_groups_have_api_services() {
    let own = Own::start(None).await;
    let api_service_of = |name: &'static str| {
        let own = &own;
        async move {
            let found = own.get(&format!("{SERVICES}/{name}")).await;
            (found["kind"] == "APIService").then_some(found)
        }
    };
    wait::until("the built-in groups are registered", async || {
        api_service_of("v1.apps").await.is_some()
    })
    .await;
    let apps = api_service_of("v1.apps").await.unwrap();
    let label = "kube-aggregator.kubernetes.io/automanaged";
    assert_eq!(apps["metadata"]["labels"], json!({label: "onstart"}));
    let spec = json!({
        "group": "apps", "version": "v1", "groupPriorityMinimum": 17800, "versionPriority": 15,
    });
    assert_eq!(apps["spec"], spec);
    let mut condition = apps["status"]["conditions"][0].clone();
    condition["lastTransitionTime"].take();
    let local = json!({
        "type": "Available", "status": "True", "reason": "Local",
        "message": "Local APIServices are always available", "lastTransitionTime": null,
    });
    assert_eq!(condition, local);
    let core = api_service_of("v1.").await.unwrap();
    assert_eq!(core["spec"]["group"], Value::Null);

    own.make("POST", DEFINITIONS, gadgets("own.example")).await;
    wait::until("the definition's group is there", async || {
        api_service_of("v1.own.example").await.is_some()
    })
    .await;
    let service = api_service_of("v1.own.example").await.unwrap();
    assert_eq!(service["metadata"]["labels"][label], "true");
    assert_eq!(service["spec"]["groupPriorityMinimum"], 1000);
    assert_eq!(service["spec"]["versionPriority"], 100);
    let uid = service["metadata"]["uid"].clone();
    own.make("DELETE", &format!("{SERVICES}/v1.own.example"), Value::Null).await;
    wait::until("it came back", async || {
        api_service_of("v1.own.example").await.is_some_and(|now| now["metadata"]["uid"] != uid)
    })
    .await;
    own.make("DELETE", &format!("{DEFINITIONS}/gadgets.own.example"), Value::Null).await;
    wait::until("it went", async || api_service_of("v1.own.example").await.is_none()).await;
}

/// One test, so that the real server is started once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_aggregated_server_is_served_like_a_part_of_this_one() {
    let real = Real::start().await;
    let own = Own::start(Some(real.front_proxy())).await;
    unavailable::compare(&own, &real).await;
    let held = through::run(&own, &real).await;
    unavailable::down(&own, real, held).await;
}
