//! Requests in and answers out: formats, headers, bodies.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use serde_json::{Map, Value};

use crate::browser::is_browser;
use crate::collection::reduced::hinted;
use crate::error::ApiError;
use crate::types::urls::query_pairs;

/// The largest request body.
pub const BODY_SIZE_MAX: usize = 2 * 1024 * 1024;
/// Values that the aliases of a YAML body may repeat: a few hundred bytes could ask for millions.
const YAML_REPEATED_MAX: usize = 10_000;
/// Answers are never to be kept by caches; clients compare the text.
const EXPIRES: HeaderValue = HeaderValue::from_static("Wed 24 Feb 1982 18:42:00 GMT");
const SCHEMAS_HEADER: &str = "x-api-schemas";
/// Media type of what a browser's form sends.
const FORM: &str = "application/x-www-form-urlencoded";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Yaml,
    /// A person in front of a browser: sent to the interface. JSON where that cannot be.
    Html,
}

/// `_format`, else HTML for pages that a browser opens, else by the `Accept` header.
///
/// Scripts in a browser accept anything and get JSON: a redirect would be of no use to them.
pub(crate) fn format_of(headers: &HeaderMap, asked: Option<&str>) -> Format {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let accepts = |kind: &str| accept.is_some_and(|accept| accept.contains(kind));
    match asked.map(|asked| asked.trim().to_ascii_lowercase()).as_deref() {
        Some("json") => Format::Json,
        Some("yaml") => Format::Yaml,
        Some("html") => Format::Html,
        _ if is_browser(headers) && accepts("text/html") => Format::Html,
        _ if accepts("application/yaml") => Format::Yaml,
        _ => Format::Json,
    }
}

/// The object in the body; an empty body is an empty object.
pub(crate) fn body_of(headers: &HeaderMap, body: &Bytes) -> Result<Map<String, Value>, ApiError> {
    if body.len() > BODY_SIZE_MAX {
        return Err(ApiError::too_large(BODY_SIZE_MAX));
    }
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Map::new());
    }
    let refuse = |error: &dyn std::fmt::Display| {
        ApiError::invalid_body(format!("failed to parse the request body: {error}"))
    };
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media_type = content_type.and_then(|text| text.split(';').next()).unwrap_or_default();
    let value: Value = match media_type.trim() {
        _ if content_type == Some("application/yaml") => {
            // "no" and "off" are text, as everywhere in Kubernetes.
            let options = serde_saphyr::options! {
                strict_booleans: true,
                alias_limits: serde_saphyr::alias_limits! {
                    max_total_replayed_events: YAML_REPEATED_MAX,
                },
            };
            serde_saphyr::from_slice_with_options(body, options).map_err(|error| refuse(&error))?
        }
        // Where nobody says otherwise, curl calls JSON a form.
        FORM if !body.trim_ascii_start().starts_with(b"{") => return Ok(form(body)),
        "multipart/form-data" => return Err(refuse(&"multipart is not read here; send JSON")),
        _ => serde_json::from_slice(body).map_err(|error| refuse(&error))?,
    };
    match value {
        Value::Object(map) => Ok(map),
        _ => Err(ApiError::invalid_body("the request body must be an object")),
    }
}

/// Every value is a list of texts, as a form may name a field several times.
fn form(body: &Bytes) -> Map<String, Value> {
    let mut out = Map::new();
    for (name, value) in query_pairs(&String::from_utf8_lossy(body)) {
        let values = out.entry(name).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(values) = values {
            values.push(value.into());
        }
    }
    out
}

/// An answer before its headers.
pub(crate) enum Answer {
    Json(StatusCode, Value),
    Error(ApiError),
    Empty(StatusCode),
    /// To the interface for people, at this URL.
    Interface(String),
    Raw(Response<Bytes>),
}

impl From<ApiError> for Answer {
    fn from(error: ApiError) -> Self {
        Self::Error(error)
    }
}

impl Answer {
    /// Adds what every answer carries.
    pub fn finish(
        self,
        format: Format,
        schemas_url: Option<&str>,
        cookies: Vec<HeaderValue>,
    ) -> Response<Bytes> {
        let (mut response, typed) = match self {
            Self::Raw(response) => (response, None),
            Self::Empty(status) => (with_status(status, Bytes::new()), None),
            Self::Interface(url) => {
                let mut response = with_status(StatusCode::FOUND, Bytes::new());
                if let Ok(url) = HeaderValue::from_str(&url) {
                    response.headers_mut().insert(header::LOCATION, url);
                }
                (response, None)
            }
            Self::Json(status, value) => {
                let (bytes, content_type) = encode(format, &value);
                (with_status(status, bytes), Some(content_type))
            }
            Self::Error(error) => {
                let (bytes, content_type) = encode(format, &error.to_json());
                let mut response = with_status(error.status_code(), bytes);
                if let Some(seconds) = error.retry_after {
                    let seconds = HeaderValue::from(seconds);
                    response.headers_mut().insert(header::RETRY_AFTER, seconds);
                }
                (response, Some(content_type))
            }
        };
        let headers = response.headers_mut();
        if let Some(content_type) = typed {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        headers.insert(header::EXPIRES, EXPIRES);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(Ok(url)) = schemas_url.map(HeaderValue::from_str) {
            headers.insert(SCHEMAS_HEADER, url);
        }
        for cookie in cookies {
            headers.append(header::SET_COOKIE, cookie);
        }
        response
    }
}

fn with_status(status: StatusCode, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}

fn encode(format: Format, value: &Value) -> (Bytes, &'static str) {
    if format == Format::Yaml
        && let Ok(text) = yaml(value)
    {
        return (text.into(), "application/yaml");
    }
    (value.to_string().into(), "application/json")
}

/// Fields that are hinted at are comments at the end.
fn yaml(value: &Value) -> Result<String, serde_saphyr::ser::Error> {
    let Value::Object(entries) = value else { return serde_saphyr::to_string(value) };
    let mut set = entries.clone();
    set.retain(|key, _| hinted(key).is_none());
    let mut text = serde_saphyr::to_string(&set)?;
    for (key, value) in entries {
        let Some(name) = hinted(key) else { continue };
        let hint = Map::from_iter([(name.to_owned(), value.clone())]);
        for line in serde_saphyr::to_string(&hint)?.lines() {
            text.push_str(&format!("# {line}\n"));
        }
    }
    Ok(text)
}
