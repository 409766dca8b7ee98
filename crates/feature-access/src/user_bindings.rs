//! Keeps true: what was given to a user ends with the user, so that a later user of that name does
//! not have it.
//!
//! Watches users: when one is deleted, the bindings of all levels that name it are deleted. Owns no
//! condition.

use std::sync::Arc;

use api_management::user::LOCAL_PRINCIPAL;
use api_management::{
    ClusterRoleTemplateBinding, GlobalRoleBinding, ProjectRoleTemplateBinding, User,
};
use controller::{
    Change, Key, Outcome, Reconcile, ReconcileError, Reflector, Runner, Whole, ensure,
};
use feature_kit::rbac::ours;
use feature_kit::{ControllerIdentity, ManagementContext};
use futures::future::BoxFuture;
use kube::{Api, Client};

const CONTROLLER: &str = "user-bindings";

/// The controller's identity, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    let kinds =
        ["globalrolebindings", "clusterroletemplatebindings", "projectroletemplatebindings"];
    ControllerIdentity::new(CONTROLLER, vec![ours(&kinds, &["delete"])])
}

/// Runs the controller until the future is dropped. `client` acts as [`identity()`].
pub async fn run(context: ManagementContext, client: Client) {
    let scope = &context.scope;
    let users: Arc<Reflector<Whole<User>>> = scope.reflectors.get();
    let runner = Runner::new(Arc::new(UserBindings {
        client,
        users: users.clone(),
        global: scope.reflectors.get(),
        clusters: scope.reflectors.get(),
        projects: scope.reflectors.get(),
    }));
    runner.watch(&users, |change| {
        matches!(change, Change::Deleted { .. }).then(|| change.key().clone())
    });
    runner.run("", &scope.controllers, scope.stop.clone()).await;
}

struct UserBindings {
    client: Client,
    users: Arc<Reflector<Whole<User>>>,
    global: Arc<Reflector<Whole<GlobalRoleBinding>>>,
    clusters: Arc<Reflector<Whole<ClusterRoleTemplateBinding>>>,
    projects: Arc<Reflector<Whole<ProjectRoleTemplateBinding>>>,
}

impl UserBindings {
    async fn reconcile(&self, user: &Key) -> Result<Outcome, ReconcileError> {
        // Somebody made a user of this name again: the bindings may be new.
        if self.users.get(user).is_some() {
            return Ok(Outcome::Done);
        }
        let principal = format!("{LOCAL_PRINCIPAL}{}", user.name);
        let names = |name: &str, id: &str| name == user.name || id == principal;
        let mut global = Vec::new();
        self.global.for_each(|key, binding| {
            if names(&binding.user_name, "") {
                global.push(key.clone());
            }
        });
        let mut clusters = Vec::new();
        self.clusters.for_each(|key, binding| {
            if names(&binding.user_name, &binding.user_principal_name) {
                clusters.push(key.clone());
            }
        });
        let mut projects = Vec::new();
        self.projects.for_each(|key, binding| {
            if names(&binding.user_name, &binding.user_principal_name) {
                projects.push(key.clone());
            }
        });
        let client = &self.client;
        for key in global {
            ensure::absent(&Api::<GlobalRoleBinding>::all(client.clone()), &key.name).await?;
        }
        for Key { namespace, name } in clusters {
            let api = Api::<ClusterRoleTemplateBinding>::namespaced(client.clone(), &namespace);
            ensure::absent(&api, &name).await?;
        }
        for Key { namespace, name } in projects {
            let api = Api::<ProjectRoleTemplateBinding>::namespaced(client.clone(), &namespace);
            ensure::absent(&api, &name).await?;
        }
        Ok(Outcome::Done)
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
