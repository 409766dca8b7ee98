//! What a cluster has that traffic from outside of a project must reach: nodes, ports of pods on
//! their node, and Services on the nodes' addresses. Projections keep only that.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use controller::Projection;
use k8s_openapi::api::core::v1::{Node, Pod, Service, ServicePort};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// The addresses of a node whose users are the node itself. Kinds as in `status.addresses`.
const NODE_ADDRESSES: [&str; 2] = ["InternalIP", "ExternalIP"];
/// Annotations in which networks say under which address a node reaches pods.
const TUNNEL_ADDRESSES: [&str; 6] = [
    "projectcalico.org/IPv4IPIPTunnelAddr",
    "projectcalico.org/IPv4VXLANTunnelAddr",
    "projectcalico.org/IPv6VXLANTunnelAddr",
    "network.cilium.io/ipv4-cilium-host",
    "network.cilium.io/ipv6-cilium-host",
    "flannel.alpha.coreos.com/public-ip",
];
/// Labels by which controllers tell apart the pods of one set.
const OF_ONE_POD: [&str; 5] = [
    "pod-template-hash",
    "controller-revision-hash",
    "pod-template-generation",
    "statefulset.kubernetes.io/pod-name",
    "apps.kubernetes.io/pod-index",
];

/// The number of a port, or its name in the pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Port {
    Number(u16),
    Name(String),
}

impl Port {
    fn of(port: &IntOrString) -> Option<Self> {
        match port {
            IntOrString::Int(number) => u16::try_from(*number).ok().map(Self::Number),
            IntOrString::String(name) => Some(Self::Name(name.clone())),
        }
    }

    /// As Kubernetes has it.
    pub fn to_kube(&self) -> IntOrString {
        match self {
            Self::Number(number) => IntOrString::Int((*number).into()),
            Self::Name(name) => IntOrString::String(name.clone()),
        }
    }
}

/// A port of a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OpenPort {
    pub port: Port,
    /// TCP, UDP or SCTP.
    pub protocol: String,
}

/// Ports of the pods with these labels. The default is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenPorts {
    pub pods: BTreeMap<String, String>,
    pub ports: BTreeSet<OpenPort>,
}

/// Caches of a node its own addresses.
pub(crate) struct NodeAddresses;

impl Projection for NodeAddresses {
    type Object = Node;
    type Projected = BTreeSet<IpAddr>;
    fn project(node: Node) -> BTreeSet<IpAddr> {
        let status = node.status.unwrap_or_default();
        let own = status.addresses.unwrap_or_default();
        let own = own.into_iter().filter(|it| NODE_ADDRESSES.contains(&it.type_.as_str()));
        let own = own.filter_map(|it| it.address.parse().ok());
        let annotations = node.metadata.annotations.unwrap_or_default();
        let tunnels = TUNNEL_ADDRESSES.iter().filter_map(|key| annotations.get(*key)?.parse().ok());
        let spec = node.spec.unwrap_or_default();
        let ranges = spec.pod_cidrs.unwrap_or_default().into_iter().chain(spec.pod_cidr);
        let gateways = ranges.flat_map(|range| gateways(&range));
        own.chain(tunnels).chain(gateways).collect()
    }
}

/// The two first addresses of the range of a node's pods: those of its tunnel and its bridge.
fn gateways(range: &str) -> Vec<IpAddr> {
    let Some(first) = range.split_once('/').and_then(|(first, _)| first.parse().ok()) else {
        return Vec::new();
    };
    let second = match first {
        IpAddr::V4(address) => u32::from(address).checked_add(1).map(|it| IpAddr::V4(it.into())),
        IpAddr::V6(address) => u128::from(address).checked_add(1).map(|it| IpAddr::V6(it.into())),
    };
    [Some(first), second].into_iter().flatten().collect()
}

/// Caches of a pod the ports that its node forwards to it. None of a pod in the network of its
/// node, to which policies do not apply.
pub(crate) struct HostPorts;

