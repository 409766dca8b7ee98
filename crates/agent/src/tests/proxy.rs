//! Connections to the server through a proxy that supports only `CONNECT`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use parking_lot::Mutex;
use tls_trust::{roots_from_pem, trust_roots};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::wait::until;
use super::world::{HomeApi, Running, Server};
use crate::call::{CallError, connect};
use crate::proxy::{Proxies, ProxyError};
use crate::server_url::ServerUrl;
use crate::settings::Settings;

/// A name that only the proxy resolves, to the server's real address.
const SERVER_NAME: &str = "drover.corp";

/// A proxy that connects every client with the right login to one address.
struct ConnectProxy {
    port: u16,
    /// Heads of the requests, unchanged.
    heads: Arc<Mutex<Vec<String>>>,
    tunnels: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl ConnectProxy {
    /// `status_line` is the response to clients with the right login.
    async fn start(to: u16, login: Option<&'static str>, status_line: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (heads, tunnels) =
            (Arc::<Mutex<Vec<String>>>::default(), Arc::new(AtomicUsize::new(0)));
        let (seen, count) = (heads.clone(), tunnels.clone());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, count) = (seen.clone(), count.clone());
                tokio::spawn(async move {
                    let mut client = BufReader::new(stream);
                    let mut head = String::new();
                    while !head.ends_with("\r\n\r\n") {
                        if client.read_line(&mut head).await.unwrap_or(0) == 0 {
                            return;
                        }
                    }
                    seen.lock().push(head.clone());
                    let expected = login.map(|login| BASE64_STANDARD.encode(login));
                    let may = expected.is_none_or(|expected| {
                        let value = format!("basic {expected}");
                        let line = |line: &&str| line.starts_with("proxy-authorization: ");
                        let found =
                            head.lines().find(line).map(|l| &l["proxy-authorization: ".len()..]);
                        found.is_some_and(|found| found.eq_ignore_ascii_case(&value))
                    });
                    let line = if may { status_line } else { "407 Proxy Authentication Required" };
                    let reply = format!("HTTP/1.1 {line}\r\ncontent-length: 0\r\n\r\n");
                    let reply = match line.starts_with('2') {
                        true => format!("HTTP/1.1 {line}\r\n\r\n"),
                        false => reply,
                    };
                    client.write_all(reply.as_bytes()).await.unwrap();
                    if !line.starts_with('2') {
                        return;
                    }
                    count.fetch_add(1, Ordering::SeqCst);
                    let mut server = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                });
            }
        });
        Self { port, heads, tunnels, task }
    }

    fn url(&self, login: &str) -> String {
        format!("http://{login}127.0.0.1:{}", self.port)
    }
}

impl Drop for ConnectProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The settings of an agent that knows the server by a name that no resolver has.
fn settings(server: &Server, proxies: Proxies) -> Settings {
    let url = format!("https://{SERVER_NAME}:{}", server.port());
    let server_url = ServerUrl::parse(&url).unwrap();
    Settings { server: server_url, proxies, ..server.settings("t") }
}

#[tokio::test]
async fn an_agent_behind_a_proxy_reaches_its_server_and_its_own_api_without_it() {
    let (server, home) = (Server::named(SERVER_NAME).await, HomeApi::start().await);
    server.registrar.add_token("t", "c-1");
    let proxy = ConnectProxy::start(server.port(), Some("agent:p@ss"), "200 OK").await;
    let proxies = Proxies::of(&proxy.url("agent:p%40ss@"), "").unwrap();
    let _agent = Running::start(settings(&server, proxies), home.home());
    until("the session", || server.sessions.is_connected("c-1")).await;
    until("the report", || !server.registrar.0.lock().reports.is_empty()).await;
    let heads = proxy.heads.lock().clone();
    // One request for the server's CA, one for the tunnel; none for the cluster's own API.
    assert_eq!((heads.len(), proxy.tunnels.load(Ordering::SeqCst)), (2, 2), "{heads:?}");
    let line = format!("CONNECT {SERVER_NAME}:{} HTTP/1.1\r\n", server.port());
    assert!(heads.iter().all(|head| head.starts_with(&line)), "{heads:?}");
}

