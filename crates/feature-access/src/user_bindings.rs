//! Keeps true: what was given to a user ends with the user, so that a later user of that name does
//! not have it.
//!
//! A user who is being deleted waits for the bindings of all levels that name the user to be
//! deleted: as long as one is left, nobody else can have the name. Owns no condition.

use std::sync::Arc;

use api_management::user::LOCAL_PRINCIPAL;
use api_management::{
    ClusterRoleTemplateBinding, GlobalRoleBinding, ProjectRoleTemplateBinding, User, keys,
};
use controller::{
    Attempt, Change, Key, Outcome, Reconcile, ReconcileError, Reflector, Runner, StatusTarget,
    Whole, ensure, finalizer,
};
use feature_kit::rbac::ours;
use feature_kit::{ControllerIdentity, ManagementContext};
use futures::future::BoxFuture;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};

const CONTROLLER: &str = "user-bindings";

/// The controller's identity, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    let kinds =
        ["globalrolebindings", "clusterroletemplatebindings", "projectroletemplatebindings"];
    let rules = vec![ours(&kinds, &["delete", "list"]), ours(&["users"], &["get", "patch"])];
    ControllerIdentity::new(CONTROLLER, rules)
}

/// Runs the controller until the future is dropped. `client` acts as [`identity()`].
pub async fn run(context: ManagementContext, client: Client) {
    let scope = &context.scope;
    let users: Arc<Reflector<Whole<User>>> = scope.reflectors.get();
    let runner = Runner::new(Arc::new(UserBindings { client, users: users.clone() }));
    runner.watch(&users, |change| {
        let ends = match change {
            Change::Applied { new, .. } => new.metadata.deletion_timestamp.is_some(),
            // Of an earlier version, which had no finalizer.
            Change::Deleted { old, .. } => old.metadata.deletion_timestamp.is_none(),
        };
        ends.then(|| change.key().clone())
    });
    runner.run("", &scope.controllers, scope.stop.clone()).await;
}

struct UserBindings {
    client: Client,
    users: Arc<Reflector<Whole<User>>>,
}

impl UserBindings {
    async fn reconcile(&self, user: &Key) -> Result<Outcome, ReconcileError> {
        // Somebody made a user of this name again: the bindings may be new.
        let found = self.users.get(user);
        if found.is_some_and(|found| found.metadata.deletion_timestamp.is_none()) {
            return Ok(Outcome::Done);
        }
        self.delete_bindings(&user.name).await?;
        let target = StatusTarget::of::<User>("", &user.name);
        finalizer::remove(&self.client, &target, keys::USER_FINALIZER).await?;
        Ok(Outcome::Done)
    }

    /// As they are stored, not as they are known: one may have been made a moment ago.
    async fn delete_bindings(&self, user: &str) -> Result<(), ReconcileError> {
        let principal = format!("{LOCAL_PRINCIPAL}{user}");
        let names = |name: &str, id: &str| name == user || id == principal;
        let (client, all) = (&self.client, ListParams::default());
        let attempt = |kind: &str| format!("list {kind} of user \"{user}\"");

        let api = Api::<GlobalRoleBinding>::all(client.clone());
        let found = api.list(&all).await.attempt(|| attempt("global role bindings"))?;
        for binding in found.iter().filter(|binding| names(&binding.user_name, "")) {
            ensure::absent(&api, &binding.name_any()).await?;
        }
        let found = Api::<ClusterRoleTemplateBinding>::all(client.clone()).list(&all).await;
        let found = found.attempt(|| attempt("cluster members"))?;
        let of_user =
            |one: &&ClusterRoleTemplateBinding| names(&one.user_name, &one.user_principal_name);
        for binding in found.iter().filter(of_user) {
            let namespace = binding.namespace().unwrap_or_default();
            let api = Api::<ClusterRoleTemplateBinding>::namespaced(client.clone(), &namespace);
            ensure::absent(&api, &binding.name_any()).await?;
        }
        let found = Api::<ProjectRoleTemplateBinding>::all(client.clone()).list(&all).await;
        let found = found.attempt(|| attempt("project members"))?;
        let of_user =
            |one: &&ProjectRoleTemplateBinding| names(&one.user_name, &one.user_principal_name);
        for binding in found.iter().filter(of_user) {
            let namespace = binding.namespace().unwrap_or_default();
            let api = Api::<ProjectRoleTemplateBinding>::namespaced(client.clone(), &namespace);
            ensure::absent(&api, &binding.name_any()).await?;
        }
        Ok(())
    }
}

impl Reconcile for UserBindings {
    fn name(&self) -> &'static str {
        CONTROLLER
    }
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>> {
        Box::pin(self.reconcile(key))
    }
}
