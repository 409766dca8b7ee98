//! Resources from definitions, and the strategy of their objects.

use std::sync::Arc;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use apiserver::attributes::UserInfo;
use apiserver::resource::{Backend, Call, Endpoint, Resource};
use apiserver::strategy::Operation;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::{establish_definition, recorded_definition, write};
use crate::custom::resources_of;
use crate::custom::scale::ScalePaths;

struct NoScale;

impl Endpoint for NoScale {
    fn call(&self, _call: Call) -> BoxFuture<'_, Result<(u16, Value), Status>> {
        Box::pin(std::future::ready(Err(Status::unknown_resource())))
    }
}

fn resources(crd: &Value) -> Vec<Resource> {
    resources_of(crd, &Arc::new(crd.is_terminating().into()), |_| Arc::new(NoScale))
}

#[test]
fn served_versions_become_resources() {
    let resources = resources(&establish_definition(recorded_definition()));
    let [v1, beta] = resources.as_slice() else { panic!("two versions are served") };
    assert_eq!((v1.api_version().as_str(), v1.plural.as_str()), ("ex.org/v1", "foos"));
    assert_eq!((v1.singular.as_str(), v1.list_kind.as_str()), ("foo", "FooList"));
    assert!(v1.namespaced && v1.custom && v1.rules.generation && !v1.rules.unconditional_update);
    assert_eq!((&v1.short_names, &v1.categories), (&vec!["fo".into()], &vec!["all".into()]));
    assert!(
        matches!(&v1.backend, Backend::Stored { prefix } if prefix == "/registry/ex.org/foos/")
    );
    let names: Vec<&str> = v1.subresources.iter().map(|sub| sub.name).collect();
    assert_eq!(names, ["status", "scale"]);
    assert_eq!(v1.subresource("scale").unwrap().gvk, Some(("autoscaling", "v1", "Scale")));
    assert_eq!(v1.selectable_fields[0].label, "spec.req");
    assert_eq!(v1.selectable_fields[0].path, ["spec", "req"]);
    assert!(v1.selectable_fields[0].offered);
    // Both are read from the same stored objects, although only one declares the field.
    assert_eq!(beta.selectable_fields[0].label, "spec.req");
    assert!(!beta.selectable_fields[0].offered);
    assert!(beta.subresources.is_empty());
    assert_eq!(v1.strategy.storage_version(), Some("v1"));
    assert_eq!(v1.strategy.deprecation(), None);
    let warning = "ex.org/v1beta1 Foo is deprecated; use ex.org/v1 Foo";
    assert_eq!(beta.strategy.deprecation(), Some(warning));
}

#[test]
fn instances_are_defaulted_pruned_and_validated() {
    let resources = resources(&establish_definition(recorded_definition()));
    let strategy = &resources[0].strategy;
    let mut object = json!({
        "apiVersion": "ex.org/v1", "kind": "Foo", "metadata": {"name": "a", "bogus": 1},
        "spec": {"req": "abc", "unknown": 1, "num": 5.0}, "extra": 5});
    assert_eq!(strategy.unknown_fields(&object), ["extra", "metadata.bogus", "spec.unknown"]);
    strategy.prune(&mut object);
    strategy.default(&mut object);
    let expected = json!({
        "apiVersion": "ex.org/v1", "kind": "Foo", "metadata": {"name": "a"},
        "spec": {"req": "abc", "nd": "dd", "num": 5}});
    assert_eq!(object, expected);
    let user = UserInfo::default();
    let create = write(&user, Operation::Create);
    assert_eq!(strategy.validate(&create, &object, None), []);
    object["spec"]["req"] = "toolong".into();
    let causes = strategy.validate(&create, &object, None);
    assert_eq!(causes[0].message, "Too long: may not be more than 5 bytes");
}

#[test]
fn stored_objects_are_converted_to_the_version_that_is_read() {
    let resources = resources(&establish_definition(recorded_definition()));
    let mut object = json!({
        "apiVersion": "ex.org/v1beta1", "kind": "Foo", "metadata": {},
        "spec": {"req": "abc", "old": 1}});
    assert!(resources[0].strategy.rewrites_on_read());
    resources[0].strategy.on_read(&mut object);
    assert_eq!(object["apiVersion"], "ex.org/v1");
    assert_eq!(object["spec"], json!({"req": "abc", "nd": "dd", "num": 3}));
}

