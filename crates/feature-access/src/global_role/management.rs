//! Keeps true: what a global role allows, its members may do in the management API.
//!
//! For each global role a ClusterRole and its binding to the role's group, and for its rules on
//! Secrets a Role and its binding in the namespace of global data. Their number does not depend on
//! the number of users. `admin` has none: its group is bound to `cluster-admin` from the start.
//! Watches global roles (own key) and what it makes, so that changes made there are reverted. All
//! of it is owned by its global role. Owns no condition.

use std::sync::Arc;

use api_management::global_role::ADMIN;
use api_management::{GlobalRole, PolicyRule, keys};
use controller::ensure::Object;
use controller::{Key, Outcome, Reconcile, ReconcileError, Reflector, Runner, Whole, ensure};
use feature_kit::access::global_group;
use feature_kit::ownership::owner_reference;
use feature_kit::rbac::{ensure_binding, role_ref, rule, subject, to_kube};
use feature_kit::{ControllerIdentity, ManagementContext};
use futures::future::BoxFuture;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::api::ObjectMeta;
use kube::{Api, Client, ResourceExt};

/// Label of what this controller makes.
const LABEL: &str = "drover.io/global-role";
/// Value of [`LABEL`]; the name of the role is no label value, it may be too long.
const YES: &str = "true";
const CONTROLLER: &str = "global-roles";

/// The controller's identity, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    let all = ["get", "list", "create", "patch", "delete", "bind", "escalate"];
    let group = "rbac.authorization.k8s.io";
    ControllerIdentity::new(
        CONTROLLER,
        vec![rule(group, &["clusterroles", "clusterrolebindings"], &all)],
    )
    .within(keys::GLOBAL_DATA_NS, rule(group, &["roles", "rolebindings"], &all))
}

/// Runs the controller until the future is dropped. `client` acts as [`identity()`].
pub async fn run(context: ManagementContext, client: Client) {
    let scope = &context.scope;
    let made = format!("{LABEL}={YES}");
    let roles: Arc<Reflector<Whole<GlobalRole>>> = scope.reflectors.get();
    let cluster_roles = scope.reflectors.selected::<Whole<ClusterRole>>(&made);
    let cluster_bindings = scope.reflectors.selected::<Whole<ClusterRoleBinding>>(&made);
    let within = scope.reflectors.selected::<Whole<Role>>(&made);
    let bindings = scope.reflectors.selected::<Whole<RoleBinding>>(&made);
    let runner = Runner::new(Arc::new(GlobalRoles {
        client,
        roles: roles.clone(),
        cluster_bindings: cluster_bindings.clone(),
        bindings: bindings.clone(),
    }));
    runner.watch_own(&roles);
    runner.watch(&cluster_roles, |change| role_of(change.key()));
    runner.watch(&cluster_bindings, |change| role_of(change.key()));
    runner.watch(&within, |change| role_of(change.key()));
    runner.watch(&bindings, |change| role_of(change.key()));
    runner.run("", &scope.controllers, scope.stop.clone()).await;
}

/// The global role that an object of this name belongs to.
fn role_of(key: &Key) -> Option<Key> {
    key.name.strip_prefix(&global_group("")).map(Key::cluster_scoped)
}

struct GlobalRoles {
    client: Client,
    roles: Arc<Reflector<Whole<GlobalRole>>>,
    cluster_bindings: Arc<Reflector<Whole<ClusterRoleBinding>>>,
    bindings: Arc<Reflector<Whole<RoleBinding>>>,
}

impl GlobalRoles {
    async fn reconcile(&self, key: &Key) -> Result<Outcome, ReconcileError> {
        // What a deleted role leaves is collected with it.
        let Some(role) = self.roles.get(key) else { return Ok(Outcome::Done) };
        if role.metadata.deletion_timestamp.is_some() || key.name == ADMIN {
            return Ok(Outcome::Done);
        }
        self.apply_everywhere(&role).await?;
        self.apply_in_global_data(&role).await?;
        Ok(Outcome::Done)
    }

    async fn apply_everywhere(&self, role: &GlobalRole) -> Result<(), ReconcileError> {
        let cluster_role = ClusterRole {
            metadata: metadata(role, None),
            rules: Some(super::everywhere(role).iter().map(to_kube).collect()),
            aggregation_rule: None,
        };
        let name = cluster_role.name_any();
        let binding = ClusterRoleBinding {
            metadata: metadata(role, None),
            role_ref: role_ref("ClusterRole", &name),
            subjects: Some(vec![subject("Group", &name)]),
        };
        ensure::like(&Api::all(self.client.clone()), &cluster_role).await?;
        let known = self.cluster_bindings.named(&name);
        ensure_binding(&Api::all(self.client.clone()), &binding, known.as_deref()).await
    }

    async fn apply_in_global_data(&self, role: &GlobalRole) -> Result<(), ReconcileError> {
        let rules: Vec<PolicyRule> = super::in_global_data(role);
        let namespace = keys::GLOBAL_DATA_NS;
        let (roles, bindings) = (self.within::<Role>(), self.within::<RoleBinding>());
        let within = Role {
            metadata: metadata(role, Some(namespace)),
            rules: Some(rules.iter().map(to_kube).collect()),
        };
        let name = within.name_any();
        if rules.is_empty() {
            ensure::absent(&bindings, &name).await?;
            ensure::absent(&roles, &name).await?;
            return Ok(());
        }
        let binding = RoleBinding {
            metadata: metadata(role, Some(namespace)),
            role_ref: role_ref("Role", &name),
            subjects: Some(vec![subject("Group", &name)]),
        };
        ensure::like(&roles, &within).await?;
        let known = self.bindings.get(&Key::namespaced(namespace, &name));
        ensure_binding(&bindings, &binding, known.as_deref()).await
    }

    fn within<K>(&self) -> Api<K>
    where
        K: Object + kube::Resource<Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), keys::GLOBAL_DATA_NS)
    }
}

fn metadata(role: &GlobalRole, namespace: Option<&str>) -> ObjectMeta {
    ObjectMeta {
        name: Some(global_group(&role.name_any())),
        namespace: namespace.map(str::to_owned),
        labels: Some([(LABEL.to_owned(), YES.to_owned())].into()),
        owner_references: Some(vec![owner_reference(role)]),
        ..ObjectMeta::default()
    }
}

impl Reconcile for GlobalRoles {
    fn name(&self) -> &'static str {
        CONTROLLER
    }
    fn reconcile<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>> {
        Box::pin(self.reconcile(key))
    }
}
