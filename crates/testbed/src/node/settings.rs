//! The configuration files of the programs on a node.
//!
//! They work on cgroup v1 and v2, without systemd, and without the right to lower OOM scores
//! (CAP_SYS_RESOURCE), which containers of tests do not have.

use std::path::Path;

use serde_json::json;

use super::network::Network;
use crate::image::PAUSE_IMAGE;
use crate::{Binaries, Error, Program};

/// The socket of containerd, inside the node's own `/run`.
pub(super) const CONTAINERD_SOCKET: &str = "/run/containerd/containerd.sock";
/// The port on which kube-proxy reports that it has set up all Services.
pub(super) const PROXY_HEALTH_PORT: u16 = 10256;

pub(super) fn containerd(binaries: &Binaries, plugins: &Path) -> Result<String, Error> {
    let network_programs = binaries.packages().join("usr/lib/cni");
    let runc = binaries.path(Program::Runc)?;
    let cri = r#"plugins."io.containerd.grpc.v1.cri""#;
    Ok(format!(
        r#"version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.internal.v1.opt",
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]
[grpc]
address = "{CONTAINERD_SOCKET}"
[{cri}]
sandbox_image = "{PAUSE_IMAGE}"
# No process may lower an OOM score here, and runc fails when it is configured to.
restrict_oom_score_adj = true
[{cri}.cni]
bin_dir = {network_programs:?}
conf_dir = {plugins:?}
[{cri}.containerd]
snapshotter = "overlayfs"
default_runtime_name = "runc"
[{cri}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[{cri}.containerd.runtimes.runc.options]
BinaryName = {runc:?}
SystemdCgroup = false
"#
    ))
}

/// Pods on one bridge, with addresses that this machine can route to.
pub(super) fn pod_network(network: &Network) -> String {
    json!({
        "cniVersion": "1.0.0",
        "name": "pods",
        "plugins": [{
            "type": "bridge",
            "bridge": "cni0",
            "isDefaultGateway": true,
            // So that a pod reaches itself through a Service.
            "hairpinMode": true,
            "ipMasq": false,
            "ipam": {"type": "host-local", "ranges": [[{"subnet": network.pod_range()}]]},
        }, {
            "type": "portmap",
            "capabilities": {"portMappings": true},
        }],
    })
    .to_string()
}

/// `pki` is the folder with the certificates, `nothing` an empty file.
pub(super) fn kubelet(cgroup: &str, pki: &Path, nothing: &Path) -> String {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": pki.join("ca.pem")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": pki.join("kubelet.pem"),
        "tlsPrivateKeyFile": pki.join("kubelet.key"),
        "containerRuntimeEndpoint": format!("unix://{CONTAINERD_SOCKET}"),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{cgroup}"),
        "failCgroupV1": false,
        "failSwapOn": false,
        "oomScoreAdj": 0,
        "resolvConf": nothing,
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        // A test machine may be full; nothing here is worth evicting a pod.
        "evictionHard": {
            "imagefs.available": "0%",
            "memory.available": "0%",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
        },
        "imageGCHighThresholdPercent": 100,
        // A node that is powered on again should be detected soon.
        "nodeStatusUpdateFrequency": "2s",
    })
    .to_string()
}

pub(super) fn proxy(network: &Network, node: &str, kubeconfig: &Path) -> String {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": kubeconfig},
        "clusterCIDR": network.pod_range(),
        "hostnameOverride": node,
        "healthzBindAddress": format!("{}:{PROXY_HEALTH_PORT}", network.address()),
        // Limits of connection tracking are settings of the whole machine.
        "conntrack": {"maxPerCore": 0, "tcpCloseWaitTimeout": "0s", "tcpEstablishedTimeout": "0s"},
    })
    .to_string()
}
