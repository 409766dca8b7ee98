//! The body of a request before a handler reads it.

use api_meta::status::Status;
use bytes::Bytes;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;

use super::BoxError;
use super::decode::BODY_SIZE_MAX;
use super::read::{ReadError, Sender, read};

/// A request body that was not read yet.
pub struct RequestBody {
    body: UnsyncBoxBody<Bytes, BoxError>,
    sender: Sender,
}

impl RequestBody {
    /// Wraps a body. `sender` decides about its limits.
    pub fn new<B>(body: B, sender: Sender) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self { body: body.map_err(boxed).boxed_unsync(), sender }
    }

    /// Reads the whole body.
    ///
    /// # Errors
    /// 413 for a body above [`BODY_SIZE_MAX`], 408 for a slow one, 503 above the budget, 400 when
    /// the connection breaks.
    pub async fn read(self) -> Result<Bytes, Status> {
        read(self.body, BODY_SIZE_MAX, self.sender).await.map_err(|error| match error {
            ReadError::TooLarge { size_max } => {
                Status::too_large(format!("Request entity too large: limit is {size_max}"))
            }
            other => other.to_status(),
        })
    }

    /// The unread stream of the body, which is forwarded to another server.
    pub fn into_inner(self) -> UnsyncBoxBody<Bytes, BoxError> {
        self.body
    }
}

/// A function, because a closure would not be general enough over lifetimes.
fn boxed<E: Into<BoxError>>(error: E) -> BoxError {
    error.into()
}
