//! The loop that holds a session open, and the process around it.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use rustls::ClientConfig;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tunnel::connect::{ConnectError, Established, open};
use tunnel::serve::{ServeError, Service, TcpOutbound, serve};
use tunnel::{Hello, RefusalReason};

use crate::args::{AgentArgs, AgentCommand, ClusterArgs, LogArgs, LogFormat};
use crate::call::{CallError, connect};
use crate::error_chain::error_chain;
use crate::home::Home;
use crate::identity::AgentIdentity;
use crate::proxy::Proxies;
use crate::reconnect::ReconnectPauses;
use crate::settings::{Settings, credentials_dir};
use crate::status::{self, StatusReporter};
use crate::trust::{TrustError, establish};

/// Time for open streams to finish after a SIGTERM; less than a pod's 30 s.
const GOODBYE_TIME_MAX: Duration = Duration::from_secs(20);
const AGENT_VERSION: &str = env!("CARGO_PKG_VERSION");

/// Runs the agent until it ends. Exit code 0 after a signal, 1 when it cannot continue, 2 for wrong
/// settings.
pub fn main(args: AgentArgs) -> ExitCode {
    let command = args.command.unwrap_or_else(AgentCommand::from_environment);
    if matches!(command, AgentCommand::Probe) {
        return probe();
    }
    start_log(&args.log);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = runtime.context("start the runtime").and_then(|runtime| {
        let outcome = runtime.block_on(run(command));
        runtime.shutdown_background();
        outcome
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let text = format!("{error:#}");
            eprintln!("error: {text}");
            status::write_termination_message(&text);
            let is_setting = error.is::<crate::settings::SettingsError>();
            ExitCode::from(if is_setting { 2 } else { 1 })
        }
    }
}

/// Prints why the agent is not connected; the kubelet shows it as an event of the pod.
fn probe() -> ExitCode {
    let trouble = match status::query_trouble() {
        Ok(None) => return ExitCode::SUCCESS,
        Ok(Some(trouble)) => trouble,
        Err(error) => format!("no agent responds here: {error}"),
    };
    println!("{trouble}");
    ExitCode::FAILURE
}

fn start_log(args: &LogArgs) {
    // Not the filter with regular expressions, which alone would be a tenth of the binary.
    let filter =
        args.log.parse().unwrap_or_else(|_| Targets::new().with_default(LevelFilter::INFO));
    let registry = tracing_subscriber::registry().with(filter);
    let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    // A log that was set up before is used.
    let _ = match args.log_format {
        LogFormat::Text => {
            registry.with(log.with_target(false).with_ansi(is_terminal())).try_init()
        }
        LogFormat::Json => registry.with(log.json()).try_init(),
    };
}

fn is_terminal() -> bool {
    std::io::IsTerminal::is_terminal(&std::io::stderr())
}

async fn run(command: AgentCommand) -> anyhow::Result<()> {
    match command {
        AgentCommand::Cluster(args) => run_cluster(args).await,
        AgentCommand::Node(_) | AgentCommand::Probe => bail!(
            "the node agent is not implemented yet; to connect a cluster run \"drover-agent cluster\" \
             in it, as the import manifest does"
        ),
    }
}

async fn run_cluster(args: ClusterArgs) -> anyhow::Result<()> {
    let settings =
        Settings::resolve(&args.server, &credentials_dir(), Proxies::from_environment())?;
    let home = match &args.kubeconfig {
        Some(path) => Home::from_kubeconfig(path)?,
        None => Home::in_cluster()?,
    };
    let goodbye = CancellationToken::new();
    let signals = goodbye.clone();
    tokio::select! {
        ended = Agent::new(settings, home, StatusReporter::of_container()).run(goodbye) => Ok(ended?),
        stopped = stop_on_signal(signals) => stopped,
    }
}

/// The first signal says goodbye; a second one, or [`GOODBYE_TIME_MAX`], ends the process.
async fn stop_on_signal(goodbye: CancellationToken) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("listen for SIGINT")?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("stopping: open streams may finish");
    goodbye.cancel();
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        () = tokio::time::sleep(GOODBYE_TIME_MAX) => {}
    }
    Ok(())
}

