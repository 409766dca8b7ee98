//! Earlier versions made administrators by labelled ClusterRoleBindings. At the start each becomes
//! a binding of the global role `admin`, so that there is one place to take the role away.

use api_management::GlobalRoleBinding;
use controller::{Attempt, ReconcileError, ensure};
use feature_kit::Seed;
use feature_kit::access::{
    ADMIN_BINDING_PREFIX, CLUSTER_ADMIN, GLOBAL_BINDING_LABEL, admin_binding,
};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};

/// Replaces the bindings of earlier versions.
pub fn seed() -> Seed {
    Seed::custom("globalrolebindings of administrators".to_owned(), |client| {
        Box::pin(migrate(client))
    })
}

/// The user that a binding of an earlier version makes an administrator. Pure.
fn administrator(binding: &ClusterRoleBinding) -> Option<&str> {
    let [subject] = binding.subjects.as_deref()? else { return None };
    let is_ours = binding.role_ref.name == CLUSTER_ADMIN && subject.kind == "User";
    let user = binding.metadata.name.as_deref()?.strip_prefix(ADMIN_BINDING_PREFIX)?;
    (is_ours && subject.name == user).then_some(user)
}

/// Ends early only after a step that the next start makes up for.
async fn migrate(client: Client) -> Result<bool, ReconcileError> {
    let old: Api<ClusterRoleBinding> = Api::all(client.clone());
    let new: Api<GlobalRoleBinding> = Api::all(client);
    let labelled = ListParams::default().labels(&format!("{GLOBAL_BINDING_LABEL}=true"));
    let found = old.list(&labelled).await.attempt(|| "list clusterrolebindings".to_owned())?;
    let mut is_changed = false;
    for binding in &found.items {
        let Some(user) = administrator(binding) else { continue };
        ensure::created(&new, &admin_binding(user)).await?;
        ensure::absent(&old, &binding.name_any()).await?;
        is_changed = true;
    }
    Ok(is_changed)
}

#[cfg(test)]
mod tests {
    use feature_kit::rbac::{role_ref, subject};
    use kube::api::ObjectMeta;

    use super::*;

    #[test]
    fn only_bindings_as_earlier_versions_made_them_are_replaced() {
        let binding = |name: &str, role: &str, user: &str| ClusterRoleBinding {
            metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
            role_ref: role_ref("ClusterRole", role),
            subjects: Some(vec![subject("User", user)]),
        };
        assert_eq!(administrator(&binding("globaladmin-u-1", "cluster-admin", "u-1")), Some("u-1"));
        assert_eq!(administrator(&binding("globaladmin-u-1", "cluster-admin", "u-2")), None);
        assert_eq!(administrator(&binding("globaladmin-u-1", "view", "u-1")), None);
        assert_eq!(administrator(&binding("admins", "cluster-admin", "u-1")), None);
    }
}
