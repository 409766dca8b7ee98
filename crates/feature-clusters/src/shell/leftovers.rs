//! What is left of shells whose server ended suddenly: pods in clusters, with their Secrets, and
//! tokens here.
//!
//! Looked for when a cluster connects, and again and again after that. Nothing needs to be stored:
//! what belongs to no open shell of this server is left over.

use std::sync::Arc;
use std::time::Duration;

use api_management::token::KIND_KUBECTL_SHELL;
use api_management::{Token, keys};
use controller::{Attempt, DownstreamController, DownstreamScope, ReconcileError, ensure};
use feature_kit::rbac::ours;
use feature_kit::{ControllerIdentity, ManagementContext};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::Shells;

/// Interval between looks. A shell enters [`Shells`] before it makes anything.
const LOOK_EVERY: Duration = Duration::from_mins(1);

/// Who removes leftover tokens.
pub fn identity() -> ControllerIdentity {
    ControllerIdentity::new("kubectl-shell-tokens", vec![ours(&["tokens"], &["list", "delete"])])
}

/// Who removes leftovers in clusters. It needs nothing of the management API.
pub fn downstream_identity() -> ControllerIdentity {
    ControllerIdentity::new("kubectl-shell-pods", Vec::new())
}

/// Removes tokens of shells that are not open, until the server stops. `client` acts as
/// [`identity()`].
pub async fn run(context: ManagementContext, client: Client, shells: Arc<Shells>) {
    let tokens: Api<Token> = Api::all(client);
    let selector = format!("{}={KIND_KUBECTL_SHELL}", keys::TOKEN_KIND);
    let look = || remove(&tokens, &selector, |token| !shells.has_token(token));
    repeat(look, "kubectl-shell-tokens", &context.scope.stop).await;
}

/// The controller that removes leftovers in one cluster.
pub fn build(shells: Arc<Shells>) -> Arc<dyn DownstreamController> {
    Arc::new(ClusterLeftovers { shells })
}

struct ClusterLeftovers {
    shells: Arc<Shells>,
}

impl DownstreamController for ClusterLeftovers {
    fn name(&self) -> &'static str {
        "kubectl-shell-pods"
    }
    fn run(&self, scope: DownstreamScope) -> BoxFuture<'static, ()> {
        let shells = self.shells.clone();
        Box::pin(async move {
            let pods: Api<Pod> = Api::namespaced(scope.client.clone(), keys::SYSTEM_NS);
            let selector = format!("{}={}", keys::DOWNSTREAM_OWNED, keys::OWNED_KUBECTL_SHELL);
            let look = || remove(&pods, &selector, |name| !shells.has_pod(name));
            repeat(look, &scope.cluster, &scope.stop).await;
        })
    }
}

async fn repeat<F>(look: impl Fn() -> F, place: &str, stop: &CancellationToken)
where
    F: Future<Output = Result<(), ReconcileError>>,
{
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        if let Err(error) = look().await {
            tracing::debug!(place, %error, "cannot look for leftovers of kubectl shells");
        }
    }
}

async fn remove<K: ensure::Object>(
    objects: &Api<K>,
    selector: &str,
    is_left_over: impl Fn(&str) -> bool,
) -> Result<(), ReconcileError> {
    let listed = objects.list_metadata(&ListParams::default().labels(selector)).await;
    let listed = listed.attempt(|| "list what kubectl shells made".to_owned())?;
    for object in listed.items.iter().filter(|object| is_left_over(&object.name_any())) {
        ensure::absent(objects, &object.name_any()).await?;
    }
    Ok(())
}
