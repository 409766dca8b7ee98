//! The provisioning log under `/v3`: `GET /v3/clusters/ID/provisioninglog`, for whoever may change
//! the cluster.

use std::sync::Arc;

use api_management::Cluster;
use feature_kit::view::resource_of;
use futures::future::BoxFuture;
use rest_view::store::may;
use rest_view::{ActionHandler, ActionRequest, ActionResponse, ApiError, Descriptor, Key, Link};
use serde_json::{Map, Value};

use super::controller::Provisioner;

/// Name of the link.
const LINK: &str = "provisioningLog";
/// Type of what it returns: number of the first line, and the lines.
const TYPE: &str = "provisioningLog";

/// Adds the log to the type `cluster`.
pub fn extend(cluster: Descriptor, provisioner: Arc<Provisioner>) -> Descriptor {
    let link = Link::new(LINK, LogLink(provisioner))
        .available_when(|stored, _| stored["spec"]["genericEngineConfig"].is_object());
    cluster.link(link)
}

struct LogLink(Arc<Provisioner>);

impl ActionHandler for LogLink {
    fn run<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<ActionResponse, ApiError>> {
        Box::pin(async move {
            let object = request.object.ok_or_else(ApiError::no_such_id)?;
            let key = Key::of(object);
            // A driver may write what not everybody may know who sees the cluster.
            if !may(request.context, "update", &resource_of::<Cluster>(), &key).await? {
                return Err(ApiError::permission_denied(
                    "only those who may change the cluster see its log",
                ));
            }
            self.0
                .logs
                .load(&key.name)
                .await
                .map_err(|error| ApiError::server_error(error.chain()))?;
            let tail = self.0.logs.tail(&key.name);
            let lines: Vec<Value> = tail.lines.into_iter().map(Value::from).collect();
            let fields: [(String, Value); 2] =
                [("first".to_owned(), tail.first.into()), ("lines".to_owned(), lines.into())];
            Ok(ActionResponse::value(TYPE, Map::from_iter(fields)))
        })
    }
}
