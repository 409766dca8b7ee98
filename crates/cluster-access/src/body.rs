//! The body of requests and responses: a stream of bytes that is never collected here.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};

/// Any error, as bodies carry it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A stream of bytes, with trailers.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// A body without bytes.
pub fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// A body of these bytes.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// Converts any body. Nothing is read yet.
pub fn wrap<B>(body: B) -> Body
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    body.map_err(Into::into).boxed_unsync()
}
