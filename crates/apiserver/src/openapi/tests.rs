//! What clients need from the documents: hashes, query parameters, references, merge rules.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Encoding, OpenApi};
use crate::aggregation::ApiServiceTable;
use crate::catalog::Catalog;
use crate::kind::Kind;
use crate::resource::{Resource, SelectableField, Subresource, SubresourceHandler};
use crate::schemas::builtin_schema;
use crate::strategy::{PublishedSchema, Strategy};

/// The strategy of a custom resource without rules.
struct Custom(PublishedSchema);

impl Strategy for Custom {
    fn published_schema(&self) -> Option<&PublishedSchema> {
        Some(&self.0)
    }

    fn cells(&self, _object: &Value, _now: i64) -> Vec<Value> {
        Vec::new()
    }
}

fn schema(spec: Value) -> Value {
    json!({"type": "object", "description": "A foo.", "properties": {"spec": spec}})
}

/// A custom resource with this schema and the subresources `status` and `scale`.
fn foo(schema: &Value) -> Resource {
    let mut foo = built_in("ex.org", "foos", "Foo");
    foo.subresources.push(Subresource {
        name: "scale",
        verbs: vec!["get", "patch", "update"],
        handler: SubresourceHandler::Status,
        gvk: Some(("autoscaling", "v1", "Scale")),
    });
    foo.selectable_fields.push(SelectableField {
        label: "spec.n".to_owned(),
        path: vec!["spec".to_owned(), "n".to_owned()],
        fallback: Vec::new(),
        unset: "",
        offered: true,
    });
    Resource { strategy: Arc::new(Custom(PublishedSchema::new(schema))), custom: true, ..foo }
}

fn built_in(group: &'static str, plural: &'static str, kind: &'static str) -> Resource {
    let singular = plural.trim_end_matches('s');
    Kind::new(group, plural, singular, kind).with_status().into_resource()
}

fn definitions() -> Resource {
    let group = "apiextensions.k8s.io";
    let resource = built_in(group, "customresourcedefinitions", "CustomResourceDefinition");
    Resource { namespaced: false, ..resource }
}

fn catalog() -> Catalog {
    Catalog::default()
        .with(built_in("", "pods", "Pod"))
        .with(built_in("", "services", "Service"))
        .with(built_in("apps", "deployments", "Deployment"))
        .with(definitions())
        .with(foo(&schema(json!({"type": "object", "properties": {
            "n": {"type": "integer", "nullable": true},
            "port": {"x-kubernetes-int-or-string": true},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"a": {"type": "string"}}}}}))))
}

fn v3(path: &str) -> Value {
    let document = OpenApi::new("v1.36.3").v3(&catalog(), path, Encoding::Json).unwrap();
    serde_json::from_slice(&document.plain()).unwrap()
}

#[test]
fn the_index_leads_to_every_document_by_its_hash() {
    let openapi = OpenApi::new("v1.36.3");
    let index: Value =
        serde_json::from_slice(&openapi.index(&catalog(), &ApiServiceTable::default())).unwrap();
    let paths: Vec<&String> = index["paths"].as_object().unwrap().keys().collect();
    let expected = [
        "api",
        "api/v1",
        "apis",
        "apis/apiextensions.k8s.io",
        "apis/apiextensions.k8s.io/v1",
        "apis/apps",
        "apis/apps/v1",
        "apis/ex.org",
        "apis/ex.org/v1",
        "version",
    ];
    assert_eq!(paths, expected);
    for path in paths {
        let document = openapi.v3(&catalog(), path, Encoding::Json).unwrap();
        let url = format!("/openapi/v3/{path}?hash={}", document.hash);
        assert_eq!(index["paths"][path]["serverRelativeURL"], url);
        assert_eq!(document.hash.len(), 128);
    }
    assert!(openapi.v3(&catalog(), "apis/nosuch/v1", Encoding::Json).is_none());
    assert!(openapi.v3(&catalog(), "", Encoding::Json).is_none());
}

#[test]
fn only_the_documents_of_a_changed_definition_change() {
    let openapi = OpenApi::new("v1.36.3");
    let before = catalog();
    let after = before.clone().with(foo(&schema(json!({"type": "object"}))));
    let hash = |catalog: &Catalog, path: &str| openapi.v3_hash(catalog, path).unwrap();
    assert_ne!(hash(&before, "apis/ex.org/v1"), hash(&after, "apis/ex.org/v1"));
    assert_eq!(hash(&before, "api/v1"), hash(&after, "api/v1"));
    let hash2 = |catalog: &Catalog| openapi.v2_hash(catalog, &ApiServiceTable::default());
    assert_ne!(hash2(&before), hash2(&after));
}

