//! What the controllers want, as pure functions; with a server: `test-kit`.

use std::collections::BTreeSet;

use api_management::cluster::{AgentIdentity, REMOVAL_WAIT_MAX};
use api_management::condition::find;
use api_management::state::{CLUSTER_NEEDS, of_cluster};
use api_management::{Cluster, ClusterRegistrationToken, ClusterSpec, Condition};
use controller::{Projection, StatusPatch};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node as KubeNode, Pod};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::cluster::health::{self, Observed};
use crate::cluster::lifecycle;
use crate::cluster::removal::{Patience, patience, unreachable_message};
use crate::cluster_registration_token::import::parse;
use crate::cluster_registration_token::management;
use crate::cluster_registration_token::manifest::{Import, ca_checksum, image_of, render};
use crate::connections::Obstacle;
use crate::node::desired;
use crate::node::usage::{PodUse, Taken};

fn cluster(name: &str) -> Cluster {
    let mut cluster = Cluster::default();
    cluster.metadata.name = Some(name.to_owned());
    cluster
}

fn enrolled() -> Cluster {
    enrolled_or_not(true)
}

fn enrolled_or_not(enrolled: bool) -> Cluster {
    let mut cluster = cluster("c-abcde");
    cluster.status.agent_identity = enrolled.then(AgentIdentity::default);
    cluster
}

fn apply(status: &mut Value, patch: &StatusPatch) {
    fn merge(onto: &mut Value, patch: &Value) {
        let Value::Object(patch) = patch else {
            *onto = patch.clone();
            return;
        };
        if !onto.is_object() {
            *onto = json!({});
        }
        for (field, value) in patch {
            if value.is_null() {
                onto.as_object_mut().unwrap().remove(field);
            } else {
                merge(&mut onto[field], value);
            }
        }
    }
    if let Some(difference) = patch.difference(status, "2020-01-01T00:00:00Z") {
        merge(status, &difference);
    }
}

fn conditions(status: &Value) -> Vec<Condition> {
    serde_json::from_value(status["conditions"].clone()).unwrap_or_default()
}

fn observed(api: Option<Result<(), String>>) -> Observed {
    Observed {
        local: false,
        enrolled: true,
        seen_before: false,
        api,
        has_agent: true,
        is_anothers: false,
        obstacle: None,
    }
}

fn spec() -> impl Strategy<Value = ClusterSpec> {
    ("[a-z]{0,5}", "[a-z ]{0,5}", any::<Option<bool>>(), any::<Option<u8>>()).prop_map(
        |(display_name, description, policy, option)| {
            let config = option.map(|size| json!({"nodes": {"size": size}}));
            let spec = json!({"displayName": display_name, "description": description,
                "enableNetworkPolicy": policy, "genericEngineConfig": config});
            serde_json::from_value(spec).unwrap()
        },
    )
}

proptest! {
    #[test]
    fn the_applied_spec_follows_the_spec_whatever_it_was_before(
        specs in proptest::collection::vec(spec(), 1..5),
    ) {
        let mut status = json!({});
        let mut cluster = cluster("c-abcde");
        for spec in specs {
            cluster.spec = spec;
            apply(&mut status, &lifecycle::desired(&cluster));
            prop_assert_eq!(&status["appliedSpec"], &serde_json::to_value(&cluster.spec).unwrap());
        }
    }
}

