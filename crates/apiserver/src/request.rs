//! Parses path, method and query into what is requested: resource or not, verb, names, options.

use api_meta::fields::FieldSelector;
use http::Method;

/// What a request addresses. Strings are percent-decoded; empty means absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// The path is one of a resource: `/api/<version>/…` or `/apis/<group>/<version>/…`.
    pub is_resource: bool,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; for other
    /// paths the method in lower case; empty for unknown methods.
    pub verb: &'static str,
    pub group: String,
    pub version: String,
    pub namespace: String,
    pub resource: String,
    pub name: String,
    /// With `/` between its parts.
    pub subresource: String,
    /// The whole path, as it was sent.
    pub path: String,
}

/// The parameters of the query, decoded, in order.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Parses the query of a URI. Never fails: malformed escapes stay as they are.
    pub fn parse(query: Option<&str>) -> Self {
        let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs
                .map(|pair| {
                    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                    (decode(&key.replace('+', " ")), decode(&value.replace('+', " ")))
                })
                .collect(),
        )
    }
    /// The first value of the parameter.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }
    /// The first value of the parameter; empty when it is absent.
    pub fn text(&self, key: &str) -> &str {
        self.get(key).unwrap_or_default()
    }
    /// All values of the parameter, in order.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(k, _)| k == key).map(|(_, v)| v.as_str())
    }
    /// A boolean parameter as Kubernetes reads it: present, and neither `0` nor `false`.
    pub fn flag(&self, key: &str) -> bool {
        self.get(key).is_some_and(|value| value != "0" && value != "false")
    }
}

/// Percent-decodes; malformed escapes stay as they are.
pub fn decode(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%')
            .then(|| text.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok()))
            .flatten();
        match escaped {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

impl RequestInfo {
    /// What a request addresses, by the rules of kube-apiserver.
    pub fn parse(method: &Method, path: &str, query: &Query) -> Self {
        let mut info = Self { verb: plain_verb(method), path: path.to_owned(), ..Self::default() };
        let mut parts: Vec<String> =
            path.trim_matches('/').split('/').filter(|part| !part.is_empty()).map(decode).collect();
        match parts.first().map(String::as_str) {
            Some("api") if parts.len() >= 3 => {
                info.version = parts[1].clone();
                parts.drain(..2);
            }
            Some("apis") if parts.len() >= 4 => {
                info.group = parts[1].clone();
                info.version = parts[2].clone();
                parts.drain(..3);
            }
            _ => return info,
        }
        info.is_resource = true;
        let legacy_watch = parts[0] == "watch" && parts.len() > 1;
        if legacy_watch {
            parts.remove(0);
        }
        // `namespaces/<n>/status` is a subresource of the namespace, not a namespaced resource.
        let of_namespace =
            parts[0] == "namespaces" && parts.len() == 3 && is_namespace_subresource(&parts[2]);
        if parts[0] == "namespaces" && parts.len() >= 3 && !of_namespace {
            info.namespace = parts[1].clone();
            parts.drain(..2);
        } else if parts[0] == "namespaces" && parts.len() >= 2 {
            info.namespace = parts[1].clone();
        }
        let mut parts = parts.into_iter();
        info.resource = parts.next().unwrap_or_default();
        info.name = parts.next().unwrap_or_default();
        info.subresource = parts.collect::<Vec<_>>().join("/");
        info.verb = resource_verb(method, &info, query, legacy_watch);
        if info.name.is_empty() && matches!(info.verb, "list" | "watch" | "deletecollection") {
            info.name = name_from_selector(query.text("fieldSelector")).unwrap_or_default();
        }
        info
    }

    /// Whether the path names one object, as opposed to a name taken from a field selector.
    pub fn names_object(&self) -> bool {
        !self.name.is_empty() && !matches!(self.verb, "list" | "watch" | "deletecollection")
    }
}

fn is_namespace_subresource(part: &str) -> bool {
    matches!(part, "status" | "finalize")
}

fn plain_verb(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "get",
        "HEAD" => "head",
        "POST" => "post",
        "PUT" => "put",
        "PATCH" => "patch",
        "DELETE" => "delete",
        "OPTIONS" => "options",
        _ => "",
    }
}

fn resource_verb(
    method: &Method,
    info: &RequestInfo,
    query: &Query,
    legacy_watch: bool,
) -> &'static str {
    match method.as_str() {
        "GET" | "HEAD" if legacy_watch => "watch",
        "GET" | "HEAD" if !info.name.is_empty() => "get",
        "GET" | "HEAD" if query.flag("watch") => "watch",
        "GET" | "HEAD" => "list",
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" if info.name.is_empty() => "deletecollection",
        "DELETE" => "delete",
        _ => "",
    }
}

/// `metadata.name=x`, alone or among other terms, names the object for authorization.
fn name_from_selector(selector: &str) -> Option<String> {
    let fields = FieldSelector::parse(selector).ok()?;
    fields.required("metadata.name").filter(|name| !name.is_empty()).map(str::to_owned)
}
