//! A network between this process and a member, which can be cut.

use std::net::Ipv4Addr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch::{Receiver, Sender};
use tokio::task::JoinHandle;

/// What the network does with bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    Whole,
    /// Requests arrive, responses do not.
    ResponsesLost,
    /// Nothing arrives, and no end is notified.
    Cut,
}

/// Passes connections on to a member.
pub struct Relay {
    pub port: u16,
    line: Sender<Line>,
    accepting: JoinHandle<()>,
}

impl Relay {
    pub async fn to(member: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let line = Sender::new(Line::Whole);
        let changes = line.subscribe();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, member, changes.clone()));
            }
        });
        Self { port, line, accepting }
    }

    /// Connections that have lost bytes end when the line is whole again.
    pub fn set(&self, line: Line) {
        self.line.send_replace(line);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn pass(client: TcpStream, member: u16, line: Receiver<Line>) {
    // While the line is cut, a connection is accepted, but carries nothing.
    let member = match TcpStream::connect((Ipv4Addr::LOCALHOST, member)).await {
        Ok(member) => member,
        Err(_) => return,
    };
    let (from_client, to_client) = client.into_split();
    let (from_member, to_member) = member.into_split();
    // The direction that ends first ends both.
    tokio::select! {
        () = copy(from_client, to_member, line.clone(), &[Line::Cut]) => {}
        () = copy(from_member, to_client, line, &[Line::Cut, Line::ResponsesLost]) => {}
    }
}

/// Copies until the end, or until bytes were lost and the line is whole again.
async fn copy(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut line: Receiver<Line>,
    lossy: &[Line],
) {
    let mut lost = false;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let now = *line.borrow_and_update();
        if lost && now == Line::Whole {
            return;
        }
        tokio::select! {
            read = from.read(&mut buffer) => match read {
                Ok(read) if read > 0 => {
                    if lost || lossy.contains(&now) {
                        lost = true;
                    } else if to.write_all(&buffer[..read]).await.is_err() {
                        return;
                    }
                }
                _ => return,
            },
            changed = line.changed() => if changed.is_err() { return },
        }
    }
}
