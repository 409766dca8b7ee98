//! Project in the REST view.

use api_management::Project;
use feature_kit::view::{in_clusters, resource_of};
use rest_view::{Descriptor, Field, FieldType, StructType};

pub fn view() -> Descriptor {
    Descriptor::new("project", "projects", resource_of::<Project>())
        .store(in_clusters::<Project>())
        .display_name(Field::string("name").create_update().required().at("spec.displayName"))
        .in_namespace_of("clusterId")
        .spec([
            Field::reference("clusterId", "cluster")
                .create_update()
                .required()
                .at("spec.clusterName"),
            Field::string("description").create_update(),
            Field::boolean("enableProjectMonitoring").create_update(),
            Field::of("resourceQuota", "projectResourceQuota").create_update(),
            Field::of("namespaceDefaultResourceQuota", "namespaceResourceQuota").create_update(),
            Field::of("containerDefaultResourceLimit", "containerResourceLimit").create_update(),
        ])
        .status([
            Field::array("conditions", FieldType::of("projectCondition")),
            Field::string("podSecurityPolicyTemplateId").at("status.podSecurityPolicyTemplateName"),
        ])
        .types(types())
        .with_state()
}

fn types() -> Vec<StructType> {
    let text = |names: &[&str]| names.iter().map(|&name| Field::string(name)).collect::<Vec<_>>();
    let limits = [
        "configMaps",
        "limitsCpu",
        "limitsMemory",
        "persistentVolumeClaims",
        "pods",
        "replicationControllers",
        "requestsCpu",
        "requestsMemory",
        "requestsStorage",
        "secrets",
        "services",
        "servicesLoadBalancers",
        "servicesNodePorts",
    ];
    let limit = || Field::of("limit", "resourceQuotaLimit");
    let used = Field::of("usedLimit", "resourceQuotaLimit");
    vec![
        StructType::condition("projectCondition"),
        StructType::writable("resourceQuotaLimit", text(&limits)),
        StructType::writable("projectResourceQuota", vec![limit(), used]),
        StructType::writable("namespaceResourceQuota", vec![limit()]),
        StructType::writable(
            "containerResourceLimit",
            text(&["limitsCpu", "limitsMemory", "requestsCpu", "requestsMemory"]),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use feature_kit::view::api_versions;
    use rest_view::{Caller, RestView, Urls};
    use serde_json::json;

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
            "status": {"conditions": [{"type": "BackingNamespaceCreated", "status": "True"}]},
        });
        let view = RestView::new(api_versions(), [view()]);
        let urls = Urls::new("https://drover.example");
        let now = "2024-01-02T00:00:00Z".parse().unwrap();
        let shown = view.present("project", &project, &Caller::user("u-1"), &urls, now).unwrap();
        insta::assert_json_snapshot!(shown);
    }
}
