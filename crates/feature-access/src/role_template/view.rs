//! RoleTemplate in the REST view.

use feature_kit::table;
use rest_view::{Descriptor, Presentation, Resource};
use serde_json::Value;

/// The type `roleTemplate` under `/v3`.
pub fn view() -> Descriptor {
    table::descriptor("roleTemplate").formatter(without_removal).personal(&[])
}

/// What ships with the server cannot be removed. For roles of every kind.
pub fn without_removal(_: &Presentation<'_>, stored: &Value, resource: &mut Resource) {
    if stored["builtin"] == true {
        resource.links.remove("remove");
    }
}

#[cfg(test)]
mod tests {
    use feature_kit::view::api_versions;
    use kube::ResourceExt;
    use rest_view::{Caller, RestView, Urls};

    use super::*;
    use crate::builtin::role_templates;

    #[test]
    fn a_role_template_shows_its_rules() {
        let templates = role_templates();
        let member = templates.iter().find(|role| role.name_any() == "cluster-member").unwrap();
        let stored = serde_json::to_value(member).unwrap();
        let view = RestView::new(api_versions(), [view()]);
        let urls = Urls::new("https://drover.example");
        let now = "2024-01-02T00:00:00Z".parse().unwrap();
        let shown = view.present("roleTemplate", &stored, &Caller::user("u"), &urls, now).unwrap();
        insta::assert_json_snapshot!(shown);
    }
}
