//! The API of kubelets for pods: logs, `exec`, `attach`, `port-forward`. No command is ever
//! executed: logs and shell are simulated and say so, ports are echoes. Only the logs of agents,
//! which run as real processes, are real.
//!
//! Start reading at [`PodConnector`]. [`logs`] and [`shell`] produce the content; [`console`] is
//! between the shell and the client; [`remote_command`] and [`port_forward`] implement the
//! protocols of kubectl, over WebSockets and over [`spdy`].

mod console;
mod container;
mod logs;
mod port_forward;
mod process;
mod remote_command;
mod shell;
mod spdy;

use std::path::PathBuf;

use api_meta::status::Status;
use apiserver::body::respond::Body;
use apiserver::connect::{Connect, Connector};
use futures::FutureExt;
use futures::future::BoxFuture;
use http::Response;
use jiff::Timestamp;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use self::container::Container;
use self::logs::{Alive, Log, LogOptions};
use self::remote_command::{Run, Streams};
use self::shell::ContainerProgram;

/// Longest message of a client.
const MESSAGE_SIZE_MAX: usize = 1024 * 1024;
/// Read buffer per socket, allocated at once.
const READ_BUFFER_SIZE: usize = 8 * 1024;

fn websocket_config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_SIZE)
        .write_buffer_size(0)
        .max_message_size(Some(MESSAGE_SIZE_MAX))
        .max_frame_size(Some(MESSAGE_SIZE_MAX))
}

/// The kubelets of one cluster.
pub struct PodConnector {
    /// Folder with the files of pods that run as real processes, by their UID.
    pods: PathBuf,
}

impl PodConnector {
    /// `pods` is [`crate::agent::pods_folder`] of the cluster.
    pub fn new(pods: PathBuf) -> Self {
        Self { pods }
    }

    async fn respond(&self, connect: Connect) -> Result<Response<Body>, Status> {
        let pod = connect.object.value();
        let query = connect.query.clone();
        // Ports are those of all containers.
        let name = match connect.subresource {
            "portforward" => pod["spec"]["containers"][0]["name"].as_str().unwrap_or_default(),
            _ => query.text("container"),
        };
        let container = Container::choose(&pod, name)?;
        let alive = || Alive::new(&connect.registry, &connect.resource, &connect.object);
        if connect.subresource == "log" {
            let options = LogOptions::parse(&query, Timestamp::now())?;
            let revocation = connect.revocation.clone();
            return logs::respond(options, &container, &self.pods, alive(), revocation).await;
        }
        if !container.is_running() {
            return Err(not_running(&container));
        }
        if connect.subresource == "portforward" {
            return port_forward::open(connect, container);
        }
        let streams = Streams::parse(&query)?;
        let run = match connect.subresource {
            "exec" => exec(container, query.all("command").map(str::to_owned).collect(), alive())?,
            _ => attach(Log::of(&container, &self.pods), container, alive()),
        };
        remote_command::open(connect, streams, run)
    }
}

impl Connector for PodConnector {
    fn connect(&self, connect: Connect) -> BoxFuture<'_, Result<Response<Body>, Status>> {
        self.respond(connect).boxed()
    }
}

fn not_running(container: &Container) -> Status {
    Status::bad_request(format!(
        "container \"{}\" of pod \"{}\" is not running: the pod's phase is {}",
        container.name, container.pod, container.phase
    ))
}

/// Runs a command, which ends with its pod.
fn exec(container: Container, words: Vec<String>, mut alive: Alive) -> Result<Run, Status> {
    if words.is_empty() {
        return Err(Status::bad_request("you must specify at least one command for the container"));
    }
    Ok(Box::new(move |mut console| {
        async move {
            tokio::select! {
                code = process::run(&container, ContainerProgram::of(words), &mut console) => code,
                () = alive.wait_until_ended() => Ok(KILLED),
            }
        }
        .boxed()
    }))
}

/// Exit code of a killed command.
const KILLED: u8 = 137;

fn attach(log: Log, container: Container, mut alive: Alive) -> Run {
    Box::new(move |mut console| {
        async move { process::attach(&container, log, &mut console, &mut alive).await }.boxed()
    })
}
