//! Who has which role where: the interface between the role graph and the code that builds
//! identities.

use api_management::global_role::{ADMIN, RESTRICTED_ADMIN};
use api_management::role_template::CLUSTER_OWNER;
use api_management::{GlobalRoleBinding, ids};
use tokio::sync::watch;

/// Prefix of every group that represents a role of Drover. Reserved: no other source may provide
/// such a group.
pub const ROLE_GROUP_PREFIX: &str = "drover:";
/// The group of global administrators.
pub const GROUP_GLOBAL_ADMIN: &str = "drover:global:admin";

/// Group of all users who logged in to this server.
pub const GROUP_PEOPLE: &str = "system:cattle:authenticated";
/// Label of bindings in the management API that give global roles.
pub const GLOBAL_BINDING_LABEL: &str = "authz.management.cattle.io/globalrolebinding";
/// The cluster role of global administrators.
pub const CLUSTER_ADMIN: &str = "cluster-admin";

/// Verb on a project: may put namespaces into it and take them out.
pub const VERB_MANAGE_NAMESPACES: &str = "manage-namespaces";
/// Verb on a project: may create namespaces in it.
pub const VERB_CREATE_NAMESPACES: &str = "create-namespaces";

/// Verb on a project: may change the Pod Security labels of its namespaces.
pub const VERB_UPDATE_POD_SECURITY: &str = "updatepsa";

/// Prefix of the names of bindings that make users administrators; the user's id follows.
pub const ADMIN_BINDING_PREFIX: &str = "globaladmin-";

/// The binding that makes a user an administrator, of the management API and of all clusters.
pub fn admin_binding(user: &str) -> GlobalRoleBinding {
    let mut binding = GlobalRoleBinding {
        global_role_name: ADMIN.to_owned(),
        user_name: user.to_owned(),
        ..GlobalRoleBinding::default()
    };
    binding.metadata.name = Some(format!("{ADMIN_BINDING_PREFIX}{user}"));
    binding
}

/// `drover:global:<role>`: the group of the members of a global role.
pub fn global_group(role: &str) -> String {
    format!("{ROLE_GROUP_PREFIX}global:{role}")
}

/// `drover:cluster:<cluster>:<role>`: the group of the members of a role in one cluster.
pub fn cluster_group(cluster: &str, role: &str) -> String {
    format!("{ROLE_GROUP_PREFIX}cluster:{cluster}:{role}")
}

/// `drover:project:<project>:<role>`: the group of the members of a role in one project. Names of
/// projects are unique across clusters, because each is the name of a namespace.
pub fn project_group(project: &str, role: &str) -> String {
    format!("{ROLE_GROUP_PREFIX}project:{project}:{role}")
}

/// `drover:projects:<cluster>:<role>`: the group of the members of a role in at least one project
/// of the cluster.
pub fn projects_group(cluster: &str, role: &str) -> String {
    format!("{ROLE_GROUP_PREFIX}projects:{cluster}:{role}")
}

/// Whether the members of a global role own this cluster.
pub fn global_role_owns(role: &str, cluster: &str) -> bool {
    role == ADMIN || role == RESTRICTED_ADMIN && cluster != ids::LOCAL_CLUSTER
}

/// Whether somebody with these groups owns the cluster, by a role there or a global one.
pub fn owns_cluster(groups: &[String], cluster: &str) -> bool {
    let by_global =
        |role: &str| global_role_owns(role, cluster) && groups.contains(&global_group(role));
    by_global(ADMIN)
        || by_global(RESTRICTED_ADMIN)
        || groups.contains(&cluster_group(cluster, CLUSTER_OWNER))
}

/// A user as authentication identified them.
#[derive(Clone, Copy, Debug)]
pub struct Membership<'a> {
    /// User id.
    pub user: &'a str,
    /// Principal ids of the user's groups.
    pub groups: &'a [String],
}

/// Resolves role groups from state in memory: never waits, and a change takes effect on the next
/// call.
pub trait RoleResolver: Send + Sync + 'static {
    /// The role groups of the user in one cluster; empty when the user has no access to it.
    fn cluster_groups(&self, cluster: &str, user: Membership<'_>) -> Vec<String>;

    /// The role groups of the user for the management API: those of all clusters, and the global
    /// ones.
    fn management_groups(&self, user: Membership<'_>) -> Vec<String>;

    /// A number that changes whenever a result of the other methods may have changed.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Whether the user is a global administrator.
    fn is_global_admin(&self, user: Membership<'_>) -> bool;
}
