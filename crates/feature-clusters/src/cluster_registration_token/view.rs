//! ClusterRegistrationToken in the REST view. The secret and the commands are shown: clients read
//! them there, and they are good once.

use api_management::ClusterRegistrationToken;
use feature_kit::view::{in_clusters, resource_of};
use rest_view::{Descriptor, Field};

pub fn view() -> Descriptor {
    let id = "clusterRegistrationToken";
    Descriptor::new(id, "clusterRegistrationTokens", resource_of::<ClusterRegistrationToken>())
        .store(in_clusters::<ClusterRegistrationToken>())
        .in_namespace_of("clusterId")
        .spec([Field::reference("clusterId", "cluster")
            .create_update()
            .required()
            .at("spec.clusterName")])
        .status([
            Field::string("token"),
            Field::string("manifestUrl"),
            Field::string("command"),
            Field::string("insecureCommand"),
            Field::string("nodeCommand"),
            Field::string("insecureNodeCommand"),
            Field::string("windowsNodeCommand"),
            Field::string("insecureWindowsNodeCommand"),
            Field::string("expiresAt"),
            Field::string("usedAt"),
        ])
        .with_state()
}
