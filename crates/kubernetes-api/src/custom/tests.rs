//! The expected texts are those of a Kubernetes 1.36 API server.

mod definitions;
mod instances;
mod names;

use apiserver::attributes::UserInfo;
use apiserver::strategy::{Operation, Strategy, Write};
use serde_json::{Value, json};

use super::definition::DefinitionStrategy;
use super::names::desired_status;

/// The definition with which most texts were recorded, as a client sends it.
pub(super) fn recorded_definition() -> Value {
    let spec = json!({"type": "object", "required": ["req"], "properties": {
        "req": {"type": "string", "maxLength": 5, "pattern": "^[a-z]+$"},
        "num": {"type": "integer", "minimum": 1, "maximum": 10, "default": 3},
        "nd": {"type": "string", "default": "dd"},
        "replicas": {"type": "integer"},
    }});
    let status = json!({"type": "object", "properties": {
        "replicas": {"type": "integer"}, "sel": {"type": "string"}}});
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let scale = json!({
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.sel"});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.ex.org"},
        "spec": {
            "group": "ex.org", "scope": "Namespaced",
            "names": {
                "plural": "foos", "kind": "Foo", "shortNames": ["fo"], "categories": ["all"]},
            "versions": [
                {
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {
                        "type": "object", "properties": {"spec": spec, "status": status}}},
                    "subresources": {"status": {}, "scale": scale},
                    "additionalPrinterColumns": [
                        {"name": "Req", "type": "string", "jsonPath": ".spec.req"},
                        {"name": "Num", "type": "integer", "jsonPath": ".spec.num", "priority": 1},
                    ],
                    "selectableFields": [{"jsonPath": ".spec.req"}],
                },
                {
                    "name": "v1beta1", "served": true, "storage": false, "deprecated": true,
                    "schema": {"openAPIV3Schema": {
                        "type": "object", "properties": {"spec": open}}},
                },
                {
                    "name": "v1alpha1", "served": false, "storage": false,
                    "schema": {"openAPIV3Schema": open},
                },
            ],
        },
    })
}

pub(super) fn write<'a>(user: &'a UserInfo, operation: Operation) -> Write<'a> {
    Write { user, operation, namespace: "cr", name: "new", dry_run: false }
}

/// A definition as the server stores it after a create.
pub(super) fn create_definition(mut crd: Value) -> Value {
    let user = UserInfo::default();
    let strategy = DefinitionStrategy;
    strategy.default(&mut crd);
    crd["metadata"]["generation"] = 1.into();
    strategy.prepare(&write(&user, Operation::Create), &mut crd, None);
    crd
}

/// A definition as the server stores it, with its names accepted.
pub(super) fn establish_definition(crd: Value) -> Value {
    let mut crd = create_definition(crd);
    crd["status"] = desired_status(&crd, &[], 0);
    crd
}
