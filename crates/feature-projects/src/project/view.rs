//! Project in the REST view.

use api_management::Project;
use feature_kit::table;
use feature_kit::view::in_clusters;
use rest_view::{Action, Descriptor, Field, Presentation, Resource, StructType};
use serde_json::{Value, json};

use crate::pod_security::assign::{self, SetTemplate, TEMPLATE_FIELD};

/// The type `project` under `/v3`.
pub fn view() -> Descriptor {
    let template = Field::reference(TEMPLATE_FIELD, "podSecurityPolicyTemplate").nullable(true);
    let set = Action::new(assign::ACTION, SetTemplate).input(assign::INPUT).output("project");
    table::descriptor("project")
        .store(in_clusters::<Project>())
        .types([StructType::writable(assign::INPUT, vec![template])])
        .action(set)
        .formatter(format)
        .personal(&[])
}

/// Conditions are there also before there is any, and the quota shows what is used of it.
fn format(_: &Presentation<'_>, stored: &Value, resource: &mut Resource) {
    resource.fields.entry("conditions").or_insert_with(|| json!([]));
    let used = &stored["status"]["usedLimit"];
    let quota = resource.fields.get_mut("resourceQuota").and_then(Value::as_object_mut);
    if let Some(quota) = quota.filter(|_| used.is_object()) {
        quota.insert("usedLimit".to_owned(), used.clone());
    }
}

#[cfg(test)]
mod tests {
    use feature_kit::view::api_versions;
    use rest_view::{Caller, RestView, Urls};

    use super::*;

    #[test]
    fn a_project_shows_its_cluster_and_its_name_at_the_top() {
        let project = json!({
            "metadata": {
                "name": "p-x2345", "namespace": "c-abcde",
                "creationTimestamp": "2024-01-01T00:00:00Z",
                "labels": {"authz.management.cattle.io/default-project": "true"},
            },
            "spec": {
                "displayName": "Default", "clusterName": "c-abcde",
                "resourceQuota": {"limit": {"pods": "10"}},
            },
            "status": {"usedLimit": {"pods": "3"}, "conditions": [{"type": "BackingNamespaceCreated", "status": "True"}]},
        });
        let view = RestView::new(api_versions(), [view()]);
        let urls = Urls::new("https://drover.example");
        let now = "2024-01-02T00:00:00Z".parse().unwrap();
        let shown = view.present("project", &project, &Caller::user("u-1"), &urls, now).unwrap();
        insta::assert_json_snapshot!(shown);
    }
}
