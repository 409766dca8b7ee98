//! The one image that runs as a real process: the agent's. A pod of exactly that image becomes a
//! child process of the simulator, with the container's arguments, environment and files.
//!
//! Nothing can be mounted for a child, so variables contain the directories of its volumes:
//! `DROVER_SERVICEACCOUNT_DIR` for the service account, `DROVER_CREDENTIALS_DIR` for
//! `/cattle-credentials`, and `DROVER_MOUNT_<PATH>` for every mount, with the path in upper case
//! and `_` for every other character than a letter or digit. The API is at
//! `KUBERNETES_SERVICE_HOST` and `_PORT`.
//!
//! A container's `command` is ignored: the program is fixed. Children are killed with the
//! simulator, however it ends.

pub(crate) mod container;
mod files;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use api_meta::object::ObjectExt;
use apiserver::ApiServer;
use apiserver::registry::WriteTarget;
use backoff::Backoff;
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use self::container::Prepared;
use crate::SimArgs;
use crate::simulation::status::{container_status, set_running};
use crate::simulation::{Setting, World, owned, wait_until_set};

/// Makes `drover` exit when its parent process exits.
const DIE_WITH_PARENT: &str = "DROVER_DIE_WITH_PARENT";
/// Pauses before a child is restarted.
const RESTART: Backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(30));
/// A child that ran this long is restarted at once.
const STEADY_AFTER: Duration = Duration::from_secs(30);
/// Mounted tokens are renewed this often, long before they expire.
const REFRESH_EVERY: Duration = Duration::from_secs(20 * 60);
/// A child's output, in the folder of its pod, and that of the previous run.
pub const LOG_FILE: &str = "container.log";
pub const PREVIOUS_LOG_FILE: &str = "container.previous.log";
/// Longest time between the request to exit and the kill.
const STOP_TIME_MAX: Duration = Duration::from_secs(2);

/// The image that is run, and its program.
#[derive(Clone, Debug)]
pub struct AgentCommand {
    image: Arc<str>,
    program: PathBuf,
    /// Arguments before those of the container.
    arguments: Vec<String>,
}

impl AgentCommand {
    /// The command of agents: the given binary, or this program.
    ///
    /// # Errors
    /// The file of the program cannot be found.
    pub fn new(args: &SimArgs) -> anyhow::Result<Self> {
        let image = Arc::from(args.agent_image.as_str());
        let Some(binary) = &args.agent_binary else {
            let program = std::env::current_exe().context("cannot find this program's file")?;
            return Ok(Self { image, program, arguments: vec!["agent".to_owned()] });
        };
        let binary = binary
            .canonicalize()
            .with_context(|| format!("cannot find the agent \"{}\"", binary.display()))?;
        // Another program does not exit with its parent by itself; `setpriv` arranges it.
        match find_in_path("setpriv") {
            Some(program) => {
                let file = binary.display().to_string();
                let arguments = ["--pdeathsig", "KILL", "--", &file].map(str::to_owned).to_vec();
                Ok(Self { image, program, arguments })
            }
            None => Ok(Self { image, program: binary, arguments: Vec::new() }),
        }
    }
}

fn find_in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// The context that every child of a cluster needs.
#[derive(Clone)]
pub struct Runner {
    world: Arc<World>,
    server: ApiServer,
    command: AgentCommand,
    /// Address of the API for children.
    api: SocketAddr,
    folder: PathBuf,
}

impl Runner {
    /// The context of one cluster. Deletes the folders of pods that a crash left.
    pub fn new(world: Arc<World>, server: ApiServer, setting: &Setting) -> Self {
        let mut api = setting.address;
        if api.ip().is_unspecified() {
            api.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
        }
        let folder = pods_folder(&setting.folder);
        // A crash leaves tokens of pods that may have been deleted since.
        let _ = std::fs::remove_dir_all(&folder);
        Self { world, server, command: setting.agent.clone(), api, folder }
    }

    /// The image whose pods run as processes.
    pub fn image(&self) -> &str {
        &self.command.image
    }

    /// Whether all containers of a pod are of exactly the agent image.
    pub fn runs(&self, pod: &Value) -> bool {
        let containers = pod["spec"]["containers"].as_array();
        containers.is_some_and(|list| {
            !list.is_empty() && list.iter().all(|c| c["image"] == *self.command.image)
        })
    }
}

/// A pod that runs as a real process, one task for each container.
pub struct AgentPod {
    uid: String,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl AgentPod {
    /// Starts the pod's first container; upstream's agents have only one.
    pub fn start(runner: &Runner, pod: &Value, address: Ipv4Addr) -> Self {
        let (stop, stopped) = watch::channel(false);
        let uid = pod.uid().to_owned();
        let supervisor = Supervisor {
            runner: runner.clone(),
            folder: runner.folder.join(&uid),
            pod: pod.clone(),
            address,
            restarts: 0,
        };
        let task = tokio::spawn(supervisor.run(stopped));
        Self { uid, stop, task }
    }

    /// The uid of the pod.
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// Stops the child and returns when it has exited.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        // It panicked at worst; the child is killed when its handle is dropped.
        let _ = self.task.await;
    }
}

