//! The fields of items of lists.

use http::Method;
use serde_json::{Value, json};

use super::side::Side;
use super::wait::until;
use super::world::{loose_definition, run};

const OWN: &str = "labelSelector=test%3Dlists";
const LOOSE: &str = "/apis/lists.example.org/v1/namespaces/default/loosers";

/// Paths of collections, and an object of each. The label is added.
fn objects() -> Vec<(&'static str, Value)> {
    let template = json!({
        "metadata": {"labels": {"app": "lists"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let involved = json!({"kind": "Pod", "namespace": "default", "name": "lists"});
    vec![
        ("/api/v1/namespaces/default/configmaps", json!({"data": {"k": "v"}})),
        // Without a field between version and kind.
        ("/api/v1/namespaces/default/serviceaccounts", json!({})),
        ("/api/v1/namespaces/default/events", json!({"involvedObject": involved})),
        ("/api/v1/nodes", json!({"spec": {"unschedulable": true}})),
        (
            "/apis/apps/v1/namespaces/default/deployments",
            json!({"spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"app": "lists"}},
                "template": template,
            }}),
        ),
        (
            "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers",
            json!({"spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "X", "name": "x"}}}),
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            json!({"rules": [{"apiGroups": [""], "resources": ["x"], "verbs": ["get"]}]}),
        ),
        (LOOSE, json!({"apiVersion": "lists.example.org/v1", "kind": "Looser", "spec": {"a": 1}})),
    ]
}

/// The fields of each item, and those of the list.
fn fields(list: &Value) -> Value {
    let names = |value: &Value| {
        let names: Vec<&String> = value.as_object().unwrap().keys().collect();
        json!(names)
    };
    let items: Vec<Value> = list["items"].as_array().unwrap().iter().map(names).collect();
    json!([list["kind"], list["apiVersion"], names(list), items])
}

/// The fields of the lists of all objects, and of the responses to their deletion.
async fn summaries(side: &Side) -> Vec<Value> {
    let definition = loose_definition("lists.example.org", "Looser");
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    side.post(definitions, &definition).await.success();
    until("the kind is served", async || side.get(LOOSE).await.code == 200).await;
    let mut summaries = Vec::new();
    for (path, mut object) in objects() {
        object["metadata"] = json!({"name": "lists", "labels": {"test": "lists"}});
        let created = side.post(path, &object).await.success();
        let listed = side.get(&format!("{path}?{OWN}")).await.success();
        summaries.push(fields(&listed));
        // Controllers may have written its status and annotations meanwhile.
        let item = &listed["items"][0];
        let content = |of: &Value| json!([of["spec"], of["data"], of["metadata"]["uid"]]);
        assert_eq!(content(item), content(&created), "{} {path}", side.name);
        let yaml = [("accept", "application/yaml")];
        let text = side.send(Method::GET, &format!("{path}?{OWN}"), &yaml, "").await.text;
        summaries
            .push(json!(text.matches("\n  kind: ").count() + text.matches("\n- kind: ").count()));
        summaries.push(fields(&side.delete(&format!("{path}?{OWN}")).await.success()));
    }
    // A version other than the stored one; each server converts for itself.
    let newer = "/apis/events.k8s.io/v1/namespaces/default/events";
    let event = json!({"metadata": {"name": "lists", "labels": {"test": "lists"}},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "lists"}});
    side.post("/api/v1/namespaces/default/events", &event).await.success();
    summaries.push(fields(&side.get(&format!("{newer}?{OWN}")).await.success()));
    summaries
}

#[test]
fn items_of_lists_name_their_type_where_they_do_at_kube_apiserver() {
    run(async |world| {
        let (real, drover) = tokio::join!(summaries(&world.real), summaries(&world.drover));
        assert_eq!(drover, real, "(drover, kube-apiserver)");
    });
}
