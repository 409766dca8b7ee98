//! The FlowSchemas and priority levels that a server starts with, and the rule by which their specs
//! are maintained.
//!
//! They are those of Kubernetes 1.36, value by value. The mandatory ones ([`is_mandatory`]) always
//! have the spec given here. The others have it as long as their annotation [`AUTOUPDATE`] is
//! `true`.

use api_meta::object::ObjectExt;
use serde_json::{Value, json};

use crate::attributes::{GROUP_AUTHENTICATED, GROUP_MASTERS, GROUP_UNAUTHENTICATED};

/// Name of the level without limits, and of the FlowSchema of the group `system:masters`.
pub const EXEMPT: &str = "exempt";
/// Name of the level and the FlowSchema of requests that match no other FlowSchema.
pub const CATCH_ALL: &str = "catch-all";
/// Annotation: `true` while the server maintains the spec of the object.
pub const AUTOUPDATE: &str = "apf.kubernetes.io/autoupdate-spec";

const API_VERSION: &str = "flowcontrol.apiserver.k8s.io/v1";

/// Whether the server cannot run without the FlowSchema and the level of this name. Missing ones
/// are recreated.
pub fn is_mandatory(name: &str) -> bool {
    matches!(name, EXEMPT | CATCH_ALL)
}

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {"name": name, "annotations": {AUTOUPDATE: "true"}},
        "spec": spec,
    })
}

/// The initial priority levels. The sum of their shares is 245.
pub fn priority_levels() -> Vec<Value> {
    let limited = |name: &str, shares: u32, lendable: u32, queues: u32, hand: u32| {
        let response = json!({
            "type": "Queue",
            "queuing": {"queues": queues, "handSize": hand, "queueLengthLimit": 50},
        });
        let limited = json!({
            "nominalConcurrencyShares": shares,
            "limitResponse": response,
            "lendablePercent": lendable,
        });
        object("PriorityLevelConfiguration", name, json!({"type": "Limited", "limited": limited}))
    };
    let exempt = json!({
        "type": "Exempt",
        "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0},
    });
    let catch_all = json!({
        "type": "Limited",
        "limited": {
            "nominalConcurrencyShares": 5,
            "limitResponse": {"type": "Reject"},
            "lendablePercent": 0,
        },
    });
    vec![
        object("PriorityLevelConfiguration", EXEMPT, exempt),
        object("PriorityLevelConfiguration", CATCH_ALL, catch_all),
        limited("system", 30, 33, 64, 6),
        limited("node-high", 40, 25, 64, 6),
        limited("leader-election", 10, 0, 16, 4),
        limited("workload-high", 40, 50, 128, 6),
        limited("workload-low", 100, 90, 128, 6),
        limited("global-default", 20, 50, 128, 6),
    ]
}

/// A rule about leases in all namespaces.
fn leases(verbs: &[&str]) -> Value {
    json!({
        "verbs": verbs, "apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
        "namespaces": ["*"],
    })
}

/// The heartbeats of nodes: their status and their leases.
fn heartbeats() -> Value {
    json!({
        "subjects": [{"kind": "Group", "group": {"name": "system:nodes"}}],
        "resourceRules": [
            {
                "verbs": ["*"], "apiGroups": [""], "resources": ["nodes", "nodes/status"],
                "clusterScope": true, "namespaces": ["*"],
            },
            leases(&["*"]),
        ],
    })
}

