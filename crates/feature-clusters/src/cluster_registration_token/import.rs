//! `GET /v3/import/<token>_<cluster id>.yaml`: the agent's manifest, for whoever has the token.
//!
//! Public: the token in the path is the credential. Unknown is 404, ended is 410, each with what to
//! do in plain text, since the reader sees it as an error of kubectl or curl.
//!
//! A token that an agent has registered with is 410 too. Its address is in the history of shells
//! and in the logs of pipelines, and the manifest has the environment of the agent, with the
//! password of a proxy. `kubectl` that runs the same command again applies nothing; a manifest that
//! was saved can be applied again in its cluster.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use api_management::cluster::AgentIdentity;
use api_management::setting::CACERTS;
use api_management::{Cluster, ClusterRegistrationToken, Kind};
use api_meta::status::Status;
use controller::{Change, Key, Reflector, Reflectors, Whole};
use feature_kit::{
    CredentialStore, Handler, ManagementContext, Request, Response, Settings, route,
};
use futures::future::BoxFuture;
use http::{Method, StatusCode};
use parking_lot::RwLock;
use serde_json::Value;
use tokio::sync::OnceCell;

use super::manifest::{Import, agent_image, render};
use crate::registrar::expires_at;

/// How long a request waits for a server that has just started.
const SYNC_TIME_MAX: Duration = Duration::from_secs(5);
/// How far what is known here may be behind: a command that was just shown to somebody is good at
/// once.
const LAG_MAX: Duration = Duration::from_secs(1);

/// The route of the agent's manifest.
pub struct ImportRoute {
    reflectors: Reflectors,
    settings: Settings,
    credentials: Arc<CredentialStore>,
    lookup: OnceCell<Lookup>,
}

struct Lookup {
    tokens: Arc<Reflector<Whole<ClusterRegistrationToken>>>,
    clusters: Arc<Reflector<Whole<Cluster>>>,
    by_secret: Arc<RwLock<HashMap<String, Key>>>,
}

impl Lookup {
    fn new(reflectors: &Reflectors) -> Self {
        let tokens = reflectors.get::<Whole<ClusterRegistrationToken>>();
        let by_secret: Arc<RwLock<HashMap<String, Key>>> = Arc::default();
        let index = by_secret.clone();
        tokens.subscribe(move |change| {
            note(&mut index.write(), change);
            true
        });
        Self { tokens, clusters: reflectors.get(), by_secret }
    }

    /// The token of this secret, and its cluster, as soon as both are known.
    async fn find(&self, secret: &str) -> (Arc<ClusterRegistrationToken>, Arc<Cluster>) {
        let token = self.tokens.wait_for(|tokens| {
            let key = self.by_secret.read().get(secret).cloned()?;
            tokens.get(&key)
        });
        let token = token.await;
        let cluster = self.clusters.wait_for(|clusters| clusters.named(&token.spec.cluster_name));
        let cluster = cluster.await;
        (token, cluster)
    }
}

fn note(index: &mut HashMap<String, Key>, change: &Change<'_, ClusterRegistrationToken>) {
    let old = match change {
        Change::Applied { old, .. } => *old,
        Change::Deleted { old, .. } => Some(*old),
    };
    if let Some(old) = old {
        index.remove(&old.status.token);
    }
    if let Change::Applied { key, new, .. } = change
        && !new.status.token.is_empty()
    {
        index.insert(new.status.token.clone(), (*key).clone());
    }
}

/// The token and, when given, the cluster id in a path. Pure.
pub(crate) fn parse(path: &str) -> Option<(&str, Option<&str>)> {
    let name = path.strip_prefix("/v3/import/")?.strip_suffix(".yaml")?;
    if name.is_empty() || name.contains('/') {
        return None;
    }
    Some(match name.split_once('_') {
        Some((token, cluster)) => (token, Some(cluster)),
        None => (name, None),
    })
}

const UNKNOWN: &str = "# this registration token is not known to this server\n\
    # get the import command of the cluster from the server and run that one\n";
const ENDED: &str = "# this registration token has expired\n\
    # create a new registration token for the cluster and run the command it shows\n";
const USED: &str = "# an agent has registered with this registration token, and its manifest is not shown again: it\n\
    # has the environment of the agent. What was downloaded before can be applied again.\n";
const UNREADABLE: &str = "# the server cannot read the environment of the agent now; run the \
    command again in a few seconds\n";
const STARTING: &str = "# the server is still starting; run the command again in a few seconds\n";

