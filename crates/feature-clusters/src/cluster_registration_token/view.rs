//! ClusterRegistrationToken in the REST view. The secret and the commands are shown: clients read
//! them there, and they are good once.

use api_management::ClusterRegistrationToken;
use feature_kit::table;
use feature_kit::view::in_clusters;
use rest_view::Descriptor;

/// The type `clusterRegistrationToken` under `/v3`.
pub fn view() -> Descriptor {
    table::descriptor("clusterRegistrationToken").store(in_clusters::<ClusterRegistrationToken>())
}
