//! The handling of one authorised resource request: selects the handler by verb and subresource.

mod connect;
mod delete;
mod options;
mod present;
mod read;
mod watching;
mod write;

use std::sync::Arc;

use api_meta::status::Status;
use http::{Response, request};

use crate::attributes::{Authorizer, UserInfo};
use crate::audit::Sink;
use crate::body::RequestBody;
use crate::body::negotiate::{self, Accepted, Offer, Typed};
use crate::body::respond::{self, Body};
use crate::connect::Connector;
use crate::registry::Registry;
use crate::request::{Query, RequestInfo};
use crate::resource::{Backend, Resource, Subresource};

pub use watching::WATCH_END_SPREAD;

/// What a handler needs to know about its request.
pub struct HandlerContext<'a> {
    pub registry: &'a Arc<Registry>,
    pub resource: Arc<Resource>,
    pub info: &'a RequestInfo,
    pub query: &'a Query,
    pub parts: &'a request::Parts,
    pub user: &'a UserInfo,
    pub authorizer: &'a Arc<dyn Authorizer>,
    /// Serves `exec`, `attach`, `port-forward` and logs; without it they do not exist.
    pub connector: Option<&'a Arc<dyn Connector>>,
    /// Becomes `true` when watches must end.
    pub ending: &'a tokio::sync::watch::Sender<bool>,
}

impl HandlerContext<'_> {
    /// Where handlers report bodies and annotations for the audit log.
    fn sink(&self) -> Sink {
        self.parts.extensions.get::<Sink>().cloned().unwrap_or_default()
    }

    fn subresource(&self) -> Option<&Subresource> {
        self.resource.subresource(&self.info.subresource)
    }

    /// API version and kind of bodies at this path.
    fn kind(&self) -> (String, &str) {
        self.resource.body_kind(self.subresource())
    }

    fn typed(&self) -> Typed {
        self.resource.has_protobuf(self.subresource()).into()
    }

    /// The representation of the response, or 406.
    fn accept(&self, offer: Offer) -> Result<Accepted, Status> {
        negotiate::accept(&self.parts.headers, self.query.get("pretty"), offer, self.typed())
    }
}

/// Responds to an authorised resource request.
///
/// # Errors
/// The [`Status`] to respond with.
pub async fn handle(
    context: HandlerContext<'_>,
    body: RequestBody,
) -> Result<Response<Body>, Status> {
    let resource = context.resource.clone();
    let info = context.info;
    let is_known = info.subresource.is_empty() || resource.subresource(&info.subresource).is_some();
    if context.parts.method == http::Method::HEAD && !resource.custom && is_known {
        return Err(Status::method_not_allowed());
    }
    if resource.namespaced && info.namespace.is_empty() && needs_namespace(info.verb) {
        return Err(Status::method_not_allowed());
    }
    if !resource.namespaced && is_in_namespace(info) {
        return match resource.custom {
            true => Ok(respond::not_found()),
            false => Err(Status::unknown_resource()),
        };
    }
    if !info.subresource.is_empty() {
        let subresource =
            resource.subresource(&info.subresource).ok_or_else(|| unknown_subresource(&context))?;
        return call_subresource(&context, subresource, body).await;
    }
    if !has_right_shape(info) {
        return Err(Status::method_not_allowed());
    }
    if let Backend::Computed(endpoint) = &resource.backend {
        if info.verb != "create" {
            return Err(Status::method_not_allowed());
        }
        return write::call_endpoint(&context, endpoint, body).await;
    }
    if !resource.verbs.contains(&info.verb) {
        return Err(Status::method_not_allowed());
    }
    match info.verb {
        "get" => read::get(&context).await,
        "list" => read::list(&context).await,
        "watch" => watching::watch(&context).await,
        "create" => write::create(&context, body).await,
        "update" => write::update(&context, body).await,
        "patch" => write::patch(&context, body).await,
        "delete" => delete::delete_object(&context, body).await,
        "deletecollection" => delete::delete_collection(&context, body).await,
        _ => Err(Status::method_not_allowed()),
    }
}

/// Create addresses a collection, update and patch an object.
fn has_right_shape(info: &RequestInfo) -> bool {
    match info.verb {
        "create" => info.name.is_empty(),
        "update" | "patch" => !info.name.is_empty(),
        _ => true,
    }
}

/// Whether the path is inside a namespace. The request was authorised with the rights in that
/// namespace, which must never count for a cluster-scoped resource. The path of a namespace itself
/// names it twice.
fn is_in_namespace(info: &RequestInfo) -> bool {
    let is_namespace = info.group.is_empty() && info.resource == "namespaces";
    let is_own = is_namespace && info.name == info.namespace;
    !info.namespace.is_empty() && !is_own
}

fn needs_namespace(verb: &str) -> bool {
    !matches!(verb, "list" | "watch" | "deletecollection")
}

/// 404 of a missing subresource: for a custom resource it names the object, for a built-in one the
/// path is unknown.
fn unknown_subresource(context: &HandlerContext<'_>) -> Status {
    let resource = &context.resource;
    if resource.custom {
        Status::not_found(&resource.group, &resource.plural, &context.info.name)
    } else {
        Status::unknown_resource()
    }
}

async fn call_subresource(
    context: &HandlerContext<'_>,
    subresource: &Subresource,
    body: RequestBody,
) -> Result<Response<Body>, Status> {
    use crate::resource::SubresourceHandler;
    if !subresource.verbs.contains(&context.info.verb) {
        return Err(Status::method_not_allowed());
    }
    match (&subresource.handler, context.info.verb) {
        (SubresourceHandler::Endpoint(endpoint), _) => {
            write::call_endpoint(context, endpoint, body).await
        }
        (SubresourceHandler::Connect, _) => connect::connect(context, subresource.name).await,
        (_, "get") => read::get(context).await,
        (_, "update") => write::update(context, body).await,
        (_, "patch") => write::patch(context, body).await,
        _ => Err(Status::method_not_allowed()),
    }
}
