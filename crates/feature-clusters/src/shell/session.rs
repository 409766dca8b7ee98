//! One shell, from the request to the removal of all that it made.

use std::sync::Arc;
use std::time::Duration;

use api_management::setting::{CACERTS, SHELL_IMAGE, SYSTEM_DEFAULT_REGISTRY};
use api_management::{Token, keys};
use controller::ensure;
use feature_kit::{ClusterConnections, Settings};
use futures::StreamExt;
use identity::random_text;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::PostParams;
use kube::runtime::watcher::{self, watch_object};
use kube::{Api, Client};
use rest_view::sockets::SocketIo;
use rest_view::{ApiError, Caller};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};
use tokio_tungstenite::tungstenite::Bytes;
use tokio_util::sync::CancellationToken;

use super::objects::{ShellPod, secret};
use super::startup::{PodStartup, progress};
use super::terminal::{self, Ending, Keyboard, Screen, TerminalFrame};
use super::{IDLE_TIME_MAX, OLD_RIGHTS, OpenShell, SESSION_TIME_MAX, Shells, console};
use crate::cluster_registration_token::manifest::from_registry;
use crate::connections::Connections;
use crate::kubeconfig::{Credential, Kubeconfig, TokenPurpose, make_token};

/// Longest wait for the pod: nodes pull the image first.
const START_TIME_MAX: Duration = Duration::from_mins(3);
/// The token outlives the pod by this, so that the last request of a shell is not refused.
const TOKEN_TIME_EXTRA: Duration = Duration::from_mins(5);
/// Interval of pings: proxies close connections that are silent for a minute.
const PING_EVERY: Duration = Duration::from_secs(20);
/// Attempts to remove what a shell made; after that it is left to [`super::leftovers`].
const REMOVAL_ATTEMPTS: u32 = 4;
const REMOVAL_PAUSE: Duration = Duration::from_secs(1);
/// Letters at the end of a pod's name.
const NAME_SUFFIX_LEN: usize = 10;

/// The cluster of a shell.
pub(super) struct ShellCluster {
    pub id: String,
    /// As users know it.
    pub name: String,
}

/// One shell that was requested.
pub(super) struct ShellSession {
    /// Acts as [`super::identity`] in the management API.
    pub client: Client,
    pub settings: Settings,
    pub connections: Arc<Connections>,
    pub shells: Arc<Shells>,
    pub caller: Caller,
    pub cluster: ShellCluster,
    pub server_url: String,
    pub protocol: &'static str,
}

/// What a shell made. It is removed when this is dropped.
struct Made {
    open: OpenShell,
    /// Acts in the cluster with the rights of its agent.
    downstream: Client,
    management: Client,
    token: Option<String>,
}

impl ShellSession {
    /// Serves the socket until the shell ends, and says why it ended.
    pub(super) async fn serve(self, io: SocketIo, stop: CancellationToken) {
        let (mut keyboard, mut screen) = terminal::open(io, self.protocol).await;
        let ending = tokio::select! {
            biased;
            () = stop.cancelled() => Ending::Stopping,
            () = self.caller.ended.cancelled() => Ending::Revoked,
            ending = self.run(&mut keyboard, &mut screen) => ending,
        };
        let (user, cluster) = (&self.caller.user_id, &self.cluster.id);
        tracing::info!(user, cluster, ?ending, "a kubectl shell ended");
        terminal::close(keyboard, screen, &ending).await;
    }

    async fn run(&self, keyboard: &mut Keyboard, screen: &mut Screen) -> Ending {
        let pod = format!("drover-shell-{}", random_text(NAME_SUFFIX_LEN));
        let begun = self.shells.begin(&pod, &self.caller.user_id, &self.cluster.id);
        let open = match begun {
            Ok(open) => open,
            Err(text) => return Ending::failed(text),
        };
        let Some(downstream) = self.connections.client(&self.cluster.id) else {
            return Ending::failed("the cluster is not connected now; try again when it is");
        };
        let management = self.client.clone();
        let mut made = Made { open, downstream, management, token: None };
        let deadline = Instant::now() + SESSION_TIME_MAX;
        let ran = async {
            screen.say(&format!("Starting a pod for your shell in {}…", self.cluster.name)).await?;
            let registry = self.settings.get(SYSTEM_DEFAULT_REGISTRY);
            let image = from_registry(&self.settings.get(SHELL_IMAGE), &registry);
            self.create(&mut made, &image).await?;
            let size = self.wait(&made, &image, keyboard, screen).await?;
            let (mut input, output) =
                console::open(&self.connections, &self.cluster.id, &made.open.pod).await?;
            if let Some(size) = size {
                input.send(size).await?;
            }
            Console { input, output }.relay(keyboard, screen, deadline).await
        };
        let ran: Result<(), Ending> = ran.await;
        ran.err().unwrap_or(Ending::Finished)
    }

