//! `kube` clients over the connections of this crate.

use http::Request;
use tunnel::ClusterId;

use crate::access::ClusterAccess;
use crate::body::wrap;
use crate::reading::ResponseReader;

/// The namespace of requests that name none. Every call names its own.
const DEFAULT_NAMESPACE: &str = "default";

pub(crate) fn kube_client(access: ClusterAccess, cluster: ClusterId) -> kube::Client {
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let (access, cluster) = (access.clone(), cluster.clone());
        async move { access.read(&cluster, ResponseReader::Server, request.map(wrap)).await }
    });
    kube::Client::new(service, DEFAULT_NAMESPACE)
}
