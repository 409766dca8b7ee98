//! Carries bytes between a stream of a session and the address that the agent has connected to.
//!
//! Like [`crate::relay`], without a copy in between: the buffers that are read from one side are
//! sent to the other.

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};

use crate::Io;
use crate::limits::{STREAM_IDLE_MAX, TARGET_READ_MAX_BYTES, TARGET_READ_MIN_BYTES};
use crate::stream::{Moved, Stream, StreamReader, StreamWriter};

/// Returns when both ends have finished, one has failed, or no byte has moved for
/// [`STREAM_IDLE_MAX`].
pub(crate) async fn carry(stream: Stream, target: Box<dyn Io>) {
    let (mut from_stream, mut to_stream) = stream.into_split();
    let (mut from_target, mut to_target) = split(target);
    let moved = from_stream.moved();
    let both = async {
        tokio::try_join!(
            to_target_from(&mut from_stream, &mut to_target),
            to_stream_from(&mut from_target, &mut to_stream),
        )
    };
    tokio::select! {
        _ = both => {}
        () = idle(&moved, STREAM_IDLE_MAX) => tracing::debug!("closed a stream without traffic"),
    }
}

/// Fails only when the stream cannot be read any more.
async fn to_target_from(
    from: &mut StreamReader,
    to: &mut (impl AsyncWrite + Unpin),
) -> io::Result<()> {
    while let Some(chunk) = from.chunk().await? {
        if to.write_all(&chunk).await.is_err() {
            return Ok(());
        }
        from.release(chunk.len())?;
    }
    // A target that is closed already needs no shutdown.
    let _ = to.shutdown().await;
    Ok(())
}

/// Fails only when the target cannot be read any more.
async fn to_stream_from(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut StreamWriter,
) -> io::Result<()> {
    let mut buffer = BytesMut::new();
    let mut read_max = TARGET_READ_MIN_BYTES;
    loop {
        buffer.reserve(read_max);
        let read = from.read_buf(&mut buffer).await?;
        if read == 0 {
            let _ = to.shut_down();
            return Ok(());
        }
        // Idle streams hold a small buffer, busy ones a large one.
        read_max = (2 * read).clamp(TARGET_READ_MIN_BYTES, TARGET_READ_MAX_BYTES);
        if to.send(buffer.split().freeze()).await.is_err() {
            return Ok(());
        }
    }
}

/// Returns when `moved` has not changed for `limit`, at the latest after twice that time.
async fn idle(moved: &Moved, limit: Duration) {
    let mut before = moved.get();
    loop {
        tokio::time::sleep(limit).await;
        let now = moved.get();
        if now == before {
            return;
        }
        before = now;
    }
}
