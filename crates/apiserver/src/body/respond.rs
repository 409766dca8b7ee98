//! Responses: bodies, Status, compression.

use std::convert::Infallible;
use std::io::Write;

use api_meta::status::Status;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use serde_json::Value;

use crate::attributes::Revocation;

use super::negotiate::{Accepted, ResponseFormat, Transform};

/// The body of every response. It never fails; a broken stream just ends.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Responses above this size in bytes are compressed if the client accepts that.
const GZIP_ABOVE: usize = 128 * 1024;

/// A body of bytes in memory.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed_unsync()
}

/// A streamed body. It ends with the stream.
pub fn stream(chunks: impl Stream<Item = Bytes> + Send + 'static) -> Body {
    StreamBody::new(chunks.map(|chunk| Ok(Frame::data(chunk)))).boxed_unsync()
}

/// Relays the body of another server's response. It ends when that one breaks off or the user is
/// revoked.
pub fn relay(body: hyper::body::Incoming, revocation: Revocation) -> Body {
    let revoked = Box::pin(async move { revocation.revoked().await });
    let frames = http_body_util::BodyStream::new(body).take_until(revoked);
    let frames = frames.take_while(|frame| std::future::ready(frame.is_ok()));
    StreamBody::new(frames.filter_map(|frame| std::future::ready(frame.ok().map(Ok))))
        .boxed_unsync()
}

/// A body without bytes.
pub fn empty() -> Body {
    full(Bytes::new())
}

/// A response in plain text, for paths that are no resource.
pub fn text(code: StatusCode, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(full(body));
    *response.status_mut() = code;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

/// The 404 of kube-apiserver for paths that do not exist.
pub fn not_found() -> Response<Body> {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

/// A response of encoded JSON.
pub fn json_bytes(code: StatusCode, bytes: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(full(bytes));
    *response.status_mut() = code;
    set_content_headers(response.headers_mut(), ResponseFormat::Json.media_type());
    response
}

/// Sets `Content-Type`, and `Cache-Control` like kube-apiserver.
pub fn set_content_headers(headers: &mut HeaderMap, content_type: &'static str) {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
}

/// A response of a JSON tree, in the negotiated encoding.
pub fn value(code: StatusCode, accepted: Accepted, value: &Value) -> Response<Body> {
    respond(code, accepted, encode(accepted, value))
}

/// A response of JSON bytes, in the negotiated encoding. Plain JSON is passed on unchanged.
pub fn bytes(code: StatusCode, accepted: Accepted, json: Bytes) -> Response<Body> {
    respond(code, accepted, convert(accepted, json))
}

fn respond(code: StatusCode, accepted: Accepted, bytes: Result<Bytes, Status>) -> Response<Body> {
    match bytes {
        Ok(bytes) => {
            let mut response = Response::new(empty());
            *response.status_mut() = code;
            set_content_headers(response.headers_mut(), accepted.format.media_type());
            set_body(accepted.gzip, response, bytes)
        }
        Err(refused) => status(&refused),
    }
}

/// Converts JSON bytes to the negotiated encoding.
fn convert(accepted: Accepted, json: Bytes) -> Result<Bytes, Status> {
    match accepted.format {
        ResponseFormat::Json if !accepted.pretty => Ok(json),
        ResponseFormat::Protobuf => protobuf(&json),
        ResponseFormat::Json | ResponseFormat::Yaml => {
            let tree: Value = serde_json::from_slice(&json).expect("JSON of this server parses");
            encode(accepted, &tree)
        }
    }
}

fn encode(accepted: Accepted, value: &Value) -> Result<Bytes, Status> {
    Ok(match accepted.format {
        ResponseFormat::Json if accepted.pretty => {
            let mut text = serde_json::to_vec_pretty(value).expect("a JSON tree serialises");
            text.push(b'\n');
            text.into()
        }
        ResponseFormat::Json => crate::stored::to_bytes(value),
        ResponseFormat::Yaml => {
            serde_saphyr::to_string(value).expect("a JSON tree serialises").into()
        }
        ResponseFormat::Protobuf => return protobuf(&crate::stored::to_bytes(value)),
    })
}

/// Encodes protobuf. Only objects fail that were stored before their kind was validated like today.
fn protobuf(json: &[u8]) -> Result<Bytes, Status> {
    let encoded = kubernetes_protobuf::encode(json);
    encoded.map(Bytes::from).map_err(|error| Status::internal(format!("{error}; request JSON")))
}

/// A response of a Status in JSON.
pub fn status(status: &Status) -> Response<Body> {
    refusal(ResponseFormat::Json, status)
}

/// A response of a Status in the encoding that [`negotiate::refusal`](super::negotiate::refusal)
/// returned, with its `Retry-After`.
pub fn refusal(format: ResponseFormat, status: &Status) -> Response<Body> {
    let code = StatusCode::from_u16(status.code).expect("a Status has an HTTP code");
    let accepted = Accepted { format, transform: Transform::None, pretty: false, gzip: false };
    let mut response = value(code, accepted, &status.to_json());
    let retry = status.details.as_ref().and_then(|details| details.retry_after_seconds);
    if let Some(seconds) = retry {
        response.headers_mut().insert(http::header::RETRY_AFTER, seconds.into());
    }
    response
}

/// Sets `bytes` as the body of the response, in gzip if they are large and `accepts_gzip`.
pub fn set_body(accepts_gzip: bool, response: Response<Body>, bytes: Bytes) -> Response<Body> {
    let (mut parts, _) = response.into_parts();
    if !accepts_gzip || bytes.len() <= GZIP_ABOVE {
        return Response::from_parts(parts, full(bytes));
    }
    let mut encoder = flate2::write::GzEncoder::new(
        Vec::with_capacity(bytes.len() / 6),
        flate2::Compression::fast(),
    );
    let packed = encoder
        .write_all(&bytes)
        .and_then(|()| encoder.finish())
        .expect("writing to memory succeeds");
    parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    parts.headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    Response::from_parts(parts, full(packed))
}
