//! What a browser does with addresses, cookies and forms, as far as logging in needs it. It runs no
//! scripts.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use http::header::{ACCEPT, CONTENT_TYPE, COOKIE, LOCATION, SET_COOKIE};
use http::{Method, Request, Uri};

use crate::http::body;
use crate::{Client, HttpResponse};

/// Redirects that are followed.
const REDIRECTS_MAX: usize = 20;

/// A browser with cookies of its own.
#[derive(Default)]
pub struct Browser {
    /// By host and port.
    servers: BTreeMap<String, Client>,
    cookies: Vec<StoredCookie>,
}

struct StoredCookie {
    name: String,
    value: String,
    path: String,
}

/// Where the browser is.
#[derive(Debug)]
pub struct Page {
    pub url: String,
    pub response: HttpResponse,
}

impl Page {
    /// Where the page sends the browser, if it does.
    #[must_use]
    pub fn redirect(&self) -> Option<&str> {
        self.response.headers.get(LOCATION)?.to_str().ok()
    }
}

impl Browser {
    /// A browser that trusts the servers with these URLs by their authorities.
    ///
    /// # Errors
    /// See [`Client::new`].
    pub fn new(servers: &[(&str, &str)]) -> Result<Self> {
        let mut browser = Self::default();
        for (url, authority_pem) in servers {
            browser.servers.insert(authority_of(url)?, Client::new(url, authority_pem)?);
        }
        Ok(browser)
    }

    /// The value of a cookie.
    #[must_use]
    pub fn cookie(&self, name: &str) -> Option<&str> {
        self.cookies.iter().find(|cookie| cookie.name == name).map(|cookie| cookie.value.as_str())
    }

    /// Opens an address without following where it leads.
    ///
    /// # Errors
    /// The server is none of those that the browser knows, or does not respond.
    pub fn open(&mut self, url: &str) -> Result<Page> {
        self.request(Method::GET, url, String::new())
    }

    /// Opens an address and follows redirects, up to the first page or address for which `is_end`.
    ///
    /// # Errors
    /// Like [`Browser::open`], and a ring of redirects.
    pub fn follow(&mut self, url: &str, is_end: impl Fn(&str) -> bool) -> Result<Page> {
        let page = self.open(url)?;
        self.go_on(page, is_end)
    }

    /// Sends a form to the address of a page, and follows redirects like [`Browser::follow`].
    ///
    /// # Errors
    /// Like [`Browser::follow`].
    pub fn submit(
        &mut self,
        page: &Page,
        fields: &str,
        is_end: impl Fn(&str) -> bool,
    ) -> Result<Page> {
        let page = self.request(Method::POST, &page.url, fields.to_owned())?;
        self.go_on(page, is_end)
    }

    fn go_on(&mut self, mut page: Page, is_end: impl Fn(&str) -> bool) -> Result<Page> {
        for _ in 0..REDIRECTS_MAX {
            let Some(next) = page.redirect().map(str::to_owned) else { return Ok(page) };
            let next = absolute(&page.url, &next)?;
            if is_end(&next) {
                return Ok(Page { url: next, ..page });
            }
            page = self.open(&next)?;
        }
        bail!("redirects without end, at last to {}", page.url)
    }

    fn request(&mut self, method: Method, url: &str, form: String) -> Result<Page> {
        let authority = authority_of(url)?;
        let server = self.servers.get(&authority);
        let server = server.with_context(|| format!("no server is known for {url}"))?.clone();
        // What stands after the # stays in the browser.
        let sent = url.split('#').next().unwrap_or(url);
        let uri: Uri = sent.parse().with_context(|| format!("'{url}' is not a URL"))?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let mut request = Request::builder().method(method).uri(&path).header(ACCEPT, "text/html");
        let cookies: Vec<String> = self
            .cookies
            .iter()
            .filter(|cookie| is_below(uri.path(), &cookie.path))
            .map(|cookie| format!("{}={}", cookie.name, cookie.value))
            .collect();
        if !cookies.is_empty() {
            request = request.header(COOKIE, cookies.join("; "));
        }
        if !form.is_empty() {
            request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        }
        let response = server.send(request.body(body(form))?)?;
        for set in response.headers.get_all(SET_COOKIE) {
            self.store(set.to_str().context("a cookie is text")?, uri.path())?;
        }
        Ok(Page { url: url.to_owned(), response })
    }

    fn store(&mut self, set: &str, at: &str) -> Result<()> {
        let mut parts = set.split(';').map(str::trim);
        let pair = parts.next().and_then(|pair| pair.split_once('='));
        let (name, value) = pair.with_context(|| format!("'{set}' is not a cookie"))?;
        let attributes: Vec<(&str, &str)> =
            parts.map(|part| part.split_once('=').unwrap_or((part, ""))).collect();
        let attribute = |name: &str| {
            attributes
                .iter()
                .find(|(key, _)| key.eq_ignore_ascii_case(name))
                .map(|(_, value)| *value)
        };
        let folder = at.rsplit_once('/').map_or("/", |(folder, _)| folder);
        let path = attribute("path").unwrap_or(folder);
        if name.starts_with("__Host-") {
            let is_right = path == "/" && attribute("secure").is_some();
            ensure!(is_right && attribute("domain").is_none(), "a browser refuses '{set}'");
        }
        self.cookies.retain(|cookie| !(cookie.name == name && cookie.path == path));
        let is_over = attribute("max-age") == Some("0")
            || attribute("expires").is_some_and(|at| at.contains("1970"));
        if !is_over {
            let (name, value, path) = (name.to_owned(), value.to_owned(), path.to_owned());
            self.cookies.push(StoredCookie { name, value, path });
        }
        Ok(())
    }
}

/// The value of a parameter in the query of an address, not decoded.
///
/// # Errors
/// It has none of this name.
pub fn parameter<'a>(url: &'a str, name: &str) -> Result<&'a str> {
    let mut pairs = url.split(['?', '&']).filter_map(|pair| pair.split_once('='));
    let found = pairs.find(|(key, _)| *key == name);
    found.map(|(_, value)| value).with_context(|| format!("no {name} in {url}"))
}

fn authority_of(url: &str) -> Result<String> {
    let uri: Uri = url.split('#').next().unwrap_or(url).parse()?;
    Ok(uri.authority().with_context(|| format!("'{url}' names no host"))?.to_string())
}

fn absolute(base: &str, next: &str) -> Result<String> {
    if next.contains("://") {
        return Ok(next.to_owned());
    }
    ensure!(next.starts_with('/') && !next.starts_with("//"), "a relative redirect to '{next}'");
    Ok(format!("https://{}{next}", authority_of(base)?))
}

fn is_below(path: &str, cookie: &str) -> bool {
    let folder = cookie.trim_end_matches('/');
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
