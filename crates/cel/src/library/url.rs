//! URLs, parsed like Go does.

use std::net::Ipv6Addr;
use std::rc::Rc;

use crate::value::{EvalResult, Made, Map, Value, fail};

/// An absolute URL or path, split into its parts.
#[derive(Debug, PartialEq, Eq)]
pub struct Url {
    scheme: String,
    /// With the port, without user and password.
    host: String,
    path: String,
    query: String,
}

pub(super) fn call<'a>(function: &str, args: &[Value<'a>]) -> Option<EvalResult<'a>> {
    Some(Ok(match (function, args) {
        ("url", [Value::Text(text)]) => match Url::parse(text) {
            Some(url) => Value::Url(Rc::new(url)),
            None => {
                let why = if text.is_empty() { "empty url" } else { "invalid URI for request" };
                let error = format!("parse {:?}: {why}", &**text);
                let prefix = "URL parse error during conversion from string";
                return Some(fail(format!("{prefix}: {error}")));
            }
        },
        ("isURL", [Value::Text(text)]) => Value::Bool(Url::is_valid(text)),
        ("getScheme", [Value::Url(url)]) => Value::text(&*url.scheme),
        ("getHost", [Value::Url(url)]) => Value::text(&*url.host),
        ("getHostname", [Value::Url(url)]) => Value::text(url.hostname()),
        ("getPort", [Value::Url(url)]) => Value::text(url.port()),
        ("getEscapedPath", [Value::Url(url)]) => Value::text(&*url.path),
        ("getQuery", [Value::Url(url)]) => url.query(),
        _ => return None,
    }))
}

/// The syntax that one of Go's two parsers accepts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UrlSyntax {
    /// As in the first line of a request: absolute, without a fragment; `//` begins a path.
    Request,
    /// As in a page: `//` begins an authority.
    Reference,
}

impl Url {
    /// Whether a text is an absolute URL, or a path that begins with `/`.
    pub(crate) fn is_valid(text: &str) -> bool {
        Self::read(text, UrlSyntax::Request).is_some()
    }

    /// Parses a text that [`Url::is_valid`] accepts, except for invalid hosts of URLs without a
    /// scheme.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::read(text, UrlSyntax::Request)?;
        let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
        escapes_hold(fragment).then(|| Self::read(text, UrlSyntax::Reference))?
    }

    fn read(text: &str, syntax: UrlSyntax) -> Option<Self> {
        if text.contains(|c: char| c.is_ascii_control()) {
            return None;
        }
        let (scheme, rest) = match text.find(':') {
            Some(at) if is_scheme(&text[..at]) => (text[..at].to_lowercase(), &text[at + 1..]),
            Some(0) => return None,
            _ => (String::new(), text),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut url =
            Self { scheme, host: String::new(), path: String::new(), query: query.to_owned() };
        if !rest.starts_with('/') && !url.scheme.is_empty() {
            // Opaque URLs such as `mailto:a@b` have no parts.
            return Some(url);
        }
        if syntax == UrlSyntax::Request && !rest.starts_with('/') && text != "*" {
            return None;
        }
        let has_authority =
            !url.scheme.is_empty() || (syntax == UrlSyntax::Reference && !rest.starts_with("///"));
        let mut path = rest;
        if let Some(tail) = rest.strip_prefix("//").filter(|_| has_authority) {
            let end = tail.find('/').unwrap_or(tail.len());
            url.host = authority(&url.scheme, &tail[..end])?;
            path = &tail[end..];
        }
        url.path = escapes_hold(path).then(|| escape_path(path))?;
        Some(url)
    }

    fn port_at(&self) -> Option<usize> {
        let at = self.host.rfind(':')?;
        // Colons inside brackets belong to the address.
        (self.host.rfind(']').is_none_or(|close| close < at)).then_some(at)
    }

    fn port(&self) -> &str {
        self.port_at().map_or("", |at| &self.host[at + 1..])
    }

    fn hostname(&self) -> &str {
        let host = self.port_at().map_or(&*self.host, |at| &self.host[..at]);
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    /// A map from names to lists of values.
    fn query<'a>(&self) -> Value<'a> {
        let mut names: Vec<(String, Vec<Value<'a>>)> = Vec::new();
        let pairs = self.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';'));
        for pair in pairs {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (unescape(name, true), Value::text(unescape(value, true)));
            match names.iter_mut().find(|(known, _)| *known == name) {
                Some((_, values)) => values.push(value),
                None => names.push((name, vec![value])),
            }
        }
        let mut made = Made::default();
        for (name, values) in names {
            made.insert(Value::text(name), Value::list(values));
        }
        Value::Map(Map::Made(Rc::new(made)))
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

fn escapes_hold(text: &str) -> bool {
    text.split('%').skip(1).all(|part| {
        part.get(..2).is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
    })
}

/// The host of an authority, unescaped.
fn authority(scheme: &str, text: &str) -> Option<String> {
    let (user, text) = text.rsplit_once('@').unwrap_or(("", text));
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:%@".contains(c);
    if !user.chars().all(plain) || !escapes_hold(user) {
        return None;
    }
    match text.rfind('[') {
        Some(0) => address(text),
        Some(_) => None,
        None => {
            // More than one colon is refused for schemes that have a port there.
            let colon = match scheme {
                "http" | "https" => text.find(':'),
                _ => text.rfind(':'),
            };
            is_port(colon.map_or("", |at| &text[at..])).then(|| unescape_host(text, false))?
        }
    }
}

/// An IPv6 address in brackets, with a zone and a port, unescaped.
fn address(text: &str) -> Option<String> {
    let (inside, port) = text.strip_prefix('[')?.rsplit_once(']')?;
    let (head, zone) = inside.split_at(inside.find("%25").unwrap_or(inside.len()));
    let (head, zone) = (unescape_host(head, false)?, unescape_host(zone, true)?);
    let is_address = head.parse::<Ipv6Addr>().is_ok() && zone != "%";
    (is_address && is_port(port)).then(|| format!("[{head}{zone}]{port}"))
}

/// Nothing, or a colon and digits.
fn is_port(text: &str) -> bool {
    text.is_empty()
        || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()))
}

/// `None` when a character is not allowed in a host, or not escaped. A zone allows more escapes.
fn unescape_host(text: &str, zone: bool) -> Option<String> {
    let plain = |c: char| {
        !c.is_ascii() || c.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:[]<>\"".contains(c)
    };
    if !escapes_hold(text) || !text.chars().all(|c| plain(c) || c == '%') {
        return None;
    }
    let escaped = text.split('%').skip(1);
    let mut bytes = escaped.filter_map(|part| u8::from_str_radix(part.get(..2)?, 16).ok());
    let may_be_escaped = |byte: u8| match zone {
        true => matches!(byte, b'%' | b' ') || plain(char::from(byte)),
        false => matches!(byte, b'%' | 0x80..),
    };
    bytes.all(may_be_escaped).then(|| unescape(text, false))
}

fn escape_path(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@!'()*%[]".contains(&byte);
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        if plain(byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// `plus`: a plus means a space, as in queries.
fn unescape(text: &str, plus: bool) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = match (first, tail) {
            (b'%', [a, b, ..]) => {
                let digits = [*a, *b];
                let digits = std::str::from_utf8(&digits).ok();
                digits.and_then(|digits| u8::from_str_radix(digits, 16).ok())
            }
            _ => None,
        };
        match code {
            Some(byte) => {
                out.push(byte);
                rest = &tail[2..];
            }
            None => {
                out.push(if plus && *first == b'+' { b' ' } else { *first });
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
