//! The expected documents are those of a Kubernetes 1.36 API server.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Absent, Served, aggregated_document, legacy_document, version};
use crate::aggregation::ApiServiceTable;
use crate::catalog::Catalog;
use crate::resource::{
    Backend, NameRule, Resource, ResourceRules, Subresource, SubresourceHandler,
};
use crate::strategy::Strategy;

/// A strategy without rules.
struct Plain;

impl Strategy for Plain {
    fn cells(&self, _object: &Value, _now: i64) -> Vec<Value> {
        Vec::new()
    }
}

fn resource(group: &str, version: &str, plural: &str, singular: &str, kind: &str) -> Resource {
    Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: plural.to_owned(),
        singular: singular.to_owned(),
        kind: kind.to_owned(),
        list_kind: format!("{kind}List"),
        namespaced: true,
        short_names: Vec::new(),
        categories: Vec::new(),
        verbs: vec!["create", "get"],
        subresources: Vec::new(),
        backend: Backend::Stored { prefix: format!("/registry/{plural}/") },
        strategy: Arc::new(Plain),
        columns: Vec::new(),
        rules: ResourceRules {
            generation: false,
            create_on_update: false,
            unconditional_update: true,
            delete_returns_object: false,
            ttl: None,
        },
        name_rule: NameRule::Dns1123Subdomain,
        selectable_fields: Vec::new(),
        custom: false,
    }
}

fn catalog() -> Catalog {
    let mut config_map = resource("", "v1", "configmaps", "configmap", "ConfigMap");
    config_map.short_names = vec!["cm".to_owned()];
    let mut deployment = resource("apps", "v1", "deployments", "deployment", "Deployment");
    let status = |name, gvk| Subresource {
        name,
        verbs: vec!["get", "patch", "update"],
        handler: SubresourceHandler::Status,
        gvk,
    };
    deployment.subresources =
        vec![status("status", None), status("scale", Some(("autoscaling", "v1", "Scale")))];
    let custom = |version: &str| {
        let mut foo = resource("ex.org", version, "foos", "foo", "Foo");
        foo.custom = true;
        foo.subresources = vec![status("status", None)];
        foo
    };
    Catalog::default()
        .with(config_map)
        .with(deployment)
        .with(resource("coordination.k8s.io", "v1", "leases", "lease", "Lease"))
        .with(custom("v1"))
        .with(custom("v1beta1"))
        .with(custom("v2alpha1"))
        .with(resource(
            "apiextensions.k8s.io",
            "v1",
            "customresourcedefinitions",
            "customresourcedefinition",
            "CustomResourceDefinition",
        ))
}

fn document(path: &str) -> Value {
    legacy_document(served(&catalog()), path, "192.0.2.2:6443").unwrap()
}

/// The catalog without APIServices.
fn served(catalog: &Catalog) -> Served<'_> {
    static NONE: std::sync::LazyLock<ApiServiceTable> =
        std::sync::LazyLock::new(ApiServiceTable::default);
    Served { catalog, table: &NONE }
}

#[test]
fn versions_and_groups_are_listed_in_order_of_preference() {
    let api = document("/api");
    assert_eq!(api["versions"], json!(["v1"]));
    assert_eq!(api["apiVersion"], Value::Null);
    let address = json!([{"clientCIDR": "0.0.0.0/0", "serverAddress": "192.0.2.2:6443"}]);
    assert_eq!(api["serverAddressByClientCIDRs"], address);
    let apis = document("/apis/");
    let names: Vec<&Value> =
        apis["groups"].as_array().unwrap().iter().map(|g| &g["name"]).collect();
    assert_eq!(names, ["apps", "apiextensions.k8s.io", "coordination.k8s.io", "ex.org"]);
    assert_eq!((&apis["kind"], &apis["apiVersion"]), (&json!("APIGroupList"), &json!("v1")));
    let group = document("/apis/ex.org");
    let entry = |v: &str| json!({"groupVersion": format!("ex.org/{v}"), "version": v});
    assert_eq!(
        group,
        json!({"kind": "APIGroup", "apiVersion": "v1", "name": "ex.org",
            "versions": [entry("v1"), entry("v1beta1"), entry("v2alpha1")],
            "preferredVersion": entry("v1")})
    );
}

