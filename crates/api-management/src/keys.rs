//! All label and annotation keys, finalizers and well-known namespaces.

use kube::api::ObjectMeta;

/// Annotation: id of the user who created the object.
pub const CREATOR_ID: &str = "field.cattle.io/creatorId";
/// Annotation and label of a namespace: the project that it is in.
pub const PROJECT_ID: &str = "field.cattle.io/projectId";
/// Annotation of a namespace, JSON: what it is to have of its project's quota.
pub const RESOURCE_QUOTA: &str = "field.cattle.io/resourceQuota";
/// Annotation of a namespace, JSON: the limits of its containers that say nothing else.
pub const CONTAINER_LIMITS: &str = "field.cattle.io/containerDefaultResourceLimit";
/// Label by which clients of Rancher recognise the quota and the limits of a namespace.
pub const DEFAULT_QUOTA: &str = "resourcequota.management.cattle.io/default-resource-quota";
/// Annotation: free text shown with the object.
pub const DESCRIPTION: &str = "field.cattle.io/description";
/// Label: the software that created the object.
pub const CREATOR: &str = "cattle.io/creator";
/// Its value on objects that the REST view creates.
pub const CREATOR_NORMAN: &str = "norman";
/// Annotation: JSON of conditions of objects without a status that Drover defines.
pub const STATUS: &str = "cattle.io/status";
/// Annotation of namespaces for Drover's own data.
pub const SYSTEM_NAMESPACE: &str = "management.cattle.io/system-namespace";

/// Label of the project for unassigned namespaces.
pub const DEFAULT_PROJECT: &str = "authz.management.cattle.io/default-project";
/// Label of the project for the cluster's own components.
pub const SYSTEM_PROJECT: &str = "authz.management.cattle.io/system-project";
/// Label of objects that the server creates at its first start; the value says what they are.
pub const BOOTSTRAPPING: &str = "authz.management.cattle.io/bootstrapping";
/// [`BOOTSTRAPPING`] on the first administrator.
pub const BOOTSTRAP_ADMIN_USER: &str = "admin-user";
/// [`BOOTSTRAPPING`] on the built-in global roles.
pub const BOOTSTRAP_GLOBAL_ROLE: &str = "default-globalrole";
/// [`BOOTSTRAPPING`] on the built-in role templates.
pub const BOOTSTRAP_ROLE_TEMPLATE: &str = "default-roletemplate";
/// Annotation: JSON of the role bindings that the creator gets.
pub const CREATOR_ROLE_BINDINGS: &str = "authz.management.cattle.io/creator-role-bindings";

/// Label of a token: id of its user.
pub const TOKEN_USER_ID: &str = "authn.management.cattle.io/token-userId";
/// Label of a token: its purpose.
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
/// Annotation of a cluster: import it although another entry manages a cluster with the same uid. A
/// clone has the uid of the cluster that it was made of.
pub const IMPORT_AS_NEW: &str = "drover.io/import-as-new";
/// Label on all objects that Drover creates downstream; the value is the purpose.
pub const DOWNSTREAM_OWNED: &str = "drover.io/owned";
/// [`DOWNSTREAM_OWNED`] of what a kubectl shell makes.
pub const OWNED_KUBECTL_SHELL: &str = "kubectl-shell";
/// Annotation of the key registration secret and the removal report: id of the cluster.
pub const CLUSTER_ID: &str = "drover.io/cluster-id";
/// Annotation of the namespace with the objects of a project: `<cluster>:<project>`.
pub const PROJECT_OF_NAMESPACE: &str = "drover.io/project";

/// Beside [`PROJECT_OF_NAMESPACE`]: uid of the project. Namespaces of earlier versions do not have
/// it.
pub const PROJECT_UID: &str = "drover.io/project-uid";

