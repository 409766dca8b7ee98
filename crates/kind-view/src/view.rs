//! The entry point: one request in, one response out.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use jiff::Timestamp;
use rest_view::response::{self, ResponseFormat, ViewResponse};
use rest_view::store::client_below;
use rest_view::urls::{encode, query_pairs};
use rest_view::{
    ApiError, Caller, Context, Key, KubeResource, MayChange, Presentation, Registry, Sockets,
    Store, Subscriber, Urls, browser,
};
use serde_json::{Value, json};

use crate::discovery::Discovery;
use crate::fleet::{FleetList, FleetRow, Member};
use crate::index::KindIndexes;
use crate::kinds::ServedKind;
use crate::list::{Budget, Listing, index_key, set_cluster, store_of};
use crate::object::present;
use crate::path::{Place, Target, parse};
use crate::query::Query;
use crate::rights::Rights;
use crate::subscribe::Session;
use crate::table;
use crate::{counts, schema, write};

/// Parameter of a list over several clusters.
const CLUSTERS: &str = "clusters";

/// The view of all places.
pub struct KindView {
    discovery: Arc<Discovery>,
    clusters: KubeResource,
    indexes: Option<KindIndexes>,
    sockets: Option<Arc<Sockets>>,
}

/// A request for a place, with the kinds that it serves.
struct Here<'a> {
    /// With a client of the place.
    context: Context<'a>,
    place: &'a Place,
    view: &'a KindView,
}

/// What a request is about, once the type is known.
enum Subject {
    /// The objects of one namespace, or of all.
    Collection(Option<String>),
    Object(Key),
}

impl KindView {
    /// A view of the management API, and of the clusters that are its objects of `clusters`: with
    /// their ids as names, and the names that people know at `spec.displayName`.
    pub fn new(clusters: KubeResource) -> Self {
        Self { discovery: Arc::default(), clusters, indexes: None, sockets: None }
    }

    /// Lists of large kinds in clusters come from these indexes.
    pub fn with_indexes(self, indexes: KindIndexes) -> Self {
        Self { indexes: Some(indexes), ..self }
    }

    /// Also serves [`Self::subscribe`], with sockets among these.
    pub fn with_sockets(self, sockets: Arc<Sockets>) -> Self {
        Self { sockets: Some(sockets), ..self }
    }

    /// Handles one request for a WebSocket, on a path that
    /// [`is_subscription`](crate::is_subscription). Serves the socket in a task of its own.
    ///
    /// `request` must come from an HTTP server of hyper, which has the upgrade in its extensions.
    pub fn subscribe(&self, request: Request<()>, subscriber: Subscriber) -> Response<Bytes> {
        let urls = Urls::of_request(request.headers(), request.uri());
        let outcome = match (parse(request.uri().path()), &self.sockets) {
            (Some((place, Target::Subscribe)), Some(sockets)) => {
                let user = subscriber.caller.user_id.clone();
                let query = query_pairs(request.uri().query().unwrap_or_default());
                let (discovery, indexes) = (self.discovery.clone(), self.indexes.clone());
                let session = Session { place, subscriber, urls, discovery, indexes, query };
                sockets.open(request, &user, |io, stop| session.serve(io, stop))
            }
            _ => Err(unknown(request.uri().path())),
        };
        outcome.unwrap_or_else(|error| {
            error_response(&error).finish(ResponseFormat::Json, None, Vec::new())
        })
    }

    /// Handles one request. `client` acts as the caller, in the management API and in clusters.
    ///
    /// The body is limited to [`response::BODY_SIZE_MAX`]; stop reading beyond that. Never fails:
    /// errors are responses. When the future is dropped, a write may still have been done.
    pub async fn handle(
        &self,
        request: Request<Bytes>,
        caller: &Caller,
        client: &kube::Client,
    ) -> Response<Bytes> {
        let (parts, body) = request.into_parts();
        let query = query_pairs(parts.uri.query().unwrap_or_default());
        let urls = Urls::of_request(&parts.headers, &parts.uri);
        let registry = Registry::new([], []);
        let presentation = Presentation {
            caller,
            urls: &urls,
            registry: &registry,
            now: Timestamp::now(),
            action_links: false,
        };
        let requested = query.iter().find(|(name, _)| name == "_format").map(|(_, value)| value);
        let format = match response::format_of(&parts.headers, requested.map(String::as_str)) {
            ResponseFormat::Html => ResponseFormat::Json,
            other => other,
        };
        let Some((place, target)) = parse(parts.uri.path()) else {
            return finish(Err(unknown(parts.uri.path())), format, None, Vec::new());
        };
        let schemas = urls.path(&format!("{}/schemas", place.view_root()));
        let cookies = match browser::check_csrf(&parts.headers, caller, [&parts.method; 2]) {
            Ok(cookies) => cookies,
            Err(error) => return finish(Err(error), format, Some(&schemas), Vec::new()),
        };
        let client = client_below(client, place.api_root());
        let context = Context::new(presentation, &client, &parts.headers, &query);
        let here = Here { context, place: &place, view: self };
        let outcome = here.respond(&parts.method, target, &body).await;
        finish(outcome, format, Some(&schemas), cookies)
    }
}

