//! Keeps true: every role template that somebody has in a cluster is one ClusterRole there, bound
//! to the group of its members; and no other role or binding of ours is there.
//!
//! Runs once per connected cluster. Watches role templates and bindings in the management API, and
//! our labelled roles and bindings downstream, so that changes made there are reverted. All of it
//! is owned by our downstream namespace. Owns the cluster's condition RolesApplied.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api_management::role_template::CLUSTER_OWNER;
use api_management::{Cluster, ClusterRoleTemplateBinding, RoleTemplate, ids, keys};
use controller::{
    ConditionReport, DownstreamController, DownstreamScope, Key, Outcome, OwnedCondition,
    Reconcile, ReconcileError, Reflector, Runner, StatusTarget, Whole, WithCondition, ensure,
};
use feature_kit::access::cluster_group;
use feature_kit::ownership::{is_owned_by, our_namespace};
use feature_kit::rbac::{ours, role_ref, subject, to_kube};
use feature_kit::{ControllerIdentity, ManagementContext};
use futures::future::BoxFuture;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::ObjectMeta;
use kube::{Api, Client, ResourceExt};

use super::{by_name, rules, with_inherited};

/// Value of the label `drover.io/owned` on our roles and bindings.
const OWNED_ROLE: &str = "role";
/// Prefix of their names, so that they meet no role of the cluster's own.
const NAME_PREFIX: &str = "drover:cluster:";
/// Changes within this time are written at once.
const DEBOUNCE: Duration = Duration::from_millis(50);
const CONTROLLER: &str = "downstream-roles";
const ROLES_APPLIED: OwnedCondition = OwnedCondition::of("Cluster", "RolesApplied");

/// What a user can do when the cluster rejects a role.
const NEXT_STEP: &str = "Drover tries again; check what rejects it in the cluster, an admission \
    webhook or policy, or apply the import manifest again to restore the rights of the agent";

/// The controller's identity, with its rights in the management API.
pub fn identity() -> ControllerIdentity {
    let rules = vec![ours(&["clusters"], &["get"]), ours(&["clusters/status"], &["patch"])];
    ControllerIdentity::new(CONTROLLER, rules)
}

/// The controller, which runs once per connected cluster. `client` acts as [`identity()`] in the
/// management API.
pub fn build(context: &ManagementContext, client: Client) -> Arc<dyn DownstreamController> {
    Arc::new(DownstreamRoles {
        client,
        clusters: context.scope.reflectors.get(),
        bindings: context.scope.reflectors.get(),
        templates: context.scope.reflectors.get(),
    })
}

/// What the management API has.
#[derive(Clone)]
struct DownstreamRoles {
    client: Client,
    clusters: Arc<Reflector<Whole<Cluster>>>,
    bindings: Arc<Reflector<Whole<ClusterRoleTemplateBinding>>>,
    templates: Arc<Reflector<Whole<RoleTemplate>>>,
}

impl DownstreamController for DownstreamRoles {
    fn name(&self) -> &'static str {
        CONTROLLER
    }
    fn run(&self, scope: DownstreamScope) -> BoxFuture<'static, ()> {
        let management = self.clone();
        Box::pin(async move {
            // Rights on the management API itself are reconciled by a management controller.
            if scope.cluster != ids::LOCAL_CLUSTER {
                run(scope, management).await;
            }
        })
    }
}

async fn run(scope: DownstreamScope, management: DownstreamRoles) {
    let selector = format!("{}={OWNED_ROLE}", keys::DOWNSTREAM_OWNED);
    let roles = ClusterRoles {
        cluster: scope.cluster.clone(),
        client: scope.client.clone(),
        management: management.clone(),
        roles: scope.reflectors.selected(&selector),
        bindings: scope.reflectors.selected(&selector),
    };
    let (present_roles, present_bindings) = (roles.roles.clone(), roles.bindings.clone());
    let report = ConditionReport {
        condition: ROLES_APPLIED,
        client: management.client.clone(),
        target: StatusTarget::of::<Cluster>("", &scope.cluster),
        next_step: NEXT_STEP.to_owned(),
    };
    let runner = Runner::new(Arc::new(WithCondition::new(roles, report)));
    let key = Key::cluster_scoped(&scope.cluster);
    let of_cluster = key.clone();
    runner.watch_bursts(&management.bindings, DEBOUNCE, move |change| {
        (change.key().namespace == of_cluster.name).then(|| of_cluster.clone())
    });
    let always = key.clone();
    runner.watch_bursts(&management.templates, DEBOUNCE, move |_| [always.clone()]);
    let always = key.clone();
    runner.watch_bursts(&present_roles, DEBOUNCE, move |_| [always.clone()]);
    let always = key.clone();
    runner.watch_bursts(&present_bindings, DEBOUNCE, move |_| [always.clone()]);
    runner.queue().add(key);
    runner.run(&scope.cluster, &scope.controllers, scope.stop.clone()).await;
}

/// The roles of one connected cluster. Its one key is the cluster's.
struct ClusterRoles {
    cluster: String,
    /// Acts in the cluster with the rights of the agent.
    client: Client,
    management: DownstreamRoles,
    roles: Arc<Reflector<Whole<ClusterRole>>>,
    bindings: Arc<Reflector<Whole<ClusterRoleBinding>>>,
}

