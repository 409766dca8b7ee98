//! Owners, generations and deletion of objects.

use http::Method;
use serde_json::{Value, json};

use super::{PODS, World};

#[tokio::test]
async fn an_owner_stands_once() {
    let world = World::start().await;
    let owner =
        |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": "u"});
    let map = json!({"metadata": {
        "name": "owned", "ownerReferences": [owner("o"), owner("o"), owner("p"), owner("o")],
    }});
    let path = "/api/v1/namespaces/default/configmaps";
    let (warnings, made) = world.send_with_warnings(Method::POST, path, map).await;
    let expected = "299 - \".metadata.ownerReferences contains duplicate entries; API server dedups \
                    owner references in 1.20+, and may reject such requests as early as 1.24; \
                    please fix your requests; duplicate UID(s) observed: u, u\"";
    assert_eq!(warnings, [expected]);
    let both = json!([owner("o"), owner("p")]);
    assert_eq!(made["metadata"]["ownerReferences"], both);
    let mut again = made.clone();
    again["metadata"]["ownerReferences"] = json!([owner("o"), owner("p"), owner("p")]);
    let (warnings, kept) =
        world.send_with_warnings(Method::PUT, &format!("{path}/owned"), again).await;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!(kept["metadata"]["ownerReferences"], both);
}

#[tokio::test]
async fn generations_count_the_changes_that_upstream_counts() {
    let world = World::start().await;
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let slice = json!({"metadata": {"name": "s"}, "addressType": "IPv4", "endpoints": []});
    let mut slice = world.root(Method::POST, slices, slice).await;
    let mut seen = vec![slice["metadata"]["generation"].clone()];
    for field in ["labels", "annotations"] {
        slice["metadata"][field] = json!({"a": "b"});
        slice = world.root(Method::PUT, &format!("{slices}/s"), slice).await;
        seen.push(slice["metadata"]["generation"].clone());
    }
    assert_eq!(seen, [1, 2, 2]);

    let drivers = "/apis/storage.k8s.io/v1/csidrivers";
    let mut driver = world.root(Method::POST, drivers, json!({"metadata": {"name": "d"}})).await;
    assert!(driver["metadata"].get("generation").is_none(), "{driver}");
    driver["spec"]["podInfoOnMount"] = true.into();
    let driver = world.root(Method::PUT, &format!("{drivers}/d"), driver).await;
    assert_eq!(driver["metadata"]["generation"], 1);

    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = json!({
        "metadata": {"name": "xs.e.com", "finalizers": ["a.b/c"]},
        "spec": {
            "group": "e.com", "scope": "Cluster", "names": {"plural": "xs", "kind": "X"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    });
    world.root(Method::POST, definitions, definition).await;
    let path = format!("{definitions}/xs.e.com");
    let ending = world.root(Method::DELETE, &path, Value::Null).await;
    assert!(ending["metadata"]["deletionTimestamp"].is_string(), "{ending}");
    assert_eq!(ending["metadata"]["generation"], 1);
}

#[tokio::test]
async fn a_delete_says_what_becomes_of_the_object_and_of_its_pods() {
    let world = World::start().await;
    world.pod("unbound").await;
    let path = format!("{PODS}/unbound");
    let (warnings, gone) = world.send_with_warnings(Method::DELETE, &path, Value::Null).await;
    assert!(warnings.is_empty());
    assert!(gone["metadata"]["deletionTimestamp"].is_string(), "{gone}");
    assert_eq!(gone["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(gone["metadata"]["generation"], 2);
    assert_eq!(world.send("root", Method::GET, &path, Value::Null).await.0, 404);

    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let preserved = "299 - \"child pods are preserved by default when jobs are deleted; set \
                     propagationPolicy=Background to remove them or set propagationPolicy=Orphan to \
                     suppress this warning\"";
    for (name, options, expected) in [
        ("plain", Value::Null, vec![preserved.to_owned()]),
        ("orphan", json!({"propagationPolicy": "Orphan"}), Vec::new()),
        ("background", json!({"propagationPolicy": "Background"}), Vec::new()),
    ] {
        let job = json!({
            "metadata": {"name": name},
            "spec": {"template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
            }}},
        });
        world.root(Method::POST, jobs, job).await;
        let path = format!("{jobs}/{name}");
        assert_eq!(
            world.send_with_warnings(Method::DELETE, &path, options).await.0,
            expected,
            "{name}"
        );
    }
}
