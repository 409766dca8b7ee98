//! The validation and preparation of definitions.

use apiserver::attributes::UserInfo;
use apiserver::strategy::{Operation, Strategy};
use serde_json::{Value, json};

use super::{create_definition, establish_definition, recorded_definition, write};
use crate::custom::CLEANUP_FINALIZER;
use crate::custom::definition::DefinitionStrategy;

fn validate(crd: Value, old: Option<&Value>, operation: Operation) -> Vec<String> {
    let user = UserInfo::default();
    let causes = DefinitionStrategy.validate(&write(&user, operation), &crd, old);
    causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
}

fn on_create(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut crd = recorded_definition();
    change(&mut crd);
    validate(create_definition(crd), None, Operation::Create)
}

fn on_update(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let old = establish_definition(recorded_definition());
    let mut crd = old.clone();
    change(&mut crd);
    validate(crd, Some(&old), Operation::Update)
}

#[test]
fn names_and_conversion_are_defaulted() {
    let crd = create_definition(recorded_definition());
    let names = &crd["spec"]["names"];
    assert_eq!((&names["singular"], &names["listKind"]), (&json!("foo"), &json!("FooList")));
    assert_eq!(crd["spec"]["conversion"], json!({"strategy": "None"}));
    assert_eq!(crd["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(crd["status"]["acceptedNames"], json!({"plural": "", "kind": ""}));
}

#[test]
fn a_conversion_webhook_needs_a_client_config_and_a_review_version() {
    let with =
        |conversion: Value| move |crd: &mut Value| crd["spec"]["conversion"] = conversion.clone();
    let webhook = |webhook: Value| with(json!({"strategy": "Webhook", "webhook": webhook}));
    let client = json!({"url": "https://x.example"});
    let good = json!({"conversionReviewVersions": ["v9", "v1"], "clientConfig": client});
    assert_eq!(on_create(webhook(good.clone())), [""; 0]);
    assert_eq!(on_update(webhook(good.clone())), [""; 0]);
    assert_eq!(
        on_create(webhook(Value::Null)),
        [
            "spec.conversion.webhookClientConfig: Required value: required when strategy is set to \
             Webhook",
            "spec.conversion.conversionReviewVersions: Required value",
        ]
    );
    let unknown = json!({"conversionReviewVersions": ["v9", "v9"], "clientConfig": client});
    assert_eq!(
        on_create(webhook(unknown)),
        [
            "spec.conversion.conversionReviewVersions[1]: Invalid value: \"v9\": duplicate version",
            "spec.conversion.conversionReviewVersions: Invalid value: [\"v9\",\"v9\"]: must \
             include at least one of v1, v1beta1",
        ]
    );
    assert_eq!(
        on_create(with(json!({"strategy": "None", "webhook": good}))),
        [
            "spec.conversion.webhookClientConfig: Forbidden: should not be set when strategy is \
             not set to Webhook",
            "spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy \
             is not set to Webhook",
        ]
    );
}

#[test]
fn the_recorded_definition_is_accepted() {
    assert_eq!(on_create(|_| {}), [""; 0]);
    assert_eq!(on_update(|_| {}), [""; 0]);
}

#[test]
fn unknown_fields_are_reported_inside_schemas_too() {
    let mut crd = recorded_definition();
    crd["spec"]["odd"] = 1.into();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["xml"] = 1.into();
    let unknown = ["spec.odd", "spec.versions[0].schema.openAPIV3Schema.properties.spec.xml"];
    assert_eq!(DefinitionStrategy.unknown_fields(&crd), unknown);
    DefinitionStrategy.prune(&mut crd);
    assert_eq!(crd, recorded_definition());
}

#[test]
fn names_and_group_are_validated() {
    assert_eq!(
        on_create(|crd| crd["metadata"]["name"] = "x.ex.org".into()),
        ["metadata.name: Invalid value: \"x.ex.org\": must be spec.names.plural+\".\"+spec.group"]
    );
    assert_eq!(
        on_create(|crd| {
            crd["metadata"]["name"] = "foos.ex".into();
            crd["spec"]["group"] = "ex".into();
        }),
        ["spec.group: Invalid value: \"ex\": should be a domain with at least one dot"]
    );
    assert_eq!(on_create(|crd| crd["spec"]["scope"] = "".into()), ["spec.scope: Required value"]);
    assert_eq!(
        on_create(|crd| {
            crd["metadata"]["name"] = "foos.foo.k8s.io".into();
            crd["spec"]["group"] = "foo.k8s.io".into();
        }),
        ["metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups \
             must have approval annotation \"api-approved.kubernetes.io\", see \
             https://github.com/kubernetes/enhancements/pull/1111"]
    );
}

#[test]
fn versions_are_validated() {
    assert_eq!(
        on_create(|crd| {
            crd["spec"]["versions"][0].as_object_mut().unwrap().remove("schema");
        }),
        [
            "spec.versions[0].schema.openAPIV3Schema: Required value",
            "spec.versions[0].selectableFields: Invalid value: \"\": may only be set when \
             `version.schema.openAPIV3Schema` is not included",
        ]
    );
    assert_eq!(
        on_create(|crd| crd["spec"]["preserveUnknownFields"] = true.into()),
        [
            "spec.preserveUnknownFields: Invalid value: true: must be false in order to use \
             defaults in the schema",
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set \
             x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        ]
    );
    assert_eq!(
        on_create(|crd| {
            let fields = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            fields["properties"]["foo"] = json!({});
        }),
        ["spec.versions[0].schema.openAPIV3Schema.properties[foo].type: Required value: must not \
          be empty for specified object fields"]
    );
    let two = on_create(|crd| crd["spec"]["versions"][1]["storage"] = true.into());
    assert!(two[0].ends_with("must have exactly one version marked as storage version"), "{two:?}");
    assert_eq!(
        on_create(|crd| {
            crd["spec"]["versions"][0]["selectableFields"][0]["jsonPath"] = ".spec.none".into();
            crd["spec"]["versions"][0]["subresources"]["scale"]["specReplicasPath"] = ".x".into();
            crd["spec"]["versions"][0]["additionalPrinterColumns"][0]["type"] = "text".into();
        }),
        [
            "spec.versions[0].subresources.scale.specReplicasPath: Invalid value: \".x\": should \
             be a json path under .spec",
            "spec.versions[0].additionalPrinterColumns[0].type: Unsupported value: \"text\": \
             supported values: \"boolean\", \"date\", \"integer\", \"number\", \"string\"",
            "spec.versions[0].selectableFields[0].jsonPath: Invalid value: \".spec.none\": is an \
             invalid path: does not refer to a valid field",
        ]
    );
}

#[test]
fn problems_common_to_all_versions_are_reported_once_for_the_definition() {
    assert_eq!(
        on_create(|crd| {
            let versions = crd["spec"]["versions"].as_array_mut().unwrap();
            versions.truncate(1);
            versions[0]["schema"]["openAPIV3Schema"]["properties"]["foo"] = json!({});
            versions[0]["additionalPrinterColumns"][0]["type"] = "text".into();
        }),
        [
            "spec.validation.openAPIV3Schema.properties[foo].type: Required value: must not be \
             empty for specified object fields",
            "spec.additionalPrinterColumns[0].type: Unsupported value: \"text\": supported values: \
             \"boolean\", \"date\", \"integer\", \"number\", \"string\"",
        ]
    );
}

#[test]
fn fields_that_instances_depend_on_are_immutable() {
    assert_eq!(
        on_update(|crd| crd["spec"]["group"] = "ex2.org".into()),
        ["spec.group: Invalid value: \"ex2.org\": field is immutable"]
    );
    assert_eq!(
        on_update(|crd| crd["spec"]["scope"] = "Cluster".into()),
        ["spec.scope: Invalid value: \"Cluster\": field is immutable"]
    );
    assert_eq!(
        on_update(|crd| crd["spec"]["names"]["kind"] = "Foo2".into()),
        ["spec.names.kind: Invalid value: \"Foo2\": field is immutable"]
    );
    assert_eq!(on_update(|crd| crd["spec"]["names"]["shortNames"] = json!(["f"])), [""; 0]);
}

#[test]
fn stored_versions_cannot_be_removed_from_the_definition() {
    let user = UserInfo::default();
    let mut old = establish_definition(recorded_definition());
    old["spec"]["versions"][0]["storage"] = false.into();
    old["spec"]["versions"][1]["storage"] = true.into();
    let before = old.clone();
    DefinitionStrategy.prepare(&write(&user, Operation::Update), &mut old, Some(&before));
    assert_eq!(old["status"]["storedVersions"], json!(["v1", "v1beta1"]));
    let mut crd = old.clone();
    crd["spec"]["versions"].as_array_mut().unwrap().remove(0);
    assert_eq!(
        validate(crd.clone(), Some(&old), Operation::Update),
        ["status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was \
          previously a storage version, and must remain in spec.versions until a storage \
          migration ensures no data remains persisted in v1 and removes v1 from \
          status.storedVersions"]
    );
    // After a migration, clients prune the list through status.
    let mut pruned = old.clone();
    pruned["status"]["storedVersions"] = json!(["v1beta1"]);
    assert_eq!(validate(pruned.clone(), Some(&old), Operation::UpdateStatus), [""; 0]);
    crd["status"]["storedVersions"] = json!(["v1beta1"]);
    assert_eq!(validate(crd, Some(&pruned), Operation::Update), [""; 0]);
}

#[test]
fn a_deleted_definition_gets_the_cleanup_finalizer() {
    let user = UserInfo::default();
    let write = write(&user, Operation::Delete);
    let old = establish_definition(recorded_definition());
    let mut marked = old.clone();
    marked["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    DefinitionStrategy.prepare(&write, &mut marked, Some(&old));
    assert_eq!(marked["metadata"]["finalizers"], json!([CLEANUP_FINALIZER]));
    // After the cleanup another delete does not add the finalizer again.
    let mut cleaned = marked.clone();
    cleaned["metadata"]["finalizers"] = json!([]);
    let before = cleaned.clone();
    DefinitionStrategy.prepare(&write, &mut cleaned, Some(&before));
    assert_eq!(cleaned, before);
}

#[test]
fn cells_are_name_and_creation_time() {
    let mut crd = recorded_definition();
    crd["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
    let cells = DefinitionStrategy.cells(&crd, 0);
    assert_eq!(cells, [json!("foos.ex.org"), json!("2026-01-01T00:00:00Z")]);
}