/// The initial FlowSchemas, ordered by precedence.
pub fn flow_schemas() -> Vec<Value> {
    let user = |name: &str| json!({"kind": "User", "user": {"name": name}});
    let group = |name: &str| json!({"kind": "Group", "group": {"name": name}});
    let system_accounts = || {
        let account = json!({"namespace": "kube-system", "name": "*"});
        json!({"kind": "ServiceAccount", "serviceAccount": account})
    };
    let everyone = || vec![group(GROUP_UNAUTHENTICATED), group(GROUP_AUTHENTICATED)];
    let everything = |subjects: Vec<Value>| {
        json!({
            "subjects": subjects,
            "resourceRules": [{
                "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"],
                "clusterScope": true, "namespaces": ["*"],
            }],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        })
    };
    let schema = |name: &str, level: &str, precedence: u32, method: &str, rule: Value| {
        let mut spec = json!({
            "priorityLevelConfiguration": {"name": level},
            "matchingPrecedence": precedence,
            "rules": [rule],
        });
        if !method.is_empty() {
            spec["distinguisherMethod"] = json!({"type": method});
        }
        object("FlowSchema", name, spec)
    };
    let election = json!({
        "subjects": [
            user("system:kube-controller-manager"), user("system:kube-scheduler"),
            system_accounts(),
        ],
        "resourceRules": [leases(&["get", "create", "update"])],
    });
    let probes = json!({
        "subjects": everyone(),
        "nonResourceRules": [{
            "verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"],
        }],
    });
    let (controllers, scheduler) = ("system:kube-controller-manager", "system:kube-scheduler");
    let high = |name: &str, precedence: u32, subject: Value| {
        let rule = everything(vec![subject]);
        schema(name, "workload-high", precedence, "ByNamespace", rule)
    };
    let all_accounts = everything(vec![group("system:serviceaccounts")]);
    vec![
        schema(EXEMPT, EXEMPT, 1, "", everything(vec![group(GROUP_MASTERS)])),
        schema("probes", EXEMPT, 2, "", probes),
        schema("system-leader-election", "leader-election", 100, "ByUser", election),
        schema("system-node-high", "node-high", 400, "ByUser", heartbeats()),
        schema("system-nodes", "system", 500, "ByUser", everything(vec![group("system:nodes")])),
        high("kube-controller-manager", 800, user(controllers)),
        high("kube-scheduler", 800, user(scheduler)),
        high("kube-system-service-accounts", 900, system_accounts()),
        schema("service-accounts", "workload-low", 9000, "ByUser", all_accounts),
        schema("global-default", "global-default", 9900, "ByUser", everything(everyone())),
        schema(CATCH_ALL, CATCH_ALL, 10000, "ByUser", everything(everyone())),
    ]
}

/// The object that must replace the stored one so that it has the spec of `initial`; `None` when
/// the stored object is already right, or belongs to its owner. Follows the bootstrap controller of
/// kube-apiserver.
pub fn desired_update(stored: &Value, initial: &Value) -> Option<Value> {
    let name = initial.name();
    let mandatory = is_mandatory(name);
    let is_autoupdated = match stored.annotation(AUTOUPDATE) {
        Some(value) => value == "true",
        None => stored["metadata"]["generation"].as_i64() == Some(1),
    };
    if !mandatory && !is_autoupdated {
        return None;
    }
    let mut next = stored.clone();
    // The owner of the exempt level chooses its shares.
    let fixed_type_only = name == EXEMPT && initial.kind() == "PriorityLevelConfiguration";
    if !fixed_type_only || stored["spec"]["type"] != initial["spec"]["type"] {
        next["spec"] = initial["spec"].clone();
    }
    if next["metadata"]["annotations"][AUTOUPDATE].is_null() {
        next["metadata"]["annotations"][AUTOUPDATE] = mandatory.to_string().into();
    }
    (next != *stored).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_is_restored_unless_its_owner_disabled_autoupdate() {
        let initial = &priority_levels()[2];
        assert_eq!(desired_update(initial, initial), None);
        let mut changed = initial.clone();
        changed["spec"]["limited"]["nominalConcurrencyShares"] = 7.into();
        assert_eq!(desired_update(&changed, initial).as_ref(), Some(initial));
        changed["metadata"]["annotations"][AUTOUPDATE] = "false".into();
        assert_eq!(desired_update(&changed, initial), None);
    }

    #[test]
    fn mandatory_objects_are_restored_whatever_their_annotation_says() {
        let initial = &flow_schemas()[0];
        let mut changed = initial.clone();
        changed["spec"]["matchingPrecedence"] = 9.into();
        changed["metadata"]["annotations"][AUTOUPDATE] = "false".into();
        assert_eq!(desired_update(&changed, initial).unwrap()["spec"], initial["spec"]);
        let exempt = &priority_levels()[0];
        let mut changed = exempt.clone();
        changed["spec"]["exempt"]["nominalConcurrencyShares"] = 9.into();
        assert_eq!(desired_update(&changed, exempt), None, "its shares may be chosen");
    }
}
