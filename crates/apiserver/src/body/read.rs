//! A whole body, within a limit.
//!
//! What is too large is read on for a while, so that the client hears the refusal: a connection that is closed on bytes
//! nobody read is reset, and the answer on its way is lost with it.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;

/// What is read and thrown away after a refusal. Who sends more may miss the reason.
const DISCARDED_SIZE_MAX: usize = 64 * 1024 * 1024;
/// How long that may take.
const DISCARDED_TIME_MAX: Duration = Duration::from_secs(5);

/// Why there is no whole body.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("the body of the request is larger than {size_max} bytes")]
    TooLarge { size_max: usize },
    #[error("cannot read the body of the request: {detail}")]
    Broken { detail: String },
}

/// Reads `body` to its end, at most `size_max` bytes.
///
/// # Errors
/// It is larger, or the connection breaks.
pub async fn read<B>(mut body: B, size_max: usize) -> Result<Bytes, ReadError>
where
    B: Body<Data = Bytes, Error: std::fmt::Display> + Unpin,
{
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| ReadError::Broken { detail: error.to_string() })?;
        let Some(data) = frame.data_ref() else { continue };
        if whole.len() + data.len() > size_max {
            discard(&mut body).await;
            return Err(ReadError::TooLarge { size_max });
        }
        whole.extend_from_slice(data);
    }
    Ok(whole.freeze())
}

/// Throws away the rest of `body`, within limits. Keeps nothing in memory.
async fn discard<B: Body<Data = Bytes> + Unpin>(body: &mut B) {
    let read = async {
        let mut size = 0;
        while let Some(Ok(frame)) = body.frame().await {
            size += frame.data_ref().map_or(0, Bytes::len);
            if size > DISCARDED_SIZE_MAX {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(DISCARDED_TIME_MAX, read).await;
}
