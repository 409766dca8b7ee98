//! Requests that a [`Connector`](crate::connect::Connector) serves.

use api_meta::status::Status;
use http::Response;

use super::HandlerContext;
use crate::authorization::authorize;
use crate::body::respond::Body;
use crate::connect::Connect;

/// Passes a request on to the [`Connector`](crate::connect::Connector) of the server.
///
/// # Errors
/// 403 when the caller has no right to it, 404 when the object or the subresource does not exist,
/// or the error of the connector.
pub async fn connect(
    context: &HandlerContext<'_>,
    subresource: &'static str,
) -> Result<Response<Body>, Status> {
    let HandlerContext { registry, resource, info, query, parts, user, authorizer, .. } = context;
    let connector = context.connector.ok_or_else(Status::unknown_resource)?;
    // A caller that has only the right to read must not run a command just because browsers open
    // WebSockets by GET.
    if info.verb == "get" && subresource != "log" {
        authorize(&***authorizer, user, info, "create")?;
    }
    let object = registry.get(resource, &info.namespace, &info.name).await?;
    let (registry, resource) = ((*registry).clone(), resource.clone());
    connector
        .connect(Connect::new(registry, resource, object, subresource, (*query).clone(), parts))
        .await
}
