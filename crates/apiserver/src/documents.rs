//! The answers of paths that are no resource: version, discovery, schemas.
//!
//! What they say is made in [`crate::discovery`] and [`crate::openapi`]; this is their HTTP side.

mod openid;

use std::sync::{Arc, OnceLock};

use api_meta::status::Status;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, EXPIRES, HOST,
    IF_NONE_MATCH, LOCATION, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, request};
use kubernetes_protobuf::openapi::Version;
use parking_lot::Mutex;

use crate::aggregation::Aggregation;
use crate::body::negotiate::{self, AGGREGATED_MEDIA_TYPE, Offer, Transform, Typed};
use crate::body::respond::{self, Body};
use crate::discovery::{self, Absent, Aggregated, Served};
use crate::openapi::{Document, Encoding, OpenApi};
use crate::registry::Registry;
use crate::request::Query;

pub use openid::{KEYS_PATH, OpenIdDocuments};

/// A document whose URL names its content stays what it is.
const IMMUTABLE: &str = "public, immutable";
const UNCACHED: &str = "no-cache, private";
const EXPIRES_AFTER: jiff::SignedDuration = jiff::SignedDuration::from_hours(365 * 24);

/// Made from the catalog and cached by its generation.
pub struct Documents {
    git_version: String,
    registry: Arc<Registry>,
    aggregation: Arc<Aggregation>,
    openapi: Arc<OpenApi>,
    aggregated: Mutex<Option<Kept>>,
    openid: OnceLock<OpenIdDocuments>,
}

/// The aggregated documents of one generation of the catalog.
struct Kept {
    generation: u64,
    core: Aggregated,
    groups: Aggregated,
}

impl Documents {
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

    /// Serves these too. Only the first call counts.
    pub fn set_openid(&self, documents: OpenIdDocuments) {
        if self.openid.set(documents).is_err() {
            tracing::error!("the documents of OpenID discovery were set twice; the first stay");
        }
    }

    /// The document at a path, which has no slash at its end.
    pub async fn answer(
        &self,
        parts: &request::Parts,
        path: &str,
        query: &Query,
    ) -> Result<Response<Body>, Status> {
        if parts.method != Method::GET && parts.method != Method::HEAD {
            return Err(Status::method_not_allowed());
        }
        if let Some(answer) =
            self.openid.get().and_then(|documents| documents.answer(&parts.headers, path))
        {
            return answer;
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
            discovery::legacy(served, path, host.unwrap_or_default())
        };
        // What is not there is not there in any form.
        let document = match document() {
            Ok(document) => document,
            Err(Absent::Path) => return Ok(respond::not_found()),
            Err(Absent::Version) => return Err(Status::unknown_resource()),
        };
        let accepted = negotiate::accept(&parts.headers, query.get("pretty"), offer, Typed::Yes)?;
        if matches!(accepted.transform, Transform::ApiGroupDiscoveryList(_)) {
            return Ok(self.aggregated(&parts.headers, path == "/api"));
        }
        Ok(respond::value(StatusCode::OK, accepted, &document))
    }

    fn aggregated(&self, headers: &HeaderMap, core: bool) -> Response<Body> {
        let document = self.aggregated_document(core);
        let unchanged = matches_etag(headers, &document.etag);
        let mut response = if unchanged {
            empty(StatusCode::NOT_MODIFIED)
        } else {
            let response = respond::json_bytes(StatusCode::OK, document.body.clone());
            let mut response =
                respond::maybe_gzip(negotiate::takes_gzip(headers), response, document.body);
            set(&mut response, CONTENT_TYPE, AGGREGATED_MEDIA_TYPE);
            response
        };
        set(&mut response, ETAG, &document.etag);
        set(&mut response, CACHE_CONTROL, "public");
        set_vary(&mut response, "Accept");
        response
    }

    fn aggregated_document(&self, core: bool) -> Aggregated {
        // Read before the catalog: a change in between is then made good by the next call.
        let generation = *self.registry.generation().borrow();
        let mut kept = self.aggregated.lock();
        let current = kept.take().filter(|kept| kept.generation == generation);
        let current = current.unwrap_or_else(|| {
            let (catalog, table) = (self.registry.catalog(), self.aggregation.table());
            let served = Served { catalog: &catalog, table: &table };
            let [core, groups] = [true, false].map(|core| discovery::aggregated(served, core));
            Kept { generation, core, groups }
        });
        let document = if core { current.core.clone() } else { current.groups.clone() };
        *kept = Some(current);
        document
    }

    async fn openapi_v2(&self, parts: &request::Parts) -> Result<Response<Body>, Status> {
        let (catalog, table) = (self.registry.catalog(), self.aggregation.table());
        let etag = format!("\"{}\"", self.openapi.v2_hash(&catalog, &table));
        let mut response = match encoding(&parts.headers, Version::V2) {
            None => empty(StatusCode::NOT_ACCEPTABLE),
            Some(_) if matches_etag(&parts.headers, &etag) => empty(StatusCode::NOT_MODIFIED),
            Some(encoding) => {
                let openapi = self.openapi.clone();
                let document = off_thread(move || openapi.v2(&catalog, &table, encoding)).await?;
                compressed(&parts.headers, &document)
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
        let asked = query.text("hash");
        let Some(encoding) = encoding(&parts.headers, Version::V3) else {
            let mut response = empty(StatusCode::NOT_ACCEPTABLE);
            set(&mut response, CACHE_CONTROL, UNCACHED);
            set_vary(&mut response, "Accept");
            return Ok(response);
        };
        let mut response = if !asked.is_empty() && asked != hash {
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
            compressed(&parts.headers, &document)
        };
        if asked == hash {
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

/// A document, as it is kept when the client takes gzip.
fn compressed(headers: &HeaderMap, document: &Document) -> Response<Body> {
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

/// How the client wants schemas; `None` when it takes no form that there is.
fn encoding(headers: &HeaderMap, version: Version) -> Option<Encoding> {
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

/// Adds to what other parts of the answer depend on.
fn set_vary(response: &mut Response<Body>, value: &str) {
    let value = HeaderValue::from_str(value).expect("made of plain ASCII");
    response.headers_mut().append(VARY, value);
}
