//! ClusterRoleTemplateBinding in the REST view.

use api_management::ClusterRoleTemplateBinding;
use feature_kit::table;
use feature_kit::view::in_clusters;
use rest_view::Descriptor;

use crate::local_principal::LocalPrincipal;

/// The type `clusterRoleTemplateBinding` under `/v3`.
pub fn view() -> Descriptor {
    table::descriptor("clusterRoleTemplateBinding")
        .store(in_clusters::<ClusterRoleTemplateBinding>())
        .mapper(LocalPrincipal)
}

#[cfg(test)]
mod tests {
    use rest_view::mapping::{to_stored, to_view};
    use rest_view::{ApiVersion, Registry};
    use serde_json::{Value, json};

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
