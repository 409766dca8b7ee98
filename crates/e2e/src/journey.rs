//! Steps that several journeys share: import a cluster like a user, and wait until it is active.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use testbed::RealCluster;

use crate::agent::Downstream;
use crate::manifest::{AGENT_DEPLOYMENT, AGENT_NAMESPACE, Container};
use crate::{Agent, Cli, Kubeconfig, Kubectl, Manifest, Server, poll_until};

/// Group and version of the management kinds.
pub const MANAGEMENT: &str = "/apis/management.cattle.io/v3";
const STEP_TIMEOUT: Duration = Duration::from_secs(60);
const STEP_INTERVAL: Duration = Duration::from_millis(20);

/// A cluster that is going to be imported.
#[derive(Clone, Debug)]
pub struct ImportTarget {
    /// Of an administrator, reaching the cluster directly.
    pub kubeconfig: PathBuf,
    pub kubectl: Kubectl,
    /// Where its agent finds the API.
    pub downstream: Downstream,
}

impl ImportTarget {
    /// # Errors
    /// `kubectl` has not been built.
    pub fn of(cluster: &RealCluster) -> Result<Self> {
        Self::reached_by(&cluster.kubeconfig_path(), cluster.folder())
    }

    /// `home`: a folder for caches.
    ///
    /// # Errors
    /// The kubeconfig cannot be read.
    pub fn reached_by(kubeconfig: &Path, home: &Path) -> Result<Self> {
        Ok(Self {
            kubeconfig: kubeconfig.to_owned(),
            kubectl: Kubectl::new(kubeconfig, home)?,
            downstream: Downstream::of(&Kubeconfig::read(kubeconfig)?)?,
        })
    }

    /// The same cluster, whose agent reaches the API at another address.
    #[must_use]
    pub fn through(&self, downstream: &Downstream) -> Self {
        Self { downstream: downstream.clone(), ..self.clone() }
    }
}

/// A cluster that is managed, and its agent.
#[derive(Debug)]
pub struct Imported {
    pub name: String,
    pub id: String,
    pub agent: Agent,
    /// What the agent was run with.
    pub container: Container,
    pub manifest: Manifest,
    /// Whole run time of `drover cluster import`.
    pub took: Duration,
    /// What that command said.
    pub words: String,
}

/// `drover cluster import NAME --kubeconfig FILE`, with the agent of the manifest started as a
/// process once the manifest has been applied.
///
/// # Errors
/// The command fails, or a step does not happen in time.
pub fn import(server: &Server, cli: &Cli, name: &str, target: &ImportTarget) -> Result<Imported> {
    import_with(server, cli, name, target, &[])
}

/// Like [`import`], with more flags.
///
/// # Errors
/// Like [`import`].
pub fn import_with(
    server: &Server,
    cli: &Cli,
    name: &str,
    target: &ImportTarget,
    flags: &[&str],
) -> Result<Imported> {
    let file = target.kubeconfig.to_str().context("the kubeconfig's path is no text")?;
    let mut arguments = vec!["cluster", "import", name, "--kubeconfig", file];
    arguments.extend(flags);
    let since = Instant::now();
    let mut command = cli.start(&arguments, &cli.home().join(format!("import-{name}.log")))?;
    let id = step(&mut command, "no cluster object", || cluster_id(server, name))?;
    let manifest = step(&mut command, "no manifest", || manifest_of(server, &id))?;
    step(&mut command, "the manifest is not applied", || {
        target.kubectl.succeed(&["get", "deployment", "-n", AGENT_NAMESPACE, AGENT_DEPLOYMENT])
    })?;
    let container = manifest.agent()?;
    let agent = Agent::start(&container, &target.downstream, &target.kubectl)?;
    let status = poll_until(STEP_TIMEOUT, STEP_INTERVAL, || {
        command.exit_status().with_context(|| format!("still importing: {}", command.log_tail()))
    })
    .with_context(|| format!("log of the agent:\n{}", agent.log()))?;
    let took = since.elapsed();
    let words = command.log_tail();
    ensure!(status.success(), "import ended with {status}: {words}\nagent:\n{}", agent.log());
    Ok(Imported { name: name.to_owned(), id, agent, container, manifest, took, words })
}

