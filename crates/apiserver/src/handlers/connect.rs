//! Requests that a [`Connector`](crate::connect::Connector) serves.

use api_meta::status::Status;
use http::Response;

use super::Context;
use crate::authorization::authorize;
use crate::body::respond::Body;
use crate::connect::Connect;

/// Hands a request on to the server's connector.
///
/// # Errors
/// The caller may not do it, the object does not exist, or what the connector says.
pub async fn connect(
    context: &Context<'_>,
    subresource: &'static str,
) -> Result<Response<Body>, Status> {
    let Context { registry, resource, info, query, parts, user, authorizer, .. } = context;
    let connector = context.connector.ok_or_else(Status::unknown_resource)?;
    // Whoever may only read must not run a command because browsers open WebSockets by GET.
    if info.verb == "get" && subresource != "log" {
        authorize(&***authorizer, user, info, "create")?;
    }
    let object = registry.get(resource, &info.namespace, &info.name).await?;
    let (registry, resource) = ((*registry).clone(), resource.clone());
    connector
        .connect(Connect::new(registry, resource, object, subresource, (*query).clone(), parts))
        .await
}