/// Why no session was established, by what to do next.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttemptError {
    #[error("decide whether to trust the server: {0}")]
    Trust(TrustError),
    #[error(
        "reach the server: {0}; pods of this cluster must be able to connect to it: check its \
         address, DNS, routes, firewalls and network policies"
    )]
    Reach(#[from] CallError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Identity(#[from] crate::identity::IdentityError),
}

/// What the loop does after a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Retry soon: the error is transient.
    Soon,
    /// Retry later: only a user or a new manifest helps.
    Late,
    /// The server does not know the key: present the token.
    ShowToken,
    /// The key belongs to another cluster: generate one for this cluster.
    RenewKey,
}

impl From<TrustError> for AttemptError {
    fn from(error: TrustError) -> Self {
        match error {
            TrustError::Fetch(error) => Self::Reach(error),
            other => Self::Trust(other),
        }
    }
}

impl AttemptError {
    pub(crate) fn next(&self) -> Next {
        match self {
            Self::Connect(ConnectError::Refused(refusal)) => match refusal.reason {
                RefusalReason::KeyUnknown => Next::ShowToken,
                RefusalReason::KeyElsewhere => Next::RenewKey,
                _ if refusal.is_transient() => Next::Soon,
                _ => Next::Late,
            },
            Self::Trust(error) if error.is_final() => Next::Late,
            _ => Next::Soon,
        }
    }
}

pub(crate) struct Agent {
    settings: Settings,
    home: Arc<Home>,
    instance: String,
    identity: Option<AgentIdentity>,
    /// `None` until it has been read.
    cluster_uid: Option<String>,
    tls: Option<Arc<ClientConfig>>,
    must_show_token: bool,
    has_renewed: bool,
    has_connected: bool,
    pauses: ReconnectPauses,
    status: StatusReporter,
}

impl Agent {
    pub(crate) fn new(settings: Settings, home: Home, status: StatusReporter) -> Self {
        let instance = tunnel::key::hex(&rand::random::<[u8; 16]>());
        Self {
            settings,
            home: Arc::new(home),
            instance,
            identity: None,
            cluster_uid: None,
            tls: None,
            must_show_token: false,
            has_renewed: false,
            has_connected: false,
            pauses: ReconnectPauses::default(),
            status,
        }
    }

    /// Holds a session open until `goodbye`, and lets the last one finish.
    ///
    /// # Errors
    /// No server has ever accepted this agent, and none will without a user: ending the process
    /// shows the reason in the pod's status. An agent that was accepted before retries without an
    /// end, because its settings were right once.
    pub(crate) async fn run(mut self, goodbye: CancellationToken) -> Result<(), AttemptError> {
        let (credential, reported) = watch::channel(None);
        let home = self.home.clone();
        let following = tokio::spawn(async move { home.follow_credential(credential).await });
        let service = Service {
            outbound: Arc::new(TcpOutbound::new([self.home.address().clone()])),
            credential: reported,
            agent_version: AGENT_VERSION.to_owned(),
        };
        tracing::info!(server = %self.settings.server, api = %self.home.address(),
            version = AGENT_VERSION, "connecting this cluster");
        while !goodbye.is_cancelled() {
            let attempt = tokio::select! {
                attempt = self.attempt() => attempt,
                () = goodbye.cancelled() => break,
            };
            let pause = match attempt {
                Ok(session) => {
                    self.serve(session, service.clone(), goodbye.clone()).await;
                    self.pauses.soon()
                }
                Err(error) => match self.handle_failure(error).await {
                    Ok(pause) => pause,
                    Err(error) => {
                        following.abort();
                        return Err(error);
                    }
                },
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = goodbye.cancelled() => {}
            }
        }
        following.abort();
        Ok(())
    }

