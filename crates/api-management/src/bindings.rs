//! Bindings: objects that give roles to users and groups. A field of a binding does not change once
//! it has a value.
//!
//! A user who may write a binding but not give its role must not be able to redirect it to another
//! user. So all its fields are fixed, including those that a later version adds. To change one,
//! delete the binding and create another.

use api_meta::status::Cause;
use serde_json::Value;

use crate::table::RowLocation;
use crate::types;
use crate::user::LOCAL_PRINCIPAL;

/// The suffix of the names of these kinds.
const KIND_SUFFIX: &str = "Binding";
/// Parts of an object that every user with the right to update may change.
const FREE: [&str; 2] = ["metadata", "status"];

/// Names of the top-level fields of a binding of `kind` that define who gets what, as they are
/// stored; none when the kind is no binding.
pub fn fixed_fields(kind: &str) -> Vec<String> {
    if !kind.ends_with(KIND_SUFFIX) {
        return Vec::new();
    }
    let mut fields = Vec::new();
    for table in types::tables_of_kind(kind) {
        for row in &table.fields {
            let RowLocation::Path(path) = &row.location else { continue };
            let field = path.split('.').next().unwrap_or_default();
            if !FREE.contains(&field) && !fields.iter().any(|known| known == field) {
                fields.push(field.to_owned());
            }
        }
    }
    fields
}

/// Who a binding in a cluster or project gives its role to, as its fields say it; empty: not set.
pub(crate) struct Target<'a> {
    pub user: &'a str,
    pub user_principal: &'a str,
    pub group: &'a str,
    pub group_principal: &'a str,
    /// Only bindings in projects have it.
    pub service_account: &'a str,
}

/// Violations of: exactly one user, group or service account.
pub(crate) fn check_target(target: &Target<'_>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let user = !target.user.is_empty() || !target.user_principal.is_empty();
    let group = !target.group.is_empty() || !target.group_principal.is_empty();
    let account = !target.service_account.is_empty();
    if [user, group, account].iter().filter(|is_set| **is_set).count() != 1 {
        let detail =
            "must target a user [userId]/[userPrincipalId] OR a group [groupId]/[groupPrincipalId]";
        causes.push(Cause::invalid("userName", &Value::from(target.user), detail));
    }
    let principal = target.user_principal.strip_prefix(LOCAL_PRINCIPAL);
    if principal.is_some_and(|user| !target.user.is_empty() && user != target.user) {
        let detail = "must name the same user as userName";
        let given = Value::from(target.user_principal);
        causes.push(Cause::invalid("userPrincipalName", &given, detail));
    }
    causes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_bindings_say_is_fixed() {
        let cluster = [
            "clusterName",
            "groupName",
            "groupPrincipalName",
            "roleTemplateName",
            "userName",
            "userPrincipalName",
        ];
        assert_eq!(fixed_fields("ClusterRoleTemplateBinding"), cluster);
        let project = fixed_fields("ProjectRoleTemplateBinding");
        assert!(project.contains(&"serviceAccount".to_owned()), "{project:?}");
        assert!(project.contains(&"projectName".to_owned()), "{project:?}");
        let global = ["globalRoleName", "groupPrincipalName", "userName"];
        assert_eq!(fixed_fields("GlobalRoleBinding"), global);
        assert!(fixed_fields("RoleTemplate").is_empty());
    }
}
