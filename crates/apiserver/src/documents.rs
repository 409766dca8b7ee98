//! The responses of paths that are no resource: version, discovery, schemas.
//!
//! [`crate::discovery`] and [`crate::openapi`] build the documents; this module serves them over
//! HTTP.

mod openid;

use std::sync::{Arc, OnceLock};

use api_meta::status::Status;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, EXPIRES, HOST,
    IF_NONE_MATCH, LOCATION, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, request};
use kubernetes_protobuf::openapi::OpenApiVersion;
use parking_lot::Mutex;

use crate::aggregation::Aggregation;
use crate::body::negotiate::{self, AGGREGATED_MEDIA_TYPE, Offer, Transform, Typed};
use crate::body::respond::{self, Body};
use crate::discovery::{self, Absent, Aggregated, Served};
use crate::openapi::{Document, Encoding, OpenApi};
use crate::registry::Registry;
use crate::request::Query;

pub use openid::{KEYS_PATH, OpenIdDocuments};

/// The cache policy of a document whose URL contains the hash of its content.
const IMMUTABLE: &str = "public, immutable";
const UNCACHED: &str = "no-cache, private";
const EXPIRES_AFTER: jiff::SignedDuration = jiff::SignedDuration::from_hours(365 * 24);

/// Serves the documents. They are built from the catalog and cached by its generation.
pub struct Documents {
    git_version: String,
    registry: Arc<Registry>,
    aggregation: Arc<Aggregation>,
    openapi: Arc<OpenApi>,
    aggregated: Mutex<Option<CachedDocuments>>,
    openid: OnceLock<OpenIdDocuments>,
}

/// The aggregated documents of one generation of the catalog.
struct CachedDocuments {
    generation: u64,
    core: Aggregated,
    groups: Aggregated,
}

impl Documents {
    /// Creates the documents of a server. `git_version` is the version at `/version`, such as
    /// `v1.36.3`.
    pub fn new(registry: Arc<Registry>, aggregation: Arc<Aggregation>, git_version: &str) -> Self {
        Self {
            git_version: git_version.to_owned(),
            registry,
            aggregation,
            openapi: Arc::new(OpenApi::new(git_version)),
            aggregated: Mutex::default(),
            openid: OnceLock::new(),
        }
    }

    /// Adds the documents of OpenID discovery. Only the first call has an effect; later ones are
    /// logged.
    pub fn set_openid(&self, documents: OpenIdDocuments) {
        if self.openid.set(documents).is_err() {
            tracing::error!(
                "the documents of OpenID discovery were set twice; the first are retained"
            );
        }
    }

    /// Responds with the document at a path, which has no slash at its end.
    ///
    /// # Errors
    /// 405 for other methods than GET and HEAD, 404 for unknown versions, 406 when no
    /// representation is acceptable.
    pub async fn respond(
        &self,
        parts: &request::Parts,
        path: &str,
        query: &Query,
    ) -> Result<Response<Body>, Status> {
        if parts.method != Method::GET && parts.method != Method::HEAD {
            return Err(Status::method_not_allowed());
        }
        if let Some(response) =
            self.openid.get().and_then(|documents| documents.respond(&parts.headers, path))
        {
            return response;
        }
        match path {
            "" => self.plain(parts, query, self.paths()),
            "/version" => self.plain(parts, query, discovery::version(&self.git_version)),
            "/openapi/v2" => self.openapi_v2(parts).await,
            "/openapi/v3" => {
                let table = self.aggregation.table();
                let index = self.openapi.index(&self.registry.catalog(), &table);
                Ok(respond::json_bytes(StatusCode::OK, index))
            }
            _ => match path.strip_prefix("/openapi/v3/") {
                Some(subject) => self.openapi_v3(parts, subject, query).await,
                None => self.discovery(parts, path, query),
            },
        }
    }

    fn paths(&self) -> serde_json::Value {
        let (catalog, table) = (self.registry.catalog(), self.aggregation.table());
        discovery::paths(Served { catalog: &catalog, table: &table })
    }