#[test]
fn an_imported_cluster_goes_from_pending_over_waiting_to_active_and_back() {
    let mut status = json!({});
    let state = |status: &Value| of_cluster(&conditions(status), false).state;
    let away = Observed { enrolled: false, ..observed(None) };
    apply(&mut status, &lifecycle::desired(&cluster("c-abcde")));
    apply(&mut status, &health::desired(&away));
    assert_eq!(state(&status), "pending");
    apply(&mut status, &lifecycle::desired(&enrolled()));
    for kind in ["DefaultProjectCreated", "SystemProjectCreated"] {
        let list = status["conditions"].as_array_mut().unwrap();
        list.push(json!({"type": kind, "status": "True"}));
    }
    assert_eq!(state(&status), "waiting");
    apply(&mut status, &health::desired(&observed(Some(Ok(())))));
    assert_eq!(state(&status), "active");
    let lost = Observed { seen_before: true, ..observed(None) };
    apply(&mut status, &health::desired(&lost));
    assert_eq!(state(&status), "unavailable");
    let ill = Observed { seen_before: true, ..observed(Some(Err("etcd".to_owned()))) };
    apply(&mut status, &health::desired(&ill));
    let summary = of_cluster(&conditions(&status), false);
    assert_eq!((summary.state.as_str(), summary.transitioning), ("unavailable", "error"));
    assert!(summary.message.contains("etcd"));
}

#[test]
fn the_message_of_a_cluster_that_cannot_be_reached_says_why_if_somebody_said_so() {
    let refused = || Some(Obstacle::new("AgentRefused", "an agent was refused"));
    for (enrolled, seen_before) in [(false, false), (true, false), (true, true)] {
        let mut status = json!({});
        let mut held = vec!["DefaultProjectCreated", "SystemProjectCreated"];
        if seen_before {
            held.extend(["Waiting", "AgentDeployed"]);
        }
        apply(&mut status, &lifecycle::desired(&enrolled_or_not(enrolled)));
        let list = status["conditions"].as_array_mut().unwrap();
        list.extend(held.iter().map(|kind| json!({"type": kind, "status": "True"})));
        let obstructed = Observed { enrolled, seen_before, obstacle: refused(), ..observed(None) };
        apply(&mut status, &health::desired(&obstructed));
        let summary = of_cluster(&conditions(&status), false);
        let connected = find(&conditions(&status), "Connected").cloned().unwrap();
        assert_eq!(connected.message, "an agent was refused");
        assert_eq!(connected.reason, "AgentRefused");
        if enrolled {
            assert_eq!(summary.message, "an agent was refused", "{status}");
        }
        let well = Observed { enrolled: true, seen_before, ..observed(Some(Ok(()))) };
        apply(&mut status, &health::desired(&well));
        let connected = find(&conditions(&status), "Connected").cloned().unwrap();
        assert_eq!((connected.status.as_str(), connected.message.as_str()), ("True", ""));
    }
}

#[test]
fn the_controllers_together_write_every_condition_that_a_cluster_needs() {
    let mut status = json!({});
    apply(&mut status, &lifecycle::desired(&enrolled()));
    apply(&mut status, &health::desired(&observed(Some(Ok(())))));
    let mut written: BTreeSet<String> =
        conditions(&status).into_iter().map(|condition| condition.kind).collect();
    // By the projects feature.
    written.insert("DefaultProjectCreated".to_owned());
    written.insert("SystemProjectCreated".to_owned());
    for (need, _) in CLUSTER_NEEDS {
        assert!(written.contains(*need), "nobody writes {need}");
    }
}

fn commands(token: &ClusterRegistrationToken, url: &str, ca: &str) -> Value {
    let observed = management::Observed {
        server_url: url,
        ca_certs: ca,
        image: "img",
        new_secret: "fresh",
        now: Timestamp::UNIX_EPOCH,
    };
    let mut status = serde_json::to_value(&token.status).unwrap();
    apply(&mut status, &management::desired(token, &observed));
    status
}