#[test]
fn the_patch_operation_lists_its_query_parameters() {
    let core = v3("api/v1");
    let patch = &core["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"];
    assert_eq!(patch["x-kubernetes-action"], "patch");
    let kind = json!({"group": "", "version": "v1", "kind": "Pod"});
    assert_eq!(patch["x-kubernetes-group-version-kind"], kind);
    assert_eq!(patch["operationId"], "patchCoreV1NamespacedPod");
    let names = |operation: &Value| -> Vec<String> {
        let list = operation["parameters"].as_array().unwrap().iter();
        list.map(|p| p["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(patch), ["dryRun", "fieldManager", "fieldValidation", "force"]);
    let custom = v3("apis/ex.org/v1");
    let item = &custom["paths"]["/apis/ex.org/v1/namespaces/{namespace}/foos/{name}"];
    assert_eq!(names(&item["patch"]), ["dryRun", "fieldManager", "fieldValidation", "force"]);
    assert_eq!(item["patch"]["x-kubernetes-group-version-kind"]["kind"], "Foo");
    let all = &custom["paths"]["/apis/ex.org/v1/foos"]["get"];
    assert_eq!(all["operationId"], "listExOrgV1FooForAllNamespaces");
    let scale = &custom["paths"]["/apis/ex.org/v1/namespaces/{namespace}/foos/{name}/scale"];
    assert_eq!(scale["get"]["x-kubernetes-group-version-kind"]["kind"], "Foo");
}

#[test]
fn every_reference_of_a_document_resolves() {
    fn references<'a>(value: &'a Value, out: &mut Vec<&'a str>) {
        match value {
            Value::Object(map) => {
                out.extend(map.get("$ref").and_then(Value::as_str));
                map.values().for_each(|value| references(value, out));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, out)),
            _ => {}
        }
    }
    let v2 = OpenApi::new("v1.36.3").v2(&catalog(), &ApiServiceTable::default(), Encoding::Json);
    let v2: Value = serde_json::from_slice(&v2.plain()).unwrap();
    let documents = [
        (v3("api/v1"), "/components/schemas/"),
        (v3("apis/apiextensions.k8s.io/v1"), "/components/schemas/"),
        (v3("apis/ex.org/v1"), "/components/schemas/"),
        (v2, "/definitions/"),
    ];
    for (document, base) in documents {
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 20);
        for reference in found {
            let path = reference.strip_prefix('#').unwrap();
            assert!(path.starts_with(base), "{reference}");
            assert!(document.pointer(path).is_some(), "{reference}");
        }
    }
}

#[test]
fn built_in_types_carry_descriptions_and_merge_rules() {
    let core = v3("api/v1");
    let schemas = &core["components"]["schemas"];
    let pod = &schemas["io.k8s.api.core.v1.Pod"];
    let kind = json!([{"group": "", "version": "v1", "kind": "Pod"}]);
    assert_eq!(pod["x-kubernetes-group-version-kind"], kind);
    assert!(pod["description"].as_str().unwrap().starts_with("Pod is a collection of containers"));
    assert_eq!(pod["required"], Value::Null);
    let metadata = &pod["properties"]["metadata"];
    let reference = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    assert_eq!(metadata["allOf"][0]["$ref"], reference);
    assert!(metadata["description"].is_string() && metadata["$ref"].is_null());
    let containers = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-patch-strategy"], "merge");
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(containers["x-kubernetes-list-type"], "map");
    assert_eq!(containers["x-kubernetes-list-map-keys"], json!(["name"]));
    let volumes = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["volumes"];
    assert_eq!(volumes["x-kubernetes-patch-strategy"], "merge,retainKeys");
    let int_or_string = &schemas["io.k8s.apimachinery.pkg.util.intstr.IntOrString"];
    assert_eq!(int_or_string["format"], "int-or-string");
    let selector = &schemas["io.k8s.api.core.v1.ConfigMapKeySelector"];
    assert_eq!(selector["x-kubernetes-map-type"], "atomic");
    let list = &schemas["io.k8s.api.core.v1.PodList"];
    assert_eq!(list["x-kubernetes-group-version-kind"][0]["kind"], "PodList");
}

#[test]
fn custom_types_are_published_with_metadata() {
    let document = v3("apis/ex.org/v1");
    let foo = &document["components"]["schemas"]["org.ex.v1.Foo"];
    let kind = json!([{"group": "ex.org", "version": "v1", "kind": "Foo"}]);
    assert_eq!(foo["x-kubernetes-group-version-kind"], kind);
    assert_eq!(foo["description"], "A foo.");
    assert!(foo["properties"]["kind"]["description"].is_string());
    let reference = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    assert_eq!(foo["properties"]["metadata"]["allOf"][0]["$ref"], reference);
    // v3 contains what v2 has no keywords for.
    assert_eq!(foo["properties"]["spec"]["properties"]["n"]["nullable"], true);
    let v2 = OpenApi::new("v1.36.3").v2(&catalog(), &ApiServiceTable::default(), Encoding::Json);
    let v2: Value = serde_json::from_slice(&v2.plain()).unwrap();
    let foo = &v2["definitions"]["org.ex.v1.Foo"];
    let spec = &foo["properties"]["spec"]["properties"];
    // A client that checks a null or an arbitrary field against a type would reject it.
    assert_eq!(spec["n"], json!({}));
    assert_eq!(spec["free"], json!({"x-kubernetes-preserve-unknown-fields": true}));
    for name in ["org.ex.v1.Foo", "org.ex.v1.FooList"] {
        let fields = &v2["definitions"][name]["x-kubernetes-selectable-fields"];
        assert_eq!(fields, &json!([{"fieldPath": "spec.n"}]));
    }
    let scale = &v2["paths"]["/apis/ex.org/v1/namespaces/{namespace}/foos/{name}/scale"]["get"];
    assert_eq!(scale["x-kubernetes-group-version-kind"]["kind"], "Foo");
    assert_eq!(scale["tags"], json!(["exOrg_v1"]));
    let reference = "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    assert_eq!(foo["properties"]["metadata"]["$ref"], reference);
    let path = &v2["paths"]["/apis/ex.org/v1/namespaces/{namespace}/foos"]["post"];
    assert_eq!(path["parameters"][3]["schema"]["$ref"], "#/definitions/org.ex.v1.Foo");
}

