//! Frames of a client, and the responses.

use flate2::{Compress, Compression, FlushCompress};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc;

use super::dictionary::dictionary;
use super::headers::{HeaderReader, HeaderWriter};
use super::*;

/// The checksum of the dictionary in zlib's header: SPDY/3 has this one.
const DICTIONARY_CHECKSUM: u32 = 0xe3c6_a7c2;

struct ClientSide {
    io: DuplexStream,
    zlib: Compress,
}

impl ClientSide {
    fn start() -> (Self, mpsc::Receiver<Stream>) {
        let (io, far) = tokio::io::duplex(1 << 20);
        let (opened, streams) = mpsc::channel(1);
        tokio::spawn(serve(far, opened));
        let mut zlib = Compress::new(Compression::best(), true);
        assert_eq!(zlib.set_dictionary(&dictionary()).unwrap(), DICTIONARY_CHECKSUM);
        (Self { io, zlib }, streams)
    }

    async fn open(&mut self, id: u32, headers: &[(&str, &str)]) {
        let mut plain = u32::try_from(headers.len()).unwrap().to_be_bytes().to_vec();
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            plain.extend(u32::try_from(text.len()).unwrap().to_be_bytes());
            plain.extend(text.as_bytes());
        }
        let mut block = Vec::with_capacity(4096);
        self.zlib.compress_vec(&plain, &mut block, FlushCompress::Sync).unwrap();
        let fixed = [&id.to_be_bytes()[..], &[0; 4], &[0; 2]].concat();
        self.io.write_all(&control(SYN_STREAM, &[fixed, block].concat())).await.unwrap();
    }

    /// The next frame: its first word, its flags and its payload.
    async fn frame(&mut self) -> (u32, u8, Vec<u8>) {
        let first = self.io.read_u32().await.unwrap();
        let second = self.io.read_u32().await.unwrap();
        let mut payload = vec![0; usize::try_from(second & 0x00ff_ffff).unwrap()];
        self.io.read_exact(&mut payload).await.unwrap();
        (first, u8::try_from(second >> 24).unwrap(), payload)
    }
}

#[tokio::test]
async fn streams_carry_data_both_ways_and_each_side_ends_its_own() {
    let (mut client, mut streams) = ClientSide::start();
    let mut replies = HeaderReader::new();
    for (id, port) in [(1, "80"), (3, "8080")] {
        client.open(id, &[("streamtype", "data"), ("Port", port)]).await;
        let mut stream = streams.recv().await.unwrap();
        assert_eq!((stream.header("streamtype"), stream.header("port")), ("data", port));
        assert_eq!(stream.header("requestid"), "");
        let (first, _, reply) = client.frame().await;
        assert_eq!(first, CONTROL | VERSION << 16 | SYN_REPLY);
        assert_eq!(reply[..4], u32::to_be_bytes(id));
        assert!(replies.read(&reply[4..]).unwrap().is_empty());

        let long = vec![b'x'; PIECE_SIZE_MAX + 1];
        client.io.write_all(&encode_frame(id, FLAG_FIN, &long)).await.unwrap();
        let mut arrived = Vec::new();
        while let Some(piece) = stream.incoming.recv().await {
            arrived.extend(piece);
        }
        assert_eq!(arrived, long);
        stream.outgoing.write(Bytes::from_static(b"answer")).await.unwrap();
        stream.outgoing.finish().await;
        assert_eq!(client.frame().await, (id, 0, b"answer".to_vec()));
        assert_eq!(client.frame().await, (id, FLAG_FIN, Vec::new()));
    }
}

#[tokio::test]
async fn pings_return_and_data_of_an_unread_stream_is_dropped() {
    let (mut client, mut streams) = ClientSide::start();
    client.open(1, &[("streamtype", "resize")]).await;
    drop(streams.recv().await.unwrap().incoming);
    client.frame().await;
    for _ in 0..PIECES_WAITING_MAX * 4 {
        client.io.write_all(&encode_frame(1, 0, b"{}")).await.unwrap();
    }
    client.io.write_all(&control(PING, &7u32.to_be_bytes())).await.unwrap();
    let pong = (CONTROL | VERSION << 16 | PING, 0, 7u32.to_be_bytes().to_vec());
    assert_eq!(client.frame().await, pong);
}

#[test]
fn headers_that_are_no_headers_end_the_connection_with_a_reason() {
    let read = |block: &[u8]| HeaderReader::new().read(block).unwrap_err().to_string();
    assert!(read(b"not zlib at all").contains("cannot be decompressed"));
    let mut zlib = Compress::new(Compression::fast(), true);
    let mut compressed = |plain: &[u8]| {
        let mut block = Vec::with_capacity(plain.len() + 4096);
        zlib.compress_vec(plain, &mut block, FlushCompress::Sync).unwrap();
        zlib.reset();
        block
    };
    assert!(read(&compressed(&[0, 0, 0, 1, 0, 0, 0, 9])).contains("end within a name"));
    assert!(read(&compressed(&[0; 3])).contains("end within a number"));
    assert!(read(&compressed(&vec![b'x'; 1 << 20])).contains("longer than"));
    // Blocks without the dictionary are valid too.
    assert!(HeaderReader::new().read(&compressed(&[0; 4])).unwrap().is_empty());
    assert!(HeaderReader::new().read(&HeaderWriter::new().empty_block()).unwrap().is_empty());
}
