//! The entry point: one request in, one response out.

use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use identity::cross_site::RequestKind;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::browser;
use crate::collection;
use crate::collection::listing::{Lists, Scan};
use crate::error::ApiError;
use crate::feed::{self, Feed, Subscriber};
use crate::openapi;
use crate::operations::{self, Narrowed};
use crate::resource_socket;
use crate::response::{ResponseFormat, ViewResponse, body_of, format_of};
use crate::route::{DocumentFormat, Route, RouteTarget, route};
use crate::schema;
use crate::sockets::Sockets;
use crate::types::context::{Caller, Context, Presentation};
use crate::types::descriptor::Descriptor;
use crate::types::field::StructType;
use crate::types::registry::{ApiVersion, Registry};
use crate::types::urls::{Urls, query_pairs};

pub use crate::response::BODY_SIZE_MAX;

/// The types of a view, which may change while it serves. Clones are the same types.
#[derive(Clone)]
pub struct LiveTypes(Arc<ArcSwap<Registry>>);

impl LiveTypes {
    /// Changes several types at once: no request sees only a part of the change. `change` may run
    /// more than once.
    pub fn change(&self, change: impl Fn(&mut Registry)) {
        self.0.rcu(|current| {
            let mut next = Registry::clone(current);
            change(&mut next);
            next
        });
    }
}

/// The view over a set of types, which may change at run time.
pub struct RestView {
    registry: Arc<ArcSwap<Registry>>,
    lists: Arc<dyn Lists>,
    feed: Option<Feed>,
    server: Option<kube::Client>,
}

impl RestView {
    /// A view without change feed that reads lists with [`Scan`].
    pub fn new(
        versions: impl IntoIterator<Item = ApiVersion>,
        descriptors: impl IntoIterator<Item = Descriptor>,
    ) -> Self {
        let registry = Registry::new(versions, descriptors);
        let registry = Arc::new(ArcSwap::from_pointee(registry));
        Self { registry, lists: Arc::new(Scan), feed: None, server: None }
    }
    /// Replaces [`Scan`].
    pub fn with_lists(mut self, lists: impl Lists) -> Self {
        self.lists = Arc::new(lists);
        self
    }
    /// Also serves the change feed, see [`RestView::subscribe`].
    pub fn with_feed(mut self, feed: Feed) -> Self {
        self.feed = Some(feed);
        self
    }
    /// The users of an object that is to be deleted are searched with `client`, which needs list on
    /// the types whose references hold ([`Field::holds`](crate::Field)). Without it the client of
    /// the caller is used, and objects that the caller does not see hold nothing.
    pub fn with_server(mut self, client: kube::Client) -> Self {
        self.server = Some(client);
        self
    }

    /// Adds or replaces a type for requests that begin from now on.
    pub fn register(&self, descriptor: Descriptor) {
        self.change(|registry| registry.insert(descriptor.clone()));
    }
    /// Adds or replaces an embedded type.
    pub fn register_type(&self, version: &str, kind: StructType) {
        self.change(|registry| registry.insert_type(version, kind.clone()));
    }
    /// Removes a type for requests that begin from now on.
    pub fn unregister(&self, version: &str, id: &str) {
        self.change(|registry| registry.remove(version, id));
    }
    /// As [`LiveTypes::change`].
    pub fn change(&self, change: impl Fn(&mut Registry)) {
        self.types().change(change);
    }
    /// The types, for who changes them later.
    pub fn types(&self) -> LiveTypes {
        LiveTypes(self.registry.clone())
    }
    /// The current types.
    pub fn registry(&self) -> Arc<Registry> {
        self.registry.load_full()
    }

    /// Whether the path belongs to the view; [`RestView::handle`] returns 404 for others.
    pub fn serves(&self, path: &str) -> bool {
        route(&self.registry(), path).is_some()
    }

