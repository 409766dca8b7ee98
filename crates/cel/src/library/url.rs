//! URLs, split as Go splits them.

use std::rc::Rc;

use crate::value::{Made, Map, Outcome, Value, fail};

/// An absolute URL or path, in its parts.
#[derive(Debug, PartialEq, Eq)]
pub struct Url {
    scheme: String,
    /// With the port, without user and password.
    host: String,
    path: String,
    query: String,
}

pub(super) fn call<'a>(function: &str, args: &[Value<'a>]) -> Option<Outcome<'a>> {
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
        ("isURL", [Value::Text(text)]) => Value::Bool(Url::parse(text).is_some()),
        ("getScheme", [Value::Url(url)]) => Value::text(&*url.scheme),
        ("getHost", [Value::Url(url)]) => Value::text(&*url.host),
        ("getHostname", [Value::Url(url)]) => Value::text(url.hostname()),
        ("getPort", [Value::Url(url)]) => Value::text(url.port()),
        ("getEscapedPath", [Value::Url(url)]) => Value::text(&*url.path),
        ("getQuery", [Value::Url(url)]) => url.query(),
        _ => return None,
    }))
}

impl Url {
    /// An absolute URL with a scheme, or a path that begins with `/`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let blank = |c: char| c.is_ascii_control();
        if text.is_empty() || text.contains(blank) {
            return None;
        }
        let (scheme, rest) = match text.find(':') {
            Some(at) if is_scheme(&text[..at]) => (text[..at].to_lowercase(), &text[at + 1..]),
            Some(0) => return None,
            _ => (String::new(), text),
        };
        if !rest.starts_with('/') {
            // Opaque URLs such as `mailto:a@b` have no parts.
            return (!scheme.is_empty()).then(|| Self {
                scheme,
                host: String::new(),
                path: String::new(),
                query: String::new(),
            });
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let authority = rest.strip_prefix("//").filter(|_| !scheme.is_empty());
        let (host, path) = match authority {
            Some(tail) => {
                let end = tail.find('/').unwrap_or(tail.len());
                let host = tail[..end].rsplit_once('@').map_or(&tail[..end], |(_, host)| host);
                (host, &tail[end..])
            }
            None => ("", rest),
        };
        let escapes_hold = |text: &str| {
            text.split('%').skip(1).all(|part| {
                part.get(..2).is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
            })
        };
        if !escapes_hold(path) || !is_host(host) {
            return None;
        }
        let path = escape_path(path);
        Some(Self { scheme, host: host.to_owned(), path, query: query.to_owned() })
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

    /// Names to lists of values.
    fn query<'a>(&self) -> Value<'a> {
        let mut names: Vec<(String, Vec<Value<'a>>)> = Vec::new();
        let pairs = self.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';'));
        for pair in pairs {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (name, value) = (unescape(name), Value::text(unescape(value)));
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

fn is_host(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[') {
        Some(inside) => match inside.split_once(']') {
            Some((name, port)) => (name, port),
            None => return false,
        },
        None => match host.rfind(':') {
            Some(at) => host.split_at(at),
            None => (host, ""),
        },
    };
    let port_holds =
        port.strip_prefix(':').map_or(port.is_empty(), |p| p.bytes().all(|b| b.is_ascii_digit()));
    port_holds && !name.contains([' ', '<', '>', '"', '\\', '^', '`', '{', '|', '}'])
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

fn unescape(text: &str) -> String {
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
                out.push(if *first == b'+' { b' ' } else { *first });
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
