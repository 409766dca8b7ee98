//! Carries bytes between two connections until both have finished.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};

/// Copies bytes in both directions until both ends have finished. The end of one side is passed on
/// to the other (half-close). Each direction holds one buffer of `buffer_bytes`, so a slow reader
/// slows its writer.
///
/// A side that accepts no more bytes is still read to its end: a server that has sent its whole
/// response and closed refuses the next heartbeat of a slow client, which has most of the response
/// yet to receive.
///
/// # Errors
/// One side cannot be read any more; the bytes read before have been passed on. Close both
/// connections.
pub async fn relay(
    one: impl AsyncRead + AsyncWrite,
    other: impl AsyncRead + AsyncWrite,
    buffer_bytes: usize,
) -> io::Result<()> {
    let (mut from_one, mut to_one) = split(one);
    let (mut from_other, mut to_other) = split(other);
    tokio::try_join!(
        pass(&mut from_one, &mut to_other, buffer_bytes),
        pass(&mut from_other, &mut to_one, buffer_bytes),
    )?;
    Ok(())
}

async fn pass(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    buffer_bytes: usize,
) -> io::Result<()> {
    let mut buffer = vec![0; buffer_bytes];
    loop {
        let read = from.read(&mut buffer).await?;
        let passed_on =
            if read == 0 { to.shutdown().await } else { write(to, &buffer[..read]).await };
        if read == 0 || passed_on.is_err() {
            return Ok(());
        }
    }
}

async fn write(to: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes).await?;
    to.flush().await
}

#[cfg(test)]
mod tests {
    use tokio::io::{DuplexStream, duplex};
    use tokio::task::JoinHandle;

    use super::*;

    const RESPONSE_BYTES: usize = 60_000;

    /// A client with a narrow pipe, a server with a wide one, and the relay between them.
    fn joined() -> (DuplexStream, DuplexStream, JoinHandle<io::Result<()>>) {
        let (client, near) = duplex(16);
        let (far, server) = duplex(2 * RESPONSE_BYTES);
        (client, server, tokio::spawn(relay(near, far, 1000)))
    }

    #[tokio::test]
    async fn a_response_of_a_server_that_has_closed_is_read_to_its_end() {
        let (mut client, mut server, relaying) = joined();
        server.write_all(&[1; RESPONSE_BYTES]).await.unwrap();
        drop(server);
        // The server accepts this no more, and the relay notices before the response is read.
        client.write_all(&[0; 32]).await.unwrap();
        let mut response = Vec::new();
        client.read_to_end(&mut response).await.unwrap();
        assert_eq!(response.len(), RESPONSE_BYTES);
        drop(client);
        relaying.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_client_that_closes_also_closes_the_connection_to_the_server() {
        let (client, mut server, relaying) = joined();
        drop(client);
        let mut rest = Vec::new();
        server.read_to_end(&mut rest).await.unwrap();
        drop(server);
        relaying.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_half_close_leaves_the_other_direction_open() {
        let (mut client, mut server, relaying) = joined();
        client.write_all(b"question").await.unwrap();
        client.shutdown().await.unwrap();
        let mut question = String::new();
        server.read_to_string(&mut question).await.unwrap();
        assert_eq!(question, "question");
        server.write_all(b"a long response that takes its time").await.unwrap();
        drop(server);
        let mut response = String::new();
        client.read_to_string(&mut response).await.unwrap();
        assert_eq!(response, "a long response that takes its time");
        relaying.await.unwrap().unwrap();
    }
}