/// [`DOWNSTREAM_OWNED`] on the copies of projects' Secrets, and on the rights to make them.
pub const OWNED_PROJECT_SECRET: &str = "project-secret";
/// [`DOWNSTREAM_OWNED`] on the bindings of roles in projects, on what members of projects may do
/// with their namespaces, and on the right to write these.
pub const OWNED_PROJECT_ROLE: &str = "project-role";
/// [`DOWNSTREAM_OWNED`] on the quotas and limits of projects, and on the right to write these.
pub const OWNED_PROJECT_QUOTA: &str = "project-quota";
/// [`DOWNSTREAM_OWNED`] on the policies that isolate projects, and on the right to write these.
pub const OWNED_PROJECT_ISOLATION: &str = "project-isolation";
/// [`DOWNSTREAM_OWNED`] on the right to write the Pod Security labels of namespaces, and name of
/// the controller that has it: removal acts as this identity to remove what the controller wrote.
pub const OWNED_POD_SECURITY: &str = "pod-security";
/// Prefix of the labels by which a namespace says its Pod Security levels.
pub const POD_SECURITY_PREFIX: &str = "pod-security.kubernetes.io/";
/// The field manager that owns the Pod Security labels that Drover writes.
pub const POD_SECURITY_MANAGER: &str = "drover-pod-security";
/// [`DOWNSTREAM_OWNED`] on the right to write the projects of namespaces, and name of the
/// controller that has it: removal acts as this identity to remove what the controller wrote.
pub const OWNED_NAMESPACE_PROJECTS: &str = "namespace-projects";
/// [`DOWNSTREAM_OWNED`] on the right of the indexes of `/v1` to read kinds.
pub const OWNED_KIND_INDEX: &str = "kind-index";
/// Annotation of a cluster: the kinds that no index of `/v1` reads there, as `resource` or
/// `resource.group`, separated by commas; `*` for all.
pub const UNINDEXED_KINDS: &str = "drover.io/unindexed-kinds";
/// Annotation of a copy of a project's Secret: which one it is a copy of,
/// `<cluster>:<project>:<name>`.
pub const COPY_OF: &str = "drover.io/copy-of";
/// Annotation of a copy: uid and version of what was copied.
pub const COPIED_VERSION: &str = "drover.io/copied-version";
/// Annotation of a copy, `true`: clients of Rancher recognise copies by it.
pub const USER_SECRET: &str = "secret.user.cattle.io/secret";

/// Annotation of a cluster, `true`: its driver does nothing. What it does is cancelled.
pub const PAUSED: &str = "drover.io/paused";

/// Finalizer of a cluster: its dependants downstream are deleted first.
pub const CLUSTER_FINALIZER: &str = "drover.io/cluster-removal";
/// Finalizer of a user: what was given to the user is deleted first.
pub const USER_FINALIZER: &str = "drover.io/user-bindings";

/// Management namespace of what several clusters share: templates, multi-cluster apps, credentials.
pub const GLOBAL_DATA_NS: &str = "cattle-global-data";
/// Management namespace of node templates.
pub const NODE_TEMPLATES_NS: &str = "cattle-global-nt";
/// Downstream namespace of the agent; in the management cluster, of what belongs to the whole
/// server.
pub const SYSTEM_NS: &str = "cattle-system";
/// Management namespace that holds password hashes, one Secret per local user.
pub const PASSWORDS_NS: &str = "cattle-local-user-passwords";
/// Management namespace of what identity providers gave at logins, to read the user anew later; one
/// Secret per user.
pub const LOGIN_GRANTS_NS: &str = "cattle-login-grants";

/// Management namespace of the credentials of objects, one Secret per object.
pub const CREDENTIALS_NS: &str = "cattle-credentials";

/// Management namespace of the claims to names that only one object may have, such as login names.
pub const UNIQUE_NAMES_NS: &str = "cattle-unique-names";

/// Cluster and project that a namespace of the management API belongs to.
pub fn project_of(namespace: &ObjectMeta) -> Option<(&str, &str)> {
    namespace.annotations.as_ref()?.get(PROJECT_OF_NAMESPACE)?.split_once(':')
}
