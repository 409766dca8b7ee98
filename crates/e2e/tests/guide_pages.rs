//! The guide that the server serves publicly, below `/docs/`.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::collections::BTreeSet;

use e2e::Server;

const STYLE: &str = "/docs/style.css";
/// The content security policy of the web interface.
const ICON: &str = "/logo.svg";
const CSS: &str = "text/css; charset=utf-8";

/// Every URL on a page, in links, forms and loaded resources.
fn addresses(html: &str) -> Vec<&str> {
    let attributes = ["href=\"", "src=\"", "action=\""];
    let found = attributes.iter().flat_map(|attribute| html.split(attribute).skip(1));
    found.filter_map(|rest| rest.split('"').next()).collect()
}

/// The URLs that browsers load for a page by themselves.
fn loaded(html: &str) -> Vec<&str> {
    html.split('<')
        .filter(|tag| ["link", "script", "img", "iframe"].iter().any(|name| tag.starts_with(name)))
        .flat_map(addresses)
        .collect()
}

#[test]
fn every_page_of_the_guide_is_public_and_loads_nothing_from_other_hosts() {
    let server = Server::start().unwrap();
    let stranger = server.anyone().unwrap();
    let style = stranger.get(STYLE).unwrap();
    assert_eq!(style.status, 200);
    assert_eq!(style.headers["content-type"], CSS);
    let mut open = vec!["/docs/".to_owned()];
    let mut seen = BTreeSet::from([STYLE.to_owned()]);
    while let Some(path) = open.pop() {
        if !seen.insert(path.clone()) {
            continue;
        }
        let page = stranger.get(&path).unwrap();
        assert_eq!(page.status, 200, "{path}");
        let policy = page.headers["content-security-policy"].to_str().unwrap();
        for part in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(page.headers["x-content-type-options"], "nosniff", "{path}");
        let html = page.text();
        assert_eq!(loaded(&html), [ICON, STYLE], "{path}");
        let links = addresses(&html).into_iter().filter(|link| link.starts_with("/docs/"));
        open.extend(links.map(|link| link.split('#').next().unwrap_or_default().to_owned()));
    }
    assert!(seen.contains("/docs/quick-start") && seen.contains("/docs/reference/cli"), "{seen:?}");
}

#[test]
fn an_address_that_is_no_page_of_the_guide_is_404_with_its_navigation() {
    let server = Server::start().unwrap();
    let stranger = server.anyone().unwrap();
    let redirect = stranger.get("/docs").unwrap();
    assert_eq!(redirect.status, 308);
    assert_eq!(redirect.headers["location"], "/docs/");
    for path in ["/docs/nosuch", "/docs/../v3", "/docs/operations/", "/docs/style.css.map"] {
        let page = stranger.get(path).unwrap();
        assert_eq!(page.status, 404, "{path}");
        assert!(page.headers.contains_key("content-security-policy"), "{path}");
        assert!(page.text().contains("href=\"/docs/quick-start\""), "{path}");
    }
    let written = stranger.post("/docs/", &serde_json::json!({})).unwrap();
    assert!(written.status.is_client_error(), "{}", written.status);
}
