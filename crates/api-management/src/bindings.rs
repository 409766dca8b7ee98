//! Bindings: objects that give roles to users and groups. A field of a binding does not change once
//! it has a value.
//!
//! A user who may write a binding but not give its role must not be able to redirect it to another
//! user. So all its fields are fixed, including those that a later version adds. To change one,
//! delete the binding and create another.

use crate::table::RowLocation;
use crate::types;

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