    /// A stored object of type `id` in `/v3`, as lists and gets show it. `None`: no such type.
    pub fn present(
        &self,
        id: &str,
        stored: &Value,
        caller: &Caller,
        urls: &Urls,
        now: Timestamp,
    ) -> Option<Value> {
        let registry = self.registry();
        let descriptor = registry.find("/v3", id)?;
        let presentation =
            Presentation { caller, urls, registry: &registry, now, action_links: false };
        let resource = collection::resource(&presentation, descriptor, stored, false);
        Some(collection::to_json(&presentation, descriptor, resource))
    }

    /// Whether the path is that of a change feed, whose requests are for [`RestView::subscribe`].
    pub fn is_feed(&self, path: &str) -> bool {
        feed::is_feed(&self.registry(), path)
    }

    /// Handles one request for a change feed. Returns 101 and serves the socket in its own task, or
    /// returns an error.
    ///
    /// `request` must come from an HTTP server of hyper, which carries the upgrade in the
    /// extensions of the request.
    pub async fn subscribe(&self, request: Request<()>, subscriber: Subscriber) -> Response<Bytes> {
        let outcome = match &self.feed {
            Some(feed) => feed::open(feed, &self.registry, request, subscriber).await,
            None => Err(ApiError::no_feed()),
        };
        outcome.unwrap_or_else(|error| {
            ViewResponse::from(error).finish(ResponseFormat::Json, None, Vec::new())
        })
    }

    /// Whether the request is for a WebSocket of a resource, see [`RestView::open_socket`].
    pub fn is_resource_socket<B>(&self, request: &Request<B>) -> bool {
        RequestKind::of(request) == RequestKind::Upgrade
            && resource_socket::find(&self.registry(), request.uri()).is_some()
    }

    /// Handles one request for a WebSocket of a resource. Returns 101 and serves the socket in its
    /// own task, or returns an error. `client` acts as the caller.
    ///
    /// `request` must come from an HTTP server of hyper, which carries the upgrade in the
    /// extensions of the request.
    pub async fn open_socket(
        &self,
        request: Request<()>,
        caller: &Caller,
        client: &kube::Client,
    ) -> Response<Bytes> {
        let outcome = match self.sockets() {
            Some(sockets) => {
                resource_socket::open(&self.registry(), sockets, request, caller, client).await
            }
            None => Err(ApiError::no_feed()),
        };
        outcome.unwrap_or_else(|error| {
            ViewResponse::from(error).finish(ResponseFormat::Json, None, Vec::new())
        })
    }

    /// The sockets of the change feed, if there is one.
    pub fn sockets(&self) -> Option<&Arc<Sockets>> {
        self.feed.as_ref().map(Feed::sockets)
    }

    /// Waits until all sockets of the change feed are closed, once its `stop` is cancelled.
    pub async fn feed_closed(&self) {
        if let Some(sockets) = self.sockets() {
            sockets.closed().await;
        }
    }