#[test]
fn a_custom_type_that_may_have_any_field_is_published_as_a_plain_object_in_v2() {
    let mut open = schema(json!({"type": "object"}));
    open["x-kubernetes-preserve-unknown-fields"] = true.into();
    let catalog = catalog().with(foo(&open));
    let v2 = OpenApi::new("v1.36.3").v2(&catalog, &ApiServiceTable::default(), Encoding::Json);
    let v2: Value = serde_json::from_slice(&v2.plain()).unwrap();
    let kind = json!([{"group": "ex.org", "version": "v1", "kind": "Foo"}]);
    let expected = json!({
        "type": "object",
        "x-kubernetes-group-version-kind": kind,
        "x-kubernetes-selectable-fields": [{"fieldPath": "spec.n"}],
    });
    assert_eq!(v2["definitions"]["org.ex.v1.Foo"], expected);
    let v3 = OpenApi::new("v1.36.3").v3(&catalog, "apis/ex.org/v1", Encoding::Json).unwrap();
    let v3: Value = serde_json::from_slice(&v3.plain()).unwrap();
    let foo = &v3["components"]["schemas"]["org.ex.v1.Foo"];
    assert_eq!(foo["x-kubernetes-preserve-unknown-fields"], true);
    assert!(foo["properties"]["spec"].is_object(), "{foo}");
}

#[test]
fn an_operation_without_parameters_has_no_list_of_them() {
    let mut operations = 0;
    for path in ["api/v1", "apis/apps/v1", "apis/ex.org/v1"] {
        for (path, item) in v3(path)["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                let parameters = operation.get("parameters").and_then(Value::as_array);
                assert!(parameters.is_none_or(|list| !list.is_empty()), "{method} {path}");
                operations += usize::from(method == "get");
            }
        }
    }
    assert!(operations > 10, "{operations}");
}

#[test]
fn cached_documents_are_bounded() {
    let mut openapi = OpenApi::new("v1.36.3");
    let first = openapi.v3(&catalog(), "apis/ex.org/v1", Encoding::Json).unwrap();
    let again = openapi.v3(&catalog(), "apis/ex.org/v1", Encoding::Json).unwrap();
    assert!(Arc::ptr_eq(&first, &again));
    let protobuf = openapi.v3(&catalog(), "apis/ex.org/v1", Encoding::Protobuf).unwrap();
    assert_eq!(protobuf.hash, first.hash);
    assert_ne!(protobuf.plain(), first.plain());
    openapi.cached_bytes_max = first.gzipped().len() * 5 / 2;
    for note in ["one", "two", "three", "four"] {
        let spec = json!({"type": "object", "description": note});
        openapi.v3(&catalog().with(foo(&schema(spec))), "apis/ex.org/v1", Encoding::Json).unwrap();
    }
    let cache = openapi.cache.lock();
    let size: usize = cache.iter().map(|document| document.gzipped.len()).sum();
    assert!((1..=openapi.cached_bytes_max).contains(&size));
    assert!(!cache.iter().any(|document| document.hash == first.hash));
}

#[test]
fn schemas_of_built_in_kinds_find_what_is_unknown_or_mistyped() {
    let pod = builtin_schema("", "v1", "Pod").unwrap();
    let object = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "foo": 1},
        "spec": {"containers": [{"name": "c", "imag": "x", "resources": {"limits": {"cpu": 1}}}]},
    });
    assert_eq!(pod.unknown_fields(&object), ["metadata.foo", "spec.containers[0].imag"]);
    assert_eq!(pod.type_error(&object), None);
    let config_map = builtin_schema("", "v1", "ConfigMap").unwrap();
    assert_eq!(
        config_map.type_error(&json!({"data": {"a": 1}})).unwrap(),
        "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"
    );
    let lease = builtin_schema("coordination.k8s.io", "v1", "Lease").unwrap();
    assert_eq!(
        lease.type_error(&json!({"spec": {"leaseDurationSeconds": 1.5}})).unwrap(),
        "json: cannot unmarshal number 1.5 into Go struct field \
         LeaseSpec.spec.leaseDurationSeconds of type int32"
    );
    assert!(builtin_schema("ex.org", "v1", "Foo").is_none());
}