/// Waits for an event while `command` runs.
fn step<T>(
    command: &mut testbed::Process,
    what: &str,
    mut look: impl FnMut() -> Result<T>,
) -> Result<T> {
    let found = poll_until(STEP_TIMEOUT, STEP_INTERVAL, || match look() {
        Ok(found) => Ok(Some(found)),
        // The command has ended, so the event cannot happen; the last lines say why.
        Err(_) if command.exit_status().is_some_and(|status| !status.success()) => Ok(None),
        Err(cause) => Err(cause),
    })
    .with_context(|| what.to_owned())?;
    match found {
        Some(found) => Ok(found),
        None => bail!("{what}: the command failed: {}", command.log_tail()),
    }
}

/// Creates a cluster that no agent joins, and returns its id.
///
/// # Errors
/// The server refuses.
pub fn create_cluster(server: &Server, name: &str) -> Result<String> {
    let view = server.admin()?.post("/v3/clusters", &serde_json::json!({"name": name}))?;
    let view = view.success()?;
    view["id"].as_str().map(str::to_owned).with_context(|| format!("no id in {view}"))
}

/// Id of the cluster with the display name `name`.
///
/// # Errors
/// There is none, or there are several.
pub fn cluster_id(server: &Server, name: &str) -> Result<String> {
    let list = server.admin()?.get(&format!("{MANAGEMENT}/clusters"))?.success()?;
    let all = list["items"].as_array().context("a list without items")?;
    let mut ids = all
        .iter()
        .filter(|cluster| cluster["spec"]["displayName"] == name)
        .filter_map(|cluster| cluster["metadata"]["name"].as_str());
    let id = ids.next().with_context(|| format!("no cluster '{name}'"))?;
    ensure!(ids.next().is_none(), "several clusters '{name}'");
    Ok(id.to_owned())
}

/// The cluster object.
///
/// # Errors
/// It does not exist.
pub fn cluster(server: &Server, id: &str) -> Result<Value> {
    server.admin()?.get(&format!("{MANAGEMENT}/clusters/{id}"))?.success()
}

/// The registration token of a cluster, once it has its URL.
///
/// # Errors
/// It has none yet.
pub fn registration_token(server: &Server, id: &str) -> Result<Value> {
    let path = format!("{MANAGEMENT}/namespaces/{id}/clusterregistrationtokens");
    let list = server.admin()?.get(&path)?.success()?;
    let all = list["items"].as_array().context("a list without items")?;
    let ready = |token: &&Value| token["status"]["manifestUrl"].is_string();
    all.iter().find(ready).cloned().with_context(|| format!("no registration token yet: {list}"))
}

/// The import manifest of a cluster, from its public URL.
///
/// # Errors
/// It is not served yet.
pub fn manifest_of(server: &Server, id: &str) -> Result<Manifest> {
    let token = registration_token(server, id)?;
    let url = token["status"]["manifestUrl"].as_str().context("no URL")?;
    let uri: http::Uri = url.parse()?;
    let response = server.anyone()?.get(uri.path())?;
    ensure!(response.status.is_success(), "'{url}' returned {}", response.status);
    Manifest::parse(&response.text())
}

/// State of a cluster in the REST view, with its message.
///
/// # Errors
/// It does not exist.
pub fn state(server: &Server, id: &str) -> Result<(String, String)> {
    let view = server.admin()?.get(&format!("/v3/clusters/{id}"))?.success()?;
    let text = |name: &str| view[name].as_str().unwrap_or_default().to_owned();
    Ok((text("state"), text("transitioningMessage")))
}

/// Whether a cluster is active now.
///
/// # Errors
/// It is in another state; the message says which and shows its conditions.
pub fn is_active(server: &Server, id: &str) -> Result<()> {
    let (state, message) = state(server, id)?;
    if state == "active" {
        return Ok(());
    }
    let conditions = cluster(server, id)?["status"]["conditions"].to_string();
    bail!("cluster '{id}' is {state} ({message}): {conditions}")
}

/// A user with a role in a cluster, logged in.
///
/// # Errors
/// A command fails.
pub fn user_with_role(
    server: &Server,
    admin: &Cli,
    user: &str,
    role: Option<(&str, &str)>,
) -> Result<Cli> {
    let password = format!("password-of-{user}");
    let mut create = admin.command(&["user", "create", user])?;
    let output = create.env("DROVER_USER_PASSWORD", &password).output()?;
    crate::ProgramOutput::of(format!("drover user create {user}"), output).succeeded()?;
    if let Some((role, cluster)) = role {
        admin.succeed(&["role", "grant", role, "--cluster", cluster, "--user", user])?;
    }
    Cli::of(server, user, &password)
}