impl Here<'_> {
    async fn respond(
        &self,
        method: &Method,
        target: Target,
        body: &Bytes,
    ) -> Result<ViewResponse, ApiError> {
        let read_only = match target {
            Target::Root => self.root().await,
            Target::Schemas => self.schemas().await,
            Target::Counts => self.counts().await,
            Target::Schema(ref id) => self.schema(id).await,
            Target::Unknown => return Err(unknown("")),
            Target::Subscribe => {
                let text = "this is a WebSocket, for a request with an upgrade";
                return Err(ApiError::new(400, "BadRequest", text));
            }
            Target::Collection { ref kind } if self.is_fleet() => self.fleet(kind, None).await,
            Target::NameOrNamespace { ref kind, ref name } if self.is_fleet() => {
                self.fleet(kind, Some(name)).await
            }
            Target::Collection { kind } => {
                let kind = self.kind(&kind).await?;
                return self.of_type(method, &kind, Subject::Collection(None), body).await;
            }
            Target::NameOrNamespace { kind, name } => {
                let kind = self.kind(&kind).await?;
                let subject = match kind.resource.namespaced {
                    true => Subject::Collection(Some(name)),
                    false => Subject::Object(Key { namespace: String::new(), name }),
                };
                return self.of_type(method, &kind, subject, body).await;
            }
            Target::Object { kind, namespace, name } => {
                let kind = self.kind(&kind).await?;
                if !kind.resource.namespaced {
                    return Err(unknown("objects of this type have no links and no namespace"));
                }
                let subject = Subject::Object(Key { namespace, name });
                return self.of_type(method, &kind, subject, body).await;
            }
        };
        match *method {
            Method::GET => read_only.map(|body| ViewResponse::Json(StatusCode::OK, body)),
            _ => Err(not_allowed(method)),
        }
    }

    async fn of_type(
        &self,
        method: &Method,
        kind: &ServedKind,
        subject: Subject,
        body: &Bytes,
    ) -> Result<ViewResponse, ApiError> {
        let context = &self.context;
        let fields = || response::body_of(context.headers, body);
        let (status, body) = match (method, subject) {
            (&Method::GET, Subject::Collection(namespace)) => {
                (StatusCode::OK, self.list(kind, namespace.as_deref()).await?)
            }
            (&Method::POST, Subject::Collection(namespace)) => {
                let made = write::create(context, kind, namespace.as_deref(), fields()?).await?;
                self.expect_stored(kind, &made);
                // The rights of the creator may become effective a moment later.
                (StatusCode::CREATED, self.show(kind, made, MayChange::ALL))
            }
            (&Method::GET, Subject::Object(key)) => {
                let table = table::read(context.client, &kind.resource.object_path(&key)).await?;
                let row = table.rows.into_iter().next().ok_or_else(ApiError::no_such_id)?;
                (StatusCode::OK, self.show_one(kind, row.0).await?)
            }
            (&Method::PUT, Subject::Object(key)) => {
                let changed = write::replace(context, kind, &key, fields()?).await?;
                self.expect_stored(kind, &changed);
                (StatusCode::OK, self.show_one(kind, changed).await?)
            }
            (&Method::PATCH, Subject::Object(key)) => {
                if body.len() > response::BODY_SIZE_MAX {
                    return Err(ApiError::too_large(response::BODY_SIZE_MAX));
                }
                let changed = write::patch(context, kind, &key, body.clone()).await?;
                self.expect_stored(kind, &changed);
                (StatusCode::OK, self.show_one(kind, changed).await?)
            }
            (&Method::DELETE, Subject::Object(key)) => {
                match write::delete(context, kind, &key).await? {
                    None => {
                        self.expect_deleted(kind, key).await?;
                        return Ok(ViewResponse::Empty(StatusCode::NO_CONTENT));
                    }
                    Some(pending) => {
                        self.expect_stored(kind, &pending);
                        (StatusCode::OK, self.show_one(kind, pending).await?)
                    }
                }
            }
            _ => return Err(not_allowed(method)),
        };
        Ok(ViewResponse::Json(status, body))
    }

    /// The type of this name. For one that is not known the kinds are read again: it may be new.
    async fn kind(&self, name: &str) -> Result<ServedKind, ApiError> {
        if let Some(kind) = self.view.discovery.kinds(&self.context, self.place).await?.find(name) {
            return Ok(kind.clone());
        }
        let kinds = self.view.discovery.kinds_now(&self.context, self.place).await?;
        kinds.find(name).cloned().ok_or_else(|| {
            let text = format!("there is no type \"{name}\" here; /v1/schemas has all types");
            ApiError::not_found(text)
        })
    }

    async fn root(&self) -> Result<Value, ApiError> {
        let urls = self.context.urls;
        let own = urls.path(&self.place.view_root());
        let mut links = json!({"self": own, "root": own, "schemas": format!("{own}/schemas")});
        let rights = Rights::of(&self.context).await?;
        let kinds = self.view.discovery.kinds(&self.context, self.place).await?;
        for kind in kinds.iter().filter(|kind| rights.allow("list", kind)) {
            links[kind.plural()] = schema::collection_url(self.place, urls, kind).into();
        }
        Ok(json!({"id": "v1", "type": "apiRoot", "apiVersion": {"version": "v1"}, "links": links}))
    }

    async fn schemas(&self) -> Result<Value, ApiError> {
        let rights = Rights::of(&self.context).await?;
        let kinds = self.view.discovery.kinds(&self.context, self.place).await?;
        let urls = self.context.urls;
        let data: Vec<Value> = kinds
            .iter()
            .filter_map(|kind| schema::of_kind(self.place, urls, kind, &rights))
            .collect();
        let own = urls.path(&format!("{}/schemas", self.place.view_root()));
        Ok(json!({
            "type": "collection", "resourceType": "schema", "links": {"self": own},
            "actions": {}, "data": data,
        }))
    }

    async fn counts(&self) -> Result<Value, ApiError> {
        let kinds = self.view.discovery.kinds(&self.context, self.place).await?;
        let indexes = self.view.indexes.as_ref();
        let counts = counts::all(&self.context, self.place, &kinds, indexes).await?;
        let own = self.context.urls.path(&format!("{}/counts", self.place.view_root()));
        let object = json!({
            "id": "count", "type": "count", "links": {"self": format!("{own}/count")},
            "counts": counts,
        });
        Ok(json!({
            "type": "collection", "resourceType": "count", "links": {"self": own},
            "actions": {}, "data": [object],
        }))
    }

    /// A schema, with the columns of its lists.
    async fn schema(&self, id: &str) -> Result<Value, ApiError> {
        let kind = self.kind(id).await?;
        let rights = Rights::of(&self.context).await?;
        let schema = schema::of_kind(self.place, self.context.urls, &kind, &rights);
        let mut schema = schema.ok_or_else(|| {
            ApiError::not_found(format!("you have no rights on objects of type \"{id}\" here"))
        })?;
        if rights.allow("list", &kind) {
            let path = format!("{}?limit=1", kind.resource.collection_path(""));
            let columns = match table::read(self.context.client, &path).await {
                Ok(table) => table.columns,
                // They may list some namespaces only; a list has the columns too.
                Err(error) if error.is_forbidden() => Vec::new(),
                Err(error) => return Err(error),
            };
            schema["attributes"]["columns"] = columns.into();
        }
        Ok(schema)
    }

    async fn list(&self, kind: &ServedKind, namespace: Option<&str>) -> Result<Value, ApiError> {
        if !kind.offers("list") {
            return Err(not_allowed(&Method::GET));
        }
        let query = Query::parse(self.context.query)?;
        let budget = Budget::default();
        let listing = Listing {
            context: &self.context,
            place: self.place,
            kind,
            namespace,
            query: &query,
            cluster: Value::Null,
            budget: &budget,
            indexes: self.view.indexes.as_ref(),
        };
        let listed = listing.read().await?;
        let selection = query.cut(listed.found, listed.beyond);
        let now = self.context.now;
        let objects = selection.rows.into_iter().map(|row| row.open(now, &budget));
        let objects: Vec<Value> = objects.collect::<Result<_, _>>()?;
        let keys: Vec<Key> = objects.iter().map(Key::of).collect();
        let rights = self.may_change(kind, &keys).await?;
        let data: Vec<Value> = objects
            .into_iter()
            .zip(rights)
            .map(|(object, may)| {
                let mut shown = self.show(kind, object, may);
                query.reduce(&mut shown);
                shown
            })
            .collect();
        let mut own = schema::collection_url(self.place, self.context.urls, kind);
        if let Some(namespace) = namespace {
            own = format!("{own}/{}", encode(namespace));
        }
        let mut collection = self.collection(&kind.id(), &own, data, listed.columns);
        collection["revision"] = listed.revision.into();
        self.add_paging(&mut collection, &own, selection.count, selection.pages, selection.next);
        Ok(collection)
    }

    /// Whether the request is for a list over several clusters.
    fn is_fleet(&self) -> bool {
        *self.place == Place::Management && self.context.query_value(CLUSTERS).is_some()
    }

    /// The objects of a type in several clusters.
    async fn fleet(&self, kind: &str, namespace: Option<&str>) -> Result<Value, ApiError> {
        let query = Query::parse(self.context.query)?;
        let budget = Budget::default();
        let list = FleetList {
            context: &self.context,
            discovery: &self.view.discovery,
            clusters: &self.view.clusters,
            query: &query,
            budget: &budget,
            indexes: self.view.indexes.as_ref(),
        };
        let clusters = self.context.query_value(CLUSTERS).unwrap_or_default();
        let fleet = list.read(clusters, kind, namespace).await?;
        let Some(first) = fleet.members.first() else {
            if fleet.unavailable.is_empty() {
                return Err(ApiError::not_found(format!("no cluster has a type \"{kind}\"")));
            }
            let own = self.context.urls.path(&format!("{}/{kind}", self.place.view_root()));
            let mut collection = self.collection(kind, &own, Vec::new(), Vec::new());
            collection["unavailable"] = fleet.unavailable.into();
            return Ok(collection);
        };
        let mut own = schema::collection_url(self.place, self.context.urls, &first.kind);
        if let Some(namespace) = namespace {
            own = format!("{own}/{}", encode(namespace));
        }
        let id = first.kind.id();
        let selection = query.cut(fleet.found, fleet.beyond);
        let data = self.show_fleet(&fleet.members, selection.rows, &query, &budget).await?;
        let mut collection = self.collection(&id, &own, data, fleet.columns);
        collection["unavailable"] = fleet.unavailable.into();
        self.add_paging(&mut collection, &own, selection.count, selection.pages, selection.next);
        Ok(collection)
    }

    /// Objects of several clusters, in their order.
    async fn show_fleet(
        &self,
        members: &[Member],
        rows: Vec<FleetRow>,
        query: &Query,
        budget: &Budget,
    ) -> Result<Vec<Value>, ApiError> {
        let mut by_member: BTreeMap<usize, Vec<(usize, Value)>> = BTreeMap::new();
        for (position, row) in rows.into_iter().enumerate() {
            let mut object = row.row.open(self.context.now, budget)?;
            set_cluster(&mut object, &members[row.member].cluster);
            by_member.entry(row.member).or_default().push((position, object));
        }
        let show = |(member, rows): (usize, Vec<(usize, Value)>)| async move {
            let Member { place, kind, .. } = &members[member];
            let client = client_below(self.context.client, place.api_root());
            let here = Here { context: self.context.through(&client), place, view: self.view };
            let keys: Vec<Key> = rows.iter().map(|(_, object)| Key::of(object)).collect();
            // A cluster that went away since has its objects without these links.
            let rights = here.may_change(kind, &keys).await;
            let rights = rights.unwrap_or_else(|_| vec![MayChange::NONE; keys.len()]);
            let shown = rows.into_iter().zip(rights).map(|((position, object), may)| {
                let mut object = here.show(kind, object, may);
                query.reduce(&mut object);
                (position, object)
            });
            shown.collect::<Vec<_>>()
        };
        let shown = futures::future::join_all(by_member.into_iter().map(show)).await;
        let mut shown: Vec<(usize, Value)> = shown.into_iter().flatten().collect();
        shown.sort_by_key(|(position, _)| *position);
        Ok(shown.into_iter().map(|(_, object)| object).collect())
    }

    fn collection(&self, kind: &str, own: &str, data: Vec<Value>, columns: Vec<Value>) -> Value {
        json!({
            "type": "collection", "resourceType": kind, "links": {"self": own}, "actions": {},
            "columns": columns, "data": data,
        })
    }

    fn add_paging(
        &self,
        collection: &mut Value,
        own: &str,
        count: usize,
        pages: Option<usize>,
        next: Option<String>,
    ) {
        collection["count"] = count.into();
        if let Some(pages) = pages {
            collection["pages"] = pages.into();
        }
        if let Some(token) = next {
            let next = self.next_url(own, &token);
            collection["pagination"] = json!({"first": own, "next": next, "partial": true});
            collection["continue"] = token.into();
        }
    }

    /// The URL of this request with another token.
    fn next_url(&self, own: &str, token: &str) -> String {
        let others = self.context.query.iter().filter(|(name, _)| name != "continue");
        let pairs = others.map(|(name, value)| (name.as_str(), value.as_str()));
        let pairs = pairs.chain([("continue", token)]);
        let pairs: Vec<String> =
            pairs.map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
        format!("{own}?{}", pairs.join("&"))
    }

    /// The next list contains what was written.
    fn expect_stored(&self, kind: &ServedKind, object: &Value) {
        if let (Some(indexes), Some(key)) = (&self.view.indexes, index_key(self.place, kind)) {
            indexes.expect_stored(&key, object);
        }
    }

    /// The next list does not contain what was deleted.
    async fn expect_deleted(&self, kind: &ServedKind, object: Key) -> Result<(), ApiError> {
        match (&self.view.indexes, index_key(self.place, kind)) {
            (Some(indexes), Some(key)) => indexes.expect_deleted(&key, object).await,
            _ => Ok(()),
        }
    }

    async fn may_change(
        &self,
        kind: &ServedKind,
        keys: &[Key],
    ) -> Result<Vec<MayChange>, ApiError> {
        let offered = MayChange { update: kind.offers("update"), delete: kind.offers("delete") };
        let may = store_of(kind).may_change(&self.context, keys).await?;
        let and_offered = |may: MayChange| MayChange {
            update: may.update && offered.update,
            delete: may.delete && offered.delete,
        };
        Ok(may.into_iter().map(and_offered).collect())
    }

    async fn show_one(&self, kind: &ServedKind, object: Value) -> Result<Value, ApiError> {
        let query = Query::parse(self.context.query)?;
        let may = self.may_change(kind, &[Key::of(&object)]).await?;
        let mut shown = self.show(kind, object, may.first().copied().unwrap_or(MayChange::NONE));
        query.reduce(&mut shown);
        Ok(shown)
    }

    fn show(&self, kind: &ServedKind, object: Value, may: MayChange) -> Value {
        present(&self.context.presentation, self.place, kind, object, may)
    }
}

fn unknown(what: &str) -> ApiError {
    match what {
        "" => ApiError::not_found("nothing has such a path; /v1/schemas has all types"),
        what => ApiError::not_found(format!("there is nothing here: {what}")),
    }
}

fn not_allowed(method: &Method) -> ApiError {
    let text = format!("method {method} is not allowed here");
    ApiError::new(405, "MethodNotAllowed", text)
}

fn finish(
    outcome: Result<ViewResponse, ApiError>,
    format: ResponseFormat,
    schemas: Option<&str>,
    cookies: Vec<HeaderValue>,
) -> Response<Bytes> {
    let response = match outcome {
        Ok(response) => response,
        Err(error) => error_response(&error),
    };
    response.finish(format, schemas, cookies)
}

/// As clients of `/v1` read it: like an error of `/v3`, with links.
fn error_response(error: &ApiError) -> ViewResponse {
    let mut body = error.to_json();
    body["links"] = json!({});
    // The name that `/v3` has for it lacks its end.
    if error.status == 405 {
        body["code"] = "MethodNotAllowed".into();
    }
    ViewResponse::ErrorWith(error.clone(), body)
}