#[test]
fn a_token_gets_a_secret_once_an_end_and_commands_that_follow_the_server_url() {
    let mut token = ClusterRegistrationToken::default();
    token.spec.cluster_name = "c-abcde".to_owned();
    let status = commands(&token, "https://a.example", "PEM");
    assert_eq!(status["token"], "fresh");
    assert_eq!(status["expiresAt"], "1970-01-02T00:00:00Z");
    let url = "https://a.example/v3/import/fresh_c-abcde.yaml";
    assert_eq!(status["manifestUrl"], url);
    assert_eq!(status["command"], format!("kubectl apply -f {url}"));
    let insecure = format!("curl --insecure -sfL {url} | kubectl apply -f -");
    assert_eq!(status["insecureCommand"], insecure);
    assert!(status["nodeCommand"].as_str().unwrap().contains("--ca-checksum"));

    token.status = serde_json::from_value(status).unwrap();
    token.status.token = "kept".to_owned();
    let status = commands(&token, "https://b.example", "");
    assert_eq!(status["token"], "kept");
    assert_eq!(status["manifestUrl"], "https://b.example/v3/import/kept_c-abcde.yaml");
    assert!(!status["nodeCommand"].as_str().unwrap().contains("--ca-checksum"));
    assert!(commands(&ClusterRegistrationToken::default(), "", "")["command"].is_null());
}

fn documents(ca: &str) -> Vec<Value> {
    let text = render(&Import {
        cluster: "c-abcde",
        server_url: "https://a.example",
        ca_certs: ca,
        token: "s3cr3t",
        image: "registry.example/agent:1",
        env: &[json!({"name": "HTTPS_PROXY", "value": "http://proxy"})],
    });
    let parts = text.split("---\n").filter(|part| !part.is_empty());
    parts.map(|part| serde_saphyr::from_str(part).unwrap()).collect()
}

#[test]
fn everything_in_the_manifest_is_labelled_and_in_our_namespace_or_named_for_it() {
    let documents = documents("PEM");
    assert_eq!(documents[0]["kind"], "Namespace");
    for document in &documents {
        let metadata = &document["metadata"];
        assert_eq!(metadata["labels"]["drover.io/owned"], "agent", "{document}");
        let wide = ["Namespace", "ClusterRole", "ClusterRoleBinding"];
        if !wide.contains(&document["kind"].as_str().unwrap()) {
            assert_eq!(metadata["namespace"], "cattle-system", "{document}");
        }
    }
}

#[test]
fn the_agents_deployment_names_server_checksum_image_and_the_credentials() {
    let documents = documents("PEM");
    let of = |kind: &str| documents.iter().find(|document| document["kind"] == kind).unwrap();
    let (deployment, secret) = (of("Deployment"), of("Secret"));
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    assert_eq!(container["image"], "registry.example/agent:1");
    let env = |name: &str| {
        let list = container["env"].as_array().unwrap();
        list.iter().find(|entry| entry["name"] == name).unwrap()["value"].clone()
    };
    assert_eq!(env("CATTLE_SERVER"), "https://a.example");
    assert_eq!(env("CATTLE_CA_CHECKSUM").as_str().unwrap().len(), 64);
    assert_eq!(env("HTTPS_PROXY"), "http://proxy");
    assert_eq!(pod["volumes"][0]["secret"]["secretName"], secret["metadata"]["name"]);
    assert_eq!(secret["data"]["token"], "czNjcjN0");
    assert!(!serde_json::to_string(deployment).unwrap().contains("s3cr3t"));
}

#[test]
fn the_agent_may_not_do_everything() {
    let documents = documents("");
    let role = documents.iter().find(|document| document["kind"] == "ClusterRole").unwrap();
    let impersonate = json!(["impersonate"]);
    for rule in role["rules"].as_array().unwrap().iter().filter(|r| r["verbs"] != impersonate) {
        for field in ["verbs", "resources", "apiGroups"] {
            let list = rule[field].as_array().cloned().unwrap_or_default();
            assert!(!list.contains(&json!("*")), "{rule}");
        }
    }
}

#[test]
fn the_checksum_does_not_depend_on_newlines_at_the_end() {
    assert_eq!(ca_checksum("PEM"), ca_checksum("PEM\n\n"));
    assert_eq!(ca_checksum("\n"), None);
}

