//! The cluster has metrics: metrics-server, which reads them from the kubelet.

use std::fs;

use serde_json::json;

use super::RealNode;
use crate::command::run;
use crate::process::flag;
use crate::{Error, Program, kubeconfig};

const USER: &str = "metrics-server";
const GROUP: &str = "system:masters";
const PORT: u16 = 4443;
/// The shortest one that it takes. A pod has metrics after two of them.
const RESOLUTION: &str = "10s";
const GROUP_VERSION: (&str, &str) = ("metrics.k8s.io", "v1beta1");

impl RealNode {
    /// Serves `metrics.k8s.io` until the power is cut, and waits until the node has metrics. Does
    /// nothing when the node is off. Its log is that of [`Program::MetricsServer`].
    ///
    /// # Errors
    /// Like [`RealNode::start`].
    pub fn serve_metrics(&mut self) -> Result<(), Error> {
        let files = self.cluster.files();
        let client = files.authority().client(USER, &[GROUP])?;
        let text = kubeconfig::render(self.cluster.server_url(), files.ca_pem(), USER, &client);
        let kubeconfig = files.write_secret("metrics-server.kubeconfig", &text)?;
        let mut server = self.program(Program::MetricsServer)?;
        server.args([
            flag("kubeconfig", &kubeconfig),
            flag("authentication-kubeconfig", &kubeconfig),
            flag("authorization-kubeconfig", &kubeconfig),
            flag("bind-address", self.address().to_string()),
            flag("secure-port", PORT.to_string()),
            flag("cert-dir", files.path("metrics-server")),
            flag("kubelet-certificate-authority", files.path("pki/ca.pem")),
            flag("kubelet-preferred-address-types", "InternalIP"),
            flag("metric-resolution", RESOLUTION),
            // It has to be shorter.
            flag("kubelet-request-timeout", "5s"),
        ]);
        let objects = self.settings("metrics.json");
        fs::write(&objects, self.metrics_objects()).map_err(Error::file("write", &objects))?;
        run(self.cluster.kubectl()?.arg("apply").arg("-f").arg(&objects))?;
        let mut read = self.cluster.kubectl()?;
        let (group, version) = GROUP_VERSION;
        read.args(["get", "--raw", &format!("/apis/{group}/{version}/nodes/{}", super::NODE)]);
        let Some(machine) = &mut self.machine else { return Ok(()) };
        machine.run(Program::MetricsServer.name(), &server)?;
        Self::await_working(machine, Program::MetricsServer, |_| {
            run(&mut read).map(drop).map_err(|error| error.to_string())
        })
    }

    /// What leads the API server to it. No DNS server is needed: the name is an address.
    fn metrics_objects(&self) -> String {
        let (group, version) = GROUP_VERSION;
        let (namespace, name) = ("kube-system", Program::MetricsServer.name());
        let service = json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"namespace": namespace, "name": name},
            "spec": {"type": "ExternalName", "externalName": self.address().to_string()},
        });
        let api = json!({
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": format!("{version}.{group}")},
            "spec": {
                "group": group,
                "version": version,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "insecureSkipTLSVerify": true,
                "service": {"namespace": namespace, "name": name, "port": PORT},
            },
        });
        json!({"apiVersion": "v1", "kind": "List", "items": [service, api]}).to_string()
    }
}
