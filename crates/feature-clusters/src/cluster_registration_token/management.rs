//! Keeps true: every registration token has a secret, an end, and commands that fit the settings.
//!
//! Watches registration tokens (own key), clusters (to all tokens of the cluster, for its agent
//! image) and settings (to all tokens). Owns no condition.

use std::sync::Arc;

use api_management::setting::{AGENT_IMAGE, CACERTS, SERVER_URL, SYSTEM_DEFAULT_REGISTRY};
use api_management::{Cluster, ClusterRegistrationToken, cluster_registration_token as crt, ids};
use controller::{
    Key, Outcome, Reconcile, ReconcileError, Reflector, Runner, StatusPatch, StatusTarget, Whole,
};
use feature_kit::rbac::ours;
use feature_kit::{ControllerIdentity, ManagementContext, Settings};
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use kube::Client;

use super::manifest::{agent_image, ca_checksum};

/// The controller's identity, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    let status = ["clusterregistrationtokens/status"];
    ControllerIdentity::new(
        "registration-token",
        vec![ours(&["clusterregistrationtokens"], &["get"]), ours(&status, &["patch"])],
    )
}

/// Runs the controller until the future is dropped. `client` acts as [`identity()`].
pub async fn run(context: ManagementContext, client: Client) {
    let scope = &context.scope;
    let tokens = scope.reflectors.get::<Whole<ClusterRegistrationToken>>();
    let clusters = scope.reflectors.get::<Whole<Cluster>>();
    context.settings.synced().await;
    let commands = Commands {
        client,
        tokens: tokens.clone(),
        clusters: clusters.clone(),
        settings: context.settings.clone(),
    };
    let runner = Runner::new(Arc::new(commands));
    runner.watch_own(&tokens);
    let of_cluster = tokens.clone();
    runner.watch(&clusters, move |change| {
        let changed = match change {
            controller::Change::Applied { new, old: Some(old), .. } => new.spec != old.spec,
            controller::Change::Applied { old: None, .. } => true,
            controller::Change::Deleted { .. } => false,
        };
        let tokens = if changed { of_cluster.in_namespace(&change.key().name) } else { Vec::new() };
        tokens.into_iter().map(|(key, _)| key)
    });
    let all = tokens.clone();
    runner.watch(context.settings.reflector(), move |change| {
        let name = change.key().name.as_str();
        let used = [SERVER_URL, CACERTS, AGENT_IMAGE, SYSTEM_DEFAULT_REGISTRY];
        let relevant = used.contains(&name);
        let tokens = if relevant { all.all() } else { Vec::new() };
        tokens.into_iter().map(|(key, _)| key)
    });
    runner.run("", &scope.controllers, scope.stop.clone()).await;
}

struct Commands {
    client: Client,
    tokens: Arc<Reflector<Whole<ClusterRegistrationToken>>>,
    clusters: Arc<Reflector<Whole<Cluster>>>,
    settings: Settings,
}

/// What the commands are made of.
pub(crate) struct Observed<'a> {
    pub server_url: &'a str,
    pub ca_certs: &'a str,
    pub image: &'a str,
    /// Made up beforehand, for a token that has no secret yet.
    pub new_secret: &'a str,
    pub now: Timestamp,
}

/// What to write into status. Pure.
pub(crate) fn desired(token: &ClusterRegistrationToken, observed: &Observed<'_>) -> StatusPatch {
    let status = &token.status;
    let secret = if status.token.is_empty() { observed.new_secret } else { &status.token };
    let patch = StatusPatch::new().field("token", secret);
    let patch = if status.expires_at.is_empty() {
        let created = token.metadata.creation_timestamp.as_ref().map_or(observed.now, |at| at.0);
        let end = created + SignedDuration::from_hours(crt::TTL_HOURS);
        patch.field("expiresAt", end.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
    } else {
        patch
    };
    if observed.server_url.is_empty() {
        return patch;
    }
    let url =
        format!("{}/v3/import/{secret}_{}.yaml", observed.server_url, token.spec.cluster_name);
    let mut node = format!(
        "sudo docker run -d --privileged --restart=unless-stopped --net=host \
         -v /etc/kubernetes:/etc/kubernetes -v /var/run:/var/run {} --server {} --token {secret}",
        observed.image, observed.server_url
    );
    if let Some(checksum) = ca_checksum(observed.ca_certs) {
        node.push_str(&format!(" --ca-checksum {checksum}"));
    }
    patch
        .field("command", format!("kubectl apply -f {url}"))
        .field("insecureCommand", format!("curl --insecure -sfL {url} | kubectl apply -f -"))
        .field("nodeCommand", node)
        .field("manifestUrl", url)
}

impl Commands {
    async fn reconcile(&self, key: &Key) -> Result<Outcome, ReconcileError> {
        let Some(token) = self.tokens.get(key) else { return Ok(Outcome::Done) };
        let cluster = self.clusters.named(&token.spec.cluster_name);
        let Some(cluster) = cluster else {
            return Ok(Outcome::WaitingFor(format!("cluster \"{}\"", token.spec.cluster_name)));
        };
        let (server_url, ca_certs) = (self.settings.server_url(), self.settings.get(CACERTS));
        let observed = Observed {
            server_url: &server_url,
            ca_certs: &ca_certs,
            image: &agent_image(&cluster.spec, &self.settings),
            new_secret: &ids::from_random("", &rand::random::<[u8; ids::KEY_LEN]>()),
            now: Timestamp::now(),
        };
        let target = StatusTarget::of::<ClusterRegistrationToken>(&key.namespace, &key.name);
        let patch = desired(&token, &observed);
        // Another writer may have given it a secret since the last watch event: that one stays.
        let had_secret = !token.status.token.is_empty();
        let write = patch.write_if(&self.client, &target, |stored| {
            had_secret || stored["status"]["token"].as_str().unwrap_or_default().is_empty()
        });
        write.await?;
        Ok(if observed.server_url.is_empty() {
            Outcome::WaitingFor("setting \"server-url\"".to_owned())
        } else {
            Outcome::Done
        })
    }
}

impl Reconcile for Commands {
    fn name(&self) -> &'static str {
        "registration-token"
    }
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>> {
        Box::pin(self.reconcile(key))
    }
}
