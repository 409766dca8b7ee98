//! Structs beside the tables of their kinds: a struct has only fields of its table, and what is
//! written back as a whole loses none.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::cluster::ClusterSpec;
use crate::kind::Kind;
use crate::schema::structural;
use crate::table::definition;
use crate::{
    API_VERSION, Cluster, ClusterRegistrationToken, ClusterRoleTemplateBinding, DynamicSchema,
    GlobalRole, GlobalRoleBinding, KontainerDriver, NamespaceAssignment, Node,
    PodSecurityAdmissionConfigurationTemplate, PodSecurityPolicyTemplate,
    PodSecurityPolicyTemplateProjectBinding, Project, ProjectRoleTemplateBinding, RoleTemplate,
    STRUCTS, Setting, Token, User, types,
};

/// Each kind with a struct, and the schema of the struct.
fn structs() -> Vec<(&'static str, Value)> {
    fn of<K: Kind>() -> (&'static str, Value) {
        (K::KIND, structural::<K>())
    }
    vec![
        of::<Cluster>(),
        of::<ClusterRegistrationToken>(),
        of::<ClusterRoleTemplateBinding>(),
        of::<DynamicSchema>(),
        of::<GlobalRole>(),
        of::<GlobalRoleBinding>(),
        of::<KontainerDriver>(),
        of::<NamespaceAssignment>(),
        of::<Node>(),
        of::<PodSecurityAdmissionConfigurationTemplate>(),
        of::<PodSecurityPolicyTemplate>(),
        of::<PodSecurityPolicyTemplateProjectBinding>(),
        of::<Project>(),
        of::<ProjectRoleTemplateBinding>(),
        of::<RoleTemplate>(),
        of::<Setting>(),
        of::<Token>(),
        of::<User>(),
    ]
}

fn table_schema(kind: &str) -> Value {
    definition::schema(&types::tables_of_kind(kind))
}

/// What the schema of a struct has and that of its table has not, or with another type.
fn differences(path: &str, of_struct: &Value, of_table: &Value, found: &mut Vec<String>) {
    let is_open = of_table["x-kubernetes-preserve-unknown-fields"] == true;
    let takes_anything = is_open && of_table["type"].is_null();
    if !takes_anything && of_struct["type"] != of_table["type"] {
        found.push(format!("{path}: {} in the table {}", of_struct["type"], of_table["type"]));
    }
    if is_open {
        return;
    }
    for (key, suffix) in [("items", "[]"), ("additionalProperties", "{}")] {
        if of_struct[key].is_object() {
            differences(&format!("{path}{suffix}"), &of_struct[key], &of_table[key], found);
        }
    }
    for (name, property) in of_struct["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        match of_table["properties"].get(name) {
            Some(known) => differences(&path, property, known, found),
            None => found.push(format!("{path} is in no table")),
        }
    }
}

