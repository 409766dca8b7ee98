//! Keeps true: every role template that somebody has in a cluster is one ClusterRole there, bound to
//! the group of its members; and no other role or binding of ours is there.
//!
//! Runs once per connected cluster. Watches role templates and bindings here, and our labelled roles
//! and bindings downstream, so that what somebody changed there is put back. All of it is owned by our
//! downstream namespace. Owns no condition.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api_management::role_template::CLUSTER_OWNER;
use api_management::{Cluster, ClusterRoleTemplateBinding, RoleTemplate, ids, keys};
use controller::{DownstreamController, DownstreamScope, ReconcileError, Reflector, Whole, ensure};
use feature_kit::access::cluster_group;
use feature_kit::ownership::our_namespace;
use feature_kit::rbac::{role_ref, subject, to_kube};
use feature_kit::{ControllerIdentity, ManagementContext};
use futures::future::BoxFuture;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;
use kube::{Api, Client, ResourceExt};
use tokio::sync::Notify;

use super::rules;

/// Value of the label `drover.io/owned` on our roles and bindings.
const OWNED_ROLE: &str = "role";
/// Prefix of their names, so that they meet no role of the cluster's own.
const NAME_PREFIX: &str = "drover:cluster:";
/// Changes within this time are written at once.
const DEBOUNCE: Duration = Duration::from_millis(50);
/// Wait after a write that failed; doubles up to [`RETRY_DELAY_MAX`].
const RETRY_DELAY_MIN: Duration = Duration::from_millis(500);
const RETRY_DELAY_MAX: Duration = Duration::from_secs(60);

pub fn identity() -> ControllerIdentity {
    ControllerIdentity::new("downstream-roles", Vec::new())
}

pub fn build(context: &ManagementContext, _: Client) -> Arc<dyn DownstreamController> {
    Arc::new(DownstreamRoles {
        clusters: context.scope.reflectors.get(),
        bindings: context.scope.reflectors.get(),
        templates: context.scope.reflectors.get(),
    })
}

#[derive(Clone)]
struct DownstreamRoles {
    clusters: Arc<Reflector<Whole<Cluster>>>,
    bindings: Arc<Reflector<Whole<ClusterRoleTemplateBinding>>>,
    templates: Arc<Reflector<Whole<RoleTemplate>>>,
}

impl DownstreamController for DownstreamRoles {
    fn name(&self) -> &'static str {
        "downstream-roles"
    }
    fn run(&self, scope: DownstreamScope) -> BoxFuture<'static, ()> {
        let watched = self.clone();
        Box::pin(async move {
            // Rights on the management API itself are kept on its own side.
            if scope.cluster != ids::LOCAL_CLUSTER {
                keep(scope, watched).await;
            }
        })
    }
}

async fn keep(scope: DownstreamScope, watched: DownstreamRoles) {
    let DownstreamRoles { clusters, bindings, templates } = watched;
    let selector = format!("{}={OWNED_ROLE}", keys::DOWNSTREAM_OWNED);
    let roles = scope.reflectors.selected::<Whole<ClusterRole>>(&selector);
    let bound = scope.reflectors.selected::<Whole<ClusterRoleBinding>>(&selector);
    let wake = Arc::new(Notify::new());
    wake_on(&bindings, &wake, Some(scope.cluster.clone()));
    wake_on(&templates, &wake, None);
    wake_on(&roles, &wake, None);
    wake_on(&bound, &wake, None);
    tokio::join!(bindings.synced(), templates.synced(), roles.synced(), bound.synced());
    clusters.synced().await;
    let mut delay = RETRY_DELAY_MIN;
    loop {
        // What removal has just taken away must not come back.
        let cluster = clusters.named(&scope.cluster);
        if cluster.is_none_or(|cluster| cluster.metadata.deletion_timestamp.is_some()) {
            wake.notified().await;
            continue;
        }
        let used: BTreeSet<String> = bindings
            .in_namespace(&scope.cluster)
            .into_iter()
            .map(|(_, binding)| binding.role_template_name.clone())
            .collect();
        let known: BTreeMap<String, Arc<RoleTemplate>> =
            templates.all().into_iter().map(|(key, template)| (key.name, template)).collect();
        let wanted = desired(&scope.cluster, &used, &known);
        match put(&scope.client, &wanted, &roles, &bound).await {
            Ok(()) => {
                delay = RETRY_DELAY_MIN;
                wake.notified().await;
                tokio::time::sleep(DEBOUNCE).await;
            }
            Err(error) => {
                let (cluster, error) = (&scope.cluster, error.chain());
                tracing::debug!(%cluster, error, "roles are not in place yet; will try again");
                tokio::time::sleep(delay).await;
                delay = (delay * 2).min(RETRY_DELAY_MAX);
            }
        }
    }
}

