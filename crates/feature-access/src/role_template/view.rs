//! RoleTemplate in the REST view.

use feature_kit::table;
use rest_view::{Descriptor, Presentation, Resource};
use serde_json::Value;

/// The type `roleTemplate` under `/v3`.
pub fn view() -> Descriptor {
    table::descriptor("roleTemplate").formatter(format).personal(&[])
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
