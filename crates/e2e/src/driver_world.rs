//! A server with one cluster driver, and what tests do with the clusters that the driver makes.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::cli::Cli;
use crate::http::Client;
use crate::kubectl::Kubectl;
use crate::server::{self, Server};
use crate::wait::within;
use crate::web_site::WebSite;

/// A busy machine starts a simulated cluster and its agent within this time.
pub const ACTIVE_TIME_MAX: Duration = Duration::from_secs(120);

/// See the module.
pub struct DriverWorld {
    pub server: Server,
    pub cli: Cli,
    /// As an administrator.
    pub api: Client,
    /// Id of the driver.
    pub driver: String,
    /// The field of clusters with its options.
    pub field: String,
}

impl DriverWorld {
    /// Starts a server with these flags and adds the driver of this file, which may reach `ports`
    /// (as in the flag of the server).
    ///
    /// # Errors
    /// The server does not start, or does not take the driver.
    pub fn start(program: &Path, ports: &str, flags: &[&str]) -> Result<Self> {
        let site = WebSite::start()?;
        let mut all = vec![format!("--driver-may-reach=127.0.0.1:{},{ports}", site.port)];
        all.extend(flags.iter().map(|&flag| flag.to_owned()));
        let server = Server::start_with(server::Options { flags: all, ..Default::default() })?;
        let cli = Cli::admin(&server)?;
        let name = program.file_name().and_then(|name| name.to_str()).context("no file name")?;
        let url = site.put(&format!("/{name}"), std::fs::read(program)?);
        cli.succeed(&["driver", "add", &url, "--wait"])?;
        let api = server.admin()?;
        let drivers = api.get("/v3/kontainerdrivers")?.success()?;
        let mut all = drivers["data"].as_array().context("no list")?.iter();
        let driver = all.find(|driver| driver["url"] == url.as_str()).context("no driver")?;
        let driver_name = driver["name"].as_str().context("no name")?;
        let field = format!("{driver_name}EngineConfig");
        let driver = driver["id"].as_str().context("no id")?.to_owned();
        Ok(Self { server, cli, api, driver, field })
    }

    /// Has the server take the program of the driver from another address.
    ///
    /// # Errors
    /// The server refuses it.
    pub fn replace_driver(&self, url: &str) -> Result<()> {
        let path = format!("/v3/kontainerdrivers/{}", self.driver);
        let mut driver = self.api.get(&path)?.success()?;
        driver["url"] = url.into();
        driver["checksum"] = "".into();
        self.api.put(&path, &driver)?.success().map(drop)
    }

    /// Kills the server in the middle of what it does, and starts it again.
    ///
    /// # Errors
    /// It does not start.
    pub fn kill_and_restart(&mut self) -> Result<()> {
        self.server.restart()?;
        // The administrator's token is a new one.
        self.api = self.server.admin()?;
        Ok(())
    }

    /// Orders a cluster. Returns its id.
    ///
    /// # Errors
    /// The server refuses it.
    pub fn create(&self, name: &str, options: &Value) -> Result<String> {
        let mut body = json!({"type": "cluster", "name": name});
        body[&self.field] = options.clone();
        let made = self.api.post("/v3/clusters", &body)?.success()?;
        Ok(made["id"].as_str().context("no id")?.to_owned())
    }

    /// A cluster under `/v3`.
    ///
    /// # Errors
    /// There is none.
    pub fn cluster(&self, id: &str) -> Result<Value> {
        self.api.get(&format!("/v3/clusters/{id}"))?.success()
    }

    /// Changes options of a cluster, as a client that was shown no secrets.
    ///
    /// # Errors
    /// The server refuses it.
    pub fn change(&self, id: &str, options: &Value) -> Result<Value> {
        let mut body = self.cluster(id)?;
        for (option, value) in options.as_object().context("no options")? {
            body[&self.field][option] = value.clone();
        }
        self.api.put(&format!("/v3/clusters/{id}"), &body)?.success()
    }

    /// Waits until a cluster has a state, with a message that has this part.
    ///
    /// # Panics
    /// It has not in time.
    #[track_caller]
    pub fn wait_for(&self, id: &str, state: &str, message: &str) -> Value {
        within(ACTIVE_TIME_MAX, &format!("cluster {id} is {state}"), || {
            let cluster = self.cluster(id)?;
            let said = cluster["transitioningMessage"].as_str().unwrap_or_default();
            let found = cluster["state"].as_str().unwrap_or_default();
            ensure!(found == state && said.contains(message), "it is {found}: {said}");
            Ok(cluster)
        })
    }

    /// Waits until the cluster is gone.
    ///
    /// # Panics
    /// It is not in time.
    #[track_caller]
    pub fn wait_until_gone(&self, id: &str) {
        within(ACTIVE_TIME_MAX, &format!("cluster {id} is gone"), || {
            let found = self.api.get(&format!("/v3/clusters/{id}"))?;
            ensure!(found.status == 404, "it is there: {}", found.text());
            Ok::<_, anyhow::Error>(())
        });
    }

    /// Removes a cluster, and waits until it is gone.
    ///
    /// # Errors
    /// The server refuses it.
    #[track_caller]
    pub fn remove(&self, id: &str) -> Result<()> {
        self.api.delete(&format!("/v3/clusters/{id}"))?.success()?;
        self.wait_until_gone(id);
        Ok(())
    }

    /// The provisioning log of a cluster.
    ///
    /// # Errors
    /// There is none.
    pub fn log(&self, id: &str) -> Result<String> {
        let log = self.api.get(&format!("/v3/clusters/{id}/provisioninglog"))?.success()?;
        let lines = log["lines"].as_array().context("no lines")?.iter();
        Ok(lines.filter_map(Value::as_str).map(|line| format!("{line}\n")).collect())
    }

    /// `kubectl` for the server itself, as an administrator.
    ///
    /// # Errors
    /// It is not there.
    pub fn kubectl(&self) -> Result<Kubectl> {
        self.server.kubectl()
    }

    /// What the server knows of a cluster, if anything.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn record(&self, id: &str) -> Result<Option<Value>> {
        let secret = format!("c-{id}");
        let get = ["-n", "cattle-system", "get", "secret", &secret, "--ignore-not-found"];
        let get = [&get[..], &["-o", "jsonpath={.data.cluster}"]].concat();
        let encoded = self.kubectl()?.succeed(&get)?;
        if encoded.trim().is_empty() {
            return Ok(None);
        }
        let bytes = BASE64_STANDARD.decode(encoded.trim())?;
        Ok(Some(serde_json::from_slice(&bytes)?))
    }

    /// The report of a removal.
    ///
    /// # Errors
    /// There is none.
    pub fn removal_report(&self, id: &str) -> Result<Value> {
        let (name, path) = (format!("removal-{id}"), "jsonpath={.data.report\\.json}");
        let report = ["-n", "cattle-system", "get", "cm", &name, "-o", path];
        Ok(serde_json::from_str(&self.kubectl()?.succeed(&report)?)?)
    }
}