#[tokio::test]
async fn hosts_in_no_proxy_are_reached_directly() {
    let (server, home) = (Server::start().await, HomeApi::start().await);
    server.registrar.add_token("t", "c-1");
    let proxy = ConnectProxy::start(server.port(), None, "200 OK").await;
    let proxies = Proxies::of(&proxy.url(""), "10.0.0.0/8,.corp").unwrap();
    let settings = Settings { proxies, ..server.settings("t") };
    let _agent = Running::start(settings, home.home());
    until("the session", || server.sessions.is_connected("c-1")).await;
    assert!(proxy.heads.lock().is_empty(), "loopback goes through no proxy");
}

#[tokio::test]
async fn a_refusal_of_a_proxy_is_distinguished_from_one_of_the_server() {
    let server = Server::named(SERVER_NAME).await;
    let tls = trust_roots(roots_from_pem(&server.ca_pem).unwrap()).with_no_client_auth();
    let tls = Arc::new(tls);
    let name = || SERVER_NAME.try_into().unwrap();
    let attempt = async |url: String| {
        let proxies = Proxies::of(&url, "").unwrap();
        connect(SERVER_NAME, server.port(), name(), &tls, &proxies).await.err().unwrap()
    };
    let proxy = ConnectProxy::start(server.port(), Some("agent:right"), "200 OK").await;
    let error = attempt(proxy.url("agent:wrong@")).await;
    assert!(matches!(&error, CallError::Proxy { error: ProxyError::Login, .. }), "{error:?}");
    let text = format!("{error} {error:?}");
    assert!(text.contains("407") && text.contains("agentEnvVars"), "{text}");
    assert!(!text.contains("wrong"), "a password is in the log: {text}");

    let closed = ConnectProxy::start(server.port(), None, "403 Forbidden").await;
    let error = attempt(closed.url("")).await;
    assert!(error.to_string().contains("403"), "{error}");

    let url = closed.url("");
    drop(closed);
    let error = attempt(url.clone()).await;
    let place = url.strip_prefix("http://").unwrap();
    assert!(error.to_string().contains(place), "the proxy is named: {error}");
}

#[test]
fn no_proxy_is_parsed_like_other_programs_do() {
    let through = |no_proxy: &str, host: &str, port: u16| {
        let proxies = Proxies::of("proxy.corp:3128", no_proxy).unwrap();
        proxies.towards(host, port).is_some()
    };
    let list = "127.0.0.0/8, 10.0.0.0/8,192.168.1.7,.svc,.cluster.local,corp.example,*.wild.example,\
                ported.example:8443,fd00::/8";
    for (host, port, expected) in [
        ("drover.example", 443, true),
        ("10.1.2.3", 443, false),
        ("11.1.2.3", 443, true),
        ("192.168.1.7", 443, false),
        ("192.168.1.8", 443, true),
        ("kubernetes.default.svc", 443, false),
        ("svc", 443, true),
        ("corp.example", 443, false),
        ("drover.CORP.example", 443, false),
        ("notcorp.example", 443, true),
        ("a.wild.example", 443, false),
        ("ported.example", 8443, false),
        ("ported.example", 443, true),
        ("fd12::1", 443, false),
        ("fe80::1", 443, true),
        ("::1", 443, false),
        ("localhost", 443, false),
        ("127.0.0.1", 443, false),
    ] {
        assert_eq!(through(list, host, port), expected, "{host}:{port}");
    }
    assert!(!through("*", "drover.example", 443));
    assert!(!through("0.0.0.0/0", "8.8.8.8", 443) && through("0.0.0.0/33", "8.8.8.8", 443));
    assert!(through("", "drover.example", 443));
    assert!(Proxies::of("", "").unwrap().towards("drover.example", 443).is_none());
}

#[test]
fn an_unusable_proxy_is_refused_without_repeating_its_password() {
    for url in ["https://proxy:3128", "socks5://u:hunter2@proxy:1080", "http://", "http://p/path"] {
        let error = Proxies::of(url, "").unwrap_err().to_string();
        assert!(error.contains("HTTPS_PROXY") && !error.contains("hunter2"), "{error}");
    }
    let proxies = Proxies::of("http://u:hunter2@proxy:3128", "").unwrap();
    assert!(!format!("{proxies:?}").contains("hunter2"));
    assert_eq!(proxies.towards("x.example", 443).unwrap().to_string(), "proxy:3128");
    let ipv6 = Proxies::of("http://[fd00::1]:3128", "").unwrap();
    assert_eq!(ipv6.towards("x.example", 443).unwrap().to_string(), "[fd00::1]:3128");
}
