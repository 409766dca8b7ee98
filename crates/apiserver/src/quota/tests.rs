//! Usage and scopes as tables; charging through a registry is in `tests/quota.rs`.

use serde_json::{Value, json};

use super::request::QuotaRequest;
use super::{amounts, scope, usage};
use crate::kind::Kind;
use crate::resource::Resource;

fn kind(plural: &'static str) -> Resource {
    let group = if plural == "deployments" { "apps" } else { "" };
    Kind::new(group, plural, "", "").into_resource()
}

fn usage_of(plural: &'static str, object: &Value) -> Value {
    amounts::to_json(&usage::of(&kind(plural), object))
}

fn container(requests: Value, limits: Value) -> Value {
    json!({"name": "c", "resources": {"requests": requests, "limits": limits}})
}

#[test]
fn a_pod_takes_what_runs_at_once() {
    let mut sidecar = container(json!({"cpu": "100m"}), json!({}));
    sidecar["restartPolicy"] = "Always".into();
    let pod = json!({"spec": {
        "containers": [
            container(json!({"cpu": "200m", "memory": "1Gi"}), json!({"cpu": "1"})),
            container(json!({"cpu": "300m", "example.com/lamp": "2"}), json!({"cpu": "1"})),
        ],
        "initContainers": [sidecar, container(json!({"cpu": "2"}), json!({}))],
        "overhead": {"cpu": "10m", "memory": "1Mi"},
    }});
    let expected = json!({
        "count/pods": "1",
        "pods": "1",
        // 2 beside the sidecar is more than 200m + 300m beside it.
        "cpu": "2110m",
        "requests.cpu": "2110m",
        "memory": "1025Mi",
        "requests.memory": "1025Mi",
        "limits.cpu": "2010m",
        "requests.example.com/lamp": "2",
    });
    assert_eq!(usage_of("pods", &pod), expected);
}

#[test]
fn an_ended_pod_only_counts_as_an_object() {
    let containers = json!([container(json!({"cpu": "1"}), json!({}))]);
    let mut pod = json!({"spec": {"containers": containers}, "status": {"phase": "Succeeded"}});
    assert_eq!(usage_of("pods", &pod), json!({"count/pods": "1"}));
    pod["status"]["phase"] = "Running".into();
    pod["metadata"] = json!({
        "deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30,
    });
    assert_eq!(usage_of("pods", &pod), json!({"count/pods": "1"}));
}

#[test]
fn services_claims_and_others_use_the_resources_that_quotas_name() {
    let service = json!({"spec": {"type": "LoadBalancer", "ports": [{}, {"nodePort": 30000}]}});
    let expected = json!({"count/services": "1", "services": "1", "services.loadbalancers": "1",
                          "services.nodeports": "2"});
    assert_eq!(usage_of("services", &service), expected);
    let mut unallocated = service;
    unallocated["spec"]["allocateLoadBalancerNodePorts"] = false.into();
    assert_eq!(usage_of("services", &unallocated)["services.nodeports"], "1");

    let claim = json!({"spec": {"storageClassName": "fast",
                                "resources": {"requests": {"storage": "1Gi"}}}});
    let expected = json!({
        "count/persistentvolumeclaims": "1",
        "persistentvolumeclaims": "1",
        "requests.storage": "1Gi",
        "fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
        "fast.storageclass.storage.k8s.io/requests.storage": "1Gi",
    });
    assert_eq!(usage_of("persistentvolumeclaims", &claim), expected);
    assert_eq!(usage_of("deployments", &json!({})), json!({"count/deployments.apps": "1"}));
    assert_eq!(usage_of("secrets", &json!({})), json!({"count/secrets": "1", "secrets": "1"}));
}

