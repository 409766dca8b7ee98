//! Connections between a sandbox and the server, which share no network: over Unix sockets.

use std::io::{self, BufRead as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::root;

/// Before the next look whether the driver listens.
const OPENING_PAUSE: Duration = Duration::from_millis(2);
/// Before the next connection, when there are too many.
const PAUSE: Duration = Duration::from_millis(50);

/// Carries each connection of the server to the driver's port.
pub(super) fn to_driver(listener: UnixListener, port: u16) {
    thread::spawn(move || {
        for outside in listener.incoming() {
            carry_or_pause(outside.and_then(|outside| Ok((connect(port)?, outside))));
        }
    });
}

/// Connects once the driver listens: a connection that was accepted and then closed would look like
/// a driver that broke off a call.
#[expect(clippy::disallowed_methods, reason = "nothing tells when a port is opened")]
fn connect(port: u16) -> io::Result<TcpStream> {
    let begun = Instant::now();
    loop {
        match TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
            Err(_) if begun.elapsed() < crate::START_TIME_MAX => thread::sleep(OPENING_PAUSE),
            result => return result,
        }
    }
}

/// Carries each connection of the driver to the server's way out, which it uses as a proxy; or to a
/// port of 127.0.0.1 outside.
pub(super) fn to_server(listener: TcpListener, port: Option<u16>) {
    thread::spawn(move || {
        for inside in listener.incoming() {
            carry_or_pause(inside.and_then(|inside| Ok((inside, way_out(port)?))));
        }
    });
}

fn way_out(port: Option<u16>) -> io::Result<UnixStream> {
    let mut socket = UnixStream::connect(Path::new("/").join(root::EGRESS))?;
    if let Some(port) = port {
        request(&mut socket, port)?;
    }
    Ok(socket)
}

/// Asks the proxy for a port of 127.0.0.1 in place of a driver that does not know of it.
fn request(socket: &mut UnixStream, port: u16) -> io::Result<()> {
    write!(socket, "CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n")?;
    // One byte at a time: what follows the head is the driver's.
    let mut reader = io::BufReader::with_capacity(1, &*socket);
    let mut status = String::new();
    reader.read_line(&mut status)?;
    if status.split(' ').nth(1) != Some("200") {
        return Err(io::Error::other(status));
    }
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    Ok(())
}

/// Copies in both directions until both have ended; closes both where the driver has used up its
/// connections or threads.
#[expect(clippy::disallowed_methods, reason = "nothing tells when connections are free")]
fn carry_or_pause(ends: io::Result<(TcpStream, UnixStream)>) {
    if ends.and_then(|(inside, outside)| carry(inside, outside)).is_err() {
        thread::sleep(PAUSE);
    }
}

fn carry(inside: TcpStream, outside: UnixStream) -> io::Result<()> {
    let (from_inside, from_outside) = (inside.try_clone()?, outside.try_clone()?);
    thread::Builder::new().spawn(move || {
        let _ = io::copy(&mut &from_inside, &mut &outside);
        let _ = outside.shutdown(Shutdown::Write);
    })?;
    thread::Builder::new().spawn(move || {
        let _ = io::copy(&mut &from_outside, &mut &inside);
        let _ = inside.shutdown(Shutdown::Write);
    })?;
    Ok(())
}
