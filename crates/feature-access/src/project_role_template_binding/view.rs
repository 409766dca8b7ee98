//! ProjectRoleTemplateBinding in the REST view.

use api_management::ProjectRoleTemplateBinding;
use feature_kit::table;
use feature_kit::view::{in_projects, resource_of};
use rest_view::Descriptor;

use crate::local_principal::LocalPrincipal;

/// The type `projectRoleTemplateBinding` under `/v3`.
pub fn view() -> Descriptor {
    table::descriptor("projectRoleTemplateBinding")
        .store(in_projects(resource_of::<ProjectRoleTemplateBinding>()))
        .mapper(LocalPrincipal)
}

#[cfg(test)]
mod tests {
    use rest_view::mapping::{to_stored, to_view};
    use rest_view::{ApiVersion, Registry};
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_binding_goes_into_its_projects_namespace_and_names_the_user() {
        let input = json!({
            "projectId": "c-abcde:p-fghjk", "roleTemplateId": "project-member",
            "userPrincipalId": "local://u-bob",
        });
        let Value::Object(input) = input else { panic!("no object") };
        let stored = to_stored(&view(), &input, "u-alice");
        assert_eq!(stored["metadata"]["namespace"], "p-fghjk");
        assert_eq!(stored["projectName"], "c-abcde:p-fghjk");
        assert_eq!(
            (&stored["userName"], &stored["roleTemplateName"]),
            (&json!("u-bob"), &json!("project-member"))
        );
        let registry = Registry::new([ApiVersion::new("g", "v3", "/v3")], [view()]);
        let shown = to_view(&view(), &registry, &stored, false);
        assert_eq!((&shown["userId"], &shown["namespaceId"]), (&json!("u-bob"), &Value::Null));
    }
}
