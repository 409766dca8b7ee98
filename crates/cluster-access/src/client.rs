//! `kube` clients over our connections.

use http::Request;
use tunnel::ClusterId;

use crate::access::ClusterAccess;
use crate::body::wrap;
use crate::reading::Reader;

/// Relative names in requests have a namespace of their own in every call that we make.
const DEFAULT_NAMESPACE: &str = "default";

pub(crate) fn kube_client(access: ClusterAccess, cluster: ClusterId) -> kube::Client {
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let (access, cluster) = (access.clone(), cluster.clone());
        async move { access.read(&cluster, Reader::Server, request.map(wrap)).await }
    });
    kube::Client::new(service, DEFAULT_NAMESPACE)
}