impl ClusterRoles {
    async fn reconcile(&self) -> Result<Outcome, ReconcileError> {
        let DownstreamRoles { clusters, bindings, templates, .. } = &self.management;
        tokio::join!(clusters.synced(), bindings.synced(), templates.synced());
        tokio::try_join!(self.roles.try_synced(), self.bindings.try_synced())?;
        // Removal deletes the roles; they must not be created again.
        let cluster = clusters.named(&self.cluster);
        if cluster.is_none_or(|cluster| cluster.metadata.deletion_timestamp.is_some()) {
            return Ok(Outcome::Done);
        }
        let used: BTreeSet<String> = bindings
            .in_namespace(&self.cluster)
            .into_iter()
            .map(|(_, binding)| binding.role_template_name.clone())
            .collect();
        let desired = desired(&self.cluster, &used, &by_name(templates));
        put(&self.client, &desired, &self.roles, &self.bindings).await?;
        Ok(Outcome::Done)
    }
}

impl Reconcile for ClusterRoles {
    fn name(&self) -> &'static str {
        CONTROLLER
    }
    fn reconcile<'a>(&'a self, _: &'a Key) -> BoxFuture<'a, Result<Outcome, ReconcileError>> {
        Box::pin(self.reconcile())
    }
}

/// What is to be in a cluster where these role templates are used. Pure.
///
/// The owner role is always there: administrators use it without a binding.
pub(crate) fn desired(
    cluster: &str,
    used: &BTreeSet<String>,
    known: &BTreeMap<String, Arc<RoleTemplate>>,
) -> Vec<(Option<ClusterRole>, ClusterRoleBinding)> {
    let used = used.iter().cloned().chain([CLUSTER_OWNER.to_owned()]);
    let templates = with_inherited(used, known);
    let each = templates.into_iter();
    each.map(|(name, template)| role_and_binding(cluster, name, template)).collect()
}

fn role_and_binding(
    cluster: &str,
    name: &str,
    template: &RoleTemplate,
) -> (Option<ClusterRole>, ClusterRoleBinding) {
    let labels = [(keys::DOWNSTREAM_OWNED.to_owned(), OWNED_ROLE.to_owned())];
    let annotations = [(keys::CLUSTER_ROLE_OWNER.to_owned(), name.to_owned())];
    let metadata = ObjectMeta {
        name: Some(format!("{NAME_PREFIX}{name}")),
        labels: Some(labels.into()),
        annotations: Some(annotations.into()),
        ..ObjectMeta::default()
    };
    let role_name =
        if template.external { name.to_owned() } else { format!("{NAME_PREFIX}{name}") };
    let role = (!template.external).then(|| ClusterRole {
        metadata: metadata.clone(),
        rules: Some(rules::downstream(template).iter().map(to_kube).collect()),
        aggregation_rule: None,
    });
    let binding = ClusterRoleBinding {
        metadata,
        role_ref: role_ref("ClusterRole", &role_name),
        subjects: Some(vec![subject("Group", &cluster_group(cluster, name))]),
    };
    (role, binding)
}

async fn put(
    client: &Client,
    desired: &[(Option<ClusterRole>, ClusterRoleBinding)],
    present_roles: &Reflector<Whole<ClusterRole>>,
    present_bindings: &Reflector<Whole<ClusterRoleBinding>>,
) -> Result<(), ReconcileError> {
    let owner = our_namespace(client).await?;
    let roles: Api<ClusterRole> = Api::all(client.clone());
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    for (role, binding) in desired {
        if let Some(role) = role {
            let mut role = role.clone();
            role.metadata.owner_references = Some(vec![owner.clone()]);
            let known = present_roles.named(&role.name_any());
            if known.is_none_or(|known| {
                known.rules != role.rules || !is_owned_by(&known.metadata, Some(&owner.uid))
            }) {
                ensure::like(&roles, &role).await?;
            }
        }
        let mut binding = binding.clone();
        binding.metadata.owner_references = Some(vec![owner.clone()]);
        let known = present_bindings.named(&binding.name_any());
        let same = |known: &ClusterRoleBinding| {
            known.role_ref == binding.role_ref
                && known.subjects == binding.subjects
                && is_owned_by(&known.metadata, Some(&owner.uid))
        };
        if known.is_none_or(|known| !same(&known)) {
            ensure::like(&bindings, &binding).await?;
        }
    }
    let names: BTreeSet<String> = desired.iter().map(|(_, binding)| binding.name_any()).collect();
    for (key, _) in present_bindings.all().iter().filter(|(key, _)| !names.contains(&key.name)) {
        ensure::absent(&bindings, &key.name).await?;
    }
    let desired_roles: BTreeSet<String> =
        desired.iter().filter_map(|(role, _)| role.as_ref().map(ResourceExt::name_any)).collect();
    let present = present_roles.all();
    for (key, _) in present.iter().filter(|(key, _)| !desired_roles.contains(&key.name)) {
        ensure::absent(&roles, &key.name).await?;
    }
    Ok(())
}
