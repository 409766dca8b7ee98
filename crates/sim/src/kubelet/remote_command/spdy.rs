//! A command's streams as streams of SPDY, identified by the header `streamtype`.

use anyhow::{Context, bail};
use apiserver::connect::Switched;
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::{
    CLOSE_TIME_MAX, PIECES_WAITING_MAX, Run, SETUP_TIME_MAX, Streams, await_upgrade, exit_status,
};
use crate::kubelet::console::{Console, Output};
use crate::kubelet::spdy::{self, Stream, StreamWriter};

/// The streams that the client opened; each is optional.
#[derive(Default)]
struct Opened {
    error: Option<Stream>,
    stdin: Option<Stream>,
    stdout: Option<Stream>,
    stderr: Option<Stream>,
    resize: Option<Stream>,
}

/// Runs a command over the upgraded connection, until it or the client ends.
///
/// # Errors
/// The connection breaks, or the client does not open its streams in time.
pub async fn run(mut switched: Switched, streams: Streams, run: Run) -> anyhow::Result<()> {
    let io = await_upgrade(&mut switched).await?;
    let (opened, arriving) = mpsc::channel(1);
    let mut connection = Box::pin(spdy::serve(io, opened));
    tokio::select! {
        ended = &mut connection => return ended,
        done = serve(arriving, streams, run) => done?,
        () = switched.cut() => return Ok(()),
    }
    // The last frames are in transit; the client closes when it has received them.
    let _ = timeout(CLOSE_TIME_MAX, connection).await;
    Ok(())
}

async fn serve(
    mut arriving: mpsc::Receiver<Stream>,
    streams: Streams,
    run: Run,
) -> anyhow::Result<()> {
    let opened = timeout(SETUP_TIME_MAX, collect(&mut arriving, streams)).await;
    let opened = opened.context("the client did not open all of its streams")??;
    let (output, mut written) = mpsc::channel(PIECES_WAITING_MAX);
    let input = opened.stdin.map(|stream| stream.incoming);
    // The size of the terminal is ignored.
    drop(opened.resize);
    let process = run(Console::new(input, output, streams.tty));
    let stdout = opened.stdout.map(|stream| stream.outgoing);
    let stderr = opened.stderr.map(|stream| stream.outgoing);
    let forward = async {
        while let Some(piece) = written.recv().await {
            if send(piece, stdout.as_ref(), stderr.as_ref()).await.is_err() {
                written.close();
            }
        }
        for stream in [stdout, stderr].into_iter().flatten() {
            stream.finish().await;
        }
    };
    let (code, ()) = tokio::join!(process, forward);
    if let (Some(error), Ok(code)) = (opened.error, code) {
        let _ = error.outgoing.write(exit_status(code).to_string().into()).await;
        error.outgoing.finish().await;
    }
    Ok(())
}

async fn send(
    piece: Output,
    stdout: Option<&StreamWriter>,
    stderr: Option<&StreamWriter>,
) -> Result<(), spdy::ClientDisconnected> {
    let (stream, bytes): (_, Bytes) = match piece {
        Output::Standard(bytes) => (stdout, bytes),
        Output::Errors(bytes) => (stderr, bytes),
    };
    match stream {
        Some(stream) => stream.write(bytes).await,
        None => Ok(()),
    }
}

/// Waits for the streams that the request announced.
async fn collect(
    arriving: &mut mpsc::Receiver<Stream>,
    streams: Streams,
) -> anyhow::Result<Opened> {
    let Streams { stdin, stdout, stderr, tty } = streams;
    let mut missing = 1 + [stdin, stdout, stderr, tty].into_iter().filter(|one| *one).count();
    let mut opened = Opened::default();
    while missing > 0 {
        let stream = arriving.recv().await.context("the client has disconnected")?;
        let slot = match stream.header("streamtype") {
            "error" => &mut opened.error,
            "stdin" => &mut opened.stdin,
            "stdout" => &mut opened.stdout,
            "stderr" => &mut opened.stderr,
            "resize" => &mut opened.resize,
            other => bail!("a stream of the unknown type \"{other}\""),
        };
        if slot.replace(stream).is_none() {
            missing -= 1;
        }
    }
    Ok(opened)
}
