//! A provider of clusters for the driver `example`: a simulator that makes clusters on request.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::http::Client;
use crate::kubeconfig::Kubeconfig;
use crate::sim::Sim;

/// Ports of a simulator whose provider makes a few clusters.
pub const FEW: u16 = 12;
/// Ports of one row in the flag of the server.
const PORTS_OF_ROW_MAX: u16 = 64;
/// How many rows of ports tests of this process took.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// A simulator with a provider, and what the driver needs to use it.
pub struct ClusterProvider {
    /// The simulator. It has a cluster of its own, which the provider did not make.
    pub sim: Sim,
    /// URL of the provider.
    pub url: String,
    /// Authority of the provider and of all clusters, PEM.
    pub ca_pem: String,
    /// Token of the provider.
    pub token: String,
    /// What drivers must be allowed to reach.
    pub ports: String,
}

impl ClusterProvider {
    /// Starts a simulator with these flags whose provider and clusters use `ports` ports in a row.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(ports: u16, flags: &[&str]) -> Result<Self> {
        Self::start_on(free_ports(ports)?, ports, flags)
    }

    /// One with [`FEW`] ports, and the first of `more` free ports.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_beside(more: u16) -> Result<(Self, u16)> {
        let base = free_ports(FEW + more)?;
        Ok((Self::start_on(base, FEW, &[])?, base + FEW))
    }

    fn start_on(base: u16, ports: u16, flags: &[&str]) -> Result<Self> {
        let address = format!("127.0.0.1:{}", base + ports - 1);
        let flags = [&["--nodes", "1", "--provider", &address], flags].concat();
        let sim = Sim::start_on(base, &flags)?;
        let ca_pem = Kubeconfig::read(&sim.kubeconfig())?.ca_pem;
        let token = std::fs::read_to_string(sim.data_dir().join("provider.token"))?;
        let url = format!("https://{address}");
        Ok(Self { sim, url, ca_pem, token, ports: rows(base, base + ports) })
    }

    /// The options of a cluster as flags of the command line.
    pub fn flags(&self, nodes: u32) -> [String; 4] {
        [
            format!("provider-url={}", self.url),
            format!("provider-ca={}", BASE64_STANDARD.encode(&self.ca_pem)),
            format!("access-token={}", self.token),
            format!("node-count={nodes}"),
        ]
    }

    /// The options of a cluster as fields of the API.
    pub fn options(&self, nodes: u32) -> Value {
        json!({
            "providerUrl": self.url,
            "providerCa": BASE64_STANDARD.encode(&self.ca_pem),
            "accessToken": self.token,
            "nodeCount": nodes,
        })
    }

    /// The clusters that it made.
    ///
    /// # Errors
    /// It does not answer.
    pub fn clusters(&self) -> Result<Vec<Value>> {
        let client = Client::new(&self.url, &self.ca_pem)?.bearer(&self.token);
        let found = client.get("/clusters")?.success()?;
        found["clusters"].as_array().cloned().context("the provider has no list")
    }
}

/// The ports from `first` on and below `end`, in rows as the server takes them.
fn rows(first: u16, end: u16) -> String {
    let starts = (first..end).step_by(usize::from(PORTS_OF_ROW_MAX));
    let row = |start: u16| format!("127.0.0.1:{start}-{}", end.min(start + PORTS_OF_ROW_MAX) - 1);
    starts.map(row).collect::<Vec<_>>().join(",")
}

/// The first of so many ports in a row that nothing listens at, below those that the kernel gives
/// to connections.
fn free_ports(count: u16) -> Result<u16> {
    let bases: Vec<u16> = (20_000..30_000).step_by(usize::from(FEW)).collect();
    // Tests run at the same time: each looks from another row on.
    let taken = TAKEN.fetch_add(20, Ordering::Relaxed);
    let offset = std::process::id() as usize % 700 + taken;
    let is_free = |base: &u16| {
        let mut ports = *base..*base + count;
        ports.all(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
    };
    let (count, from) = (bases.len(), offset % bases.len());
    let mut found = bases.into_iter().cycle().skip(from).take(count);
    found.find(is_free).context("no free ports in a row")
}
