//! Reads on past a refusal, so that the client hears it: a connection that is closed on bytes nobody read is reset, and
//! the answer on its way is lost with it.

use std::time::Duration;

use http_body::Body;
use http_body_util::BodyExt;

/// What is read and thrown away after a refusal. Who sends more may miss the reason.
const DISCARDED_SIZE_MAX: usize = 64 * 1024 * 1024;
/// How long that may take.
const DISCARDED_TIME_MAX: Duration = Duration::from_secs(5);

/// Throws away the rest of `body`, within limits. Keeps nothing in memory.
pub async fn discard<B: Body + Unpin>(body: &mut B)
where
    B::Data: bytes::Buf,
{
    let read = async {
        let mut size = 0;
        while let Some(Ok(frame)) = body.frame().await {
            size += frame.data_ref().map_or(0, bytes::Buf::remaining);
            if size > DISCARDED_SIZE_MAX {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(DISCARDED_TIME_MAX, read).await;
}
