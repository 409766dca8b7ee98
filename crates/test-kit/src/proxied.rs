//! Requests into a cluster as the proxy sends them, without a tunnel.

use apiserver::body::respond::{self, Body};
use apiserver::{ApiServer, UserInfo};
use cluster_access::proxy::Identity;
use feature_kit::{CheckedWrite, Feature};
use http::{Request, Response};
use http_body_util::BodyExt;

/// Sends a request into a cluster, after the checks of all features by a dry run.
///
/// # Panics
/// The request's URI with a query is none, or its body breaks off.
pub async fn send(
    features: &[Feature],
    cluster: &str,
    downstream: &ApiServer,
    person: &UserInfo,
    mut request: Request<kube::client::Body>,
) -> Response<Body> {
    request.extensions_mut().insert(person.clone());
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
        let answer = downstream.handle(tried).await;
        if answer.status().is_success() {
            let object = answer.into_body().collect().await.unwrap().to_bytes();
            let identity = Identity {
                user: person.name.clone(),
                uid: String::new(),
                groups: person.groups.clone(),
                extra: person.extra.clone(),
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
