//! Answers: bodies, Status, compression.

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

use super::negotiate::{Accepted, Format, Transform};

/// The body of every answer. It never fails; a broken stream just ends.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Answers above this are compressed when the client takes it.
const GZIP_ABOVE: usize = 128 * 1024;

pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed_unsync()
}

pub fn stream(chunks: impl Stream<Item = Bytes> + Send + 'static) -> Body {
    StreamBody::new(chunks.map(|chunk| Ok(Frame::data(chunk)))).boxed_unsync()
}

/// Another server's answer; where that breaks off, or the right to it ends, this one ends.
pub fn relayed(body: hyper::body::Incoming, revocation: Revocation) -> Body {
    let revoked = Box::pin(async move { revocation.revoked().await });
    let frames = http_body_util::BodyStream::new(body).take_until(revoked);
    let frames = frames.take_while(|frame| std::future::ready(frame.is_ok()));
    StreamBody::new(frames.filter_map(|frame| std::future::ready(frame.ok().map(Ok))))
        .boxed_unsync()
}

pub fn empty() -> Body {
    full(Bytes::new())
}

/// A plain-text answer, for paths that are no resource.
pub fn text(code: StatusCode, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(full(body));
    *response.status_mut() = code;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

pub fn not_found() -> Response<Body> {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

/// JSON bytes that are ready to go.
pub fn json_bytes(code: StatusCode, bytes: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(full(bytes));
    *response.status_mut() = code;
    mark(response.headers_mut(), Format::Json.media_type());
    response
}

pub fn mark(headers: &mut HeaderMap, content_type: &'static str) {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
}

/// A tree in the wanted format.
pub fn value(code: StatusCode, accepted: Accepted, value: &Value) -> Response<Body> {
    answer(code, accepted, encode(accepted, value))
}

/// JSON bytes in the wanted format; passes them on untouched when that is plain JSON.
pub fn bytes(code: StatusCode, accepted: Accepted, json: Bytes) -> Response<Body> {
    answer(code, accepted, form(accepted, json))
}

fn answer(code: StatusCode, accepted: Accepted, bytes: Result<Bytes, Status>) -> Response<Body> {
    match bytes {
        Ok(bytes) => {
            let mut response = Response::new(empty());
            *response.status_mut() = code;
            mark(response.headers_mut(), accepted.format.media_type());
            maybe_gzip(accepted.gzip, response, bytes)
        }
        Err(refused) => status(&refused),
    }
}

/// JSON bytes in another form.
fn form(accepted: Accepted, json: Bytes) -> Result<Bytes, Status> {
    match accepted.format {
        Format::Json if !accepted.pretty => Ok(json),
        Format::Protobuf => protobuf(&json),
        Format::Json | Format::Yaml => {
            let tree: Value = serde_json::from_slice(&json).expect("our own JSON parses");
            encode(accepted, &tree)
        }
    }
}

fn encode(accepted: Accepted, value: &Value) -> Result<Bytes, Status> {
    Ok(match accepted.format {
        Format::Json if accepted.pretty => {
            let mut text = serde_json::to_vec_pretty(value).expect("a JSON tree serialises");
            text.push(b'\n');
            text.into()
        }
        Format::Json => crate::stored::to_bytes(value),
        Format::Yaml => serde_saphyr::to_string(value).expect("a JSON tree serialises").into(),
        Format::Protobuf => return protobuf(&crate::stored::to_bytes(value)),
    })
}

/// An object that cannot be encoded was stored before its kind was checked as it is now.
fn protobuf(json: &[u8]) -> Result<Bytes, Status> {
    let encoded = kubernetes_protobuf::encode(json);
    encoded.map(Bytes::from).map_err(|error| Status::internal(format!("{error}; ask for JSON")))
}

pub fn status(status: &Status) -> Response<Body> {
    refusal(Format::Json, status)
}

/// A Status in the form that [`negotiate::refusal`](super::negotiate::refusal) picked.
pub fn refusal(format: Format, status: &Status) -> Response<Body> {
    let code = StatusCode::from_u16(status.code).expect("a Status has an HTTP code");
    let accepted = Accepted { format, transform: Transform::None, pretty: false, gzip: false };
    let mut response = value(code, accepted, &status.to_json());
    let retry = status.details.as_ref().and_then(|details| details.retry_after_seconds);
    if let Some(seconds) = retry {
        response.headers_mut().insert(http::header::RETRY_AFTER, seconds.into());
    }
    response
}

/// Puts `bytes` into the answer, compressed when they are large and the client takes that.
pub fn maybe_gzip(takes_gzip: bool, response: Response<Body>, bytes: Bytes) -> Response<Body> {
    let (mut parts, _) = response.into_parts();
    if !takes_gzip || bytes.len() <= GZIP_ABOVE {
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
