//! Schemas, defaults, rules and states of the kinds, without a server.

mod structs;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::condition::{Condition, TRUE};
use crate::kind::{Kind, ObjectRules};
use crate::state::{CLUSTER_NEEDS, of_cluster};
use crate::{Cluster, Project, Setting, Token, User, crds, ids, keys};

fn condition(kind: &str, status: &str) -> Condition {
    Condition { kind: kind.to_owned(), status: status.to_owned(), ..Condition::default() }
}

fn healthy() -> Vec<Condition> {
    let extra = ["Updated", "CreatorMadeOwner", "SomethingNew"];
    let needs = CLUSTER_NEEDS.iter().map(|(kind, _)| *kind);
    needs.chain(extra).map(|kind| condition(kind, TRUE)).collect()
}

proptest! {
    #[test]
    fn toggling_any_one_condition_off_takes_the_state_out_of_active(
        index in 0..CLUSTER_NEEDS.len() + 3,
        status in prop_oneof![Just("False"), Just("Unknown")],
        removed in any::<bool>(),
    ) {
        let mut conditions = healthy();
        prop_assert!(of_cluster(&conditions, false).is_active());
        conditions[index].status = status.to_owned();
        if removed && index < CLUSTER_NEEDS.len() {
            conditions.remove(index);
        }
        prop_assert!(!of_cluster(&conditions, false).is_active());
    }

    #[test]
    fn the_order_of_conditions_does_not_decide_whether_a_cluster_is_active(
        mut off in proptest::collection::vec(any::<bool>(), CLUSTER_NEEDS.len()),
        seed in any::<usize>(),
    ) {
        off.truncate(CLUSTER_NEEDS.len());
        let mut conditions = healthy();
        for (condition, off) in conditions.iter_mut().zip(&off) {
            if *off {
                condition.status = "False".to_owned();
            }
        }
        let length = conditions.len();
        conditions.rotate_left(seed % length);
        prop_assert_eq!(of_cluster(&conditions, false).is_active(), off.iter().all(|off| !off));
    }

    #[test]
    fn defaulting_twice_is_defaulting_once(name in "[a-z]{1,8}", value in "[a-z]{0,4}") {
        let mut object = json!({"metadata": {"name": name, "namespace": "c-x"}, "value": value,
            "username": value});
        for default in [<Cluster as ObjectRules>::fill_defaults, <Project as ObjectRules>::fill_defaults,
            <User as ObjectRules>::fill_defaults, <Setting as ObjectRules>::fill_defaults, <Token as ObjectRules>::fill_defaults] {
            default(&mut object);
            let once = object.clone();
            default(&mut object);
            prop_assert_eq!(&object, &once);
        }
    }
}

#[test]
fn a_cluster_without_conditions_is_pending_and_a_deleted_one_removing() {
    assert_eq!(of_cluster(&[], false).state, "pending");
    assert_eq!(of_cluster(&healthy(), true).state, "removing");
}

#[test]
fn every_schema_is_structural() {
    for crd in crds() {
        let name = crd.metadata.name.clone().unwrap();
        let schema = crd.spec.versions[0].schema.as_ref().unwrap();
        let root = schema.open_api_v3_schema.as_ref().unwrap();
        assert_structural(&name, root);
        assert!(!root.properties.as_ref().unwrap().contains_key("metadata"), "{name}");
    }
}

fn assert_structural(path: &str, schema: &JSONSchemaProps) {
    let open = schema.x_kubernetes_preserve_unknown_fields == Some(true);
    assert!(schema.type_.is_some() || open, "{path} has no type");
    assert!(schema.ref_path.is_none() && schema.default.is_none(), "{path}");
    for list in [&schema.any_of, &schema.all_of, &schema.one_of] {
        assert!(list.is_none(), "{path} uses a combination");
    }
    for (name, child) in schema.properties.iter().flatten() {
        assert_structural(&format!("{path}.{name}"), child);
    }
    if schema.type_.as_deref() == Some("array") {
        let items = serde_json::to_value(schema.items.as_ref().unwrap()).unwrap();
        assert_structural(&format!("{path}[]"), &serde_json::from_value(items).unwrap());
    }
}

#[test]
fn an_object_is_written_with_its_version_and_kind_and_without_empty_fields() {
    let mut cluster = Cluster::default();
    cluster.metadata.name = Some("c-abcde".to_owned());
    let json = serde_json::to_value(&cluster).unwrap();
    assert_eq!(json["apiVersion"], "management.cattle.io/v3");
    assert_eq!(json["kind"], "Cluster");
    assert_eq!(json["spec"], json!({}));
    assert_eq!(json["status"], json!({}));
}

#[test]
fn engine_options_survive_a_round_trip_unchanged() {
    let spec = json!({"displayName": "x", "genericEngineConfig": {"a": [1, {"b": null}]},
        "agentEnvVars": [{"name": "N", "value": "v"}]});
    let object = json!({"spec": spec.clone()});
    let cluster: Cluster = serde_json::from_value(object).unwrap();
    assert_eq!(serde_json::to_value(&cluster.spec).unwrap(), spec);
}

