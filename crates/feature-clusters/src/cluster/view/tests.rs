//! How clusters, their nodes and registration tokens look in `/v3`.

use feature_kit::view::api_versions;
use futures::future::BoxFuture;
use rest_view::{ActionRequest, ActionResponse, ApiError, Caller, Mapper, RestView, Urls};
use serde_json::{Map, Value, json};

use super::*;

/// There are no drivers.
struct Unmapped;

impl Mapper for Unmapped {
    fn to_view(&self, _: &Value, _: &mut Map<String, Value>) {}
    fn to_stored(&self, _: &Map<String, Value>, _: &mut Value) {}
}

fn nothing(_: ActionRequest<'_>) -> BoxFuture<'_, Result<ActionResponse, ApiError>> {
    Box::pin(async { Ok(ActionResponse::Empty(http::StatusCode::OK)) })
}

fn present(kind: &str, stored: &Value) -> Value {
    let nodes = crate::node::view::view(crate::node::store::NodeStore::default(), []);
    let types = [view(nothing, Unmapped), nodes, crate::cluster_registration_token::view::view()];
    let rest = RestView::new(api_versions(), types);
    let urls = Urls::new("https://drover.example");
    let now = "2024-01-01T00:00:00Z".parse().unwrap();
    rest.present(kind, stored, &Caller::user("u-alice"), &urls, now).unwrap()
}

fn stored_cluster() -> Value {
    let needed = state::CLUSTER_NEEDS.iter();
    let conditions: Vec<Value> =
        needed.map(|(kind, _)| json!({"type": kind, "status": "True"})).collect();
    json!({
        "apiVersion": "management.cattle.io/v3",
        "kind": "Cluster",
        "metadata": {
            "name": "c-abcde", "uid": "uid-1", "resourceVersion": "12", "generation": 2,
            "creationTimestamp": "2023-01-01T00:00:00Z",
            "finalizers": ["drover.io/cluster-removal"],
            "ownerReferences": [{"kind": "Other", "name": "x", "uid": "y", "apiVersion": "v1"}],
            "labels": {"Region": "NorthAmerica", "cattle.io/creator": "norman"},
            "annotations": {"field.cattle.io/creatorId": "u-alice"},
        },
        "spec": {"displayName": "north", "dockerRootDir": "/var/lib/docker"},
        "status": {
            "conditions": conditions,
            "driver": "imported", "provider": "k3s", "nodeCount": 2,
            "appliedSpec": {"displayName": "north"},
            "version": {"gitVersion": "v1.31.0", "major": "1", "minor": "31"},
            "capacity": {"cpu": "8"},
            "agentIdentity": {"publicKey": "k"},
        },
    })
}

#[test]
fn a_cluster_shows_its_name_at_the_top_and_none_of_its_bookkeeping() {
    let shown = present("cluster", &stored_cluster());
    for gone in ["finalizers", "resourceVersion", "ownerReferences", "metadata", "agentIdentity"] {
        assert!(shown.get(gone).is_none(), "{gone} is shown");
    }
    insta::assert_json_snapshot!(shown);
}

#[test]
fn any_condition_that_does_not_hold_takes_a_cluster_out_of_active() {
    assert_eq!(present("cluster", &stored_cluster())["state"], "active");
    for index in 0..state::CLUSTER_NEEDS.len() {
        let mut cluster = stored_cluster();
        cluster["status"]["conditions"][index]["status"] = "False".into();
        assert_ne!(present("cluster", &cluster)["state"], "active", "{index}");
    }
    let mut going = stored_cluster();
    going["metadata"]["deletionTimestamp"] = "2024-01-01T00:00:00Z".into();
    assert_eq!(present("cluster", &going)["state"], "removing");
}

#[test]
fn a_cluster_says_what_can_be_done_with_it_from_here() {
    let of = |driver: &str| {
        let mut cluster = stored_cluster();
        cluster["status"]["driver"] = driver.into();
        present("cluster", &cluster)["capabilities"].clone()
    };
    let (imported, local) = (of("imported"), of("local"));
    for capabilities in [&imported, &local] {
        assert_eq!(capabilities["nodePoolScalingSupported"], false);
        assert_eq!(capabilities["pspEnabled"], false);
        // Not known, which is not the same as none.
        assert!(capabilities["loadBalancerCapabilities"].get("enabled").is_none());
    }
    assert_eq!((&imported["taintSupport"], &local["taintSupport"]), (&json!(true), &json!(false)));
    assert!(of("rancherKubernetesEngine").is_null(), "nothing is made here by a driver");
}

#[test]
fn the_management_api_itself_cannot_be_removed() {
    let mut local = stored_cluster();
    local["spec"]["internal"] = true.into();
    assert!(present("cluster", &local)["links"].get("remove").is_none());
}

#[test]
fn a_node_shows_what_the_downstream_node_says() {
    let node = json!({
        "metadata": {
            "name": "machine-x2345", "namespace": "c-abcde", "uid": "uid-2",
            "creationTimestamp": "2023-01-01T00:00:00Z", "labels": {"ours": "yes"},
        },
        "spec": {"imported": true},
        "status": {
            "nodeName": "worker-1", "hostname": "worker-1", "ipAddress": "10.0.0.1",
            "worker": true, "nodeLabels": {"zone": "a"},
            "conditions": [{"type": "Registered", "status": "True"}],
            "capacity": {"cpu": "4", "memory": "16Gi"},
            "internalNodeSpec": {"podCIDR": "10.42.0.0/24", "unschedulable": true},
            "internalNodeStatus": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "capacity": {"cpu": "4", "memory": "16Gi"},
                "nodeInfo": {
                    "kubeletVersion": "v1.31.0", "kubeProxyVersion": "v1.31.0",
                    "containerRuntimeVersion": "containerd://2.0", "kernelVersion": "6.1",
                    "osImage": "Debian",
                },
            },
        },
    });
    insta::assert_json_snapshot!(present("node", &node));
    let mut down = node.clone();
    down["status"]["internalNodeStatus"]["conditions"][0]["status"] = "False".into();
    assert_eq!(present("node", &down)["state"], "unavailable");
}

#[test]
fn a_registration_token_shows_its_commands() {
    let token = json!({
        "metadata": {
            "name": "default-token", "namespace": "c-abcde",
            "creationTimestamp": "2023-01-01T00:00:00Z",
        },
        "spec": {"clusterName": "c-abcde"},
        "status": {
            "token": "t", "command": "kubectl apply -f URL", "manifestUrl": "URL",
            "expiresAt": "2023-01-02T00:00:00Z",
        },
    });
    insta::assert_json_snapshot!(present("clusterRegistrationToken", &token));
}