/// Whether an agent has registered its key with the token.
fn is_used(token: &ClusterRegistrationToken, cluster: &Cluster) -> bool {
    let registered = cluster.status.agent_identity.as_ref();
    let is_registered =
        |identity: &AgentIdentity| Some(&identity.token_name) == token.metadata.name.as_ref();
    !token.status.used_at.is_empty() || registered.is_some_and(is_registered)
}

/// The commands that make another token for a cluster.
fn new_token(cluster: &str) -> String {
    format!(
        "# A new token and its command, for whoever may make one:\n\
         #   drover cluster import NAME --kubeconfig FILE --resume\n\
         # or, with kubectl and the kubeconfig of the server:\n\
         #   echo '{{\"apiVersion\":\"management.cattle.io/v3\",\"kind\":\"ClusterRegistrationToken\",\
         \"metadata\":{{\"generateName\":\"token-\",\"namespace\":\"{cluster}\"}}}}' | kubectl create -f -\n\
         #   kubectl -n {cluster} get clusterregistrationtokens -o \
         jsonpath='{{range .items[*]}}{{.status.usedAt}} {{.status.command}}{{\"\\n\"}}{{end}}'\n"
    )
}

impl ImportRoute {
    /// The route; it reads tokens and settings from the shared reflectors.
    pub fn new(context: &ManagementContext) -> Self {
        Self {
            reflectors: context.scope.reflectors.clone(),
            settings: context.settings.clone(),
            credentials: context.credentials.clone(),
            lookup: OnceCell::new(),
        }
    }

    async fn answer(&self, request: Request) -> Response {
        if ![Method::GET, Method::HEAD].contains(&request.parts.method) {
            return route::text(StatusCode::METHOD_NOT_ALLOWED, "# only GET is served here\n");
        }
        let Some((secret, cluster_id)) = parse(request.parts.uri.path()) else {
            return route::text(StatusCode::NOT_FOUND, UNKNOWN);
        };
        let lookup = self.lookup.get_or_init(async || Lookup::new(&self.reflectors)).await;
        let synced = async {
            tokio::join!(lookup.tokens.synced(), lookup.clusters.synced(), self.settings.synced())
        };
        if tokio::time::timeout(SYNC_TIME_MAX, synced).await.is_err() {
            return route::text(StatusCode::SERVICE_UNAVAILABLE, STARTING);
        }
        let Ok((token, cluster)) = tokio::time::timeout(LAG_MAX, lookup.find(secret)).await else {
            return route::text(StatusCode::NOT_FOUND, UNKNOWN);
        };
        if cluster_id.is_some_and(|id| id != token.spec.cluster_name) {
            return route::text(StatusCode::NOT_FOUND, UNKNOWN);
        }
        if expires_at(&token) <= SystemTime::now() {
            return route::text(StatusCode::GONE, ENDED);
        }
        if is_used(&token, &cluster) {
            let text = format!("{USED}{}", new_token(&token.spec.cluster_name));
            return route::text(StatusCode::GONE, text);
        }
        self.manifest(&request, &cluster, secret).await
    }

    async fn manifest(&self, request: &Request, cluster: &Cluster, secret: &str) -> Response {
        let Ok(env) = environment(&self.credentials, cluster).await else {
            return route::text(StatusCode::SERVICE_UNAVAILABLE, UNREADABLE);
        };
        let set = self.settings.server_url();
        let server_url = if set.is_empty() { request.base_url() } else { set };
        let text = render(&Import {
            cluster: cluster.metadata.name.as_deref().unwrap_or_default(),
            server_url: &server_url,
            ca_certs: &self.settings.get(CACERTS),
            token: secret,
            image: &agent_image(&cluster.spec, &self.settings),
            env: &env,
        });
        route::text(StatusCode::OK, text)
    }
}

/// With the values that are stored apart from the cluster.
pub(super) async fn environment(
    credentials: &CredentialStore,
    cluster: &Cluster,
) -> Result<Vec<Value>, Status> {
    if cluster.spec.agent_env_vars.is_empty() {
        return Ok(Vec::new());
    }
    let stored = serde_json::to_value(cluster).map_err(|error| Status::internal(&error))?;
    let mut whole = credentials.with_values(Cluster::KIND, stored).await?;
    match whole["spec"]["agentEnvVars"].take() {
        Value::Array(variables) => Ok(variables),
        _ => Ok(Vec::new()),
    }
}

impl Handler for ImportRoute {
    fn handle(&self, request: Request) -> BoxFuture<'_, Response> {
        Box::pin(self.answer(request))
    }
}