    /// Handles one request.
    ///
    /// - `caller`: as authenticated; [`Caller::anonymous`] reaches public versions and ids only.
    /// - `client`: acts as the caller. All reads and writes of Kubernetes objects use it, except
    ///   for [`Self::with_server`].
    ///
    /// The body is limited to [`BODY_SIZE_MAX`]; stop reading beyond that. Never fails: errors are
    /// responses. When the future is dropped, a write may still have been done.
    pub async fn handle(
        &self,
        request: Request<Bytes>,
        caller: &Caller,
        client: &kube::Client,
    ) -> Response<Bytes> {
        let registry = self.registry();
        let (parts, body) = request.into_parts();
        let query = query_pairs(parts.uri.query().unwrap_or_default());
        let route = route(&registry, parts.uri.path());
        let urls = Urls::of_request(&parts.headers, &parts.uri);
        let urls = match &route {
            Some(route) => route.urls(urls),
            None => urls,
        };
        let presentation = Presentation {
            caller,
            urls: &urls,
            registry: &registry,
            now: Timestamp::now(),
            action_links: parts.headers.contains_key("x-api-action-links"),
        };
        let inside = route.as_ref().and_then(|route| route.inside.as_ref());
        let headers = &parts.headers;
        let server = self.server.as_ref().unwrap_or(client);
        let context = Context { presentation, client, server, headers, inside, query: &query };
        let format = format_of(&parts.headers, context.query_value("_format"));
        let method = effective_method(&parts.method, &context);
        let csrf = browser::check_csrf(&parts.headers, caller, [&parts.method, &method]);
        let Some(route) = &route else {
            let error = ApiError::not_found(format!("no such path \"{}\"", parts.uri.path()));
            return ViewResponse::from(error).finish(format, None, Vec::new());
        };
        let format = match route.target {
            // The path selects the format.
            RouteTarget::Document(DocumentFormat::Json) => ResponseFormat::Json,
            RouteTarget::Document(DocumentFormat::Yaml) => ResponseFormat::Yaml,
            _ => format,
        };
        if format == ResponseFormat::Html
            && [&parts.method, &method].iter().all(|m| **m == Method::GET)
        {
            return ViewResponse::Interface(urls.path("/")).finish(format, None, Vec::new());
        }
        let schemas_url = urls.path(&format!("{}/schemas", route.schemas_path));
        let (outcome, cookies) = match csrf {
            Ok(cookies) => {
                let (lists, path) = (self.lists.as_ref(), parts.uri.path());
                let call = Call { context: &context, lists, route, method, path };
                (call.run(&parts.headers, &body).await, cookies)
            }
            Err(error) => (Err(error), Vec::new()),
        };
        let response = outcome.unwrap_or_else(ViewResponse::from);
        response.finish(format, Some(&schemas_url), cookies)
    }
}

/// `_method` overrides the method; `action=remove` is a DELETE.
fn effective_method(sent: &Method, context: &Context<'_>) -> Method {
    if *sent == Method::POST && context.query_value("action") == Some("remove") {
        return Method::DELETE;
    }
    match context.query_value("_method").map(str::to_ascii_uppercase).as_deref() {
        Some("GET") => Method::GET,
        Some("POST") => Method::POST,
        Some("PUT") => Method::PUT,
        Some("DELETE") => Method::DELETE,
        _ => sent.clone(),
    }
}

struct Call<'a> {
    context: &'a Context<'a>,
    lists: &'a dyn Lists,
    route: &'a Route,
    method: Method,
    path: &'a str,
}