/// Keeps one child running until `stopped` is set.
struct Supervisor {
    runner: Runner,
    folder: PathBuf,
    pod: Value,
    address: Ipv4Addr,
    restarts: u32,
}

impl Supervisor {
    async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        let mut failures = 0;
        loop {
            let started = tokio::time::Instant::now();
            let reason = tokio::select! {
                ended = self.run_once(stopped.clone()) => match ended {
                    Ok(()) => break,
                    Err(reason) => reason,
                },
                () = wait_until_set(&mut stopped) => break,
            };
            let name = self.pod.name();
            tracing::warn!(pod = name, reason = format!("{reason:#}"), "agent is not running");
            self.restarts += 1;
            let waiting = json!({"waiting": {
                "reason": "CrashLoopBackOff", "message": format!("{reason:#}"),
            }});
            self.report(false, waiting).await;
            if started.elapsed() > STEADY_AFTER {
                failures = 0;
            }
            failures += 1;
            tokio::select! {
                () = tokio::time::sleep(RESTART.delay(failures)) => {}
                () = wait_until_set(&mut stopped) => break,
            }
        }
        // Tokens must not outlive their pod.
        let _ = std::fs::remove_dir_all(&self.folder);
    }

    /// One run, from the files to the exit of the child. `Ok` when `stopped` was set.
    async fn run_once(&self, mut stopped: watch::Receiver<bool>) -> anyhow::Result<()> {
        let prepared = container::prepare(&self.runner, &self.pod, &self.folder).await?;
        let mut child = self.spawn(&prepared)?;
        self.report(true, json!({"running": {"startedAt": owned::now()}})).await;
        loop {
            tokio::select! {
                ended = child.wait() => anyhow::bail!("the agent ended: {}", ended?),
                () = wait_until_set(&mut stopped) => {
                    end(&mut child).await;
                    return Ok(());
                }
                () = tokio::time::sleep(REFRESH_EVERY) => {
                    container::prepare(&self.runner, &self.pod, &self.folder).await?;
                }
            }
        }
    }

    fn spawn(&self, prepared: &Prepared) -> anyhow::Result<Child> {
        let command = &self.runner.command;
        let log = self.folder.join(LOG_FILE);
        // There is no log before the first run.
        let _ = std::fs::rename(&log, self.folder.join(PREVIOUS_LOG_FILE));
        let log = std::fs::File::create(log)?;
        let mut child = Command::new(&command.program);
        child
            .args(&command.arguments)
            .args(&prepared.arguments)
            .env_clear()
            .envs(prepared.environment.iter().map(|(name, value)| (name, value)))
            .env(DIE_WITH_PARENT, "1")
            .env("HOME", &self.folder)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true);
        for name in ["PATH", "TMPDIR"] {
            if let Some(value) = std::env::var_os(name) {
                child.env(name, value);
            }
        }
        child.spawn().with_context(|| format!("cannot run \"{}\"", command.program.display()))
    }

    /// Reports the state of the container in the pod's status.
    async fn report(&self, ready: bool, state: Value) {
        let world = &self.runner.world;
        let target = WriteTarget {
            resource: &world.kinds.pods,
            namespace: self.pod.namespace(),
            name: self.pod.name(),
        };
        let restarts = self.restarts;
        let statuses = |pod: &Value| {
            let list = pod["spec"]["containers"].as_array();
            list.into_iter()
                .flatten()
                .map(|container| container_status(container, ready, restarts, state.clone()))
                .collect()
        };
        let node = self.pod["spec"]["nodeName"].as_str().unwrap_or_default();
        let uid = self.pod.uid();
        let reported = set_running(world, &target, uid, node, self.address, &statuses).await;
        if let Err(status) = reported {
            tracing::warn!(pod = self.pod.name(), %status, "cannot report the status of the agent");
        }
    }
}

/// Requests the child to exit, and kills it after a while.
async fn end(child: &mut Child) {
    if let Some(id) = child.id().and_then(|id| i32::try_from(id).ok()) {
        let id = nix::unistd::Pid::from_raw(id);
        let _ = nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGTERM);
    }
    if tokio::time::timeout(STOP_TIME_MAX, child.wait()).await.is_err() {
        let _ = child.kill().await;
    }
}

/// The folder with the files of a cluster's pods that run as real processes, by their UID.
pub fn pods_folder(cluster: &Path) -> PathBuf {
    cluster.join("pods")
}

/// Creates a folder that only its owner can read.
fn make_private(folder: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .with_context(|| format!("cannot create the folder \"{}\"", folder.display()))
}
