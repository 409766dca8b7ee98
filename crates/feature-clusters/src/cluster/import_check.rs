//! `GET /v3/import-check?kubeSystemUid=UID`: whether an entry manages the cluster of this uid already.
//!
//! Answers whoever is logged in, since who imports may be the owner of one entry and nothing else. Entries that
//! the caller may not see are counted and not named. A uid has 122 random bits, so only who has read it in the
//! cluster learns that the cluster is managed.

use std::sync::Arc;
use std::time::Duration;

use api_management::Cluster;
use controller::{Reflector, Whole};
use feature_kit::{Clients, Handler, ManagementContext, Request, Response, route};
use futures::future::BoxFuture;
use http::{Method, StatusCode};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::uid;

/// Where it is served.
pub const PATH: &str = "/v3/import-check";
/// How long a request waits for a server that has just started.
const SYNC_TIME_MAX: Duration = Duration::from_secs(5);
/// Longest uid.
const UID_MAX_BYTES: usize = 128;

/// The route.
pub struct ImportCheck {
    clients: Arc<dyn Clients>,
    clusters: Arc<Reflector<Whole<Cluster>>>,
}

impl ImportCheck {
    /// Must be called inside a tokio runtime.
    pub fn new(context: &ManagementContext) -> Self {
        Self { clients: context.clients.clone(), clusters: context.scope.reflectors.get() }
    }

    async fn check(&self, request: &Request) -> Response {
        if request.parts.method != Method::GET || request.parts.uri.path() != PATH {
            return refusal(
                StatusCode::NOT_FOUND,
                "NotFound",
                "only GET /v3/import-check is served",
            );
        }
        let Some(caller) = &request.caller else {
            return refusal(StatusCode::UNAUTHORIZED, "Unauthorized", "log in first");
        };
        let uid = request.query("kubeSystemUid").unwrap_or_default();
        let is_uid = |c: u8| c.is_ascii_alphanumeric() || c == b'-';
        if uid.is_empty() || uid.len() > UID_MAX_BYTES || !uid.bytes().all(is_uid) {
            let text =
                "query parameter \"kubeSystemUid\" must be the uid of a namespace kube-system";
            return refusal(StatusCode::BAD_REQUEST, "InvalidFormat", text);
        }
        if tokio::time::timeout(SYNC_TIME_MAX, self.clusters.synced()).await.is_err() {
            let text = "the server is still starting; try again in a few seconds";
            return refusal(StatusCode::SERVICE_UNAVAILABLE, "ServerError", text);
        }
        let client = self.clients.client_as(&caller.user_id, &caller.groups);
        let as_caller: Api<Cluster> = Api::all(client);
        let mut visible = Vec::new();
        let mut hidden = 0_usize;
        for id in uid::entries(&self.clusters, uid) {
            match as_caller.get(&id).await {
                Ok(cluster) => visible.push(shown(&cluster)),
                Err(_) => hidden += 1,
            }
        }
        let answer = json!({
            "type": "importCheck",
            "kubeSystemUid": uid,
            "clusters": visible,
            "hiddenClusters": hidden,
        });
        route::json(StatusCode::OK, &answer)
    }
}

fn shown(cluster: &Cluster) -> Value {
    json!({"id": cluster.name_any(), "name": cluster.display_name()})
}

/// As the REST view refuses.
fn refusal(status: StatusCode, code: &str, message: &str) -> Response {
    let body = json!({
        "type": "error", "baseType": "error", "status": status.as_u16(), "code": code, "message": message,
    });
    route::json(status, &body)
}

impl Handler for ImportCheck {
    fn handle(&self, request: Request) -> BoxFuture<'_, Response> {
        Box::pin(async move { self.check(&request).await })
    }
}
