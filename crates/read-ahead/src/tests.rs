//! The bytes written to a socket are read from it unchanged, in chunks of any size.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::net::Ipv4Addr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::ReadAhead;

/// A socket that is read ahead, and its other end.
async fn pair() -> (ReadAhead, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let far = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (near, _) = listener.accept().await.unwrap();
    (ReadAhead::new(near), far)
}

#[tokio::test]
async fn all_bytes_arrive_in_order_for_any_size_of_reads() {
    for chunk in [1, 7, 4096, 5000, 300_000] {
        let (mut near, mut far) = pair().await;
        let sent: Vec<u8> = (0..1_000_000_u32).map(|number| (number % 251) as u8).collect();
        let writing = async {
            far.write_all(&sent).await.unwrap();
            far.shutdown().await.unwrap();
        };
        let reading = async {
            let (mut got, mut some) = (Vec::new(), vec![0; chunk]);
            loop {
                match near.read(&mut some).await.unwrap() {
                    0 => return got,
                    read => got.extend_from_slice(&some[..read]),
                }
            }
        };
        let ((), got) = tokio::join!(writing, reading);
        assert!(got == sent, "read by {chunk}");
        assert_eq!(near.unread.capacity(), 0, "held at rest");
    }
}

#[tokio::test]
async fn writes_reach_the_other_end() {
    let (mut near, mut far) = pair().await;
    near.write_all(b"hello").await.unwrap();
    near.shutdown().await.unwrap();
    let mut got = String::new();
    far.read_to_string(&mut got).await.unwrap();
    assert_eq!(got, "hello");
}
