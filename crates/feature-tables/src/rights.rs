//! Who may read which of these kinds, and the namespaces that they are in.
//!
//! Administrators may do everything. Users may read what the role "user" of Rancher lets them read;
//! they cannot create what it lets them create, because creators get no rights on their objects
//! yet.

use api_management::keys;
use controller::ensure;
use feature_kit::access::GROUP_PEOPLE;
use feature_kit::rbac::{ours, role_ref, subject, to_kube};
use feature_kit::{Seed, SeedMode};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::Api;
use kube::api::ObjectMeta;

/// The name that stored roles already have: under another one, the old role would stay in effect.
const ROLE: &str = "drover:people-records";
const READ: [&str; 3] = ["get", "list", "watch"];

/// Readable by every user who logged in.
const READABLE: [&str; 12] = [
    "catalogs",
    "cisbenchmarkversions",
    "cisconfigs",
    "features",
    "kontainerdrivers",
    "nodedrivers",
    "podsecurityadmissionconfigurationtemplates",
    "podsecuritypolicytemplates",
    "rancherusernotifications",
    "rkeaddons",
    "rkek8sserviceoptions",
    "rkek8ssystemimages",
];
/// Like [`READABLE`], but only those that belong to no cluster and no project.
const READABLE_GLOBAL: [&str; 2] = ["catalogtemplates", "catalogtemplateversions"];

/// The objects that must exist from the start.
pub fn seeds() -> Vec<Seed> {
    let metadata = ObjectMeta { name: Some(ROLE.to_owned()), ..ObjectMeta::default() };
    let role = ClusterRole {
        metadata: metadata.clone(),
        rules: Some(vec![to_kube(&ours(&READABLE, &READ))]),
        ..ClusterRole::default()
    };
    let binding = ClusterRoleBinding {
        metadata,
        role_ref: role_ref("ClusterRole", ROLE),
        subjects: Some(vec![subject("Group", GROUP_PEOPLE)]),
    };
    vec![
        Seed::system_namespace(keys::NODE_TEMPLATES_NS),
        Seed::system_namespace(keys::GLOBAL_DATA_NS),
        Seed::custom(format!("role and rolebinding \"{ROLE}\""), |client| {
            Box::pin(put_global_data_role(client))
        }),
        Seed::cluster_scoped(SeedMode::Keep, role),
        Seed::cluster_scoped(SeedMode::Keep, binding),
    ]
}

async fn put_global_data_role(client: kube::Client) -> Result<bool, controller::ReconcileError> {
    let metadata = ObjectMeta {
        name: Some(ROLE.to_owned()),
        namespace: Some(keys::GLOBAL_DATA_NS.to_owned()),
        ..ObjectMeta::default()
    };
    let role = Role {
        metadata: metadata.clone(),
        rules: Some(vec![to_kube(&ours(&READABLE_GLOBAL, &READ))]),
    };
    let binding = RoleBinding {
        metadata,
        role_ref: role_ref("Role", ROLE),
        subjects: Some(vec![subject("Group", GROUP_PEOPLE)]),
    };
    let within = keys::GLOBAL_DATA_NS;
    let role = ensure::like(&Api::namespaced(client.clone(), within), &role).await?;
    let binding = ensure::like(&Api::namespaced(client, within), &binding).await?;
    Ok(role || binding)
}
