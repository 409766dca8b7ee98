//! A server with the drivers of clouds, and stand-ins of these clouds for whose names it has the
//! address of this machine.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::{Binaries, Process, Program};

use crate::cli::Cli;
use crate::cluster_provider::ClusterProvider;
use crate::driver_world::DriverWorld;
use crate::http::Client;
use crate::server::{self, Server};
use crate::wait::poll_until;

/// The names that the stand-ins serve.
const HOSTS: [&str; 6] = [
    "container.googleapis.com",
    "oauth2.googleapis.com",
    "cloudformation.us-west-2.amazonaws.com",
    "sts.us-west-2.amazonaws.com",
    "management.azure.com",
    "login.microsoftonline.com",
];
/// Ports of clusters, behind those of the provider.
const CLUSTERS: u16 = 8;
const READY_TIME_MAX: Duration = Duration::from_secs(30);
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// The stand-ins, as one process.
pub struct Clouds {
    control: Client,
    address: String,
    /// Ports of clusters, as in the flag of the server.
    cluster_ports: String,
    folder: TempDir,
    _process: Process,
    /// Makes their clusters.
    pub provider: ClusterProvider,
}

impl Clouds {
    /// Starts them, and a provider of simulated clusters.
    ///
    /// # Errors
    /// One of them does not start.
    pub fn start() -> Result<Self> {
        let (provider, first) = ClusterProvider::start_beside(CLUSTERS)?;
        let folder = tempfile::tempdir()?;
        let authority = folder.path().join("provider.pem");
        std::fs::write(&authority, &provider.ca_pem)?;
        let mut command = Command::new(Binaries::locate().path(Program::CloudStandIn)?);
        command.arg("-provider-ca").arg(&authority).arg("-folder").arg(folder.path());
        command.args(["-provider", &provider.url, "-provider-token", &provider.token]);
        command.args(["-clusters-from", &first.to_string(), "-clusters", &CLUSTERS.to_string()]);
        let log = folder.path().join("clouds.log");
        let process = Process::start("cloud-stand-in", &command, &log)?;
        let file = folder.path().join("address");
        let address = poll_until(READY_TIME_MAX, LOOK_INTERVAL, || {
            std::fs::read_to_string(&file).context("the stand-ins do not serve yet")
        })?;
        let ca_pem = std::fs::read_to_string(folder.path().join("ca.pem"))?;
        let control = Client::new(&format!("https://{address}"), &ca_pem)?;
        let cluster_ports = format!("127.0.0.1:{first}-{}", first + CLUSTERS - 1);
        Ok(Self { control, address, cluster_ports, folder, _process: process, provider })
    }

    /// A server that reaches them under the names of the clouds.
    ///
    /// # Errors
    /// It does not start.
    pub fn server(&self) -> Result<Server> {
        let mut reached: Vec<String> =
            HOSTS.iter().map(|host| format!("{host}:443={}", self.address)).collect();
        reached.push(self.cluster_ports.clone());
        let trusted = self.folder.path().join("ca.pem");
        let trusted = trusted.to_str().context("the path is no text")?.to_owned();
        Server::start_with(server::Options {
            flags: vec![format!("--driver-may-reach={}", reached.join(","))],
            environment: vec![("SSL_CERT_FILE".to_owned(), trusted)],
            ..Default::default()
        })
    }

    /// What goes wrong next, by kind: how often.
    ///
    /// # Errors
    /// They do not answer.
    pub fn fail(&self, faults: &Value) -> Result<()> {
        self.control.post("/faults", faults)?.success().map(drop)
    }

    /// Takes the labels and tags from all that exists, as if it were somebody else's.
    ///
    /// # Errors
    /// They do not answer.
    pub fn disown(&self) -> Result<()> {
        self.control.post("/disown", &json!({}))?.success().map(drop)
    }

    /// What exists at a cloud: `google`, `amazon` or `microsoft`.
    ///
    /// # Errors
    /// They do not answer.
    pub fn state(&self, cloud: &str) -> Result<Vec<Value>> {
        let state = self.control.get("/state")?.success()?;
        state[cloud].as_array().cloned().context("no such cloud")
    }

    /// Options of a small cluster of a driver.
    ///
    /// # Errors
    /// A file of the stand-ins cannot be read.
    pub fn options(&self, cloud: &str) -> Result<Value> {
        Ok(match cloud {
            "google" => json!({
                "projectId": "drover-project",
                "zone": "us-central1-a",
                "credential": std::fs::read_to_string(self.folder.path().join("google.json"))?,
                "masterVersion": "1.35.2-gke.100",
                "nodeCount": 2,
            }),
            "amazon" => json!({
                "accessKey": "AKIAIOSFODNN7EXAMPLE",
                "secretKey": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                "region": "us-west-2",
                "kubernetesVersion": "1.35",
                "desiredNodes": 2,
            }),
            _ => json!({
                "tenantId": "11111111-1111-1111-1111-111111111111",
                "subscriptionId": "22222222-2222-2222-2222-222222222222",
                "clientId": "33333333-3333-3333-3333-333333333333",
                "clientSecret": "azure-secret",
                "resourceGroup": "clusters",
                "location": "eastus",
                "kubernetesVersion": "1.35.2",
                "sshPublicKeyContents": "ssh-rsa AAAAB3NzaC1yc2E= someone",
                "count": 2,
            }),
        })
    }
}

/// A server with the driver of one cloud, and the stand-ins.
///
/// # Errors
/// One of them does not start.
pub fn world(driver: &str) -> Result<(Clouds, DriverWorld)> {
    let clouds = Clouds::start()?;
    let server = clouds.server()?;
    let (cli, api) = (Cli::admin(&server)?, server.admin()?);
    let field = format!("{driver}Config");
    // The options of drivers are fields of clusters soon after the start.
    poll_until(READY_TIME_MAX, LOOK_INTERVAL, || {
        let cluster = api.get("/v3/schemas/cluster")?.success()?;
        ensure!(cluster["resourceFields"][&field].is_object(), "clusters have no {field}");
        Ok(())
    })?;
    Ok((clouds, DriverWorld { server, cli, api, driver: driver.to_lowercase(), field }))
}
