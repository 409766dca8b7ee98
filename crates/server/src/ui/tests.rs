//! Which paths are the interface's, and that its pages are answered with or without a build of it.

use super::*;

fn browser() -> HeaderMap {
    let html = HeaderValue::from_static("text/html,application/xhtml+xml,*/*;q=0.8");
    [(ACCEPT, html)].into_iter().collect()
}

fn get(path: &str, headers: &HeaderMap) -> Option<Response<Body>> {
    answer(&Method::GET, path, headers)
}

#[test]
fn browsers_get_a_page_at_every_address_of_the_interface() {
    for path in ["/", "/login", "/clusters", "/password", "/c/prod-eu-1", "/c/prod-eu-1/nodes"] {
        let page = get(path, &browser()).unwrap();
        assert_eq!(page.status(), StatusCode::OK, "{path}");
        assert_eq!(page.headers()[CONTENT_TYPE], "text/html; charset=utf-8", "{path}");
        let policy = page.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert_eq!(page.headers()[X_CONTENT_TYPE_OPTIONS], "nosniff", "{path}");
    }
}

#[test]
fn a_mistyped_address_shows_the_interface_to_browsers_with_the_status_404() {
    for path in ["/nosuch", "/nosuch/deeper", "/cluster/north", "/vault"] {
        let page = get(path, &browser()).unwrap();
        assert_eq!(page.status(), StatusCode::NOT_FOUND, "{path}");
        assert_eq!(page.headers()[CONTENT_TYPE], "text/html; charset=utf-8", "{path}");
        assert!(page.headers().contains_key(CONTENT_SECURITY_POLICY), "{path}");
        assert!(get(path, &HeaderMap::new()).is_none(), "{path}");
    }
}

#[test]
fn clients_of_the_apis_never_get_a_page() {
    let mut json = HeaderMap::new();
    json.insert(ACCEPT, HeaderValue::from_static("application/json"));
    assert!(get("/", &json).is_none());
    assert!(get("/clusters", &json).is_none());
    let apis = APIS.map(|first| format!("/{first}/nosuch"));
    let versions = ["/v1/nosuch", "/v3/clusters", "/v3-public", "/v3", "/api", "/ping"];
    for path in apis.iter().map(String::as_str).chain(versions) {
        assert!(get(path, &browser()).is_none(), "{path}");
    }
    assert!(answer(&Method::POST, "/", &browser()).is_none());
}

#[test]
fn a_file_of_an_older_build_is_not_found_and_no_page() {
    let answer = get("/assets/index-0ld.js", &browser()).unwrap();
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
}

#[test]
fn what_is_outside_the_build_is_not_served() {
    for path in ["/../Cargo.toml", "/assets/../../package.json", "//etc/passwd"] {
        let served = get(path, &HeaderMap::new());
        assert!(served.is_none_or(|answer| answer.status() == StatusCode::NOT_FOUND), "{path}");
    }
}
