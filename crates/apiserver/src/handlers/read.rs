//! GET of one object and of a collection.

use api_meta::status::Status;
use http::{Response, StatusCode};

use super::{Context, options, present};
use crate::body::negotiate::Offer;
use crate::body::respond::Body;

pub async fn get(context: &Context<'_>) -> Result<Response<Body>, Status> {
    let (info, query) = (context.info, context.query);
    let accepted = context.accept(Offer::Object)?;
    let version = options::get_version(query)?;
    let object =
        context.registry.get_at(&context.resource, &info.namespace, &info.name, version).await?;
    let object = context.registry.serve_one(&context.resource, object).await?;
    present::object(&context.resource, &object, StatusCode::OK, accepted, query)
}

pub async fn list(context: &Context<'_>) -> Result<Response<Body>, Status> {
    let query = context.query;
    let accepted = context.accept(Offer::List)?;
    let wanted = options::list_query(context)?;
    let mut list = context.registry.list(&context.resource, &wanted).await?;
    list.items = context.registry.serve(&context.resource, list.items).await?;
    present::list(&context.resource, &list, accepted, query)
}
