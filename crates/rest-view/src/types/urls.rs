//! Absolute URLs in responses, derived from the headers of the request.

use http::HeaderMap;

use crate::types::descriptor::Descriptor;

/// Builds links. All of them begin with the scheme, host and prefix that the caller used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Urls {
    base: String,
    /// Path of the sub-context of the request, and path of the resource that it is inside of.
    inside: Option<(String, String)>,
}

impl Urls {
    /// `base`: scheme, host and prefix, without a trailing slash.
    pub fn new(base: &str) -> Self {
        Self { base: base.trim_end_matches('/').to_owned(), inside: None }
    }

    /// For a request inside the resource `id`: types of the sub-context `version` are below it.
    pub fn inside(mut self, version: &str, id: &str) -> Self {
        self.inside = Some((version.to_owned(), format!("{version}/{}", encode(id))));
        self
    }

    /// The URLs of a request. The scheme comes from `X-Forwarded-Proto`, else it is https. The host
    /// comes from `X-API-Host`, the first `X-Forwarded-Host`, `Host`, or the authority of the URI
    /// (HTTP/2). The prefix comes from `X-API-URL-Prefix`. Values that are not valid in a URL are
    /// ignored.
    pub fn of_request(headers: &HeaderMap, uri: &http::Uri) -> Self {
        let text = |name: &str| {
            let value = headers.get(name)?.to_str().ok()?;
            let first = value.split(',').next().unwrap_or_default().trim();
            (!first.is_empty()).then(|| first.to_owned())
        };
        let scheme = match text("x-forwarded-proto").as_deref() {
            Some("http" | "ws") => "http",
            Some("https" | "wss") => "https",
            _ => uri.scheme_str().filter(|scheme| *scheme == "http").unwrap_or("https"),
        };
        let host = ["x-api-host", "x-forwarded-host", "host"]
            .into_iter()
            .filter_map(text)
            .find(|host| is_host(host))
            .or_else(|| uri.authority().map(ToString::to_string))
            .unwrap_or_else(|| "localhost".to_owned());
        let prefix = text("x-api-url-prefix")
            .filter(|prefix| prefix.starts_with('/') && is_path(prefix))
            .unwrap_or_default();
        Self::new(&format!("{scheme}://{host}{prefix}"))
    }

    /// Scheme, host and prefix.
    pub fn base(&self) -> &str {
        &self.base
    }
    /// The URL of an absolute path, which must begin with a slash.
    pub fn path(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }
    /// The URL of a collection, with the lower-cased plural that clients expect.
    pub fn collection(&self, descriptor: &Descriptor) -> String {
        format!("{}{}/{}", self.base, self.root_of(descriptor), descriptor.plural.to_lowercase())
    }
    /// The URL of a resource, with the plural in camel case.
    pub fn resource(&self, descriptor: &Descriptor, id: &str) -> String {
        format!("{}{}/{}/{}", self.base, self.root_of(descriptor), descriptor.plural, encode(id))
    }
    /// The URL of the list of resources whose `field` is `value`, with the plural in camel case.
    pub fn filtered(&self, descriptor: &Descriptor, field: &str, value: &str) -> String {
        let collection = format!("{}{}/{}", self.base, self.root_of(descriptor), descriptor.plural);
        format!("{collection}?{field}={}", encode(value))
    }
    /// Path below which the collection of the type is.
    fn root_of<'a>(&'a self, descriptor: &'a Descriptor) -> &'a str {
        match &self.inside {
            Some((version, root)) if *version == descriptor.version => root,
            _ => &descriptor.version,
        }
    }
    /// The URL of an action on `target`, the URL of a resource or collection.
    pub fn action(&self, target: &str, action: &str) -> String {
        format!("{target}?action={}", encode(action))
    }
    /// The URL of the WebSocket `name` of `target`, the URL of a resource.
    pub fn socket(&self, target: &str, name: &str) -> String {
        // `https` becomes `wss`, `http` becomes `ws`.
        format!("ws{}?{}=true", target.trim_start_matches("http"), encode(name))
    }
}

fn is_host(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b))
}

fn is_path(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~/".contains(&b))
}

/// Percent-encodes what is not valid in a path segment or query value. `:` stays as it is, because
/// ids contain it.
pub fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            out.push(byte as char);
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Decodes percent escapes, and `+` as a space if `plus` (queries). Invalid escapes stay as text;
/// invalid UTF-8 is replaced.
pub fn decode(text: &str, plus: bool) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = |i: usize| bytes.get(i).and_then(|b| (*b as char).to_digit(16));
        match bytes[at] {
            b'%' => match (hex(at + 1), hex(at + 2)) {
                (Some(high), Some(low)) => {
                    out.push((high * 16 + low) as u8);
                    at += 2;
                }
                _ => out.push(b'%'),
            },
            b'+' if plus => out.push(b' '),
            byte => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Query pairs in order. A key without `=` has the empty value.
pub fn query_pairs(query: &str) -> Vec<(String, String)> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key, true), decode(value, true))
        })
        .collect()
}
