//! LimitRanges: their defaults and refusals.

use serde_json::{Value, json};

use super::side::{Side, TestResponse};

const NAMESPACE: &str = "/api/v1/namespaces/limited";

type Outcomes = Vec<(String, TestResponse)>;

fn pod(name: &str, resources: &[Value], init: Value) -> Value {
    let containers: Vec<Value> = resources
        .iter()
        .enumerate()
        .map(|(index, resources)| {
            json!({"name": format!("c{index}"), "image": "x", "resources": resources})
        })
        .collect();
    let mut spec = json!({"containers": containers, "serviceAccountName": "default",
        "automountServiceAccountToken": false});
    if !init.is_null() {
        spec["initContainers"] = json!([{"name": "first", "image": "x", "resources": init}]);
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

fn claim(name: &str, storage: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": storage}}}})
}

#[expect(clippy::too_many_lines, reason = "a table of what is asked for")]
pub async fn run(side: &Side) -> Outcomes {
    let namespace = json!({"metadata": {"name": "limited"}});
    side.make("POST", "/api/v1/namespaces", namespace).await;
    side.send(
        "POST",
        &format!("{NAMESPACE}/serviceaccounts"),
        json!({"metadata": {"name": "default"}}),
    )
    .await;
    let ranges = [
        (
            "containers",
            json!([{
                "type": "Container", "default": {"cpu": "500m", "memory": "64Mi"},
                "defaultRequest": {"cpu": "250m"}, "min": {"memory": "32Mi"}, "max": {"cpu": "1"},
                "maxLimitRequestRatio": {"cpu": "4"},
            }]),
        ),
        (
            "whole",
            json!([
                {"type": "Pod", "max": {"memory": "1Gi"}},
                {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "5Gi"}},
            ]),
        ),
    ];
    for (name, limits) in ranges {
        let range = json!({"metadata": {"name": name}, "spec": {"limits": limits}});
        side.make("POST", &format!("{NAMESPACE}/limitranges"), range).await;
    }
    // The real server observes limits asynchronously.
    super::wait::until("the limits hold", async || {
        let path = format!("{NAMESPACE}/persistentvolumeclaims?dryRun=All");
        side.send("POST", &path, claim("probe", "9Gi")).await.code == 403
    })
    .await;
    let none = json!({});
    let of = |requests: Value, limits: Value| json!({"requests": requests, "limits": limits});
    let pods = [
        pod("preset", std::slice::from_ref(&none), none.clone()),
        pod("own", &[of(json!({"cpu": "300m"}), json!({"cpu": "600m"}))], Value::Null),
        pod("above", &[of(json!({}), json!({"cpu": "2"}))], Value::Null),
        pod("below", &[of(json!({"memory": "8Mi"}), json!({"memory": "16Mi"}))], Value::Null),
        pod("ratio", &[of(json!({"cpu": "100m"}), json!({"cpu": "900m"}))], Value::Null),
        pod(
            "several",
            &[of(json!({"cpu": "1m", "memory": "1Mi"}), json!({"cpu": "3"})), none.clone()],
            of(json!({"memory": "2Mi"}), none.clone()),
        ),
        pod(
            "together",
            &[of(json!({}), json!({"memory": "600Mi"})), of(json!({}), json!({"memory": "600Mi"}))],
            Value::Null,
        ),
    ];
    let mut outcomes = Vec::new();
    for body in pods {
        let name = body["metadata"]["name"].as_str().unwrap().to_owned();
        let mut response = side.send("POST", &format!("{NAMESPACE}/pods"), body).await;
        if response.code < 300 {
            let containers = ["initContainers", "containers"].map(|field| {
                let all = response.body["spec"][field].as_array().cloned().unwrap_or_default();
                all.iter().map(|one| one["resources"].clone()).collect::<Vec<_>>()
            });
            response.body = json!({
                "resources": containers, "qos": response.body["status"]["qosClass"],
                "annotations": response.body["metadata"]["annotations"],
            });
        }
        outcomes.push((name, response));
    }
    for (name, storage) in [("small", "1Mi"), ("large", "6Gi"), ("right", "2Gi")] {
        let path = format!("{NAMESPACE}/persistentvolumeclaims");
        let mut response = side.send("POST", &path, claim(name, storage)).await;
        if response.code < 300 {
            response.body = response.body["spec"]["resources"].clone();
        }
        outcomes.push((format!("claim {name}"), response));
    }
    // Limits do not apply to status, and existing objects may be changed in other ways.
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let mut response = side.send("PATCH", &format!("{NAMESPACE}/pods/preset"), label).await;
    response.body = response.body["metadata"]["labels"].clone();
    outcomes.push(("labelled".to_owned(), response));
    outcomes
}

/// The expected results, independent of the other server.
pub fn check(outcomes: &Outcomes) {
    let codes: Vec<(&str, u16)> =
        outcomes.iter().map(|(case, response)| (case.as_str(), response.code)).collect();
    let expected_codes = [
        ("preset", 201),
        ("own", 201),
        ("above", 403),
        ("below", 403),
        ("ratio", 403),
        ("several", 403),
        ("together", 403),
        ("claim small", 403),
        ("claim large", 403),
        ("claim right", 201),
        ("labelled", 200),
    ];
    assert_eq!(codes, expected_codes, "{outcomes:#?}");
    let preset = &outcomes[0].1.body;
    let limits = json!({"cpu": "500m", "memory": "64Mi"});
    assert_eq!(preset["resources"][1][0]["limits"], limits);
    assert_eq!(preset["resources"][1][0]["requests"]["cpu"], "250m");
    assert_eq!(
        outcomes[2].1.message(),
        "pods \"above\" is forbidden: maximum cpu usage per Container is 1, but limit is 2"
    );
}
