//! The flags of each component. All components listen on the one address of their location.

use std::ffi::OsString;

use super::files::Files;
use super::{NetworkLocation, Ports};
use crate::process::flag;

/// Addresses of Services. The first is the API server's.
pub(crate) const SERVICE_RANGE: &str = "10.96.0.0/16";

pub(super) fn etcd(
    files: &Files,
    ports: Ports,
    location: &NetworkLocation,
    durable: bool,
) -> Vec<OsString> {
    let client = format!("http://{}:{}", location.address, ports.etcd_client);
    let peer = format!("http://{}:{}", location.address, ports.etcd_peer);
    let mut flags = vec![
        flag("name", "testbed"),
        flag("data-dir", files.path("etcd")),
        flag("listen-client-urls", &client),
        flag("advertise-client-urls", &client),
        flag("listen-peer-urls", &peer),
        flag("initial-advertise-peer-urls", &peer),
        flag("initial-cluster", format!("testbed={peer}")),
        flag("log-level", "warn"),
        // A member without peers elects itself after this time.
        flag("heartbeat-interval", "10"),
        flag("election-timeout", "100"),
    ];
    if !durable {
        flags.push("--unsafe-no-fsync".into());
    }
    flags
}

pub(super) fn api_server(files: &Files, ports: Ports, location: &NetworkLocation) -> Vec<OsString> {
    let address = location.address.to_string();
    // The endpoints of Service `kubernetes` must not be loopback addresses.
    let reconciler = if location.address.is_loopback() { "none" } else { "lease" };
    vec![
        flag("etcd-servers", format!("http://{address}:{}", ports.etcd_client)),
        flag("bind-address", &address),
        flag("advertise-address", &address),
        flag("endpoint-reconciler-type", reconciler),
        flag("secure-port", ports.api_server.to_string()),
        flag("service-cluster-ip-range", SERVICE_RANGE),
        flag("tls-cert-file", files.path("pki/api-server.pem")),
        flag("tls-private-key-file", files.path("pki/api-server.key")),
        flag("client-ca-file", files.path("pki/ca.pem")),
        flag("authorization-mode", "Node,RBAC"),
        flag("enable-admission-plugins", "NodeRestriction"),
        flag("allow-privileged", "true"),
        flag("service-account-issuer", "https://kubernetes.default.svc.cluster.local"),
        flag("service-account-key-file", files.path("pki/tokens.pub")),
        flag("service-account-signing-key-file", files.path("pki/tokens.key")),
        flag("kubelet-client-certificate", files.path("pki/kubelet-client.pem")),
        flag("kubelet-client-key", files.path("pki/kubelet-client.key")),
        flag("kubelet-certificate-authority", files.path("pki/ca.pem")),
        // No DNS server resolves the names of nodes.
        flag("kubelet-preferred-address-types", "InternalIP"),
        flag("requestheader-client-ca-file", files.path("pki/front-proxy-ca.pem")),
        flag("requestheader-allowed-names", "front-proxy-client"),
        flag("requestheader-username-headers", "X-Remote-User"),
        flag("requestheader-group-headers", "X-Remote-Group"),
        flag("requestheader-extra-headers-prefix", "X-Remote-Extra-"),
        flag("proxy-client-cert-file", files.path("pki/front-proxy.pem")),
        flag("proxy-client-key-file", files.path("pki/front-proxy.key")),
    ]
}

pub(super) fn controller_manager(
    files: &Files,
    ports: Ports,
    location: &NetworkLocation,
) -> Vec<OsString> {
    vec![
        flag("kubeconfig", files.path("controller-manager.kubeconfig")),
        flag("bind-address", location.address.to_string()),
        flag("secure-port", ports.controller_manager.to_string()),
        flag("tls-cert-file", files.path("pki/controller-manager.pem")),
        flag("tls-private-key-file", files.path("pki/controller-manager.key")),
        flag("leader-elect", "false"),
        flag("use-service-account-credentials", "true"),
        // The start requests an identity per controller, which takes five seconds at the default
        // rate.
        flag("kube-api-qps", "200"),
        flag("kube-api-burst", "400"),
        flag("service-account-private-key-file", files.path("pki/tokens.key")),
        flag("root-ca-file", files.path("pki/ca.pem")),
        flag("cluster-signing-cert-file", files.path("pki/ca.pem")),
        flag("cluster-signing-key-file", files.path("pki/ca.key")),
    ]
}

pub(super) fn scheduler(files: &Files, ports: Ports, location: &NetworkLocation) -> Vec<OsString> {
    vec![
        flag("kubeconfig", files.path("scheduler.kubeconfig")),
        flag("bind-address", location.address.to_string()),
        flag("secure-port", ports.scheduler.to_string()),
        flag("tls-cert-file", files.path("pki/scheduler.pem")),
        flag("tls-private-key-file", files.path("pki/scheduler.key")),
        flag("leader-elect", "false"),
    ]
}
