//! The proxy between agent and server, from the environment: `HTTPS_PROXY` and `NO_PROXY`, upper
//! case first.
//!
//! The agent requests a connection to the server with `CONNECT`. The proxy sees nothing of the
//! content of TLS. This cluster's own API is never reached through a proxy.

use std::fmt;
use std::net::IpAddr;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::Empty;
use hyper_util::rt::TokioIo;
use ipnet::IpNet;
use tokio::net::TcpStream;

/// Port of a proxy whose URL names none.
const DEFAULT_PORT: u16 = 80;

/// Why a connection through the proxy failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProxyError {
    #[error("connect to the proxy: {0}")]
    Connect(std::io::Error),
    #[error("request a connection from the proxy: {0}")]
    Http(#[from] hyper::Error),
    #[error(
        "the proxy requires a login (407); give it as HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT in \
         the cluster's agentEnvVars"
    )]
    Login,
    #[error(
        "the proxy responded {0}; allow it to connect to the server, or name the server in NO_PROXY"
    )]
    Status(StatusCode),
    #[error("the proxy sent data of its own before the server could")]
    Chatter,
}

/// An unusable value in the environment. The message does not repeat it, because it may hold a
/// password.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable} must be http://[USER:PASSWORD@]HOST[:PORT]")]
pub(crate) struct ProxyUrlError {
    variable: &'static str,
}

/// An HTTP proxy.
#[derive(Clone)]
pub(crate) struct Proxy {
    host: String,
    port: u16,
    authorization: Option<HeaderValue>,
}

/// Without the password.
impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", authority(&self.host, self.port))
    }
}

/// Which connections go through which proxy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proxies {
    https: Option<Proxy>,
    direct: Vec<Direct>,
}

/// One entry of `NO_PROXY`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Direct {
    All,
    Network(IpNet),
    /// The name itself (unless it began with a dot) and every name below it.
    Domain {
        name: String,
        itself: bool,
        port: Option<u16>,
    },
}

impl Proxies {
    /// Reads the environment.
    ///
    /// # Errors
    /// `HTTPS_PROXY` is no URL of an HTTP proxy.
    pub(crate) fn from_environment() -> Result<Self, ProxyUrlError> {
        let variable = |upper: &str, lower: &str| {
            let found = [upper, lower].into_iter().find_map(|name| {
                std::env::var(name)
                    .ok()
                    .map(|text| text.trim().to_owned())
                    .filter(|t| !t.is_empty())
            });
            found.unwrap_or_default()
        };
        let https = variable("HTTPS_PROXY", "https_proxy");
        Self::of(&https, &variable("NO_PROXY", "no_proxy"))
    }

    /// From the texts of the two variables.
    pub(crate) fn of(https: &str, no_proxy: &str) -> Result<Self, ProxyUrlError> {
        let https = match https {
            "" => None,
            url => Some(Proxy::parse(url).ok_or(ProxyUrlError { variable: "HTTPS_PROXY" })?),
        };
        let entries = no_proxy.split([',', ' ']).map(str::trim).filter(|entry| !entry.is_empty());
        Ok(Self { https, direct: entries.map(Direct::parse).collect() })
    }

    /// The proxy for a connection to `host`, or `None` for a direct connection, as to this machine
    /// itself.
    pub(crate) fn towards(&self, host: &str, port: u16) -> Option<&Proxy> {
        let address = host.parse::<IpAddr>().ok();
        let is_here = address.is_some_and(|address| address.is_loopback())
            || host.eq_ignore_ascii_case("localhost");
        let is_direct = is_here || self.direct.iter().any(|entry| entry.fits(host, address, port));
        self.https.as_ref().filter(|_| !is_direct)
    }
}

impl Proxy {
    fn parse(text: &str) -> Option<Self> {
        let url = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        let uri: Uri = url.parse().ok()?;
        if uri.scheme_str() != Some("http") || !matches!(uri.path(), "" | "/") {
            return None;
        }
        let authority = uri.authority()?;
        let login = authority.as_str().rsplit_once('@').map(|(login, _)| login);
        let authorization = match login {
            None => None,
            Some(login) => {
                let text = format!("Basic {}", BASE64_STANDARD.encode(decode(login)?));
                let mut value = HeaderValue::try_from(text).ok()?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let port = authority.port_u16().unwrap_or(DEFAULT_PORT);
        (!host.is_empty()).then_some(Self { host, port, authorization })
    }

    /// A TCP connection that the proxy has connected to `host`. Only TLS proves that.
    pub(crate) async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, ProxyError> {
        let tcp = TcpStream::connect((self.host.as_str(), self.port)).await;
        let tcp = tcp.map_err(ProxyError::Connect)?;
        let target = authority(host, port);
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(tcp)).await?;
        tokio::spawn(connection.with_upgrades());
        let mut request = Request::new(Empty::<Bytes>::new());
        *request.method_mut() = Method::CONNECT;
        *request.uri_mut() = target.parse().expect("a host and a port make an authority");
        let headers = request.headers_mut();
        let value = HeaderValue::try_from(target).expect("an authority is a header value");
        headers.insert(header::HOST, value);
        headers
            .extend(self.authorization.clone().map(|value| (header::PROXY_AUTHORIZATION, value)));
        let response = sender.send_request(request).await?;
        match response.status() {
            status if status.is_success() => {}
            StatusCode::PROXY_AUTHENTICATION_REQUIRED => return Err(ProxyError::Login),
            status => return Err(ProxyError::Status(status)),
        }
        let through = hyper::upgrade::on(response).await?;
        let parts = through.downcast::<TokioIo<TcpStream>>().map_err(|_| ProxyError::Chatter)?;
        // The client begins TLS, so no bytes can have arrived yet.
        if !parts.read_buf.is_empty() {
            return Err(ProxyError::Chatter);
        }
        Ok(parts.io.into_inner())
    }
}

impl Direct {
    fn parse(entry: &str) -> Self {
        if entry == "*" {
            return Self::All;
        }
        if let Ok(address) = entry.trim_matches(['[', ']']).parse::<IpAddr>() {
            return Self::Network(address.to_canonical().into());
        }
        if let Ok(network) = entry.parse() {
            return Self::Network(network);
        }
        let (name, port) = match entry.rsplit_once(':') {
            Some((name, port)) => (name, port.parse().ok()),
            None => (entry, None),
        };
        let name = name.strip_prefix('*').unwrap_or(name);
        let itself = !name.starts_with('.');
        Self::Domain { name: name.trim_start_matches('.').to_ascii_lowercase(), itself, port }
    }

    fn fits(&self, host: &str, address: Option<IpAddr>, port: u16) -> bool {
        match (self, address) {
            (Self::All, _) => true,
            (Self::Network(network), Some(address)) => network.contains(&address.to_canonical()),
            (Self::Domain { name, itself, port: only }, _) => {
                let host = host.to_ascii_lowercase();
                let below =
                    host.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('.'));
                only.is_none_or(|only| only == port) && (below || (*itself && host == *name))
            }
            _ => false,
        }
    }
}

fn authority(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Percent signs of a login. `None` when they are broken.
fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        out.push(u8::try_from(high * 16 + low).ok()?);
    }
    Some(out)
}