#[test]
fn the_image_in_the_spec_wins_over_the_setting_and_the_registry_is_for_those_without() {
    let mut spec = ClusterSpec::default();
    assert_eq!(image_of(&spec, "agent:1", ""), "agent:1");
    assert_eq!(image_of(&spec, "agent:1", "mirror.example"), "mirror.example/agent:1");
    spec.desired_agent_image = "desired.example/agent:2".to_owned();
    assert_eq!(image_of(&spec, "agent:1", "mirror.example"), "desired.example/agent:2");
    spec.agent_image_override = "override".to_owned();
    assert_eq!(image_of(&spec, "agent:1", ""), "override");
}

#[test]
fn the_agents_pod_is_fit_for_the_restricted_level() {
    let documents = documents("PEM");
    let deployment = documents.iter().find(|document| document["kind"] == "Deployment").unwrap();
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    let container = &pod["containers"][0];
    let context = &container["securityContext"];
    assert_eq!(context["allowPrivilegeEscalation"], false);
    assert_eq!(context["capabilities"]["drop"], json!(["ALL"]));
    assert_eq!(context["readOnlyRootFilesystem"], true);
    // A side-loaded image is in no registry.
    assert_eq!(container["imagePullPolicy"], "IfNotPresent");
    // The credentials belong to root, the agent runs as somebody else.
    let mode = pod["volumes"][0]["secret"]["defaultMode"].as_i64().unwrap();
    assert_eq!(mode & 0o004, 0o004, "{mode:o}");
}

#[test]
fn the_agent_has_an_account_of_its_own_and_may_change_the_default_one_beside_it() {
    let documents = documents("PEM");
    let of = |kind: &str| documents.iter().find(|document| document["kind"] == kind).unwrap();
    let pod = &of("Deployment")["spec"]["template"]["spec"];
    let own = of("ServiceAccount");
    assert_eq!(pod["serviceAccountName"], own["metadata"]["name"]);
    assert!(own["metadata"]["name"] != "default", "{own}");
    let rules = of("Role")["rules"].as_array().unwrap();
    let rule = rules.iter().find(|rule| rule["resourceNames"] == json!(["default"])).unwrap();
    assert_eq!(
        (&rule["resources"], &rule["verbs"]),
        (&json!(["serviceaccounts"]), &json!(["patch"]))
    );
}

#[test]
fn import_paths_with_and_without_cluster_are_understood_and_others_not() {
    assert_eq!(parse("/v3/import/abc_c-1.yaml"), Some(("abc", Some("c-1"))));
    assert_eq!(parse("/v3/import/abc.yaml"), Some(("abc", None)));
    for bad in ["/v3/import/", "/v3/import/.yaml", "/v3/import/abc", "/v3/import/a/b.yaml"] {
        assert_eq!(parse(bad), None, "{bad}");
    }
}

#[test]
fn removal_waits_until_its_deadline_unless_forced() {
    let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24);
    let ago = |seconds: i64| now - SignedDuration::from_secs(seconds);
    let end = i64::try_from(REMOVAL_WAIT_MAX.as_secs()).unwrap();
    assert_eq!(patience(false, ago(1), now), Patience::Wait);
    assert_eq!(patience(true, ago(1), now), Patience::Forced);
    assert_eq!(patience(false, ago(end), now), Patience::PastDeadline);
}

#[test]
fn a_removal_that_waits_says_for_what_until_when_and_how_to_end_it() {
    let mut cluster = enrolled();
    cluster.spec.display_name = "edge".to_owned();
    let deleted_at = "2024-01-01T12:00:00Z".parse().unwrap();
    cluster.metadata.deletion_timestamp =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(deleted_at));
    let message = unreachable_message(&cluster, "its agent is not connected");
    assert_eq!(
        message,
        "cluster \"edge\" does not respond: its agent is not connected; Drover waits for it until \
         12:05:00 UTC and then ends without it; to end now: drover cluster rm edge --force \
         (annotation drover.io/force-remove=true)"
    );
    let detached = [("drover.io/detach".to_owned(), "true".to_owned())];
    cluster.metadata.annotations = Some(detached.into());
    assert!(unreachable_message(&cluster, "").contains("drover cluster detach edge --force "));
}

