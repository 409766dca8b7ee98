//! SPDY/3.1 as clients of Kubernetes use it: one connection with many streams, all opened by the
//! client. Like in kubectl's implementation, streams have no flow control; a stream that is not
//! read blocks the connection.
//!
//! Source: "SPDY Protocol - Draft 3.1".

mod dictionary;
mod headers;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use anyhow::{Context, ensure};
use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use self::headers::{HeaderReader, HeaderWriter, Headers};

/// Most streams that are open at once on a connection.
pub const STREAMS_MAX: usize = 1000;
/// Longest control frame, compressed.
const CONTROL_SIZE_MAX: usize = 64 * 1024;
/// Data is read and sent in pieces of at most this size.
pub const PIECE_SIZE_MAX: usize = 32 * 1024;
/// Buffered pieces of a stream, and of the connection.
const PIECES_WAITING_MAX: usize = 4;

const CONTROL: u32 = 1 << 31;
const VERSION: u32 = 3;
const SYN_STREAM: u32 = 1;
const SYN_REPLY: u32 = 2;
const RST_STREAM: u32 = 3;
const PING: u32 = 6;
const HEADERS: u32 = 8;
const FLAG_FIN: u8 = 1;
/// Status of a reset: the stream is refused.
const REFUSED_STREAM: u32 = 3;

/// A stream that the client opened.
pub struct Stream {
    headers: Headers,
    /// Data from the client; closed when it has sent all.
    pub incoming: mpsc::Receiver<Bytes>,
    pub outgoing: StreamWriter,
}

impl Stream {
    /// The value of a header; empty when there is none.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }
}

/// The server's half of a stream.
pub struct StreamWriter {
    id: u32,
    frames: mpsc::Sender<Frame>,
}

/// The client has disconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientDisconnected;

impl StreamWriter {
    /// Sends data, in order.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn write(&self, mut data: Bytes) -> Result<(), ClientDisconnected> {
        while !data.is_empty() {
            let piece = data.split_to(data.len().min(PIECE_SIZE_MAX));
            self.send(Frame::Data { id: self.id, flags: 0, data: piece }).await?;
        }
        Ok(())
    }

    /// Ends the stream to the client.
    pub async fn finish(self) {
        let end = Frame::Data { id: self.id, flags: FLAG_FIN, data: Bytes::new() };
        // A client that has disconnected needs no end of the stream.
        let _ = self.send(end).await;
    }

    async fn send(&self, frame: Frame) -> Result<(), ClientDisconnected> {
        self.frames.send(frame).await.map_err(|_| ClientDisconnected)
    }
}

/// A frame that the server sends.
enum Frame {
    Data { id: u32, flags: u8, data: Bytes },
    Reply { id: u32 },
    Reset { id: u32 },
    Pong { id: u32 },
}

/// Serves SPDY on `io` until the client disconnects; new streams are sent to `opened`.
///
/// # Errors
/// The client violates the protocol, or the connection broke.
pub async fn serve(
    io: impl AsyncRead + AsyncWrite,
    opened: mpsc::Sender<Stream>,
) -> anyhow::Result<()> {
    let (read, write) = tokio::io::split(io);
    let (frames, to_send) = mpsc::channel(PIECES_WAITING_MAX);
    let reader = FrameReader { read, frames, opened, streams: HashMap::new() };
    tokio::select! {
        read = reader.run() => read,
        written = send_all(write, to_send) => written,
    }
}

async fn send_all(
    mut write: impl AsyncWrite + Unpin,
    mut frames: mpsc::Receiver<Frame>,
) -> anyhow::Result<()> {
    let mut headers = HeaderWriter::new();
    while let Some(frame) = frames.recv().await {
        write.write_all(&encode(frame, &mut headers)).await?;
        write.flush().await?;
    }
    Ok(())
}