#[test]
fn fields_that_the_storage_version_lacks_are_lost_in_writes_of_another() {
    let resources = resources(&establish_definition(recorded_definition()));
    let [v1, beta] = resources.as_slice() else { panic!("two versions are served") };
    let object = json!({
        "apiVersion": "ex.org/v1beta1", "kind": "Foo", "metadata": {},
        "spec": {"req": "abc", "old": 1}});
    let (mut of_v1, mut of_beta) = (object.clone(), object.clone());
    v1.strategy.lose_unstored(&mut of_v1);
    beta.strategy.lose_unstored(&mut of_beta);
    assert_eq!(of_v1, object);
    assert_eq!(of_beta["spec"], json!({"req": "abc", "nd": "dd", "num": 3}));
    assert_eq!(of_beta["apiVersion"], "ex.org/v1beta1");
}

#[test]
fn a_definition_that_never_changed_needs_no_rewrite_on_read() {
    let mut crd = recorded_definition();
    crd["spec"]["versions"].as_array_mut().unwrap().truncate(1);
    let mut crd = establish_definition(crd);
    assert!(!resources(&crd)[0].strategy.rewrites_on_read());
    crd["metadata"]["generation"] = 2.into();
    assert!(resources(&crd)[0].strategy.rewrites_on_read());
}

#[test]
fn columns_and_cells_match_the_definition() {
    let resources = resources(&establish_definition(recorded_definition()));
    let object = json!({
        "metadata": {"name": "a", "creationTimestamp": "1970-01-01T00:00:00Z"},
        "spec": {"req": "abc", "num": 3}});
    let names = |resource: &Resource| {
        let columns = resource.columns.iter();
        columns.map(|c| (c.name.clone(), c.kind.clone(), c.priority)).collect::<Vec<_>>()
    };
    let column = |name: &str, kind: &str, priority| (name.to_owned(), kind.to_owned(), priority);
    let expected =
        [column("Name", "string", 0), column("Req", "string", 0), column("Num", "integer", 1)];
    assert_eq!(names(&resources[0]), expected);
    let description = "Custom resource definition column (in JSONPath format): .spec.req";
    assert_eq!(resources[0].columns[1].description, description);
    assert_eq!(resources[0].strategy.cells(&object, 0), [json!("a"), json!("abc"), json!(3)]);
    let bare = json!({"metadata": {"name": "ns"}});
    assert_eq!(resources[0].strategy.cells(&bare, 0), [json!("ns"), Value::Null, Value::Null]);
    // A version without columns shows names and ages.
    assert_eq!(names(&resources[1]), [column("Name", "string", 0), column("Age", "date", 0)]);
    assert_eq!(resources[1].strategy.cells(&object, 186), [json!("a"), json!("3m6s")]);
}

#[test]
fn nothing_is_created_while_the_definition_is_terminating() {
    let mut crd = establish_definition(recorded_definition());
    crd["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    let resources = resources(&crd);
    let user = UserInfo::default();
    let mut object = json!({});
    let create = write(&user, Operation::Create);
    let result = resources[0].strategy.admit(&create, Some(&mut object), None).now_or_never();
    let status = result.unwrap().unwrap_err();
    assert_eq!(status.code, 403);
    assert_eq!(
        status.message,
        "foos.ex.org \"new\" is forbidden: create not allowed while custom resource definition is \
         terminating"
    );
    let update = write(&user, Operation::Update);
    let result = resources[0].strategy.admit(&update, Some(&mut object), None).now_or_never();
    assert!(result.unwrap().is_ok());
}

#[test]
fn scale_is_a_view_of_three_fields() {
    let paths =
        ScalePaths::parse(&recorded_definition()["spec"]["versions"][0]["subresources"]["scale"])
            .unwrap();
    let mut object = json!({
        "metadata": {"name": "a", "namespace": "cr", "uid": "u", "labels": {"x": "y"}},
        "spec": {}, "status": {"replicas": 2, "sel": "a=b"}});
    let status = paths.scale_of(&object).unwrap_err();
    let text = "Internal error occurred: the spec replicas field \".spec.replicas\" does not exist";
    assert_eq!((status.code, status.message.as_str()), (500, text));
    paths.apply(&json!({"spec": {"replicas": 4}}), &mut object).unwrap();
    assert_eq!(
        paths.scale_of(&object).unwrap(),
        json!({"kind": "Scale", "apiVersion": "autoscaling/v1",
            "metadata": {"name": "a", "namespace": "cr", "uid": "u"},
            "spec": {"replicas": 4}, "status": {"replicas": 2, "selector": "a=b"}})
    );
    assert_eq!(paths.apply(&json!({"spec": {"replicas": -1}}), &mut object).unwrap_err().code, 422);
}