    fn plain(
        &self,
        parts: &request::Parts,
        query: &Query,
        value: serde_json::Value,
    ) -> Result<Response<Body>, Status> {
        let accepted =
            negotiate::accept(&parts.headers, query.get("pretty"), Offer::Plain, Typed::No)?;
        Ok(respond::value(StatusCode::OK, accepted, &value))
    }

    fn discovery(
        &self,
        parts: &request::Parts,
        path: &str,
        query: &Query,
    ) -> Result<Response<Body>, Status> {
        let whole = matches!(path, "/api" | "/apis");
        let offer = if whole { Offer::Discovery } else { Offer::Plain };
        let document = || {
            let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
            let host = host.or(parts.uri.authority().map(|authority| authority.as_str()));
            let (catalog, table) = (self.registry.catalog(), self.aggregation.table());
            let served = Served { catalog: &catalog, table: &table };
            discovery::legacy_document(served, path, host.unwrap_or_default())
        };
        // An absent document is a 404 for any representation.
        let document = match document() {
            Ok(document) => document,
            Err(Absent::Path) => return Ok(respond::not_found()),
            Err(Absent::Version) => return Err(Status::unknown_resource()),
        };
        let accepted = negotiate::accept(&parts.headers, query.get("pretty"), offer, Typed::Yes)?;
        if matches!(accepted.transform, Transform::ApiGroupDiscoveryList(_)) {
            return Ok(self.respond_aggregated(&parts.headers, path == "/api"));
        }
        Ok(respond::value(StatusCode::OK, accepted, &document))
    }

    fn respond_aggregated(&self, headers: &HeaderMap, core: bool) -> Response<Body> {
        let document = self.aggregated_document(core);
        let unchanged = matches_etag(headers, &document.etag);
        let mut response = if unchanged {
            empty(StatusCode::NOT_MODIFIED)
        } else {
            let response = respond::json_bytes(StatusCode::OK, document.body.clone());
            let mut response =
                respond::set_body(negotiate::accepts_gzip(headers), response, document.body);
            set(&mut response, CONTENT_TYPE, AGGREGATED_MEDIA_TYPE);
            response
        };
        set(&mut response, ETAG, &document.etag);
        set(&mut response, CACHE_CONTROL, "public");
        set_vary(&mut response, "Accept");
        response
    }

    fn aggregated_document(&self, core: bool) -> Aggregated {
        // Read before the catalog: after a change in between, the next call rebuilds the documents.
        let generation = *self.registry.generation().borrow();
        let mut cached = self.aggregated.lock();
        let current = cached.take().filter(|cached| cached.generation == generation);
        let current = current.unwrap_or_else(|| {
            let (catalog, table) = (self.registry.catalog(), self.aggregation.table());
            let served = Served { catalog: &catalog, table: &table };
            let [core, groups] =
                [true, false].map(|core| discovery::aggregated_document(served, core));
            CachedDocuments { generation, core, groups }
        });
        let document = if core { current.core.clone() } else { current.groups.clone() };
        *cached = Some(current);
        document
    }

    async fn openapi_v2(&self, parts: &request::Parts) -> Result<Response<Body>, Status> {
        let (catalog, table) = (self.registry.catalog(), self.aggregation.table());
        let etag = format!("\"{}\"", self.openapi.v2_hash(&catalog, &table));
        let mut response = match encoding(&parts.headers, OpenApiVersion::V2) {
            None => empty(StatusCode::NOT_ACCEPTABLE),
            Some(_) if matches_etag(&parts.headers, &etag) => empty(StatusCode::NOT_MODIFIED),
            Some(encoding) => {
                let openapi = self.openapi.clone();
                let document = off_thread(move || openapi.v2(&catalog, &table, encoding)).await?;
                compressed_response(&parts.headers, &document)
            }
        };
        set(&mut response, CACHE_CONTROL, UNCACHED);
        if response.status() != StatusCode::NOT_ACCEPTABLE {
            set(&mut response, ETAG, &etag);
        }
        set_vary(&mut response, "Accept-Encoding, Accept");
        Ok(response)
    }

