//! Frames on the connection of an agent, and of a server that may be an impostor.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::FutureExt;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tunnel::wire::Wire;

/// Longest response to a frame, as a multiple of the frame's length: that of a client to an empty
/// ping.
const ANSWER_FACTOR: usize = 3;

/// Frames decode to the same data however they are split, produce no more than they contain, and
/// get short responses. Each side decodes what the other encodes. The first byte selects the length
/// of the pieces, and the reading side.
pub fn frames(input: &[u8]) {
    let Some((first, rest)) = input.split_first() else { return };
    let is_server = first & 1 == 0;
    let pieces = usize::from(first >> 1) + 1;
    let read = read(rest, pieces, is_server);
    assert_eq!(read, self::read(rest, 1, is_server));
    assert!(read.got.len() <= rest.len());
    assert!(read.answer.len() <= ANSWER_FACTOR * rest.len());

    let written = write(rest, pieces, is_server);
    assert_eq!(self::read(&written, pieces, !is_server).got, rest);
}

/// The result of reading.
#[derive(Debug, PartialEq, Eq)]
struct Read {
    got: Vec<u8>,
    /// The end of the stream, or the error.
    end: Result<(), io::ErrorKind>,
    answer: Vec<u8>,
}

fn wire(io: &mut Pieces, is_server: bool) -> Wire<&mut Pieces> {
    if is_server { Wire::server(io) } else { Wire::client(io) }
}

fn read(input: &[u8], length: usize, is_server: bool) -> Read {
    let mut io = Pieces { input: input.to_vec(), length, ..Pieces::default() };
    let mut got = Vec::new();
    let mut wire = wire(&mut io, is_server);
    let end = wire.read_to_end(&mut got).now_or_never().expect("everything has come");
    let end = end.map(|_| ()).map_err(|error| error.kind());
    let mut answer = io.output;
    if !is_server {
        // Their masks are random.
        answer.fill(0);
    }
    Read { got, end, answer }
}

fn write(text: &[u8], length: usize, is_server: bool) -> Vec<u8> {
    let mut io = Pieces { length, ..Pieces::default() };
    let mut wire = wire(&mut io, is_server);
    let writing = async {
        for part in text.chunks(length) {
            wire.write_all(part).await?;
        }
        wire.shutdown().await
    };
    writing.now_or_never().expect("everything is taken").expect("nothing is refused");
    io.output
}

/// Returns its input in pieces of a fixed length, and stores what is written.
#[derive(Default)]
struct Pieces {
    input: Vec<u8>,
    at: usize,
    length: usize,
    output: Vec<u8>,
}

impl AsyncRead for Pieces {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let left = &this.input[this.at..];
        let piece = left.len().min(this.length).min(out.remaining());
        out.put_slice(&left[..piece]);
        this.at += piece;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pieces {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let piece = bytes.len().min(self.length);
        self.output.extend_from_slice(&bytes[..piece]);
        Poll::Ready(Ok(piece))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
