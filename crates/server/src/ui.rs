//! The web interface as files: `ui/dist`, embedded by release builds and read from disk by others.
//!
//! Knows which paths are its pages and how browsers may treat the files; what a page shows is
//! decided in the browser, which uses the same APIs as everybody. While no interface has been
//! built, its pages are [`root_page`].

use std::borrow::Cow;

use apiserver::body::respond::{self, Body};
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use rust_embed::{Embed, EmbeddedFile};

use crate::root_page;

/// The first parts of the addresses in `ui/src/paths.ts`; the empty one is the start.
const PAGES: [&str; 11] = [
    "",
    "audit",
    "c",
    "clusters",
    "drivers",
    "login",
    "password",
    "providers",
    "settings",
    "tokens",
    "users",
];
/// The first parts of paths that programs use: there an error stays the API's own, whoever the
/// client is. So do all that begin like a version, such as `v1` and `v3-public`.
const APIS: [&str; 13] = [
    ".well-known",
    "api",
    "apis",
    "drover.io",
    "healthz",
    "k8s",
    "livez",
    "metrics",
    "openapi",
    "openid",
    "ping",
    "readyz",
    "version",
];
/// Files below it carry a hash of their content in their name.
const HASHED: &str = "assets/";
const INDEX: &str = "index.html";

/// Nothing from elsewhere, nothing inline, no place in another site's frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'";
/// A name with a hash never changes what it means.
const CACHE_FOR_EVER: &str = "public, max-age=31536000, immutable";
/// Cached, but revalidated each time; the response is mostly 304.
const CACHE_REVALIDATE: &str = "no-cache";
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// In the order of preference: the coding, and the ending of the file that has it.
const CODINGS: [(&str, &str); 2] = [("br", ".br"), ("gzip", ".gz")];

#[derive(Embed)]
#[folder = "../../ui/dist"]
struct Files;

/// The file or page at `path`; none when the path is not the interface's.
///
/// A browser that follows a mistyped address gets the interface, too, which has a page for it; the
/// status is 404.
pub fn answer(method: &Method, path: &str, headers: &HeaderMap) -> Option<Response<Body>> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return None;
    }
    let name = path.strip_prefix('/')?;
    let first = name.split('/').next().unwrap_or_default();
    if PAGES.contains(&first) {
        return wants_page(headers).then(|| page(headers));
    }
    match Files::get(name) {
        Some(file) => Some(served(name, file, headers)),
        None if name.starts_with(HASHED) => Some(respond::not_found()),
        None if is_api(first) || !wants_page(headers) => None,
        None => {
            let mut response = page(headers);
            if response.status() == StatusCode::OK {
                *response.status_mut() = StatusCode::NOT_FOUND;
            }
            Some(response)
        }
    }
}

fn is_api(first: &str) -> bool {
    let version = first.strip_prefix('v').and_then(|rest| rest.chars().next());
    APIS.contains(&first) || version.is_some_and(|digit| digit.is_ascii_digit())
}

/// Browsers get the page; the API's path list goes to clients that request JSON.
fn wants_page(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.contains("html"))
}

fn page(request: &HeaderMap) -> Response<Body> {
    let Some(index) = Files::get(INDEX) else { return root_page::answer() };
    let mut response = served(INDEX, index, request);
    confine(response.headers_mut());
    response
}

/// The headers that keep a page of ours from loading what is not ours, and others from using it.
pub fn confine(headers: &mut HeaderMap) {
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(OPENER_POLICY, HeaderValue::from_static("same-origin"));
}

/// The file, or its compressed twin, with what browsers need to know of it.
fn served(name: &str, plain: EmbeddedFile, request: &HeaderMap) -> Response<Body> {
    let (coding, file) =
        compressed(name, request).map_or((None, plain), |(coding, file)| (Some(coding), file));
    let mark = entity_tag(&file);
    let unchanged = request.get(IF_NONE_MATCH).is_some_and(|known| *known == mark);
    let mut response = Response::new(if unchanged { respond::empty() } else { body(file.data) });
    if unchanged {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let cache = if name.starts_with(HASHED) { CACHE_FOR_EVER } else { CACHE_REVALIDATE };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type(name)));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    headers.insert(VARY, HeaderValue::from_static("Accept, Accept-Encoding"));
    headers.insert(ETAG, mark);
    if let Some(coding) = coding {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
    }
    response
}

fn body(data: Cow<'static, [u8]>) -> Body {
    match data {
        Cow::Borrowed(embedded) => respond::full(embedded),
        Cow::Owned(read) => respond::full(read),
    }
}

/// The best coding that the client takes and the build made.
fn compressed(name: &str, request: &HeaderMap) -> Option<(&'static str, EmbeddedFile)> {
    let accepted = request.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let accepted: Vec<&str> = accepted.flat_map(|value| value.split(',')).map(str::trim).collect();
    // A coding with a weight is rare, and one of them means "never": those get the plain file.
    let mut offered = CODINGS.iter().filter(|(coding, _)| accepted.contains(coding));
    offered.find_map(|(coding, ending)| Some((*coding, Files::get(&format!("{name}{ending}"))?)))
}

fn entity_tag(file: &EmbeddedFile) -> HeaderValue {
    let hash = file.metadata.sha256_hash();
    let text: String = hash[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    HeaderValue::from_str(&format!("\"{text}\"")).expect("hex digits in quotes are a header value")
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "css" => "text/css; charset=utf-8",
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "svg" => "image/svg+xml",
        "txt" => "text/plain; charset=utf-8",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests;
