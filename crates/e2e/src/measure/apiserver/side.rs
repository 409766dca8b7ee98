//! The two servers, and measurements of their processes.

use std::time::Instant;

use anyhow::{Context, Result};
use testbed::{Options, Program, RealCluster};

use super::super::{Row, Target, memory, processor_time, settled_memory};
use crate::{Client, Kubeconfig, Protocol, Sim};

/// Drover and its peer.
pub struct Both {
    pub drover: Side,
    pub peer: Side,
}

/// One server with all its processes.
pub struct Side {
    pub name: &'static str,
    pub client: Client,
    server: Server,
}

enum Server {
    Drover(Box<Sim>),
    Peer(Box<RealCluster>),
}

impl Both {
    /// Starts both servers, empty and ready.
    ///
    /// # Errors
    /// A server does not start.
    pub fn start() -> Result<Self> {
        let sim = Sim::start(&["--nodes", "0", "--external-controllers"])?;
        let options = Options { durable: true, ..Options::default() };
        let mut cluster = RealCluster::start_with(&options)?;
        cluster.crash(Program::KubeControllerManager);
        cluster.crash(Program::KubeScheduler);
        Ok(Self {
            drover: Side::new("Drover", Server::Drover(Box::new(sim)))?,
            peer: Side::new("kube-apiserver + etcd", Server::Peer(Box::new(cluster)))?,
        })
    }

    /// The same measurement of both, one after the other: Drover, the peer.
    pub fn each<T>(&self, what: &str, measure: impl Fn(&Side) -> Result<T>) -> Result<[T; 2]> {
        let measure = |side: &Side| {
            eprintln!("    {what}: {}", side.name);
            measure(side).with_context(|| format!("{what}: {}", side.name))
        };
        Ok([measure(&self.drover)?, measure(&self.peer)?])
    }

    /// [`Both::each`] of a number, as a row.
    pub fn ratio(
        &self,
        what: &str,
        unit: &str,
        target: Target,
        measure: impl Fn(&Side) -> Result<f64>,
    ) -> Result<Row> {
        let [drover, peer] = self.each(what, measure)?;
        Ok(Self::row(what, unit, target, drover, peer))
    }

    /// How many times better Drover is: less for memory and times, more for rates (a unit `…/s`).
    pub fn row(what: &str, unit: &str, target: Target, drover: f64, peer: f64) -> Row {
        let times = if unit.ends_with("/s") { drover / peer } else { peer / drover };
        let note = format!("{drover:.1} {unit}, kube-apiserver + etcd {peer:.1} {unit}");
        eprintln!("    {what}: {note}");
        Row::new(what, times, "×", target).note(note)
    }
}

impl Side {
    fn new(name: &'static str, server: Server) -> Result<Self> {
        let client = server.client()?;
        Ok(Self { name, client, server })
    }

    fn processes(&self) -> Result<Vec<u32>> {
        match &self.server {
            Server::Drover(sim) => Ok(vec![sim.process_id()]),
            Server::Peer(cluster) => [Program::KubeApiserver, Program::Etcd]
                .into_iter()
                .map(|program| cluster.process_id(program).context("a process has ended"))
                .collect(),
        }
    }

    /// Of all processes together, in megabytes, once it has stopped changing.
    pub fn settled_memory(&self) -> Result<f64> {
        self.processes()?.into_iter().map(settled_memory).sum()
    }

    /// Of all processes together, in megabytes, now.
    pub fn memory(&self) -> Result<f64> {
        self.processes()?.into_iter().map(memory).sum()
    }

    /// Used so far by all processes together, in seconds.
    pub fn processor_time(&self) -> Result<f64> {
        self.processes()?.into_iter().map(processor_time).sum()
    }

    /// Kills all processes and starts them again. Milliseconds until the server is ready.
    pub fn restart(&mut self) -> Result<f64> {
        let took = match &mut self.server {
            Server::Drover(sim) => {
                sim.kill();
                let since = Instant::now();
                sim.restart()?;
                since.elapsed()
            }
            Server::Peer(cluster) => {
                cluster.crash(Program::KubeApiserver);
                cluster.crash(Program::Etcd);
                let since = Instant::now();
                cluster.revive(Program::Etcd)?;
                cluster.revive(Program::KubeApiserver)?;
                since.elapsed()
            }
        };
        self.client = self.server.client()?;
        Ok(took.as_secs_f64() * 1e3)
    }
}

impl Server {
    fn client(&self) -> Result<Client> {
        let kubeconfig = match self {
            Self::Drover(sim) => Kubeconfig::read(&sim.kubeconfig())?,
            Self::Peer(cluster) => Kubeconfig::parse(cluster.kubeconfig())?,
        };
        Ok(Client::of(&kubeconfig)?.over(Protocol::Http2))
    }
}
