//! One resource request, after it was authorised: which handler takes it.

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

/// Everything a handler needs.
pub struct Context<'a> {
    pub registry: &'a Arc<Registry>,
    pub resource: Arc<Resource>,
    pub info: &'a RequestInfo,
    pub query: &'a Query,
    pub parts: &'a request::Parts,
    pub user: &'a UserInfo,
    pub authorizer: &'a Arc<dyn Authorizer>,
    /// Serves what is connected to.
    pub connector: Option<&'a Arc<dyn Connector>>,
    /// Turns true when watches are to end.
    pub ending: &'a tokio::sync::watch::Sender<bool>,
}

impl Context<'_> {
    /// Where it is told what the audit log may want to know.
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

    /// The form of the answer.
    fn accept(&self, offer: Offer) -> Result<Accepted, Status> {
        negotiate::accept(&self.parts.headers, self.query.get("pretty"), offer, self.typed())
    }
}

/// Answers a resource request.
pub async fn handle(context: Context<'_>, body: RequestBody) -> Result<Response<Body>, Status> {
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
        "delete" => delete::one(&context, body).await,
        "deletecollection" => delete::collection(&context, body).await,
        _ => Err(Status::method_not_allowed()),
    }
}

/// A collection is created in and an object changed, never the other way round.
fn has_right_shape(info: &RequestInfo) -> bool {
    match info.verb {
        "create" => info.name.is_empty(),
        "update" | "patch" => !info.name.is_empty(),
        _ => true,
    }
}

/// Whether the path is one inside a namespace. The request was authorised with the rights there,
/// which must never count for what is in no namespace. A namespace's own path names it twice.
fn is_in_namespace(info: &RequestInfo) -> bool {
    let is_namespace = info.group.is_empty() && info.resource == "namespaces";
    let is_own = is_namespace && info.name == info.namespace;
    !info.namespace.is_empty() && !is_own
}

fn needs_namespace(verb: &str) -> bool {
    !matches!(verb, "list" | "watch" | "deletecollection")
}

/// A custom resource's missing subresource names the object; a built-in's is an unknown path.
fn unknown_subresource(context: &Context<'_>) -> Status {
    let resource = &context.resource;
    if resource.custom {
        Status::not_found(&resource.group, &resource.plural, &context.info.name)
    } else {
        Status::unknown_resource()
    }
}

async fn call_subresource(
    context: &Context<'_>,
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
