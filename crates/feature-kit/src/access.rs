//! Who has which role where: the seam between the role graph and those who build identities.

use std::fmt::Write as _;

use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::ObjectMeta;
use tokio::sync::watch;

use crate::rbac::{role_ref, subject};

/// Prefix of every group that stands for a role of ours. Reserved: nobody else may bring such a group.
pub const ROLE_GROUP_PREFIX: &str = "drover:";
/// The group of those who may do everything.
pub const GROUP_GLOBAL_ADMIN: &str = "drover:global:admin";

/// Group of everybody who logged in here.
pub const GROUP_PEOPLE: &str = "system:cattle:authenticated";
/// Label of bindings in the management API that give global roles.
pub const GLOBAL_BINDING_LABEL: &str = "authz.management.cattle.io/globalrolebinding";
/// The cluster role of those who may do everything.
pub const CLUSTER_ADMIN: &str = "cluster-admin";

/// The binding that makes a user an administrator of everything, here and in all clusters.
pub fn admin_binding(user: &str) -> ClusterRoleBinding {
    let labels = [(GLOBAL_BINDING_LABEL.to_owned(), "true".to_owned())];
    ClusterRoleBinding {
        metadata: ObjectMeta {
            name: Some(format!("globaladmin-{user}")),
            labels: Some(labels.into()),
            ..ObjectMeta::default()
        },
        role_ref: role_ref("ClusterRole", CLUSTER_ADMIN),
        subjects: Some(vec![subject("User", user)]),
    }
}

/// `drover:cluster:<cluster>:<role>`: the members of a role in one cluster.
pub fn cluster_group(cluster: &str, role: &str) -> String {
    let mut group = String::with_capacity(16 + cluster.len() + role.len());
    let written = write!(group, "drover:cluster:{cluster}:{role}");
    written.expect("writing to a string does not fail");
    group
}

/// A person as authentication knows them.
#[derive(Clone, Copy, Debug)]
pub struct Membership<'a> {
    /// User id.
    pub user: &'a str,
    /// Principal ids of the person's groups.
    pub groups: &'a [String],
}

/// Resolves role groups from state in memory: never waits, and a change holds on the next call.
pub trait RoleResolver: Send + Sync + 'static {
    /// The role groups to send into one cluster; empty when the person has no business there.
    fn cluster_groups(&self, cluster: &str, person: Membership<'_>) -> Vec<String>;

    /// The role groups for the management API: those of all clusters, and the global ones.
    fn management_groups(&self, person: Membership<'_>) -> Vec<String>;

    /// A number that is another one once any of the answers may be.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Whether the person may do everything everywhere.
    fn is_global_admin(&self, person: Membership<'_>) -> bool;
}
