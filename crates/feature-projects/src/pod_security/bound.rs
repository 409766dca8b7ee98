//! Keeps true: the status of every project names the PodSecurityPolicyTemplate that is bound to it.
//! Watches projects (own key) and bindings.

use std::sync::Arc;

use api_management::{PodSecurityPolicyTemplateProjectBinding, Project};
use controller::error::is_code;
use controller::{
    Key, Outcome, Reconcile, ReconcileError, Reflector, Runner, StatusPatch, StatusTarget, Whole,
};
use feature_kit::rbac::ours;
use feature_kit::{ControllerIdentity, ManagementContext};
use futures::future::BoxFuture;
use kube::Client;
use serde_json::Value;

use super::policies::bound_to;

const CONTROLLER: &str = "project-pod-security";
const FIELD: &str = "podSecurityPolicyTemplateName";

/// The controller's identity, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    let rules = vec![ours(&["projects"], &["get"]), ours(&["projects/status"], &["patch"])];
    ControllerIdentity::new(CONTROLLER, rules)
}

/// Runs the controller until the future is dropped. `client` acts as [`identity()`].
pub async fn run(context: ManagementContext, client: Client) {
    let scope = &context.scope;
    let bound =
        Bound { client, projects: scope.reflectors.get(), bindings: scope.reflectors.get() };
    tokio::join!(bound.projects.synced(), bound.bindings.synced());
    let (projects, bindings) = (bound.projects.clone(), bound.bindings.clone());
    let runner = Runner::new(Arc::new(bound));
    runner.watch_own(&projects);
    runner.watch(&bindings, |change| {
        let of = |binding: &PodSecurityPolicyTemplateProjectBinding| {
            binding.project().map(|(cluster, project)| Key::namespaced(cluster, project))
        };
        let old = change.old().and_then(|old| of(old));
        old.into_iter().chain(of(change.object())).collect::<Vec<_>>()
    });
    runner.run("", &scope.controllers, scope.stop.clone()).await;
}

struct Bound {
    client: Client,
    projects: Arc<Reflector<Whole<Project>>>,
    bindings: Arc<Reflector<Whole<PodSecurityPolicyTemplateProjectBinding>>>,
}

impl Bound {
    async fn reconcile(&self, key: &Key) -> Result<Outcome, ReconcileError> {
        let Some(project) = self.projects.get(key) else { return Ok(Outcome::Done) };
        let bound = bound_to(&self.bindings, &key.namespace, &key.name);
        if bound.as_deref().unwrap_or_default() == project.status.pod_security_policy_template_name
        {
            return Ok(Outcome::Done);
        }
        let patch = StatusPatch::new().field(FIELD, bound.map_or(Value::Null, Value::from));
        let target = StatusTarget::of::<Project>(&key.namespace, &key.name);
        match patch.write(&self.client, &target).await {
            Err(ReconcileError::Api { source, .. }) if is_code(&source, 404) => Ok(Outcome::Done),
            written => written.map(|_| Outcome::Done),
        }
    }
}

impl Reconcile for Bound {
    fn name(&self) -> &'static str {
        CONTROLLER
    }
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>> {
        Box::pin(self.reconcile(key))
    }
}
