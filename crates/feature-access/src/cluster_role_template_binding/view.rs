//! ClusterRoleTemplateBinding in the REST view.

use api_management::ClusterRoleTemplateBinding;
use api_management::user::LOCAL_PRINCIPAL;
use feature_kit::view::{in_clusters, resource_of};
use rest_view::{Descriptor, Field, Mapper};
use serde_json::{Map, Value};

pub fn view() -> Descriptor {
    let id = "clusterRoleTemplateBinding";
    let resource = resource_of::<ClusterRoleTemplateBinding>();
    let subject =
        |name: &str, to: &str, stored: &str| Field::reference(name, to).create().at(stored);
    let mut descriptor = Descriptor::new(id, "clusterRoleTemplateBindings", resource)
        .store(in_clusters::<ClusterRoleTemplateBinding>())
        .in_namespace_of("clusterId")
        .root([
            Field::reference("clusterId", "cluster").create().required().at("clusterName"),
            Field::reference("roleTemplateId", "roleTemplate")
                .create_update()
                .required()
                .at("roleTemplateName"),
            subject("userId", "user", "userName"),
            subject("userPrincipalId", "principal", "userPrincipalName"),
            subject("groupId", "group", "groupName"),
            subject("groupPrincipalId", "principal", "groupPrincipalName"),
        ])
        .mapper(LocalPrincipal);
    descriptor.name_prefix = "crtb-".to_owned();
    descriptor
}

/// Clients name people by principal; a local one is a user of ours.
struct LocalPrincipal;

impl Mapper for LocalPrincipal {
    fn to_view(&self, _: &Value, _: &mut Map<String, Value>) {}

    fn to_stored(&self, input: &Map<String, Value>, stored: &mut Value) {
        let principal = input.get("userPrincipalId").and_then(Value::as_str).unwrap_or_default();
        let has_user = stored["userName"].as_str().is_some_and(|user| !user.is_empty());
        if let Some(user) = principal.strip_prefix(LOCAL_PRINCIPAL)
            && !has_user
        {
            stored["userName"] = user.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use rest_view::mapping::{to_stored, to_view};
    use rest_view::{ApiVersion, Registry};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_binding_goes_into_its_clusters_namespace_and_names_the_user() {
        let input = json!({
            "clusterId": "c-abcde", "roleTemplateId": "cluster-member",
            "userPrincipalId": "local://u-bob",
        });
        let Value::Object(input) = input else { panic!("no object") };
        let stored = to_stored(&view(), &input, "u-alice");
        insta::assert_json_snapshot!(stored);
        let registry = Registry::new([ApiVersion::new("g", "v3", "/v3")], [view()]);
        let shown = to_view(&view(), &registry, &stored, false);
        assert_eq!((&shown["userId"], &shown["namespaceId"]), (&json!("u-bob"), &Value::Null));
    }
}