fn wake_on<P: controller::Projection>(
    reflector: &Reflector<P>,
    wake: &Arc<Notify>,
    namespace: Option<String>,
) {
    let wake = Arc::downgrade(wake);
    reflector.subscribe(move |change| {
        let Some(wake) = wake.upgrade() else { return false };
        if namespace.as_ref().is_none_or(|namespace| change.key().namespace == *namespace) {
            wake.notify_one();
        }
        true
    });
}

/// What is to be in a cluster where these role templates are used. Pure.
///
/// The owner role is always there: administrators use it without a binding.
pub(crate) fn desired(
    cluster: &str,
    used: &BTreeSet<String>,
    known: &BTreeMap<String, Arc<RoleTemplate>>,
) -> Vec<(Option<ClusterRole>, ClusterRoleBinding)> {
    let mut wanted = BTreeSet::new();
    let mut open: Vec<&str> = used.iter().map(String::as_str).chain([CLUSTER_OWNER]).collect();
    while let Some(name) = open.pop() {
        if let Some(template) = known.get(name)
            && wanted.insert(name.to_owned())
        {
            open.extend(template.role_template_names.iter().map(String::as_str));
        }
    }
    wanted.iter().map(|name| role_and_binding(cluster, name, &known[name])).collect()
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
    wanted: &[(Option<ClusterRole>, ClusterRoleBinding)],
    present_roles: &Reflector<Whole<ClusterRole>>,
    present_bindings: &Reflector<Whole<ClusterRoleBinding>>,
) -> Result<(), ReconcileError> {
    let owner = our_namespace(client).await?;
    let roles: Api<ClusterRole> = Api::all(client.clone());
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    for (role, binding) in wanted {
        if let Some(role) = role {
            let mut role = role.clone();
            role.metadata.owner_references = Some(vec![owner.clone()]);
            let known = present_roles.named(&role.name_any());
            if known
                .is_none_or(|known| known.rules != role.rules || !owned(&known.metadata, &owner))
            {
                ensure::like(&roles, &role).await?;
            }
        }
        let mut binding = binding.clone();
        binding.metadata.owner_references = Some(vec![owner.clone()]);
        let known = present_bindings.named(&binding.name_any());
        let same = |known: &ClusterRoleBinding| {
            known.role_ref == binding.role_ref
                && known.subjects == binding.subjects
                && owned(&known.metadata, &owner)
        };
        if known.is_none_or(|known| !same(&known)) {
            ensure::like(&bindings, &binding).await?;
        }
    }
    let names: BTreeSet<String> = wanted.iter().map(|(_, binding)| binding.name_any()).collect();
    for (key, _) in present_bindings.all().iter().filter(|(key, _)| !names.contains(&key.name)) {
        ensure::absent(&bindings, &key.name).await?;
    }
    let roles_wanted: BTreeSet<String> =
        wanted.iter().filter_map(|(role, _)| role.as_ref().map(ResourceExt::name_any)).collect();
    let present = present_roles.all();
    for (key, _) in present.iter().filter(|(key, _)| !roles_wanted.contains(&key.name)) {
        ensure::absent(&roles, &key.name).await?;
    }
    Ok(())
}

fn owned(metadata: &ObjectMeta, owner: &OwnerReference) -> bool {
    metadata.owner_references.iter().flatten().any(|present| present.uid == owner.uid)
}
