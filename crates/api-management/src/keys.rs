//! Label and annotation keys, finalizers and well-known namespaces, in one place.

use kube::api::ObjectMeta;

/// Annotation: id of the user who made the object.
pub const CREATOR_ID: &str = "field.cattle.io/creatorId";
/// Annotation and label of a namespace: the project that holds it.
pub const PROJECT_ID: &str = "field.cattle.io/projectId";
/// Annotation: free text shown with the object.
pub const DESCRIPTION: &str = "field.cattle.io/description";
/// Label: which software made the object.
pub const CREATOR: &str = "cattle.io/creator";
/// Its value on what the REST view makes.
pub const CREATOR_NORMAN: &str = "norman";
/// Annotation: JSON of conditions of objects that have no status of ours.
pub const STATUS: &str = "cattle.io/status";
/// Annotation of namespaces that we make for our own bookkeeping.
pub const SYSTEM_NAMESPACE: &str = "management.cattle.io/system-namespace";

/// Label of a project: the one that takes namespaces nobody assigned.
pub const DEFAULT_PROJECT: &str = "authz.management.cattle.io/default-project";
/// Label of a project: the one of the cluster's own parts.
pub const SYSTEM_PROJECT: &str = "authz.management.cattle.io/system-project";
/// Label of what the server makes at its first start; the value says what.
pub const BOOTSTRAPPING: &str = "authz.management.cattle.io/bootstrapping";
/// [`BOOTSTRAPPING`] on the first administrator.
pub const BOOTSTRAP_ADMIN_USER: &str = "admin-user";
/// [`BOOTSTRAPPING`] on the role templates we ship.
pub const BOOTSTRAP_ROLE_TEMPLATE: &str = "default-roletemplate";
/// Annotation: JSON of the role bindings a creator gets.
pub const CREATOR_ROLE_BINDINGS: &str = "authz.management.cattle.io/creator-role-bindings";

/// Label of a token: id of its user.
pub const TOKEN_USER_ID: &str = "authn.management.cattle.io/token-userId";
/// Label of a token: what it is for.
pub const TOKEN_KIND: &str = "authn.management.cattle.io/kind";
/// Annotation of a token whose `token` field is a hash.
pub const TOKEN_HASHED: &str = "authn.management.cattle.io/token-hashed";

/// Annotation on downstream cluster roles and bindings: the role template they come from.
pub const CLUSTER_ROLE_OWNER: &str = "authz.cluster.cattle.io/clusterrole-owner";

/// Label of a management node: name of the downstream node.
pub const NODE_NAME: &str = "management.cattle.io/nodename";

/// Annotation of a cluster under removal: do not wait for what cannot be reached.
pub const FORCE_REMOVE: &str = "drover.io/force-remove";
/// Annotation of a cluster under removal: leave the downstream cluster as it is.
pub const DETACH: &str = "drover.io/detach";
/// Annotation of a cluster: import it although another entry manages a cluster with the same uid. A clone has the
/// uid of the cluster that it was made of.
pub const IMPORT_AS_NEW: &str = "drover.io/import-as-new";
/// Label on everything we make downstream; the value says for which purpose.
pub const DOWNSTREAM_OWNED: &str = "drover.io/owned";
/// Annotation of the key registration secret and the removal report: id of the cluster.
pub const CLUSTER_ID: &str = "drover.io/cluster-id";
/// On the namespace that holds what belongs to a project: `<cluster>:<project>`.
pub const PROJECT_OF_NAMESPACE: &str = "drover.io/project";

/// Beside [`PROJECT_OF_NAMESPACE`]: uid of the project. Namespaces of earlier versions do not have it.
pub const PROJECT_UID: &str = "drover.io/project-uid";

/// [`DOWNSTREAM_OWNED`] on the copies of projects' Secrets, and on the rights to make them.
pub const OWNED_PROJECT_SECRET: &str = "project-secret";
/// [`DOWNSTREAM_OWNED`] on the right to write namespaces' projects, and the name of the controller that has it: removal
/// takes off under that identity what the controller wrote.
pub const OWNED_NAMESPACE_PROJECTS: &str = "namespace-projects";
/// Annotation of a copy of a project's Secret: which one it is a copy of, `<cluster>:<project>:<name>`.
pub const COPY_OF: &str = "drover.io/copy-of";
/// Annotation of a copy: uid and version of what was copied.
pub const COPIED_VERSION: &str = "drover.io/copied-version";
/// Annotation of a copy, `true`: by this, clients of Rancher tell copies.
pub const USER_SECRET: &str = "secret.user.cattle.io/secret";

/// Finalizer of a cluster: dependants downstream are removed before it goes.
pub const CLUSTER_FINALIZER: &str = "drover.io/cluster-removal";

/// Management namespace of what several clusters share: templates, multi-cluster apps, credentials.
pub const GLOBAL_DATA_NS: &str = "cattle-global-data";
/// Management namespace of node templates.
pub const NODE_TEMPLATES_NS: &str = "cattle-global-nt";
/// Downstream namespace of the agent; in the management cluster, of what belongs to the whole server.
pub const SYSTEM_NS: &str = "cattle-system";
/// Management namespace that holds password hashes, one Secret per local user.
pub const PASSWORDS_NS: &str = "cattle-local-user-passwords";

/// Management namespace of the credentials of objects, one Secret per object.
pub const CREDENTIALS_NS: &str = "cattle-credentials";

/// Management namespace of the claims to names that only one object may have, such as login names.
pub const UNIQUE_NAMES_NS: &str = "cattle-unique-names";

/// Cluster and project that a namespace of the management API is for.
pub fn project_of(namespace: &ObjectMeta) -> Option<(&str, &str)> {
    namespace.annotations.as_ref()?.get(PROJECT_OF_NAMESPACE)?.split_once(':')
}