fn encode(frame: Frame, headers: &mut HeaderWriter) -> Vec<u8> {
    match frame {
        Frame::Data { id, flags, data } => encode_frame(id, flags, &data),
        Frame::Reply { id } => {
            control(SYN_REPLY, &[&id.to_be_bytes(), headers.empty_block().as_slice()].concat())
        }
        Frame::Reset { id } => {
            control(RST_STREAM, &[id.to_be_bytes(), REFUSED_STREAM.to_be_bytes()].concat())
        }
        Frame::Pong { id } => control(PING, &id.to_be_bytes()),
    }
}

fn control(kind: u32, payload: &[u8]) -> Vec<u8> {
    encode_frame(CONTROL | VERSION << 16 | kind, 0, payload)
}

fn encode_frame(first: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("frames are sent in pieces");
    let mut bytes = Vec::with_capacity(8 + payload.len());
    bytes.extend(first.to_be_bytes());
    bytes.extend((u32::from(flags) << 24 | length).to_be_bytes());
    bytes.extend(payload);
    bytes
}

struct FrameReader<R> {
    read: R,
    frames: mpsc::Sender<Frame>,
    opened: mpsc::Sender<Stream>,
    /// Receivers of the data of open streams, by stream id.
    streams: HashMap<u32, mpsc::Sender<Bytes>>,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// Returns when the client has closed the connection.
    async fn run(mut self) -> anyhow::Result<()> {
        let mut headers = HeaderReader::new();
        loop {
            let first = match self.read.read_u32().await {
                Ok(first) => first,
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let second = self.read.read_u32().await?;
            let flags = u8::try_from(second >> 24).expect("8 bits are a byte");
            let length = usize::try_from(second & 0x00ff_ffff)?;
            if first & CONTROL == 0 {
                self.data(first, flags, length).await?;
            } else {
                self.control(first & 0xffff, flags, length, &mut headers).await?;
            }
        }
    }

    async fn data(&mut self, id: u32, flags: u8, mut length: usize) -> anyhow::Result<()> {
        while length > 0 {
            let mut piece = BytesMut::zeroed(length.min(PIECE_SIZE_MAX));
            self.read.read_exact(&mut piece).await?;
            length -= piece.len();
            if let Some(stream) = self.streams.get(&id) {
                // The reader may have dropped the stream.
                let _ = stream.send(piece.freeze()).await;
            }
        }
        if flags & FLAG_FIN != 0 {
            self.streams.remove(&id);
        }
        Ok(())
    }

    async fn control(
        &mut self,
        kind: u32,
        flags: u8,
        length: usize,
        headers: &mut HeaderReader,
    ) -> anyhow::Result<()> {
        ensure!(length <= CONTROL_SIZE_MAX, "a frame of {length} bytes is too long");
        let mut payload = vec![0; length];
        self.read.read_exact(&mut payload).await?;
        let mut payload = payload.as_slice();
        let mut number =
            || payload.try_get_u32().context("a frame ends within a number").map(|n| n & !CONTROL);
        match kind {
            SYN_STREAM => {
                let (id, _associated) = (number()?, number()?);
                let block = payload.get(2..).context("a stream without a priority")?;
                let headers = headers.read(block)?;
                self.open(id, flags, headers).await;
            }
            // Must be read: the compression state spans all frames.
            SYN_REPLY | HEADERS => {
                number()?;
                headers.read(payload)?;
            }
            RST_STREAM => drop(self.streams.remove(&number()?)),
            PING => {
                let _ = self.frames.send(Frame::Pong { id: number()? }).await;
            }
            // SETTINGS, WINDOW_UPDATE, and GOAWAY, after which the connection is closed.
            _ => {}
        }
        Ok(())
    }

    async fn open(&mut self, id: u32, flags: u8, headers: Headers) {
        if self.streams.len() >= STREAMS_MAX {
            let _ = self.frames.send(Frame::Reset { id }).await;
            return;
        }
        let (data, incoming) = mpsc::channel(PIECES_WAITING_MAX);
        if flags & FLAG_FIN == 0 {
            self.streams.insert(id, data);
        }
        let _ = self.frames.send(Frame::Reply { id }).await;
        let outgoing = StreamWriter { id, frames: self.frames.clone() };
        let _ = self.opened.send(Stream { headers, incoming, outgoing }).await;
    }
}