    async fn create(&self, made: &mut Made, image: &str) -> Result<(), Ending> {
        let params = PostParams::default();
        let pod = ShellPod { name: &made.open.pod, image, cluster: &self.cluster.name }.to_pod();
        let pods: Api<Pod> = Api::namespaced(made.downstream.clone(), keys::SYSTEM_NS);
        let pod = pods.create(&params, &pod).await.map_err(refused)?;
        let ttl = SESSION_TIME_MAX + TOKEN_TIME_EXTRA;
        let ttl = i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX);
        let purpose = TokenPurpose::KubectlShell { cluster: self.cluster.id.clone() };
        let ttl = self.settings.token_ttl_millis(ttl);
        let token = make_token(&self.client, &self.caller, &purpose, ttl).await;
        let token = token.map_err(|error| Ending::Failed(error.message))?;
        made.open.set_token(&token.name);
        made.token = Some(token.name.clone());
        let kubeconfig = Kubeconfig {
            base: &self.server_url,
            id: &self.cluster.id,
            name: &self.cluster.name,
            ca_certs: &self.settings.get(CACERTS),
            credential: Credential::Token(token),
        };
        let secret = secret(&pod, kubeconfig.to_json().to_string());
        let secrets: Api<Secret> = Api::namespaced(made.downstream.clone(), keys::SYSTEM_NS);
        let created = secrets.create(&params, &secret).await;
        created.map_err(refused).map(drop)
    }

    /// Waits until the pod runs. Returns the person's last report of the size of their terminal.
    async fn wait(
        &self,
        made: &Made,
        image: &str,
        keyboard: &mut Keyboard,
        screen: &mut Screen,
    ) -> Result<Option<Bytes>, Ending> {
        let pods: Api<Pod> = Api::namespaced(made.downstream.clone(), keys::SYSTEM_NS);
        let mut states = Box::pin(watch_object(pods, &made.open.pod));
        let deadline = Instant::now() + START_TIME_MAX;
        let (mut size, mut said) = (None, String::new());
        loop {
            tokio::select! {
                typed = keyboard.next() => {
                    // What is typed before there is a shell has no place to go.
                    if let TerminalFrame::Resize(frame) = typed? {
                        size = Some(frame);
                    }
                }
                state = states.next() => match reached(state, image)? {
                    PodStartup::Runs => return Ok(size),
                    PodStartup::Fails(text) => return Err(Ending::Failed(text)),
                    PodStartup::Waits(text) if text.is_empty() || text == said => {}
                    PodStartup::Waits(text) => {
                        screen.say(&text).await?;
                        said = text;
                    }
                },
                () = sleep_until(deadline) => {
                    let text = format!(
                        "the pod of the shell did not start within {} s; look at pod \"{}\" in \
                         namespace \"{}\" while you open the shell again. {said}",
                        START_TIME_MAX.as_secs(), made.open.pod, keys::SYSTEM_NS,
                    );
                    return Err(Ending::Failed(text));
                }
            }
        }
    }
}

/// The cluster does not take an object of the shell.
fn refused(error: kube::Error) -> Ending {
    let error = ApiError::from(error);
    let next = if error.is_forbidden() { OLD_RIGHTS } else { "" };
    Ending::Failed(format!("the cluster refused the pod of the shell: {}{next}", error.message))
}

type PodState = Option<Result<Option<Pod>, watcher::Error>>;

/// How far the watched pod is.
fn reached(state: PodState, image: &str) -> Result<PodStartup, Ending> {
    match state {
        Some(Ok(Some(pod))) if pod.metadata.deletion_timestamp.is_none() => {
            Ok(progress(&pod, image))
        }
        Some(Ok(_)) => Err(Ending::failed("somebody deleted the pod of the shell")),
        // The watch tries again by itself.
        Some(Err(_)) => Ok(PodStartup::Waits(String::new())),
        None => Err(Ending::failed("the cluster is not connected any more")),
    }
}

/// The pod's end of a shell that runs.
struct Console {
    input: console::Input,
    output: console::Output,
}

impl Console {
    /// Carries frames both ways until one side ends.
    async fn relay(
        &mut self,
        keyboard: &mut Keyboard,
        screen: &mut Screen,
        deadline: Instant,
    ) -> Result<(), Ending> {
        let mut pings = interval(PING_EVERY);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut idle_at = Instant::now() + IDLE_TIME_MAX;
        loop {
            tokio::select! {
                typed = keyboard.next() => {
                    let typed = typed?;
                    if matches!(typed, TerminalFrame::Input(_)) {
                        idle_at = Instant::now() + IDLE_TIME_MAX;
                    }
                    if let TerminalFrame::Input(frame) | TerminalFrame::Resize(frame) = typed {
                        self.input.send(frame).await?;
                    }
                }
                frame = self.output.next() => screen.show(frame?).await?,
                _ = pings.tick() => screen.ping().await?,
                () = sleep_until(idle_at) => {
                    let minutes = IDLE_TIME_MAX.as_secs() / 60;
                    let text = format!("the shell ended after {minutes} minutes without input");
                    return Err(Ending::Failed(text));
                }
                () = sleep_until(deadline) => {
                    let hours = SESSION_TIME_MAX.as_secs() / 3600;
                    return Err(Ending::Failed(format!("the shell ended after {hours} hours")));
                }
            }
        }
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let (pod, token) = (self.open.pod.clone(), self.token.take());
        let (downstream, management) = (self.downstream.clone(), self.management.clone());
        tokio::spawn(async move {
            // The token first: it is the only thing of value.
            if let Some(token) = token {
                remove::<Token>(&Api::all(management), &token).await;
            }
            // The cluster deletes the Secret, which the pod owns.
            remove::<Pod>(&Api::namespaced(downstream, keys::SYSTEM_NS), &pod).await;
        });
    }
}

/// Deletes an object that may not exist any more.
async fn remove<K: ensure::Object>(objects: &Api<K>, name: &str) {
    for attempt in 1..=REMOVAL_ATTEMPTS {
        match ensure::absent(objects, name).await {
            Ok(_) => return,
            Err(error) => tracing::debug!(name, attempt, %error, "cannot remove it yet"),
        }
        sleep(REMOVAL_PAUSE * attempt).await;
    }
    tracing::warn!(name, "an object of a kubectl shell is left; it is removed later");
}
