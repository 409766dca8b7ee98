//! Carries bytes between two connections until both are through.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};

/// Both ways until both ends are through. A side that ends is told to the other (half-close), and each direction
/// holds one buffer of `buffer_bytes`, so that a slow reader slows its writer.
///
/// A side that takes nothing more is still read to its end: a server that has said all and closed refuses the next
/// heartbeat of a slow client, to whom most of the answer is yet to come.
///
/// # Errors
/// A side that cannot be read any more; what was read of it has been passed on.
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

    const ANSWER_BYTES: usize = 60_000;

    /// A client with a narrow pipe, a server with a wide one, and the relay between them.
    fn joined() -> (DuplexStream, DuplexStream, JoinHandle<io::Result<()>>) {
        let (client, near) = duplex(16);
        let (far, server) = duplex(2 * ANSWER_BYTES);
        (client, server, tokio::spawn(relay(near, far, 1000)))
    }

    #[tokio::test]
    async fn a_server_that_said_all_and_went_is_heard_to_the_end() {
        let (mut client, mut server, relaying) = joined();
        server.write_all(&[1; ANSWER_BYTES]).await.unwrap();
        drop(server);
        // Nobody takes this any more, and the relay knows before the answer is read.
        client.write_all(&[0; 32]).await.unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer.len(), ANSWER_BYTES);
        drop(client);
        relaying.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_client_that_goes_takes_the_connection_to_the_server_along() {
        let (client, mut server, relaying) = joined();
        drop(client);
        let mut rest = Vec::new();
        server.read_to_end(&mut rest).await.unwrap();
        drop(server);
        relaying.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_half_close_leaves_the_way_back_open() {
        let (mut client, mut server, relaying) = joined();
        client.write_all(b"question").await.unwrap();
        client.shutdown().await.unwrap();
        let mut question = String::new();
        server.read_to_string(&mut question).await.unwrap();
        assert_eq!(question, "question");
        server.write_all(b"a long answer that takes its time").await.unwrap();
        drop(server);
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "a long answer that takes its time");
        relaying.await.unwrap().unwrap();
    }
}