#[test]
fn an_entry_that_reaches_the_cluster_of_another_one_is_not_ready_and_says_why() {
    let mut status = json!({});
    let reached = Observed { is_anothers: true, ..observed(Some(Ok(()))) };
    apply(&mut status, &health::desired(&reached));
    let conditions = conditions(&status);
    let ready = find(&conditions, "Ready").unwrap();
    assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("False", "AlreadyManaged"));
}

fn pod(value: Value) -> Pod {
    serde_json::from_value(value).unwrap()
}

#[test]
fn a_pod_requests_the_larger_of_its_containers_and_its_init_steps() {
    let resources = |cpu: &str| json!({"requests": {"cpu": cpu, "memory": "1Gi"}});
    let kept = PodUse::project(pod(json!({"metadata": {"name": "a"}, "spec": {
        "nodeName": "n1",
        "overhead": {"cpu": "50m"},
        "initContainers": [{"name": "i", "resources": resources("3")}],
        "containers": [{"name": "a", "resources": resources("500m")},
            {"name": "b", "resources": resources("1")}],
    }})));
    let mut taken = Taken::default();
    taken.count(&kept);
    let requested = taken.requested();
    assert_eq!(requested["cpu"], "3050m");
    assert_eq!(requested["memory"], "2Gi");
    assert_eq!(requested["pods"], "1");
    let ended = PodUse::project(pod(json!({"metadata": {"name": "a"},
        "spec": {"nodeName": "n1", "containers": []}, "status": {"phase": "Succeeded"}})));
    assert_eq!(&*ended.node, "");
}

#[test]
fn a_heartbeat_alone_changes_nothing_and_names_are_stable() {
    let node = |heartbeat: &str, version: &str| -> KubeNode {
        let node = json!({"metadata": {"name": "n1", "labels":
            {"node-role.kubernetes.io/control-plane": ""}},
            "spec": {"podCIDR": "10.0.0.0/24"},
            "status": {"images": [{"names": ["x"]}], "capacity": {"cpu": "4"},
                "addresses": [{"type": "InternalIP", "address": "10.1.1.1"}],
                "nodeInfo": {"architecture": "", "bootID": "", "containerRuntimeVersion": "",
                    "kernelVersion": "", "kubeProxyVersion": "", "kubeletVersion": version,
                    "machineID": "", "operatingSystem": "", "osImage": "", "systemUUID": ""},
                "conditions": [{"type": "Ready", "status": "True",
                    "lastHeartbeatTime": heartbeat}]}});
        desired::ObservedNode::project(serde_json::from_value(node).unwrap())
    };
    let mut status = json!({});
    let first = node("2020-01-01T00:00:00Z", "v1");
    apply(&mut status, &desired::status(&first, &Taken::default()));
    assert_eq!(status["ipAddress"], "10.1.1.1");
    assert_eq!(status["capacity"]["cpu"], "4");
    assert_eq!(status["controlPlane"], true);
    assert_eq!(status["worker"], false);
    let later = desired::status(&node("2020-01-01T00:05:00Z", "v1"), &Taken::default());
    assert_eq!(later.difference(&status, "now"), None);
    let upgraded = desired::status(&node("2020-01-01T00:05:00Z", "v2"), &Taken::default());
    assert!(upgraded.difference(&status, "now").is_some());
    assert_eq!(desired::name("c-1", "n1"), desired::name("c-1", "n1"));
    assert_ne!(desired::name("c-1", "n1"), desired::name("c-2", "n1"));
}