impl Projection for HostPorts {
    type Object = Pod;
    type Projected = OpenPorts;
    fn project(pod: Pod) -> OpenPorts {
        let Some(spec) = pod.spec.filter(|spec| spec.host_network != Some(true)) else {
            return OpenPorts::default();
        };
        let containers =
            spec.containers.into_iter().chain(spec.init_containers.unwrap_or_default());
        let ports = containers.flat_map(|container| container.ports.unwrap_or_default());
        let ports = ports.filter(|port| port.host_port.is_some_and(|port| port > 0));
        let ports: BTreeSet<OpenPort> = ports
            .filter_map(|port| {
                let number = u16::try_from(port.container_port).ok()?;
                let protocol = port.protocol.unwrap_or_else(|| "TCP".to_owned());
                Some(OpenPort { port: Port::Number(number), protocol })
            })
            .collect();
        if ports.is_empty() {
            return OpenPorts::default();
        }
        let mut pods = pod.metadata.labels.unwrap_or_default();
        pods.retain(|key, _| !OF_ONE_POD.contains(&key.as_str()));
        OpenPorts { pods, ports }
    }
}

/// Caches of a Service on the nodes' addresses what it leads to; of others, nothing.
pub(crate) struct NodePorts;

impl Projection for NodePorts {
    type Object = Service;
    type Projected = OpenPorts;
    fn project(service: Service) -> OpenPorts {
        let Some(spec) = service.spec else { return OpenPorts::default() };
        if !matches!(spec.type_.as_deref(), Some("NodePort" | "LoadBalancer")) {
            return OpenPorts::default();
        }
        let ports = spec.ports.unwrap_or_default();
        OpenPorts {
            pods: spec.selector.unwrap_or_default(),
            ports: ports.iter().filter_map(target).collect(),
        }
    }
}

fn target(port: &ServicePort) -> Option<OpenPort> {
    let number = || u16::try_from(port.port).ok().map(Port::Number);
    let target = port.target_port.as_ref().map_or_else(number, Port::of);
    let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".to_owned());
    target.map(|port| OpenPort { port, protocol })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read<K: controller::ensure::Object>(object: Value) -> K {
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_node_has_the_addresses_that_its_own_traffic_comes_from() {
        let node = json!({
            "metadata": {"annotations": {"projectcalico.org/IPv4IPIPTunnelAddr": "10.1.0.7"}},
            "spec": {"podCIDR": "10.42.3.0/24", "podCIDRs": ["10.42.3.0/24", "fd00:3::/64"]},
            "status": {"addresses": [
                {"type": "InternalIP", "address": "192.168.0.3"},
                {"type": "Hostname", "address": "three"}]},
        });
        let found = NodeAddresses::project(read(node));
        let found: Vec<String> = found.iter().map(IpAddr::to_string).collect();
        let expected =
            ["10.1.0.7", "10.42.3.0", "10.42.3.1", "192.168.0.3", "fd00:3::", "fd00:3::1"];
        assert_eq!(found, expected);
    }

    #[test]
    fn only_pods_with_a_port_of_their_node_are_open() {
        let pod = |host_network: bool, host_port: Value| {
            let ports = json!([{"containerPort": 80, "hostPort": host_port}]);
            HostPorts::project(read(json!({
                "metadata": {"labels": {"app": "web", "pod-template-hash": "x"}},
                "spec": {"hostNetwork": host_network,
                    "containers": [{"name": "a", "ports": ports}]},
            })))
        };
        let open = pod(false, json!(8080));
        assert_eq!(open.pods, BTreeMap::from([("app".to_owned(), "web".to_owned())]));
        assert_eq!(open.ports.first().unwrap().port, Port::Number(80));
        assert_eq!(pod(true, json!(80)), OpenPorts::default());
        assert_eq!(pod(false, Value::Null), OpenPorts::default());
    }

    #[test]
    fn a_service_on_the_nodes_is_open_at_its_target() {
        let service = |kind: &str, target: Value| {
            let ports = json!([{"port": 80, "targetPort": target}]);
            NodePorts::project(read(json!({
                "spec": {"type": kind, "selector": {"app": "web"}, "ports": ports}})))
        };
        let port = |open: OpenPorts| open.ports.first().map(|open| open.port.clone());
        assert_eq!(port(service("NodePort", json!(8080))), Some(Port::Number(8080)));
        assert_eq!(port(service("NodePort", Value::Null)), Some(Port::Number(80)));
        let named = service("LoadBalancer", json!("http"));
        assert_eq!(port(named), Some(Port::Name("http".to_owned())));
        assert_eq!(service("ClusterIP", json!(8080)), OpenPorts::default());
    }
}