    async fn openapi_v3(
        &self,
        parts: &request::Parts,
        subject: &str,
        query: &Query,
    ) -> Result<Response<Body>, Status> {
        let catalog = self.registry.catalog();
        let Some(hash) = self.openapi.v3_hash(&catalog, subject) else {
            let mut response = empty(StatusCode::NOT_FOUND);
            set(&mut response, CACHE_CONTROL, UNCACHED);
            return Ok(response);
        };
        let etag = format!("\"{hash}\"");
        let requested_hash = query.text("hash");
        let Some(encoding) = encoding(&parts.headers, OpenApiVersion::V3) else {
            let mut response = empty(StatusCode::NOT_ACCEPTABLE);
            set(&mut response, CACHE_CONTROL, UNCACHED);
            set_vary(&mut response, "Accept");
            return Ok(response);
        };
        let mut response = if !requested_hash.is_empty() && requested_hash != hash {
            let mut response = empty(StatusCode::MOVED_PERMANENTLY);
            set(&mut response, LOCATION, &format!("/openapi/v3/{subject}?hash={hash}"));
            response
        } else if matches_etag(&parts.headers, &etag) {
            empty(StatusCode::NOT_MODIFIED)
        } else {
            let (openapi, subject) = (self.openapi.clone(), subject.to_owned());
            let document = off_thread(move || openapi.v3(&catalog, &subject, encoding)).await?;
            // The hash above was of the same catalog.
            let document = document.ok_or_else(Status::unknown_resource)?;
            compressed_response(&parts.headers, &document)
        };
        if requested_hash == hash {
            let expires = jiff::Timestamp::now() + EXPIRES_AFTER;
            let expires = expires.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
            set(&mut response, EXPIRES, &expires);
            set(&mut response, CACHE_CONTROL, IMMUTABLE);
        } else {
            set(&mut response, CACHE_CONTROL, UNCACHED);
        }
        set(&mut response, ETAG, &etag);
        set_vary(&mut response, "Accept");
        Ok(response)
    }
}

async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Status> {
    tokio::task::spawn_blocking(work).await.map_err(Status::internal)
}

fn empty(code: StatusCode) -> Response<Body> {
    let mut response = Response::new(respond::empty());
    *response.status_mut() = code;
    response
}

/// A response of a document, in its cached gzip encoding if the client accepts that.
fn compressed_response(headers: &HeaderMap, document: &Document) -> Response<Body> {
    let accepts = tokens(headers, ACCEPT_ENCODING).any(|coding| coding == "gzip");
    let body = if accepts { document.gzipped() } else { document.plain() };
    let mut response = respond::json_bytes(StatusCode::OK, body);
    set(&mut response, CONTENT_TYPE, document.media_type);
    if accepts {
        set(&mut response, CONTENT_ENCODING, "gzip");
        set_vary(&mut response, "Accept-Encoding");
    }
    response
}

/// The encoding of schemas that the client prefers; `None` when none is acceptable.
fn encoding(headers: &HeaderMap, version: OpenApiVersion) -> Option<Encoding> {
    let offers = [
        ("application/json", Encoding::Json),
        (version.media_type(), Encoding::Protobuf),
        (version.old_media_type(), Encoding::Protobuf),
    ];
    negotiate::choose(headers, &offers)
}

fn matches_etag(headers: &HeaderMap, etag: &str) -> bool {
    tokens(headers, IF_NONE_MATCH)
        .any(|given| given == "*" || given.strip_prefix("W/").unwrap_or(given) == etag)
}

/// The comma-separated entries of a header, without parameters.
fn tokens(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|entry| entry.split(';').next())
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
}

fn set(response: &mut Response<Body>, name: HeaderName, value: &str) {
    let value = HeaderValue::from_str(value).expect("made of plain ASCII");
    response.headers_mut().insert(name, value);
}

/// Adds to the `Vary` header, which other parts of the response also set.
fn set_vary(response: &mut Response<Body>, value: &str) {
    let value = HeaderValue::from_str(value).expect("made of plain ASCII");
    response.headers_mut().append(VARY, value);
}
