//! GET of one object and of a collection.

use api_meta::status::Status;
use http::{Response, StatusCode};

use super::{HandlerContext, options, present};
use crate::body::negotiate::Offer;
use crate::body::respond::Body;

/// Responds with the object of the path.
///
/// # Errors
/// 404 without such an object, 406 when no accepted media type is offered, or those of the options.
pub async fn get(context: &HandlerContext<'_>) -> Result<Response<Body>, Status> {
    let (info, query) = (context.info, context.query);
    let accepted = context.accept(Offer::Object)?;
    let version = options::get_version(query)?;
    let object =
        context.registry.get_at(&context.resource, &info.namespace, &info.name, version).await?;
    let object = context.registry.serve_one(&context.resource, object).await?;
    present::object(&context.resource, &object, StatusCode::OK, accepted, query)
}

/// Responds with a list, or one page of it.
///
/// # Errors
/// 410 when the version or the continue token has expired, 406 when no accepted media type is
/// offered, or those of the options.
pub async fn list(context: &HandlerContext<'_>) -> Result<Response<Body>, Status> {
    let query = context.query;
    let accepted = context.accept(Offer::List)?;
    let list_query = options::list_query(context)?;
    let mut list = context.registry.list(&context.resource, &list_query).await?;
    list.items = context.registry.serve(&context.resource, list.items).await?;
    present::list(&context.resource, &list, accepted, query)
}
