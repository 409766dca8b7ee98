//! The guide below `/docs/`: pages that the crate `guide` has made, for everybody, with the headers
//! of the web interface. They hold nothing of this server.

use std::hash::{DefaultHasher, Hash, Hasher};

use apiserver::body::respond::{self, Body};
use http::header::{
    CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, LOCATION, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};

use crate::ui;

/// The address without its slash, as people type it.
const TYPED: &str = "/docs";
const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
/// May be stored, and is validated each time: the next version of the program has other pages.
const CACHE: &str = "no-cache";

/// The response for a path of the guide; none when it is another's.
pub fn respond(method: &Method, path: &str, headers: &HeaderMap) -> Option<Response<Body>> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return None;
    }
    if path == TYPED {
        let mut response = Response::new(respond::empty());
        *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
        response.headers_mut().insert(LOCATION, HeaderValue::from_static(guide::ROOT));
        return Some(response);
    }
    let below = path.strip_prefix(guide::ROOT)?;
    if below == guide::STYLE_PATH {
        return Some(document(guide::STYLE, CSS, headers));
    }
    if let Some(page) = guide::find(below) {
        return Some(document(page.html, HTML, headers));
    }
    let mut response = document(guide::missing(), HTML, &HeaderMap::new());
    if guide::is_built() || !below.is_empty() {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    Some(response)
}

fn document(text: &'static str, content_type: &'static str, request: &HeaderMap) -> Response<Body> {
    let tag = entity_tag(text);
    let unchanged = request.get(IF_NONE_MATCH).is_some_and(|known| *known == tag);
    let body = if unchanged { respond::empty() } else { respond::full(text.as_bytes()) };
    let mut response = Response::new(body);
    if unchanged {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(CACHE));
    headers.insert(ETAG, tag);
    ui::confine(headers);
    response
}

/// Differs between contents of one program, and mostly between programs: nobody gains from a
/// collision.
fn entity_tag(text: &str) -> HeaderValue {
    let mut hasher = DefaultHasher::new();
    (env!("CARGO_PKG_VERSION"), text).hash(&mut hasher);
    HeaderValue::from_str(&format!("\"{:016x}\"", hasher.finish()))
        .expect("hex digits in quotes are a header value")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(path: &str) -> Response<Body> {
        respond(&Method::GET, path, &HeaderMap::new()).unwrap()
    }

    #[test]
    fn the_address_without_a_slash_leads_to_the_first_page() {
        let response = get("/docs");
        assert_eq!(response.status(), StatusCode::PERMANENT_REDIRECT);
        assert_eq!(response.headers()[LOCATION], "/docs/");
    }

    #[test]
    fn an_unknown_page_is_404_and_a_page_is_validated_by_its_tag() {
        assert_eq!(get("/docs/nosuch").status(), StatusCode::NOT_FOUND);
        let page = get("/docs/tls");
        assert_eq!(
            (page.status(), &page.headers()[CONTENT_TYPE]),
            (StatusCode::OK, &HTML.parse().unwrap())
        );
        let known = [(IF_NONE_MATCH, page.headers()[ETAG].clone())].into_iter().collect();
        let again = respond(&Method::GET, "/docs/tls", &known).unwrap();
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    }

    #[test]
    fn other_paths_and_methods_are_not_the_guide_s() {
        for path in ["/docsx", "/", "/v3/docs/"] {
            assert!(respond(&Method::GET, path, &HeaderMap::new()).is_none(), "{path}");
        }
        assert!(respond(&Method::POST, "/docs/", &HeaderMap::new()).is_none());
    }
}
