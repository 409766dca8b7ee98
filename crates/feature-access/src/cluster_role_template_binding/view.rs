//! ClusterRoleTemplateBinding in the REST view.

use api_management::ClusterRoleTemplateBinding;
use api_management::user::LOCAL_PRINCIPAL;
use feature_kit::table;
use feature_kit::view::in_clusters;
use rest_view::{Descriptor, Mapper};
use serde_json::{Map, Value};

/// The type `clusterRoleTemplateBinding` under `/v3`.
pub fn view() -> Descriptor {
    table::descriptor("clusterRoleTemplateBinding")
        .store(in_clusters::<ClusterRoleTemplateBinding>())
        .mapper(LocalPrincipal)
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
