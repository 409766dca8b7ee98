//! The framing against the library's, and frames that no peer may send.

use std::time::Duration;

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::Wire;

const PIPE_BYTES: usize = 1 << 20;
const SILENCE: Duration = Duration::from_secs(1);

fn filling(length: usize) -> Vec<u8> {
    (0..length).map(|number| (number % 251) as u8).collect()
}

/// Both sides of [`Wire`], one of which writes by `sizes`.
async fn carried(sizes: &[usize], pipe_bytes: usize, from_client: bool) -> bool {
    let (near, far) = duplex(pipe_bytes);
    let (client, server) = (Wire::client(near), Wire::server(far));
    let (mut writer, mut reader) = if from_client { (client, server) } else { (server, client) };
    let sent: Vec<Vec<u8>> = sizes.iter().map(|size| filling(*size)).collect();
    let expected = sent.concat();
    let writing = tokio::spawn(async move {
        for part in &sent {
            writer.write_all(part).await.unwrap();
        }
        writer.shutdown().await.unwrap();
        writer
    });
    let mut got = Vec::new();
    reader.read_to_end(&mut got).await.unwrap();
    writing.await.unwrap();
    got == expected
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bytes_arrive_as_they_were_sent(
        sizes in prop::collection::vec(0_usize..200_000, 1..6),
        pipe_bytes in 1_usize..100_000,
        from_client: bool,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        // A pipe of a few bytes would take too long with these sizes.
        let pipe_bytes = pipe_bytes.max(64);
        prop_assert!(runtime.block_on(carried(&sizes, pipe_bytes, from_client)));
    }

    #[test]
    fn garbage_ends_the_wire_or_is_waited_for(garbage in prop::collection::vec(any::<u8>(), 0..300)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (near, mut far) = duplex(PIPE_BYTES);
            far.write_all(&garbage).await.unwrap();
            drop(far);
            let mut got = Vec::new();
            // It ends, with or without an error.
            let _ = Wire::server(near).read_to_end(&mut got).await;
            assert!(got.len() <= garbage.len());
        });
    }
}

/// A [`Wire`] as a server, and a client of the library.
async fn with_peer(pipe_bytes: usize) -> (Wire<DuplexStream>, WebSocketStream<DuplexStream>) {
    let (near, far) = duplex(pipe_bytes);
    (Wire::server(near), WebSocketStream::from_raw_socket(far, Role::Client, None).await)
}

#[tokio::test]
async fn a_client_of_the_library_is_understood_and_understands() {
    for length in [1, 125, 126, 65_535, 65_536, 200_000] {
        let (mut wire, mut peer) = with_peer(PIPE_BYTES).await;
        peer.send(Message::Binary(filling(length).into())).await.unwrap();
        let mut got = vec![0; length];
        wire.read_exact(&mut got).await.unwrap();
        assert_eq!(got, filling(length));
        wire.write_all(&got).await.unwrap();
        wire.flush().await.unwrap();
        let mut back = Vec::new();
        while back.len() < length {
            let message = peer.next().await.unwrap().unwrap();
            back.extend_from_slice(&message.into_data());
        }
        assert_eq!(back, got);
    }
}

#[tokio::test]
async fn a_server_of_the_library_is_understood_and_understands() {
    let (near, far) = duplex(PIPE_BYTES);
    let mut wire = Wire::client(near);
    let mut peer = WebSocketStream::from_raw_socket(far, Role::Server, None).await;
    wire.write_all(&filling(100_000)).await.unwrap();
    wire.flush().await.unwrap();
    let mut got = Vec::new();
    while got.len() < 100_000 {
        got.extend_from_slice(&peer.next().await.unwrap().unwrap().into_data());
    }
    assert_eq!(got, filling(100_000));
    peer.send(Message::Ping(Bytes::from_static(b"lb"))).await.unwrap();
    peer.send(Message::Binary(Bytes::from_static(b"x"))).await.unwrap();
    assert_eq!(wire.read_u8().await.unwrap(), b'x');
    assert_eq!(peer.next().await.unwrap().unwrap(), Message::Pong(Bytes::from_static(b"lb")));
}

#[tokio::test]
async fn a_close_gets_a_reply_and_is_the_end() {
    let (mut wire, mut peer) = with_peer(PIPE_BYTES).await;
    peer.close(None).await.unwrap();
    assert_eq!(wire.read(&mut [0; 8]).await.unwrap(), 0);
    assert!(matches!(peer.next().await, Some(Ok(Message::Close(_)))));
    let error = wire.write_all(b"late").await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn a_connection_that_breaks_off_is_no_end() {
    let (near, far) = duplex(PIPE_BYTES);
    drop(far);
    let error = Wire::server(near).read_u8().await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn frames_that_no_peer_may_send_end_the_wire() {
    let frames: [(&str, &[u8]); 9] = [
        ("reserved bits", &[0xc2, 0x80, 0, 0, 0, 0]),
        ("an unknown kind", &[0x83, 0x80, 0, 0, 0, 0]),
        ("a text", &[0x81, 0x80, 0, 0, 0, 0]),
        ("no mask", &[0x82, 0x01, 0]),
        ("a ping in parts", &[0x09, 0x80, 0, 0, 0, 0]),
        ("a long ping", &[0x89, 0xfe, 0, 126, 0, 0, 0, 0]),
        ("a part of nothing", &[0x80, 0x80, 0, 0, 0, 0]),
        ("a message inside another", &[0x02, 0x80, 0, 0, 0, 0, 0x82, 0x80, 0, 0, 0, 0]),
        ("a giant", &[0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]),
    ];
    for (what, frame) in frames {
        let (near, mut far) = duplex(PIPE_BYTES);
        far.write_all(frame).await.unwrap();
        let error = Wire::server(near).read_u8().await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData, "{what}");
    }
    let (near, mut far) = duplex(PIPE_BYTES);
    far.write_all(&[0x82, 0x81, 0, 0, 0, 0, 0]).await.unwrap();
    assert!(Wire::client(near).read_u8().await.is_err(), "a server that masks");
}

#[tokio::test(start_paused = true)]
async fn pings_of_a_peer_that_does_not_read_fill_no_memory() {
    let (near, mut far) = duplex(64);
    let mut wire = Wire::server(near);
    let flood = tokio::spawn(async move {
        let ping = [[0x89, 0xfd, 0, 0, 0, 0].as_slice(), &[0; 125]].concat();
        for _ in 0..10_000 {
            far.write_all(&ping).await.unwrap();
        }
        far
    });
    let read = tokio::time::timeout(SILENCE, wire.read_u8()).await;
    assert!(read.is_err(), "pings are no data");
    assert!(flood.is_finished());
    assert!(wire.outgoing.len() < 2 * super::PONGS_MAX_BYTES, "{}", wire.outgoing.len());
}
