//! The node enforces NetworkPolicies: the controller of kube-router, with iptables and ipset.

use std::process::Command;

use super::{NODE, RealNode};
use crate::cluster::SERVICE_RANGE;
use crate::command::run;
use crate::process::flag;
use crate::{Error, Program, kubeconfig};

const USER: &str = "kube-router";
const GROUP: &str = "system:masters";
/// Without it, packets between pods on one bridge pass no rules. A setting of the node's network
/// namespace alone.
const FILTER_BRIDGES: &str = "echo 1 > /proc/sys/net/bridge/bridge-nf-call-iptables";
/// A chain that the program makes when it begins.
const CHAIN: &str = "KUBE-ROUTER-FORWARD";

impl RealNode {
    /// Starts a program that enforces NetworkPolicies until the power is cut, and waits until it
    /// begins to. Does nothing when the node is off. Its log is that of [`Program::KubeRouter`].
    ///
    /// # Errors
    /// Like [`RealNode::start`]; also when the kernel cannot filter the packets of bridges.
    pub fn enforce_policies(&mut self) -> Result<(), Error> {
        let files = self.cluster.files();
        let client = files.authority().client(USER, &[GROUP])?;
        let text = kubeconfig::render(self.cluster.server_url(), files.ca_pem(), USER, &client);
        let kubeconfig = files.write_secret("kube-router.kubeconfig", &text)?;
        let mut router = self.program(Program::KubeRouter)?;
        router.args([
            flag("kubeconfig", kubeconfig),
            flag("hostname-override", NODE),
            flag("service-cluster-ip-range", SERVICE_RANGE),
        ]);
        let mut filter = Command::new("sh");
        filter.args(["-c", FILTER_BRIDGES]);
        let mut list = self.with_packages(Command::new("iptables"))?;
        list.args(["-S", CHAIN]);
        let Some(machine) = &mut self.machine else { return Ok(()) };
        run(&mut machine.command(&filter))?;
        machine.run(Program::KubeRouter.name(), &router)?;
        Self::await_working(machine, Program::KubeRouter, |machine| {
            run(&mut machine.command(&list)).map(drop).map_err(|error| error.to_string())
        })
    }
}
