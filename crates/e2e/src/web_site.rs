//! A web site with files that can be changed, for what the server downloads.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;

use anyhow::Result;
use parking_lot::Mutex;

/// See the module. It ends with the process.
#[derive(Clone)]
pub struct WebSite {
    /// On 127.0.0.1.
    pub port: u16,
    files: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    requests: Arc<Mutex<usize>>,
}

impl WebSite {
    /// Starts one without files.
    ///
    /// # Errors
    /// There is no free port.
    pub fn start() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let site = Self { port, files: Arc::default(), requests: Arc::default() };
        let served = site.clone();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut request = [0; 4096];
                let length = stream.read(&mut request).unwrap_or_default();
                let text = String::from_utf8_lossy(&request[..length]).into_owned();
                *served.requests.lock() += 1;
                let path = text.split(' ').nth(1).unwrap_or_default();
                let file = served.files.lock().get(path).cloned();
                let status = if file.is_some() { "200 OK" } else { "404 Not Found" };
                let body = file.unwrap_or_default();
                let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len());
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
            }
        });
        Ok(site)
    }

    /// Adds or replaces a file. Returns its URL.
    pub fn put(&self, path: &str, content: Vec<u8>) -> String {
        self.files.lock().insert(path.to_owned(), content);
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Requests so far.
    pub fn requests(&self) -> usize {
        *self.requests.lock()
    }
}
