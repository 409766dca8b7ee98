//! Servers that give files, and servers that give something else.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use super::*;

const QUICK: DownloadLimits = DownloadLimits {
    bytes_max: 1000,
    time_max: Duration::from_secs(2),
    pause_max: Duration::from_millis(300),
};
const BODY: &[u8] = b"a driver";

/// A server whose response to each request is what `respond` writes.
fn server(respond: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let respond = Arc::new(respond);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let respond = respond.clone();
            thread::spawn(move || {
                let mut request = [0; 4096];
                let length = stream.read(&mut request).unwrap_or_default();
                let text = String::from_utf8_lossy(&request[..length]).into_owned();
                respond(text.split(' ').nth(1).unwrap_or_default(), &mut stream);
            });
        }
    });
    port
}

fn file(stream: &mut TcpStream, body: &[u8]) {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).unwrap();
}

fn redirect(stream: &mut TcpStream, to: &str) {
    let head = format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
}

async fn get(port: u16, path: &str, expected: &str) -> Result<Downloaded, DownloadError> {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("download");
    let exceptions = [format!("127.0.0.1:{port}").parse().unwrap()];
    let url = format!("http://user:secret@127.0.0.1:{port}{path}?key=secret");
    let result = fetch(&url, expected, &target, &exceptions, &QUICK).await;
    if result.is_ok() {
        assert_eq!(std::fs::read(&target).unwrap(), BODY);
    }
    if let Err(error) = &result {
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    result
}

fn reason(result: Result<Downloaded, DownloadError>) -> String {
    result.unwrap_err().to_string()
}

#[tokio::test]
async fn a_file_is_what_its_checksum_says() {
    let port = server(|_, stream| file(stream, BODY));
    let sha256 = hex(&Sha256::digest(BODY));
    for expected in ["", &sha256.to_uppercase(), &hex(&Sha512::digest(BODY))] {
        let found = get(port, "/kontainer-engine-driver-x", expected).await.unwrap();
        assert_eq!(found.sha256, sha256);
        assert_eq!(found.names, ["kontainer-engine-driver-x"]);
    }
    let other = "0".repeat(64);
    let refused = reason(get(port, "/x", &other).await);
    assert!(refused.contains(&sha256) && refused.contains(&other), "{refused}");
}

#[tokio::test]
async fn a_server_that_has_no_file_is_named_with_its_answer() {
    let port = server(|_, stream| {
        stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").unwrap();
    });
    let refused = reason(get(port, "/driver", "").await);
    assert_eq!(refused, format!("http://127.0.0.1:{port}/driver answered 404 Not Found"));
    let nobody = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let refused = reason(get(nobody, "/driver", "").await);
    assert!(refused.contains("Connection refused"), "{refused}");
}

#[tokio::test]
async fn redirects_lead_to_files_and_not_to_the_machine() {
    let inside = server(|_, stream| file(stream, b"keys"));
    let port = server(move |path, stream| match path.split('?').next().unwrap_or_default() {
        "/moved" => redirect(stream, "/releases/kontainer-engine-driver-x"),
        "/inside" => redirect(stream, &format!("http://127.0.0.1:{inside}/")),
        "/name" => redirect(stream, &format!("http://localhost:{inside}/")),
        "/metadata" => redirect(stream, "http://169.254.169.254/latest/meta-data"),
        "/file" => redirect(stream, "file:///etc/shadow"),
        "/circle" => redirect(stream, "/circle"),
        _ => file(stream, BODY),
    });
    let found = get(port, "/moved", "").await.unwrap();
    assert_eq!(found.names, ["moved", "kontainer-engine-driver-x"]);
    for (path, expected) in [
        ("/inside", "it is a loopback address"),
        ("/name", "it is a loopback address"),
        ("/metadata", "it is an address of the link"),
        ("/file", "is no address of a web server"),
        ("/circle", "redirected more than 10 times"),
    ] {
        let refused = reason(get(port, path, "").await);
        assert!(refused.contains(expected), "{path}: {refused}");
    }
}

#[tokio::test]
async fn a_file_that_is_too_large_or_never_ends_is_left() {
    let port = server(|path, stream| match path.split('?').next().unwrap_or_default() {
        "/announced" => file(stream, &[0; 1001]),
        "/endless" => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
            while stream.write_all(&[0; 500]).is_ok() {}
        }
        "/silent" => {
            let _ = stream.read(&mut [0; 1]);
        }
        "/pause" => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\na dri");
            let _ = stream.read(&mut [0; 1]);
        }
        // A byte now and then: no pause is long.
        _ => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n");
            stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            while stream.write_all(b"a").is_ok() {
                let _ = stream.read(&mut [0; 1]);
            }
        }
    });
    for (path, expected) in [
        ("/announced", "the file is larger than"),
        ("/endless", "the file is larger than"),
        ("/silent", "sent nothing for"),
        ("/pause", "sent nothing for"),
        ("/drip", "the file did not come within 2 s"),
    ] {
        let refused = reason(get(port, path, "").await);
        assert!(refused.contains(expected), "{path}: {refused}");
    }
}
