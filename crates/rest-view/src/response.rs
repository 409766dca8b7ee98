//! Request bodies and responses: formats, headers, encoding. Also for the other views.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use serde_json::{Map, Value};

use crate::browser::is_browser;
use crate::collection::reduced::hinted;
use crate::error::ApiError;
use crate::types::urls::query_pairs;

/// The largest request body.
pub const BODY_SIZE_MAX: usize = 2 * 1024 * 1024;
/// Values that the aliases of a YAML body may repeat: a few hundred bytes could otherwise expand to
/// millions.
const YAML_REPEATED_MAX: usize = 10_000;
/// Responses must not be cached; clients compare this text.
const EXPIRES: HeaderValue = HeaderValue::from_static("Wed 24 Feb 1982 18:42:00 GMT");
const SCHEMAS_HEADER: &str = "x-api-schemas";
/// Media type of a submitted HTML form.
const FORM: &str = "application/x-www-form-urlencoded";

/// How a response is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseFormat {
    Json,
    Yaml,
    /// A page that a user opens in a browser: redirected to the web interface. JSON where a
    /// redirect is impossible.
    Html,
}

/// The format of the response: `_format`, else HTML for pages that a browser opens, else from the
/// `Accept` header.
///
/// Scripts in a browser accept anything and get JSON: a redirect would not help them.
pub fn format_of(headers: &HeaderMap, requested: Option<&str>) -> ResponseFormat {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let accepts = |kind: &str| accept.is_some_and(|accept| accept.contains(kind));
    match requested.map(|requested| requested.trim().to_ascii_lowercase()).as_deref() {
        Some("json") => ResponseFormat::Json,
        Some("yaml") => ResponseFormat::Yaml,
        Some("html") => ResponseFormat::Html,
        _ if is_browser(headers) && accepts("text/html") => ResponseFormat::Html,
        _ if accepts("application/yaml") => ResponseFormat::Yaml,
        _ => ResponseFormat::Json,
    }
}

/// The object in the body; an empty body is an empty object.
///
/// # Errors
/// 413 when the body is too large, 422 when it is no object or cannot be parsed.
pub fn body_of(headers: &HeaderMap, body: &Bytes) -> Result<Map<String, Value>, ApiError> {
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
            // "no" and "off" are text, as in all YAML of Kubernetes.
            let options = serde_saphyr::options! {
                strict_booleans: true,
                alias_limits: serde_saphyr::alias_limits! {
                    max_total_replayed_events: YAML_REPEATED_MAX,
                },
            };
            serde_saphyr::from_slice_with_options(body, options).map_err(|error| refuse(&error))?
        }
        // curl sends JSON with this media type by default.
        FORM if !body.trim_ascii_start().starts_with(b"{") => return Ok(form(body)),
        "multipart/form-data" => {
            return Err(refuse(&"multipart bodies are not supported; send JSON"));
        }
        _ => serde_json::from_slice(body).map_err(|error| refuse(&error))?,
    };
    match value {
        Value::Object(map) => Ok(map),
        _ => Err(ApiError::invalid_body("the request body must be an object")),
    }
}

/// Each value becomes a list of texts, because a form may repeat a field.
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

/// A response before its headers.
pub enum ViewResponse {
    Json(StatusCode, Value),
    Error(ApiError),
    /// An error with a body of its own.
    ErrorWith(ApiError, Value),
    /// Without a body.
    Empty(StatusCode),
    /// A redirect to the web interface, at this URL.
    Interface(String),
    /// With headers of its own.
    Raw(Response<Bytes>),
}

impl From<ApiError> for ViewResponse {
    fn from(error: ApiError) -> Self {
        Self::Error(error)
    }
}

impl ViewResponse {
    /// Encodes the body and adds the headers that every response has.
    pub fn finish(
        self,
        format: ResponseFormat,
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
                let body = error.to_json();
                return Self::ErrorWith(error, body).finish(format, schemas_url, cookies);
            }
            Self::ErrorWith(error, body) => {
                let (bytes, content_type) = encode(format, &body);
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

fn encode(format: ResponseFormat, value: &Value) -> (Bytes, &'static str) {
    if format == ResponseFormat::Yaml
        && let Ok(text) = yaml(value)
    {
        return (text.into(), "application/yaml");
    }
    (value.to_string().into(), "application/json")
}

/// Hinted fields become comments at the end.
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