#[test]
fn a_cluster_name_that_can_name_no_namespace_is_refused() {
    for (name, good) in [("local", true), ("c-x7k2p", true), ("A", false), ("a.b", false)] {
        let mut cluster = Cluster::default();
        cluster.metadata.name = Some(name.to_owned());
        assert_eq!(cluster.validate(None).is_empty(), good, "{name}");
    }
}

/// Whether an object of this name may be created, and whether one that is there may be updated.
fn may_have<K: ObjectRules>(object: Value) -> (bool, bool) {
    let object: K = serde_json::from_value(object).unwrap();
    (object.validate(None).is_empty(), object.validate(Some(&object)).is_empty())
}

#[test]
fn clusters_projects_and_users_cannot_take_the_namespaces_of_one_another() {
    let cluster = |name: &str| may_have::<Cluster>(json!({"metadata": {"name": name}}));
    let user = |name: &str| may_have::<User>(json!({"metadata": {"name": name}}));
    let project = |name: &str| {
        may_have::<Project>(json!({
            "metadata": {"name": name, "namespace": "c-1"},
            "spec": {"displayName": "x", "clusterName": "c-1"},
        }))
    };
    for name in ["local", "c-x7k2p", "prod", "p", "users", "kubernetes", "u", "cattle"] {
        assert_eq!(cluster(name), (true, true), "{name}");
        assert!(!ids::is_project_name(name) && !ids::is_user_name(name), "{name}");
    }
    for name in ["default", "kube-system", "cattle-global-data", "drover-x", "p-x", "u-x", "user-x"]
    {
        assert_eq!(cluster(name), (false, true), "{name}");
    }
    for (name, good) in
        [("p-x7k2p", true), ("p-x7k2", false), ("p-x7k2pp", false), ("p-aaaaa", false)]
    {
        assert_eq!(project(name), (good, true), "{name}");
    }
    for name in ["prod", "u-x7k2p", "cattle-fleet-system", "c-x7k2p"] {
        assert_eq!(project(name), (false, true), "{name}");
    }
    for (name, good) in [("u-x7k2p", true), ("user-x7k2p", true), ("bob", false), ("u-a.b", false)]
    {
        assert_eq!(user(name), (good, true), "{name}");
    }
}

#[test]
fn a_token_in_plain_text_is_refused() {
    let token = |text: &str, hashed: bool| {
        let mut token = Token { token: text.to_owned(), user_id: "u-1".into(), ..Token::default() };
        if hashed {
            let annotations = [(keys::TOKEN_HASHED.to_owned(), "true".to_owned())];
            token.metadata.annotations = Some(annotations.into());
        }
        token.validate(None)
    };
    assert!(!token("secret", false).is_empty());
    assert!(!token("secret", true).is_empty());
    assert!(token("$3:salt:hash", true).is_empty());
    assert!(
        !format!("{:?}", Token { token: "secret".into(), ..Token::default() }).contains("secret")
    );
}

#[test]
fn what_is_fixed_at_creation_may_not_change() {
    let at = |cluster: &str| {
        let mut project = Project::default();
        project.metadata.namespace = Some(cluster.to_owned());
        project.spec.cluster_name = cluster.to_owned();
        project.spec.display_name = "a".to_owned();
        project
    };
    assert!(at("c-1").validate(Some(&at("c-1"))).is_empty());
    assert_eq!(at("c-2").validate(Some(&at("c-1"))).len(), 1);
}

#[test]
fn a_setting_says_where_its_value_comes_from() {
    let mut setting = json!({"value": "", "default": "d"});
    <Setting as ObjectRules>::fill_defaults(&mut setting);
    assert_eq!((&setting["source"], &setting["customized"]), (&json!("default"), &json!(false)));
    setting["value"] = json!("v");
    <Setting as ObjectRules>::fill_defaults(&mut setting);
    assert_eq!((&setting["source"], &setting["customized"]), (&json!("db"), &json!(true)));
}

#[test]
fn ids_use_only_the_alphabet_without_similar_characters() {
    let all: Vec<u8> = (0..=255).collect();
    let id = ids::from_random(ids::CLUSTER_PREFIX, &all);
    assert!(id[2..].bytes().all(|byte| ids::ALPHABET.contains(&byte)));
    assert_eq!(ids::split("c-1:p-2"), Some(("c-1", "p-2")));
    assert_eq!(ids::split("c-1"), None);
}

#[test]
fn scopes_and_names_are_those_that_clients_know() {
    let table: Vec<Value> = crds()
        .iter()
        .map(|crd| json!([crd.metadata.name, crd.spec.names.kind, crd.spec.scope]))
        .collect();
    assert!(table.contains(&json!(["clusters.management.cattle.io", "Cluster", "Cluster"])));
    assert!(table.contains(&json!(["nodes.management.cattle.io", "Node", "Namespaced"])));
    assert!(table.contains(&json!(["tokens.management.cattle.io", "Token", "Cluster"])));
    assert_eq!(<User as Kind>::PLURAL, "users");
}