impl Call<'_> {
    async fn run(&self, headers: &HeaderMap, body: &Bytes) -> Result<ViewResponse, ApiError> {
        if self.context.caller.is_anonymous() && !self.is_public() {
            return Err(ApiError::unauthenticated());
        }
        let bound = self.context.caller.token_cluster.as_deref();
        if bound.is_some_and(|bound| !self.route.is_within(self.context.registry, bound)) {
            return Err(ApiError::unauthenticated());
        }
        let is_read = self.method == Method::GET;
        match &self.route.target {
            RouteTarget::Collection(descriptor) => self.collection(descriptor, headers, body).await,
            RouteTarget::Resource { descriptor, id } => {
                self.resource(descriptor, id, headers, body).await
            }
            RouteTarget::Unknown(name) => {
                Err(ApiError::not_found(format!("failed to find schema {name}")))
            }
            _ if !is_read => Err(ApiError::method_not_allowed(self.method.as_str())),
            RouteTarget::Root => Ok(self.root()),
            RouteTarget::Schemas => Ok(self.schemas()),
            RouteTarget::Schema(name) => self.schema(name),
            RouteTarget::Document(_) => Ok(self.document()),
            RouteTarget::Link { descriptor, id, link } => {
                self.require_within(descriptor, id).await?;
                operations::follow(self.context, descriptor, id, link).await
            }
            RouteTarget::Subscribe => Err(ApiError::no_feed()),
        }
    }

    fn is_public(&self) -> bool {
        let by_id = match &self.route.target {
            RouteTarget::Resource { descriptor, id } => {
                self.method == Method::GET && descriptor.public_ids.contains(id)
            }
            _ => false,
        };
        self.route.version.public || by_id
    }

    async fn collection(
        &self,
        descriptor: &Descriptor,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<ViewResponse, ApiError> {
        let narrowed = Narrowed::by(self.route, descriptor)?;
        match self.method {
            Method::GET => {
                let url = self.context.urls.path(self.path.trim_end_matches('/'));
                operations::list(self.context, descriptor, narrowed.as_ref(), &url, self.lists)
                    .await
            }
            Method::POST => {
                let body = body_of(headers, body)?;
                match self.context.query_value("action") {
                    Some(name) => operations::act(self.context, descriptor, None, name, body).await,
                    None => {
                        let narrowed = narrowed.as_ref();
                        operations::create(self.context, descriptor, body, narrowed).await
                    }
                }
            }
            _ => Err(ApiError::method_not_allowed(self.method.as_str())),
        }
    }

    async fn resource(
        &self,
        descriptor: &Descriptor,
        id: &str,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<ViewResponse, ApiError> {
        self.require_within(descriptor, id).await?;
        match self.method {
            Method::GET => operations::get(self.context, descriptor, id).await,
            Method::PUT => {
                let body = body_of(headers, body)?;
                operations::update(self.context, descriptor, id, body).await
            }
            Method::DELETE => operations::delete(self.context, descriptor, id).await,
            Method::POST => {
                let body = body_of(headers, body)?;
                let Some(name) = self.context.query_value("action") else {
                    return Err(ApiError::method_not_allowed("POST"));
                };
                operations::act(self.context, descriptor, Some(id), name, body).await
            }
            _ => Err(ApiError::method_not_allowed(self.method.as_str())),
        }
    }

    /// What is named below a resource must belong to it.
    async fn require_within(&self, descriptor: &Descriptor, id: &str) -> Result<(), ApiError> {
        match Narrowed::by(self.route, descriptor)? {
            Some(narrowed) => operations::require(self.context, descriptor, id, &narrowed).await,
            None => Ok(()),
        }
    }

    fn root(&self) -> ViewResponse {
        let version = &self.route.version;
        let urls = self.context.urls;
        let own = urls.path(&self.route.schemas_path);
        let mut links =
            json!({"self": own, "root": urls.path("/"), "schemas": format!("{own}/schemas")});
        for descriptor in self.context.registry.descriptors_of(&version.path) {
            if descriptor.methods.list {
                links[&descriptor.plural] =
                    format!("{own}/{}", descriptor.plural.to_lowercase()).into();
            }
        }
        let body = json!({
            "type": "apiRoot",
            "baseType": "apiRoot",
            "id": Value::Null,
            "apiVersion": {
                "group": version.group, "version": version.version, "path": version.path,
            },
            "links": links,
        });
        ViewResponse::Json(StatusCode::OK, body)
    }

    fn schemas(&self) -> ViewResponse {
        let Presentation { registry, urls, .. } = &self.context.presentation;
        let path = &self.route.schemas_path;
        let schemas = schema::all(registry, &self.route.version, path, urls);
        let url = urls.path(&format!("{path}/schemas"));
        ViewResponse::Json(StatusCode::OK, collection::envelope("schema", &url, schemas).into())
    }

    fn document(&self) -> ViewResponse {
        let Presentation { registry, urls, .. } = &self.context.presentation;
        let document = openapi::document(registry, &self.route.version, urls);
        ViewResponse::Json(StatusCode::OK, document)
    }

    fn schema(&self, name: &str) -> Result<ViewResponse, ApiError> {
        let Presentation { registry, urls, .. } = &self.context.presentation;
        let path = &self.route.schemas_path;
        let found = schema::one(registry, &self.route.version, path, urls, name);
        let found =
            found.ok_or_else(|| ApiError::not_found(format!("failed to find schema {name}")))?;
        Ok(ViewResponse::Json(StatusCode::OK, found))
    }
}
