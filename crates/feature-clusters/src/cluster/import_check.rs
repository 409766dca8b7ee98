//! `GET /v3/import-check`: which entries manage a cluster already.
//!
//! - `?kubeSystemUid=UID`, before an import: the cluster of this uid. Answers whoever is logged in,
//!   since who imports may be the owner of one entry and nothing else. A uid has 122 random bits,
//!   so only who has read it in the cluster learns that the cluster is managed.
//! - `?clusterId=ID`, after one was refused: the cluster whose agent called in for the entry of
//!   this id. Answers who may see that entry.
//!
//! Entries that the caller may not see are counted and not named.

use std::sync::Arc;
use std::time::Duration;

use api_management::cluster::READY;
use api_management::{Cluster, condition};
use controller::{Reflector, Whole};
use feature_kit::{
    Clients, ClusterConnections, Handler, ManagementContext, Request, Response, route,
};
use futures::future::BoxFuture;
use http::{Method, StatusCode};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::uid;
use crate::connections::Connections;

/// Where it is served.
pub const PATH: &str = "/v3/import-check";
/// How long a request waits for a server that has just started.
const SYNC_TIME_MAX: Duration = Duration::from_secs(5);
/// Longest uid or id.
const IDENTIFIER_MAX_BYTES: usize = 128;

/// The route [`PATH`].
pub struct ImportCheck {
    clients: Arc<dyn Clients>,
    clusters: Arc<Reflector<Whole<Cluster>>>,
    connections: Arc<Connections>,
}

impl ImportCheck {
    /// Must be called inside a tokio runtime.
    pub fn new(context: &ManagementContext, connections: Arc<Connections>) -> Self {
        let clusters = context.scope.reflectors.get();
        Self { clients: context.clients.clone(), clusters, connections }
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
        if tokio::time::timeout(SYNC_TIME_MAX, self.clusters.synced()).await.is_err() {
            let text = "the server is still starting; try again in a few seconds";
            return refusal(StatusCode::SERVICE_UNAVAILABLE, "ServerError", text);
        }
        let as_caller: Api<Cluster> =
            Api::all(self.clients.client_as(&caller.user_id, &caller.groups));
        let (parameter, managers) = match (
            request.query("kubeSystemUid"),
            request.query("clusterId"),
        ) {
            (Some(uid), _) if is_identifier(uid) => {
                (("kubeSystemUid", uid), uid::entries(&self.clusters, uid))
            }
            (None, Some(id)) if is_identifier(id) => match as_caller.get(id).await {
                Ok(cluster) => (("clusterId", id), self.managers(id, &cluster).await),
                Err(_) => {
                    let text = format!("there is no cluster \"{id}\", or you may not see it");
                    return refusal(StatusCode::NOT_FOUND, "NotFound", &text);
                }
            },
            _ => {
                let text = "query parameter \"kubeSystemUid\" must be the uid of a namespace kube-system, or \
                            \"clusterId\" the id of a cluster";
                return refusal(StatusCode::BAD_REQUEST, "InvalidFormat", text);
            }
        };
        let mut visible = Vec::new();
        let mut hidden = 0_usize;
        for id in managers {
            match as_caller.get(&id).await {
                Ok(cluster) => visible.push(shown(&cluster)),
                Err(_) => hidden += 1,
            }
        }
        let answer = json!({
            "type": "importCheck",
            parameter.0: parameter.1,
            "clusters": visible,
            "hiddenClusters": hidden,
        });
        route::json(StatusCode::OK, &answer)
    }

    /// Ids of the other entries of the cluster that was to be imported as `cluster`: as its agent
    /// was refused, or by the uid that is read through an agent that claimed none.
    async fn managers(&self, id: &str, cluster: &Cluster) -> Vec<String> {
        let mut managers = match self.connections.obstacle(id) {
            Some(obstacle) => obstacle.managed_by,
            None if is_anothers(cluster) => match self.connections.client(id) {
                Some(client) => {
                    let uid = uid::read(&client).await.unwrap_or_default();
                    uid::entries(&self.clusters, &uid)
                }
                None => Vec::new(),
            },
            None => Vec::new(),
        };
        managers.retain(|other| other != id && self.clusters.named(other).is_some());
        managers
    }
}

/// Whether it was found out that the cluster that answers is another entry's.
fn is_anothers(cluster: &Cluster) -> bool {
    let ready = condition::find(&cluster.status.conditions, READY);
    ready.is_some_and(|ready| ready.reason == uid::ALREADY_MANAGED)
}

/// Whether it may be a uid or an id: nothing is looked up by what cannot be one.
fn is_identifier(text: &str) -> bool {
    let may_have = |c: u8| c.is_ascii_alphanumeric() || c == b'-';
    !text.is_empty() && text.len() <= IDENTIFIER_MAX_BYTES && text.bytes().all(may_have)
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
