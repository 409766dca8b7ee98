//! A login with a browser: the user logs in on a page, and the page brings a code to this program,
//! or the user pastes it.
//!
//! The code alone is worth nothing: it is good for who knows the verifier, which never leaves this
//! program before the code is presented.

use std::io::{BufRead, IsTerminal};
use std::process::{Command, Stdio};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use crate::error::{CliError, Failure};
use crate::prompt;

/// How long the login may take.
const LOGIN_TIME_MAX: Duration = Duration::from_secs(600);
/// How long a browser may take to send its request.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(5);
/// Longest request of a browser, in bytes.
const REQUEST_SIZE_MAX: usize = 16 * 1024;
/// Bytes of a verifier, before it is written in base64url.
const VERIFIER_BYTES: usize = 32;

/// What proves that the code is presented by who began the login.
pub struct Verifier(String);

impl Verifier {
    /// A new one, that nobody can guess.
    pub fn generate() -> Self {
        let bytes: [u8; VERIFIER_BYTES] = rand::random();
        Self(URL_SAFE_NO_PAD.encode(bytes))
    }
    /// For the page where the login begins.
    pub fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(self.0.as_bytes()))
    }
    /// To be presented with the code.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// Waits for the browser's code on a port of this computer.
pub struct CodeListener {
    listener: TcpListener,
    port: u16,
}

impl CodeListener {
    /// Listens on loopback; `None` if this computer does not allow it.
    pub async fn bind() -> Option<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.ok()?;
        let port = listener.local_addr().ok()?.port();
        Some(Self { listener, port })
    }
    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    async fn code(&self) -> String {
        loop {
            let Ok((stream, _)) = self.listener.accept().await else { continue };
            let answered = tokio::time::timeout(REQUEST_TIME_MAX, answer(stream)).await;
            if let Ok(Some(code)) = answered {
                return code;
            }
        }
    }
}

/// The code in a browser's request, which is answered.
async fn answer(mut stream: TcpStream) -> Option<String> {
    let mut request = Vec::new();
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        if request.len() > REQUEST_SIZE_MAX || stream.read_buf(&mut request).await.ok()? == 0 {
            return None;
        }
    }
    let code = code_of(&String::from_utf8_lossy(&request));
    let (status, text) = match &code {
        Some(_) => ("200 OK", "You are logged in on the command line. You can close this page."),
        None => ("404 Not Found", "There is no such page."),
    };
    let page = format!("<!doctype html><meta charset=utf-8><title>Drover</title><p>{text}</p>\n");
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nCache-Control: no-store\r\n\
         Referrer-Policy: no-referrer\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
    let _ = stream.write_all(response.as_bytes()).await;
    let _ = stream.shutdown().await;
    code
}

/// The code in the head of a request. Pure.
fn code_of(request: &str) -> Option<String> {
    let target = request.strip_prefix("GET /?")?.split(' ').next()?;
    let code = target.split('&').find_map(|pair| pair.strip_prefix("code="))?;
    is_code(code).then(|| code.to_owned())
}

fn is_code(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_alphanumeric() || b"-._~".contains(&c))
}

/// Shows the address of a page, and opens it where this computer has a browser to see it in.
pub fn open(url: &str, is_to_be_opened: bool) {
    notify!("open this page to log in: {url}");
    let is_remote = std::env::var_os("SSH_CONNECTION").is_some();
    let has_screen = cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if !is_to_be_opened || is_remote || !has_screen || !prompt::is_interactive() {
        return;
    }
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Without it the user opens the page by hand.
    let _ = command.spawn();
}

/// The code, as the browser brings it or the user pastes it, whatever comes first.
///
/// # Errors
/// None came in time.
pub async fn code(listener: Option<&CodeListener>) -> Result<String, CliError> {
    let brought = async {
        match listener {
            Some(listener) => listener.code().await,
            None => std::future::pending().await,
        }
    };
    let first = async {
        tokio::select! {
            code = brought => code,
            code = pasted() => code,
        }
    };
    tokio::time::timeout(LOGIN_TIME_MAX, first).await.map_err(|_| {
        CliError::new(Failure::Other, "nobody logged in within 10 minutes").hint("begin again")
    })
}

/// The code on stdin. It is read in a thread of its own, which ends with this program.
async fn pasted() -> String {
    let (send, receive) = oneshot::channel();
    std::thread::spawn(move || {
        if std::io::stdin().is_terminal() {
            notify!("or paste the code that the page shows:");
        }
        let mut line = String::new();
        while std::io::stdin().lock().read_line(&mut line).is_ok_and(|read| read > 0) {
            if is_code(line.trim()) {
                let _ = send.send(line.trim().to_owned());
                return;
            }
            line.clear();
        }
    });
    match receive.await {
        Ok(code) => code,
        // Stdin has ended: nothing will be pasted.
        Err(_) => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_that_of_the_standard() {
        // RFC 7636, appendix B.
        let verifier = Verifier("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned());
        assert_eq!(verifier.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn only_the_browser_with_a_code_is_listened_to() {
        for (request, code) in [
            ("GET /?code=abc123 HTTP/1.1\r\nHost: x\r\n\r\n", Some("abc123")),
            ("GET /?state=x&code=abc HTTP/1.1\r\n\r\n", Some("abc")),
            ("GET /favicon.ico HTTP/1.1\r\n\r\n", None),
            ("GET /?code= HTTP/1.1\r\n\r\n", None),
            ("GET /?code=a%20b HTTP/1.1\r\n\r\n", None),
            ("POST /?code=abc HTTP/1.1\r\n\r\n", None),
        ] {
            assert_eq!(code_of(request).as_deref(), code, "{request}");
        }
    }

    #[tokio::test]
    async fn a_code_is_brought_to_the_port() {
        let listener = CodeListener::bind().await.unwrap();
        let port = listener.port();
        let browser = async {
            for (path, status) in [("/", "404"), ("/?code=abc", "200")] {
                let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
                stream.write_all(request.as_bytes()).await.unwrap();
                let mut response = String::new();
                stream.read_to_string(&mut response).await.unwrap();
                assert!(response.starts_with(&format!("HTTP/1.1 {status}")), "{response}");
            }
        };
        let (code, ()) = tokio::join!(listener.code(), browser);
        assert_eq!(code, "abc");
    }
}
