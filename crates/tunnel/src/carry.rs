//! Carries bytes between a stream of a session and what the agent has connected to.
//!
//! As [`crate::relay`], without a copy between the two: what is read from one is what is sent to the other.

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};

use crate::Io;
use crate::limits::{STREAM_IDLE_MAX, TARGET_READ_MAX_BYTES, TARGET_READ_MIN_BYTES};
use crate::stream::{Moved, Stream, StreamReader, StreamWriter};

/// Until both ends are through, one breaks, or nothing moves any more.
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

/// Errors only when the stream cannot be read any more.
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
    // A target that is gone needs no goodbye.
    let _ = to.shutdown().await;
    Ok(())
}

/// Errors only when the target cannot be read any more.
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
        // Streams at rest hold little, and those with much to carry take much at a time.
        read_max = (2 * read).clamp(TARGET_READ_MIN_BYTES, TARGET_READ_MAX_BYTES);
        if to.send(buffer.split().freeze()).await.is_err() {
            return Ok(());
        }
    }
}

/// Returns when `moved` has stood still for `limit`, give or take as much again.
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
