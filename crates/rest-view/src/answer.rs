//! Requests in and answers out: formats, headers, bodies.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use serde_json::{Map, Value};

use crate::browser::Verdict;
use crate::error::ApiError;

/// The largest request body.
pub const BODY_SIZE_MAX: usize = 2 * 1024 * 1024;
/// Answers are never to be kept by caches; clients compare the text.
const EXPIRES: HeaderValue = HeaderValue::from_static("Wed 24 Feb 1982 18:42:00 GMT");
const SCHEMAS_HEADER: &str = "x-api-schemas";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Yaml,
}

/// `_format`, else the `Accept` header. Browsers get JSON as well: there is no API page.
pub(crate) fn format_of(headers: &HeaderMap, asked: Option<&str>) -> Format {
    match asked {
        Some("yaml") => Format::Yaml,
        Some(_) => Format::Json,
        None => {
            let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
            match accept {
                Some(accept) if accept.contains("application/yaml") => Format::Yaml,
                _ => Format::Json,
            }
        }
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
    let is_yaml = headers.get(header::CONTENT_TYPE).is_some_and(|v| v == "application/yaml");
    let value: Value = if is_yaml {
        // "no" and "off" are text, as everywhere in Kubernetes.
        let options = serde_saphyr::options! { strict_booleans: true };
        serde_saphyr::from_slice_with_options(body, options).map_err(|error| refuse(&error))?
    } else {
        serde_json::from_slice(body).map_err(|error| refuse(&error))?
    };
    match value {
        Value::Object(map) => Ok(map),
        _ => Err(ApiError::invalid_body("the request body must be an object")),
    }
}

/// An answer before its headers.
pub(crate) enum Answer {
    Json(StatusCode, Value),
    Empty(StatusCode),
    Raw(Response<Bytes>),
}

impl From<ApiError> for Answer {
    fn from(error: ApiError) -> Self {
        Self::Json(error.status_code(), error.to_json())
    }
}

impl Answer {
    /// Adds what every answer carries.
    pub fn finish(
        self,
        format: Format,
        schemas_url: Option<&str>,
        verdict: &Verdict,
    ) -> Response<Bytes> {
        let (mut response, typed) = match self {
            Self::Raw(response) => (response, None),
            Self::Empty(status) => (with_status(status, Bytes::new()), None),
            Self::Json(status, value) => {
                let (bytes, content_type) = encode(format, &value);
                (with_status(status, bytes), Some(content_type))
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
        if let Verdict::SetCookie(cookie) = verdict {
            headers.append(header::SET_COOKIE, cookie.clone());
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
        && let Ok(text) = serde_saphyr::to_string(value)
    {
        return (text.into(), "application/yaml");
    }
    (value.to_string().into(), "application/json")
}