    /// One attempt to establish a session.
    async fn attempt(&mut self) -> Result<Established, AttemptError> {
        let (server, proxies) = (&self.settings.server, &self.settings.proxies);
        if self.identity.is_none() {
            self.identity = Some(AgentIdentity::load(&self.home).await?);
        }
        if self.cluster_uid.is_none() {
            self.cluster_uid = self.home.cluster_uid().await;
        }
        let identity = self.identity.as_mut().expect("loaded above");
        let tls = match &self.tls {
            Some(tls) => tls.clone(),
            None => {
                let tls = establish(server, self.settings.ca_checksum.as_deref(), proxies).await?;
                self.tls.insert(tls).clone()
            }
        };
        let name = server.tls_name().expect("checked when parsed");
        let connected = connect(server.host(), server.port(), name, &tls, proxies).await;
        if matches!(connected, Err(CallError::Tls { .. })) {
            // The server's CA may be a new one: fetch it again with the next attempt.
            self.tls = None;
        }
        let token = self.settings.token.as_ref();
        let shown = token.filter(|token| self.must_show_token || !identity.is_accepted_with(token));
        let hello = Hello {
            key: identity.key.id(),
            public_key: shown.map(|_| identity.key.public_key()),
            token: shown.cloned(),
            instance: self.instance.clone(),
            agent_version: AGENT_VERSION.to_owned(),
            cluster_uid: self.cluster_uid.clone(),
        };
        let pinned = self.settings.ca_checksum.as_deref();
        let session = open(connected?, &server.authority(), &hello, &identity.key, pinned).await?;
        self.must_show_token = false;
        if let Some(token) = &hello.token
            && let Err(error) = identity.accept(&self.home, token).await
        {
            // Harmless: the token is presented once more after a restart.
            tracing::warn!(%error, "could not record that the server accepted this agent");
        }
        Ok(session)
    }

    async fn serve(&mut self, session: Established, service: Service, goodbye: CancellationToken) {
        tracing::info!(cluster = %session.cluster, session = session.session, "connected");
        self.has_connected = true;
        self.status.report_connected();
        let started = tokio::time::Instant::now();
        match serve(session, service, goodbye).await {
            Ok(()) => tracing::info!("the session ended"),
            Err(ServeError::Broken(error)) => {
                tracing::warn!(%error, "the connection to the server broke; reconnecting");
            }
            Err(ServeError::Silent) => {
                tracing::warn!("the server fell silent; reconnecting");
            }
        }
        // A session that ends at once must not be retried at once again and again.
        if started.elapsed() >= Duration::from_secs(1) {
            self.pauses.reset();
        }
    }

    /// Reports the error and returns the pause before the next attempt, or the error if no attempt
    /// helps.
    async fn handle_failure(&mut self, error: AttemptError) -> Result<Duration, AttemptError> {
        let chain = error_chain(&error);
        self.status.report_trouble(&chain);
        match error.next() {
            Next::Soon => {
                let pause = self.pauses.soon();
                tracing::warn!(error = chain, retry_ms = millis(pause), "could not connect");
                Ok(pause)
            }
            Next::ShowToken if self.settings.token.is_some() && !self.must_show_token => {
                tracing::info!("the server does not know this agent; registering with the token");
                self.must_show_token = true;
                Ok(Duration::ZERO)
            }
            Next::RenewKey if !self.has_renewed => {
                tracing::info!("this agent's key belongs to another cluster; generating a new one");
                self.has_renewed = true;
                if let Some(identity) = &mut self.identity
                    && let Err(error) = identity.renew(&self.home).await
                {
                    tracing::error!(error = error_chain(&error), "could not replace the key");
                }
                Ok(self.pauses.soon())
            }
            Next::ShowToken | Next::RenewKey | Next::Late => {
                if !self.has_been_accepted() {
                    return Err(error);
                }
                let pause = self.pauses.late();
                tracing::error!(error = chain, retry_ms = millis(pause), "cannot connect");
                Ok(pause)
            }
        }
    }

    fn has_been_accepted(&self) -> bool {
        self.has_connected || self.identity.as_ref().is_some_and(AgentIdentity::has_been_accepted)
    }
}

fn millis(pause: Duration) -> u64 {
    u64::try_from(pause.as_millis()).unwrap_or(u64::MAX)
}
