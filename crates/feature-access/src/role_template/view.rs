//! RoleTemplate in the REST view.

use api_management::RoleTemplate;
use api_management::role_template::{CONTEXT_CLUSTER, CONTEXT_PROJECT};
use feature_kit::view::resource_of;
use rest_view::{Descriptor, Field, FieldType, Presentation, Resource, StructType};
use serde_json::Value;

pub fn view() -> Descriptor {
    let flag = |name: &str| Field::boolean(name).create_update();
    let text_list = |name: &str| Field::array(name, FieldType::String);
    let rule = ["apiGroups", "nonResourceURLs", "resourceNames", "resources", "verbs"];
    Descriptor::new("roleTemplate", "roleTemplates", resource_of::<RoleTemplate>())
        .display_name(Field::string("name").create_update().required().at("displayName"))
        .root([
            flag("administrative"),
            Field::boolean("builtin"),
            flag("clusterCreatorDefault").required(),
            Field::options("context", &[CONTEXT_PROJECT, CONTEXT_CLUSTER]).create_update(),
            Field::string("description").create_update(),
            flag("external"),
            flag("hidden"),
            flag("locked"),
            flag("projectCreatorDefault").required(),
            Field::array("roleTemplateIds", FieldType::reference("roleTemplate"))
                .create_update()
                .at("roleTemplateNames"),
            Field::array("rules", FieldType::of("policyRule")).create_update(),
        ])
        .types([StructType::writable("policyRule", rule.map(text_list).to_vec())])
        .formatter(format)
}

/// What ships with the server cannot be removed.
fn format(_: &Presentation<'_>, stored: &Value, resource: &mut Resource) {
    if stored["builtin"] == true {
        resource.links.remove("remove");
    }
}

#[cfg(test)]
mod tests {
    use feature_kit::view::api_versions;
    use rest_view::{Caller, RestView, Urls};

    use super::*;
    use crate::roles::cluster_member;

    #[test]
    fn a_role_template_shows_its_rules() {
        let stored = serde_json::to_value(cluster_member()).unwrap();
        let view = RestView::new(api_versions(), [view()]);
        let urls = Urls::new("https://drover.example");
        let now = "2024-01-02T00:00:00Z".parse().unwrap();
        let shown = view.present("roleTemplate", &stored, &Caller::user("u"), &urls, now).unwrap();
        insta::assert_json_snapshot!(shown);
    }
}