#[test]
fn a_scope_covers_only_its_pods() {
    let plain = json!({"spec": {"containers": [{"name": "c"}]}});
    let mut bounded = plain.clone();
    bounded["spec"]["activeDeadlineSeconds"] = 5.into();
    let mut urgent = plain.clone();
    urgent["spec"]["priorityClassName"] = "high".into();
    let sized = json!({"spec": {"containers": [container(json!({"cpu": "1"}), json!({}))]}});
    let mut curious = plain.clone();
    curious["spec"]["affinity"] = json!({"podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{"namespaces": ["other"]}],
    }});
    let class = |operator: &str, values: Value| {
        json!({"scopeSelector": {"matchExpressions": [
            {"scopeName": "PriorityClass", "operator": operator, "values": values},
        ]}})
    };
    let scopes = |scopes: &[&str]| json!({"scopes": scopes});
    let pods = kind("pods");
    for (spec, pod, expected) in [
        (json!({}), &plain, true),
        (scopes(&["Terminating"]), &bounded, true),
        (scopes(&["Terminating"]), &plain, false),
        (scopes(&["NotTerminating", "BestEffort"]), &plain, true),
        (scopes(&["NotTerminating", "BestEffort"]), &bounded, false),
        (scopes(&["BestEffort"]), &sized, false),
        (scopes(&["NotBestEffort"]), &sized, true),
        (scopes(&["CrossNamespacePodAffinity"]), &curious, true),
        (scopes(&["CrossNamespacePodAffinity"]), &plain, false),
        (scopes(&["PriorityClass"]), &urgent, true),
        (scopes(&["PriorityClass"]), &plain, false),
        (class("In", json!(["high"])), &urgent, true),
        (class("In", json!(["low"])), &urgent, false),
        (class("NotIn", json!(["low"])), &plain, true),
        (class("DoesNotExist", json!(null)), &urgent, false),
    ] {
        assert_eq!(scope::covers(&json!({"spec": spec}), &pods, pod), expected, "{spec} {pod}");
    }
    let quota = json!({"spec": scopes(&["BestEffort"])});
    assert!(!scope::covers(&quota, &kind("secrets"), &json!({})), "scopes are of pods");
}

fn quota(hard: Value, used: Value) -> Value {
    json!({"metadata": {"name": "q"}, "spec": {}, "status": {"hard": hard, "used": used}})
}

fn used_with(
    plural: &'static str,
    quota: &Value,
    object: &Value,
    old: Option<&Value>,
) -> Result<Option<Value>, String> {
    let resource = kind(plural);
    let request = QuotaRequest { name: "x", resource: &resource, object, old };
    request.used_with(quota).map_err(|status| {
        assert_eq!((status.code, &*status.reason), (403, "Forbidden"));
        status.message
    })
}

#[test]
fn writes_that_exceed_a_quota_are_rejected_with_the_amounts() {
    let pod = json!({"spec": {"containers": [container(json!({"cpu": "600m"}), json!({}))]}});
    let hard = json!({"pods": "2", "requests.cpu": "1", "secrets": "1"});
    let fits = quota(hard.clone(), json!({"pods": "1", "requests.cpu": "0", "secrets": "1"}));
    let after = json!({"pods": "2", "requests.cpu": "600m", "secrets": "1"});
    assert_eq!(used_with("pods", &fits, &pod, None), Ok(Some(after)));

    let full = quota(hard.clone(), json!({"pods": "2", "requests.cpu": "600m", "secrets": "0"}));
    let expected = "pods \"x\" is forbidden: exceeded quota: q, requested: pods=1,requests.cpu=600m, \
                used: pods=2,requests.cpu=600m, limited: pods=2,requests.cpu=1";
    assert_eq!(used_with("pods", &full, &pod, None), Err(expected.to_owned()));

    let silent = json!({"spec": {"containers": [{"name": "b"}, {"name": "a"}]}});
    let expected = "pods \"x\" is forbidden: failed quota: q: must specify requests.cpu for: a,b";
    assert_eq!(used_with("pods", &fits, &silent, None), Err(expected.to_owned()));

    let unknown = quota(hard, json!({"secrets": "0"}));
    let expected =
        "pods \"x\" is forbidden: status unknown for quota: q, resources: pods,requests.cpu";
    assert_eq!(used_with("pods", &unknown, &pod, None), Err(expected.to_owned()));
    assert_eq!(used_with("configmaps", &unknown, &json!({}), None), Ok(None));
}

#[test]
fn an_update_is_charged_only_the_increase() {
    let service = |kind: &str| json!({"spec": {"type": kind, "ports": [{}]}});
    let hard = json!({"services": "1", "services.nodeports": "1"});
    let used = quota(hard, json!({"services": "1", "services.nodeports": "0"}));
    let (inner, outer) = (service("ClusterIP"), service("NodePort"));
    let after = json!({"services": "1", "services.nodeports": "1"});
    assert_eq!(used_with("services", &used, &outer, Some(&inner)), Ok(Some(after)));
    assert_eq!(used_with("services", &used, &inner, Some(&outer)), Ok(None));
    assert!(used_with("services", &used, &inner, None).is_err());
}