#[test]
fn resource_lists_contain_all_resources_of_a_version() {
    let core = document("/api/v1");
    assert_eq!(
        core,
        json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": [
            {"name": "configmaps", "singularName": "configmap", "namespaced": true,
                "kind": "ConfigMap", "verbs": ["create", "get"], "shortNames": ["cm"],
                "storageVersionHash": "qFsyl6wFWjQ="}]})
    );
    let apps = document("/apis/apps/v1");
    assert_eq!(apps["apiVersion"], "v1");
    let names: Vec<&Value> =
        apps["resources"].as_array().unwrap().iter().map(|r| &r["name"]).collect();
    assert_eq!(names, ["deployments", "deployments/scale", "deployments/status"]);
    assert_eq!(
        apps["resources"][1],
        json!({"name": "deployments/scale", "singularName": "", "namespaced": true,
            "group": "autoscaling", "version": "v1", "kind": "Scale",
            "verbs": ["get", "patch", "update"]})
    );
    let leases = document("/apis/coordination.k8s.io/v1");
    assert_eq!(leases["resources"][0]["storageVersionHash"], "gqkMMb/YqFM=");
    assert_eq!(document("/apis/ex.org/v1")["resources"][0]["storageVersionHash"], "SFUOH78HJSA=");
}

#[test]
fn an_unserved_path_or_version_is_distinguished() {
    let absent = |path: &str| legacy_document(served(&catalog()), path, "").unwrap_err();
    assert_eq!(absent("/apis/nosuch"), Absent::Path);
    assert_eq!(absent("/apis/nosuch/v1"), Absent::Path);
    assert_eq!(absent("/apis/apps/v9"), Absent::Version);
    assert_eq!(absent("/api/v2"), Absent::Version);
    assert_eq!(absent("/apis/ex.org/v1alpha1"), Absent::Path);
    assert_eq!(absent("/apis/apps/v1/x"), Absent::Path);
}

#[test]
fn aggregated_documents_contain_all_groups() {
    let core: Value =
        serde_json::from_slice(&aggregated_document(served(&catalog()), true).body).unwrap();
    assert_eq!(core["items"][0]["metadata"], json!({}));
    assert_eq!(
        core["items"][0]["versions"][0]["resources"][0],
        json!({"resource": "configmaps",
            "responseKind": {"group": "", "version": "", "kind": "ConfigMap"},
            "scope": "Namespaced", "singularResource": "configmap", "verbs": ["create", "get"],
            "shortNames": ["cm"]})
    );
    let groups: Value =
        serde_json::from_slice(&aggregated_document(served(&catalog()), false).body).unwrap();
    assert_eq!(groups["kind"], "APIGroupDiscoveryList");
    assert_eq!(groups["apiVersion"], "apidiscovery.k8s.io/v2");
    let apps = &groups["items"][0];
    assert_eq!(apps["metadata"]["name"], "apps");
    assert_eq!(apps["versions"][0]["freshness"], "Current");
    assert_eq!(
        apps["versions"][0]["resources"][0]["subresources"][0],
        json!({"subresource": "scale",
            "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
            "verbs": ["get", "patch", "update"]})
    );
    let custom = &groups["items"][3]["versions"][1]["resources"][0];
    let kind = json!({"group": "ex.org", "version": "v1beta1", "kind": "Foo"});
    assert_eq!(custom["responseKind"], kind);
    assert_eq!(custom["subresources"][0]["responseKind"], kind);
}

#[test]
fn etags_identify_the_content() {
    let one = aggregated_document(served(&catalog()), false);
    assert_eq!(one.etag, aggregated_document(served(&catalog()), false).etag);
    assert_eq!(one.etag.len(), 130);
    assert!(one.etag[1..129].bytes().all(|b| b.is_ascii_digit() || (b'A'..=b'F').contains(&b)));
    let mut changed = catalog();
    changed.remove("ex.org", "foos");
    assert_ne!(one.etag, aggregated_document(served(&changed), false).etag);
}

#[test]
fn version_numbers_have_no_suffix() {
    let document = version("v1.36.3+drover");
    assert_eq!((&document["major"], &document["minor"]), (&json!("1"), &json!("36")));
    assert_eq!(document["minCompatibilityMinor"], "35");
    assert_eq!(document["gitVersion"], "v1.36.3+drover");
}