#[test]
fn a_struct_has_only_fields_of_its_table_in_their_types() {
    let structs = structs();
    let kinds: Vec<&str> = structs.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, STRUCTS.iter().map(|(kind, _)| *kind).collect::<Vec<_>>());
    let mut found = Vec::new();
    for (kind, schema) in structs {
        // The server alone writes it, and it is no type of the REST view.
        if kind == NamespaceAssignment::KIND {
            assert!(types::tables_of_kind(kind).is_empty());
            continue;
        }
        differences(kind, &schema, &table_schema(kind), &mut found);
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_field_beside_the_table_and_a_field_of_another_type_are_found() {
    let table = json!({"type": "object", "properties": {
        "a": {"type": "array", "items": {"type": "string"}}, "b": {"type": "integer"}}});
    let other = json!({"type": "object", "properties": {
        "a": {"type": "array", "items": {"type": "object"}}, "b": {"type": "integer"},
        "c": {"type": "string"}}});
    let mut found = Vec::new();
    differences("K", &other, &table, &mut found);
    assert_eq!(found, ["K.a[]: \"object\" in the table \"string\"", "K.c is in no table"]);
}

/// Where the definition of a kind drops what its table keeps: unknown fields of an open object.
fn pruned(path: &str, of_table: &Value, defined: &Value, found: &mut Vec<String>) {
    let is_open = |schema: &Value| schema["x-kubernetes-preserve-unknown-fields"] == true;
    if is_open(of_table) && !is_open(defined) {
        found.push(path.to_owned());
    }
    for (key, suffix) in [("items", "[]"), ("additionalProperties", "{}")] {
        if of_table[key].is_object() {
            pruned(&format!("{path}{suffix}"), &of_table[key], &defined[key], found);
        }
    }
    for (name, property) in of_table["properties"].as_object().into_iter().flatten() {
        pruned(&format!("{path}.{name}"), property, &defined["properties"][name], found);
    }
}

#[test]
fn the_definition_of_a_kind_drops_nothing_that_its_table_keeps() {
    let mut found = Vec::new();
    for (kind, structural) in structs() {
        let defined = definition::complete(kind, structural);
        pruned(kind, &table_schema(kind), &defined, &mut found);
    }
    assert!(found.is_empty(), "{found:#?}");
    let conditions = &definition::complete(Cluster::KIND, structural::<Cluster>())["properties"]["status"]
        ["properties"]["conditions"]["items"];
    assert_eq!(conditions["properties"]["lastTransitionTime"]["type"], "string");
    // It finds what is dropped.
    let (open, closed) = (
        json!({"items": {"x-kubernetes-preserve-unknown-fields": true}}),
        json!({"items": {"type": "object"}}),
    );
    pruned("K", &open, &closed, &mut found);
    assert_eq!(found, ["K[]"]);
}

/// A value with every field that the schema names.
fn sample(schema: &Value) -> Value {
    let property = |(name, schema): (&String, &Value)| (name.clone(), sample(schema));
    match schema["type"].as_str() {
        Some("string") => "text".into(),
        Some("integer") => 7.into(),
        Some("boolean") => true.into(),
        Some("array") => json!([sample(&schema["items"])]),
        Some("object") if schema["properties"].is_object() => {
            schema["properties"].as_object().into_iter().flatten().map(property).collect()
        }
        Some("object") if schema["additionalProperties"].is_object() => {
            json!({"key": sample(&schema["additionalProperties"])})
        }
        _ => json!({"unknown": {"to": ["the", "struct"]}}),
    }
}

fn written_back<T: Serialize + DeserializeOwned>(stored: &Value) -> Value {
    serde_json::to_value(serde_json::from_value::<T>(stored.clone()).unwrap()).unwrap()
}

/// Other structs are only read or created: their objects are changed by patches.
#[test]
fn what_is_written_back_as_a_whole_loses_no_field_of_its_table() {
    let spec = sample(&table_schema(Cluster::KIND)["properties"]["spec"]);
    assert!(spec["clusterSecrets"].is_object() && spec["windowsPreferedCluster"] == true);
    assert_eq!(written_back::<ClusterSpec>(&spec), spec);

    let whole = |kind: &str| {
        let mut object = sample(&table_schema(kind));
        object["apiVersion"] = API_VERSION.into();
        object["kind"] = kind.into();
        object["metadata"] = json!({"name": "x"});
        object
    };
    let (user, token) = (whole(User::KIND), whole(Token::KIND));
    assert!(user["description"].is_string() && token["groupPrincipals"].is_array());
    assert_eq!(written_back::<User>(&user), user);
    assert_eq!(written_back::<Token>(&token), token);
}

#[test]
fn a_field_without_a_value_is_not_written_back() {
    let spec = json!({"displayName": "x", "eksConfig": null, "k3sConfig": null});
    assert_eq!(written_back::<ClusterSpec>(&spec), json!({"displayName": "x"}));
}
