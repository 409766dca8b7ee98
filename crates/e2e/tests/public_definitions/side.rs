//! One of the two servers.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bytes::Bytes;
use e2e::http::{Client, Connection, runtime};
use e2e::wait::within;
use e2e::{Kubeconfig, Kubectl, Sim};
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tempfile::TempDir;
use testbed::RealCluster;

/// A server, on one connection.
pub struct Side {
    client: Client,
    connection: Option<Connection>,
    kubeconfig: PathBuf,
    home: TempDir,
    /// Total time for all definitions.
    pub answering: Duration,
    /// Longest time from a response until a kind was in discovery.
    pub publishing_max: Duration,
}

impl Side {
    pub fn real(cluster: &RealCluster) -> Result<Self> {
        let kubeconfig = Kubeconfig::parse(cluster.kubeconfig())?;
        Self::new(&kubeconfig, &cluster.kubeconfig_path())
    }

    pub fn ours(sim: &Sim) -> Result<Self> {
        Self::new(&Kubeconfig::read(&sim.kubeconfig())?, &sim.kubeconfig())
    }

    fn new(kubeconfig: &Kubeconfig, path: &Path) -> Result<Self> {
        Ok(Self {
            client: Client::of(kubeconfig)?,
            connection: None,
            kubeconfig: path.to_owned(),
            home: tempfile::tempdir()?,
            answering: Duration::ZERO,
            publishing_max: Duration::ZERO,
        })
    }

    /// The document at `path`.
    pub fn get(&mut self, path: &str) -> Result<Value> {
        let (status, body) = self.send("GET", path, "", String::new())?;
        anyhow::ensure!(status == 200, "'{path}' returned {status}: {body}");
        Ok(body)
    }

    pub fn post_yaml(&mut self, path: &str, text: &str) -> Result<(u16, Value)> {
        let since = Instant::now();
        let response = self.send("POST", path, "application/yaml", text.to_owned());
        self.answering += since.elapsed();
        response
    }

    pub fn post(&mut self, path: &str, object: &Value) -> Result<(u16, Value)> {
        self.send("POST", path, "application/json", object.to_string())
    }

    /// Applies with force.
    pub fn apply(&mut self, path: &str, object: &Value) -> Result<(u16, Value)> {
        let with = if path.contains('?') { '&' } else { '?' };
        let path = format!("{path}{with}fieldManager=test&force=true");
        self.send("PATCH", &path, "application/apply-patch+yaml", object.to_string())
    }

    fn send(&mut self, method: &str, path: &str, kind: &str, body: String) -> Result<(u16, Value)> {
        let mut request = Request::builder().method(method).uri(path);
        if !kind.is_empty() {
            request = request.header("content-type", kind);
        }
        let request = request.body(Full::new(Bytes::from(body)).boxed_unsync())?;
        let open = self.connection.take();
        let client = &self.client;
        let (connection, response) = runtime().block_on(async {
            let mut connection = match open {
                Some(connection) => connection,
                None => client.connect().await?,
            };
            let response = connection.send(request).await?;
            anyhow::Ok((connection, response))
        })?;
        if !response.headers.contains_key("connection") {
            self.connection = Some(connection);
        }
        let body = serde_json::from_slice(&response.body)
            .with_context(|| format!("'{path}' returned no JSON: {}", response.text()))?;
        Ok((response.status.as_u16(), body))
    }

    /// Waits until the discovery document at `path` has a kind.
    pub fn await_published(&mut self, path: &str, plural: &str, timeout: Duration) {
        let since = Instant::now();
        within(timeout, "the kind is published", || {
            let document = self.get(path)?;
            let mut resources = document["resources"].as_array().into_iter().flatten();
            let found = resources.any(|resource| resource["name"] == plural);
            found.then_some(()).with_context(|| format!("no '{plural}' in {document}"))
        });
        self.publishing_max = self.publishing_max.max(since.elapsed());
    }

    /// Output and errors of `kubectl`; a command that ends with `-f` gets a file with `object`.
    pub fn kubectl(&self, command: &[&str], object: &Value) -> [String; 2] {
        let kubectl = Kubectl::new(&self.kubeconfig, self.home.path()).expect("it is built");
        let file = self.home.path().join("object.json");
        std::fs::write(&file, object.to_string()).expect("the folder is writable");
        let mut command = command.to_vec();
        if command.last() == Some(&"-f") {
            command.extend(file.to_str());
        }
        let outcome = kubectl.run(&command).expect("it can be started");
        let home = self.home.path().to_string_lossy();
        [outcome.stdout, outcome.stderr].map(|text| text.replace(&*home, "HOME"))
    }
}

/// The text of a value; empty when it is not a string.
pub fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
