//! The NetworkPolicies of a namespace. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use api_management::keys;
use k8s_openapi::api::networking::v1::{
    IPBlock, NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort,
    NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::ObjectMeta;
use sha2::{Digest, Sha256};

use super::observed::{OpenPort, OpenPorts};

const OF_PROJECT: &str = "drover-project";
const OF_NODES: &str = "drover-nodes";
const OF_HOST_PORTS: &str = "drover-host-ports-";
const OF_SERVICE: &str = "drover-service-";
/// Characters of a digest in a name.
const DIGEST_LENGTH: usize = 10;

fn policy(
    namespace: &str,
    name: String,
    pods: BTreeMap<String, String>,
    rule: NetworkPolicyIngressRule,
) -> NetworkPolicy {
    let owned = (keys::DOWNSTREAM_OWNED.to_owned(), keys::OWNED_PROJECT_ISOLATION.to_owned());
    NetworkPolicy {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(namespace.to_owned()),
            labels: Some([owned].into()),
            ..ObjectMeta::default()
        },
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(LabelSelector {
                match_labels: Some(pods).filter(|labels| !labels.is_empty()),
                match_expressions: None,
            }),
            ingress: Some(vec![rule]),
            egress: None,
            policy_types: Some(vec!["Ingress".to_owned()]),
        }),
    }
}

/// Whether the policy is the one that closes a namespace; the others open parts of it.
pub(crate) fn closes(policy: &NetworkPolicy) -> bool {
    policy.metadata.name.as_deref() == Some(OF_PROJECT)
}

/// Closes a namespace to all but the namespaces of its project and of the system's.
pub(crate) fn of_project(namespace: &str, project: &str, system: Option<&str>) -> NetworkPolicy {
    let projects: BTreeSet<&str> = [Some(project), system].into_iter().flatten().collect();
    let peer = |project: &str| NetworkPolicyPeer {
        namespace_selector: Some(LabelSelector {
            match_labels: Some([(keys::PROJECT_ID.to_owned(), project.to_owned())].into()),
            match_expressions: None,
        }),
        ..NetworkPolicyPeer::default()
    };
    let from = Some(projects.into_iter().map(peer).collect());
    let rule = NetworkPolicyIngressRule { from, ports: None };
    policy(namespace, OF_PROJECT.to_owned(), BTreeMap::new(), rule)
}

/// Opens a namespace to the nodes: probes of kubelets, and pods in the network of their node.
/// `None` without addresses, since a rule without peers would open it to all.
pub(crate) fn of_nodes(namespace: &str, nodes: &BTreeSet<IpAddr>) -> Option<NetworkPolicy> {
    let peer = |address: &IpAddr| {
        let length = if address.is_ipv4() { 32 } else { 128 };
        NetworkPolicyPeer {
            ip_block: Some(IPBlock { cidr: format!("{address}/{length}"), except: None }),
            ..NetworkPolicyPeer::default()
        }
    };
    let from: Vec<NetworkPolicyPeer> = nodes.iter().map(peer).collect();
    let rule = NetworkPolicyIngressRule { from: Some(from), ports: None };
    let is_any = !nodes.is_empty();
    is_any.then(|| policy(namespace, OF_NODES.to_owned(), BTreeMap::new(), rule))
}

/// Opens the ports of pods that a node forwards to them from its own address. Pods of one set have
/// one policy.
pub(crate) fn of_host_ports(namespace: &str, pods: &OpenPorts) -> Option<NetworkPolicy> {
    // Without labels, only all pods of the namespace could be named.
    if pods.pods.is_empty() || pods.ports.is_empty() {
        return None;
    }
    let text: Vec<String> = pods.pods.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let digest = Sha256::digest(text.join(",").as_bytes());
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let name = format!("{OF_HOST_PORTS}{}", &digest[..DIGEST_LENGTH]);
    Some(policy(namespace, name, pods.pods.clone(), to_ports(&pods.ports)))
}

/// Opens what a Service on the nodes' addresses leads to.
pub(crate) fn of_service(
    namespace: &str,
    service: &str,
    pods: &OpenPorts,
) -> Option<NetworkPolicy> {
    if pods.pods.is_empty() || pods.ports.is_empty() {
        return None;
    }
    let name = format!("{OF_SERVICE}{service}");
    Some(policy(namespace, name, pods.pods.clone(), to_ports(&pods.ports)))
}

/// From anywhere.
fn to_ports(ports: &BTreeSet<OpenPort>) -> NetworkPolicyIngressRule {
    let port = |open: &OpenPort| NetworkPolicyPort {
        port: Some(open.port.to_kube()),
        protocol: Some(open.protocol.clone()),
        end_port: None,
    };
    NetworkPolicyIngressRule { from: None, ports: Some(ports.iter().map(port).collect()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::observed::Port;
    use super::*;

    fn spec(policy: &NetworkPolicy) -> serde_json::Value {
        serde_json::to_value(policy.spec.as_ref().unwrap()).unwrap()
    }

    fn ports(labels: &[(&str, &str)], ports: &[u16]) -> OpenPorts {
        let open = |port: &u16| OpenPort { port: Port::Number(*port), protocol: "TCP".to_owned() };
        OpenPorts {
            pods: labels.iter().map(|(key, it)| ((*key).to_owned(), (*it).to_owned())).collect(),
            ports: ports.iter().map(open).collect(),
        }
    }

    #[test]
    fn a_namespace_is_open_to_its_project_and_the_systems() {
        let label = |project: &str| json!({"namespaceSelector": {"matchLabels": {"field.cattle.io/projectId": project}}});
        let expected = json!({
            "podSelector": {}, "policyTypes": ["Ingress"],
            "ingress": [{"from": [label("p-shop"), label("p-system")]}],
        });
        assert_eq!(spec(&of_project("web", "p-shop", Some("p-system"))), expected);
        let alone = spec(&of_project("web", "p-shop", None));
        assert_eq!(alone["ingress"][0]["from"], json!([label("p-shop")]));
    }

    #[test]
    fn no_rule_is_without_peers_or_without_pods_and_ports() {
        assert_eq!(of_nodes("web", &BTreeSet::new()), None);
        assert_eq!(of_host_ports("web", &ports(&[], &[80])), None);
        assert_eq!(of_service("web", "s", &ports(&[("app", "web")], &[])), None);
        let nodes = ["10.0.0.1", "fd00::1"].map(|it| it.parse().unwrap());
        let open = spec(&of_nodes("web", &nodes.into()).unwrap());
        let blocks =
            json!([{"ipBlock": {"cidr": "10.0.0.1/32"}}, {"ipBlock": {"cidr": "fd00::1/128"}}]);
        assert_eq!(open["ingress"][0]["from"], blocks);
    }

    #[test]
    fn ports_are_open_to_all_and_pods_alike_share_a_policy() {
        let open = of_host_ports("web", &ports(&[("app", "web")], &[80, 443])).unwrap();
        let expected = json!([{"ports": [
            {"port": 80, "protocol": "TCP"}, {"port": 443, "protocol": "TCP"}]}]);
        assert_eq!(spec(&open)["ingress"], expected);
        assert_eq!(spec(&open)["podSelector"], json!({"matchLabels": {"app": "web"}}));
        let again = of_host_ports("web", &ports(&[("app", "web")], &[80])).unwrap();
        assert_eq!(open.metadata.name, again.metadata.name);
    }
}
