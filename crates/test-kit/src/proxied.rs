//! Requests to a cluster like those of the proxy, without a tunnel.

use apiserver::body::respond::{self, Body};
use apiserver::{ApiServer, UserInfo};
use cluster_access::proxy::DownstreamIdentity;
use feature_kit::{CheckedWrite, Feature};
use http::{Request, Response};
use http_body_util::BodyExt;

/// Sends a request to a cluster, after the checks of all features by a dry run.
///
/// # Panics
/// The request's URI is invalid, or reading its body fails.
pub async fn send(
    features: &[Feature],
    cluster: &str,
    downstream: &ApiServer,
    user: &UserInfo,
    mut request: Request<kube::client::Body>,
) -> Response<Body> {
    request.extensions_mut().insert(user.clone());
    let (mut parts, body) = request.into_parts();
    let body = body.collect_bytes().await.unwrap();
    for check in features.iter().flat_map(|feature| &feature.write_checks) {
        if !check.concerns(&parts.method, parts.uri.path()) {
            continue;
        }
        let real = parts.uri.clone();
        let sign = if real.query().is_some() { '&' } else { '?' };
        parts.uri = format!("{real}{sign}dryRun=All").parse().unwrap();
        let tried = Request::from_parts(parts.clone(), kube::client::Body::from(body.to_vec()));
        parts.uri = real;
        let response = downstream.handle(tried).await;
        if response.status().is_success() {
            let object = response.into_body().collect().await.unwrap().to_bytes();
            let identity = DownstreamIdentity {
                user: user.name.clone(),
                uid: String::new(),
                groups: user.groups.clone(),
                extra: user.extra.clone(),
            };
            let write = CheckedWrite {
                cluster,
                identity: &identity,
                method: &parts.method,
                object: &serde_json::from_slice(&object).unwrap(),
                is_dry_run: false,
            };
            if let Err(status) = check.check(write).await {
                return respond::status(&status);
            }
        }
    }
    downstream.handle(Request::from_parts(parts, kube::client::Body::from(body.to_vec()))).await
}
