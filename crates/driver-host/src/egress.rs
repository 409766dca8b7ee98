//! The way out of a confined driver: an HTTP proxy at a Unix socket. It reaches clouds, and not the
//! machine of the server, its neighbours on the link, or what answers there with keys of the
//! machine.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::header::{HOST, HeaderName};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use nix::ifaddrs::getifaddrs;
use tokio::net::{TcpStream, UnixListener};
use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;

use crate::log::DriverLog;

/// Connections of one driver at a time.
const CONNECTIONS_MAX: usize = 64;
/// Until a connection to a cloud is there.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(30);
const HTTPS_PORT: u16 = 443;
const HTTP_PORT: u16 = 80;
/// Where a cloud gives a machine its keys, beside the link-local address.
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
/// What a proxy takes for itself.
const OF_THE_PROXY: [HeaderName; 4] = [
    HeaderName::from_static("proxy-authorization"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("connection"),
    HeaderName::from_static("keep-alive"),
];

static REFUSED: AtomicU64 = AtomicU64::new(0);

/// Connections that drivers did not get since this process began, because of their address.
pub fn refused() -> u64 {
    REFUSED.load(Ordering::Relaxed)
}

type Body = Either<Incoming, Full<Bytes>>;

/// A host and ports of it that drivers may reach although the address is refused otherwise, such as
/// a provider on the server's own machine: `HOST:PORT` or `HOST:FROM-TO`. With `=ADDRESS:PORT`
/// after one port it is reached there, whatever its name leads to: a private endpoint of a cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressException {
    host: String,
    ports: RangeInclusive<u16>,
    at: Option<SocketAddr>,
}

/// A text is no [`EgressException`].
#[derive(Debug, thiserror::Error)]
#[error(
    "give HOST:PORT, HOST:FROM-TO with at most {PORTS_MAX} ports, or HOST:PORT=ADDRESS:PORT, such as \
     127.0.0.1:9000"
)]
pub struct EgressExceptionError;

/// Of one exception. Each is a listener in the sandbox.
const PORTS_MAX: usize = 64;

impl FromStr for EgressException {
    type Err = EgressExceptionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (text, at) = match text.split_once('=') {
            Some((text, at)) => (text, Some(at.parse().map_err(|_| EgressExceptionError)?)),
            None => (text, None),
        };
        let (host, ports) = text.rsplit_once(':').ok_or(EgressExceptionError)?;
        let (first, last) = ports.split_once('-').unwrap_or((ports, ports));
        let port = |text: &str| text.parse::<u16>().map_err(|_| EgressExceptionError);
        let ports = port(first)?..=port(last)?;
        if host.is_empty() || ports.is_empty() || ports.len() > PORTS_MAX || ports.contains(&0) {
            return Err(EgressExceptionError);
        }
        if at.is_some() && ports.len() > 1 {
            return Err(EgressExceptionError);
        }
        Ok(Self { host: plain(host), ports, at })
    }
}

impl fmt::Display for EgressException {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = &self.host;
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        match (self.ports.start(), self.ports.end()) {
            (first, last) if first == last => write!(formatter, "{host}:{first}")?,
            (first, last) => write!(formatter, "{host}:{first}-{last}")?,
        }
        self.at.map_or(Ok(()), |at| write!(formatter, "={at}"))
    }
}

impl EgressException {
    fn allows(&self, host: &str, port: u16) -> bool {
        self.host == host && self.ports.contains(&port)
    }

    /// Its ports, if it is about 127.0.0.1: a sandbox has a 127.0.0.1 of its own, where programs
    /// look for them.
    pub(crate) fn loopback_ports(&self) -> impl Iterator<Item = u16> + use<> {
        let is_loopback = self.host.parse() == Ok(Ipv4Addr::LOCALHOST);
        self.ports.clone().filter(move |_| is_loopback)
    }
}

/// A host without the brackets of an address, in lower case.
fn plain(host: &str) -> String {
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    inner.unwrap_or(host).to_ascii_lowercase()
}

/// Why there is no connection to a host.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// Its address is one that drivers do not reach.
    #[error("drivers do not reach {0}: it is {1}. Administrators allow it with --driver-may-reach")]
    Refused(String, Local),
    /// The name leads to no address.
    #[error("cannot find {0}: {1}")]
    Unknown(String, #[source] io::Error),
    /// It refuses connections.
    #[error("cannot connect to {0}: {1}")]
    Unreachable(String, #[source] io::Error),
    /// It does not respond.
    #[error("{host} did not accept a connection within {} s", CONNECT_TIME_MAX.as_secs())]
    Slow {
        /// Host and port.
        host: String,
    },
    /// It responds with something else.
    #[error("{0} does not speak HTTP: {1}")]
    NoHttp(String, #[source] hyper::Error),
    /// The request is not for a proxy.
    #[error("this is a proxy: name a host")]
    NoHost,
}

impl EgressError {
    fn status(&self) -> StatusCode {
        match self {
            Self::Refused(..) => StatusCode::FORBIDDEN,
            Self::Slow { .. } => StatusCode::GATEWAY_TIMEOUT,
            Self::NoHost => StatusCode::BAD_REQUEST,
            Self::Unknown(..) | Self::Unreachable(..) | Self::NoHttp(..) => StatusCode::BAD_GATEWAY,
        }
    }
}

/// What an address belongs to that drivers do not reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Local {
    /// Any machine's own.
    Loopback,
    /// Of the neighbours, and of what gives a machine its keys.
    Link,
    /// The server's own.
    Machine,
    /// Of many hosts, or of none.
    NoHost,
}

impl fmt::Display for Local {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Loopback => "a loopback address",
            Self::Link => "an address of the link, where clouds give machines their keys",
            Self::Machine => "an address of the server's machine",
            Self::NoHost => "no address of a host",
        })
    }
}

/// Why drivers do not reach an address, if they do not. `of_machine` are its own addresses.
fn local(address: IpAddr, of_machine: &[IpAddr]) -> Option<Local> {
    let address = address.to_canonical();
    if address.is_loopback() {
        return Some(Local::Loopback);
    }
    if address.is_unspecified() || address.is_multicast() {
        return Some(Local::NoHost);
    }
    let is_of_link = match address {
        IpAddr::V4(v4) if v4.is_broadcast() || v4.octets()[0] == 0 => return Some(Local::NoHost),
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local() || v6 == METADATA_V6,
    };
    if is_of_link {
        return Some(Local::Link);
    }
    of_machine.contains(&address).then_some(Local::Machine)
}

/// The addresses of this machine's interfaces.
fn of_machine() -> io::Result<Vec<IpAddr>> {
    let interfaces = getifaddrs()?;
    let addresses = interfaces.filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
    });
    Ok(addresses.collect())
}

/// The proxy of one driver. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct EgressProxy {
    _task: AbortOnDropHandle<()>,
}

impl EgressProxy {
    /// Listens at a new Unix socket. What is refused stands in the driver's log.
    pub(crate) fn listen(
        socket: &Path,
        exceptions: Arc<[EgressException]>,
        log: DriverLog,
    ) -> io::Result<Self> {
        let listener = UnixListener::bind(socket)?;
        let task = tokio::spawn(async move {
            let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
            // Connections end with the proxy.
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
                let Ok((stream, _)) = listener.accept().await else { return };
                while connections.try_join_next().is_some() {}
                let (exceptions, log) = (Arc::clone(&exceptions), log.clone());
                connections.spawn(async move {
                    let _slot = slot;
                    let tunnels = Arc::new(parking_lot::Mutex::new(tokio::task::JoinSet::new()));
                    let service = service_fn(|request| {
                        let (exceptions, log) = (Arc::clone(&exceptions), log.clone());
                        let tunnels = Arc::clone(&tunnels);
                        async move {
                            let response = respond(request, &exceptions, &tunnels).await;
                            Ok::<_, std::convert::Infallible>(response.unwrap_or_else(|error| {
                                log.note(&error.to_string());
                                text(&error)
                            }))
                        }
                    });
                    let connection = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .with_upgrades();
                    let _ = connection.await;
                    let mut opened = std::mem::take(&mut *tunnels.lock());
                    while opened.join_next().await.is_some() {}
                });
            }
        });
        Ok(Self { _task: AbortOnDropHandle::new(task) })
    }
}

type Tunnels = parking_lot::Mutex<tokio::task::JoinSet<()>>;

async fn respond(
    request: Request<Incoming>,
    exceptions: &[EgressException],
    tunnels: &Tunnels,
) -> Result<Response<Body>, EgressError> {
    let host = request.uri().host().map(plain).ok_or(EgressError::NoHost)?;
    if request.method() == Method::CONNECT {
        let port = request.uri().port_u16().unwrap_or(HTTPS_PORT);
        let mut outside = connect(&host, port, exceptions).await?;
        tunnels.lock().spawn(async move {
            let Ok(inside) = hyper::upgrade::on(request).await else { return };
            let _ = tokio::io::copy_bidirectional(&mut TokioIo::new(inside), &mut outside).await;
        });
        return Ok(Response::new(Either::Right(Full::default())));
    }
    let port = request.uri().port_u16().unwrap_or(HTTP_PORT);
    let stream = connect(&host, port, exceptions).await?;
    forward(request, host, stream, tunnels).await
}

/// Sends a request in plain HTTP on.
async fn forward(
    mut request: Request<Incoming>,
    host: String,
    stream: TcpStream,
    tunnels: &Tunnels,
) -> Result<Response<Body>, EgressError> {
    let no_http = |error| EgressError::NoHttp(host.clone(), error);
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.map_err(no_http)?;
    tunnels.lock().spawn(async move {
        let _ = connection.await;
    });
    for name in OF_THE_PROXY {
        request.headers_mut().remove(name);
    }
    let uri = request.uri().clone();
    let authority = uri.authority().and_then(|authority| authority.as_str().parse().ok());
    if let Some(authority) = authority {
        request.headers_mut().insert(HOST, authority);
    }
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = path.parse().unwrap_or_else(|_| Uri::from_static("/"));
    let response = sender.send_request(request).await.map_err(no_http)?;
    Ok(response.map(Either::Left))
}

/// The addresses of a host, all of which drivers reach. Connect to these, and not to the name: it
/// may lead elsewhere the next time.
///
/// # Errors
/// There is none, or one of them is refused and `exceptions` do not name host and port.
pub async fn addresses(
    host: &str,
    port: u16,
    exceptions: &[EgressException],
) -> Result<Vec<SocketAddr>, EgressError> {
    let host = plain(host);
    let name = format!("{host}:{port}");
    let exception = exceptions.iter().find(|exception| exception.allows(&host, port));
    if let Some(at) = exception.and_then(|exception| exception.at) {
        return Ok(vec![at]);
    }
    let unknown = |error| EgressError::Unknown(name.clone(), error);
    let found = tokio::net::lookup_host((host.as_str(), port)).await.map_err(unknown)?;
    let addresses: Vec<SocketAddr> = found.collect();
    if exception.is_none() {
        let of_machine = of_machine().map_err(unknown)?;
        // One address of the machine among others is an attempt to get there.
        let refused = addresses.iter().find_map(|address| local(address.ip(), &of_machine));
        if let Some(local) = refused {
            REFUSED.fetch_add(1, Ordering::Relaxed);
            return Err(EgressError::Refused(name, local));
        }
    }
    Ok(addresses)
}

async fn connect(
    host: &str,
    port: u16,
    exceptions: &[EgressException],
) -> Result<TcpStream, EgressError> {
    let addresses = addresses(host, port, exceptions).await?;
    let name = format!("{host}:{port}");
    match tokio::time::timeout(CONNECT_TIME_MAX, TcpStream::connect(&addresses[..])).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(EgressError::Unreachable(name, error)),
        Err(_) => Err(EgressError::Slow { host: name }),
    }
}

fn text(error: &EgressError) -> Response<Body> {
    let body = Full::new(Bytes::from(format!("{error}\n")));
    let mut response = Response::new(Either::Right(body));
    *response.status_mut() = error.status();
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clouds_are_reached_and_the_machine_is_not() {
        let own = ["192.0.2.7".parse().unwrap(), "2001:db8::7".parse().unwrap()];
        for (address, expected) in [
            ("203.0.113.9", None),
            ("10.1.2.3", None),
            ("2001:db8::9", None),
            ("127.0.0.1", Some(Local::Loopback)),
            ("127.9.9.9", Some(Local::Loopback)),
            ("::1", Some(Local::Loopback)),
            ("::ffff:127.0.0.1", Some(Local::Loopback)),
            ("0.0.0.0", Some(Local::NoHost)),
            ("0.1.2.3", Some(Local::NoHost)),
            ("::", Some(Local::NoHost)),
            ("255.255.255.255", Some(Local::NoHost)),
            ("224.0.0.1", Some(Local::NoHost)),
            ("169.254.169.254", Some(Local::Link)),
            ("::ffff:169.254.169.254", Some(Local::Link)),
            ("fe80::1", Some(Local::Link)),
            ("fd00:ec2::254", Some(Local::Link)),
            ("192.0.2.7", Some(Local::Machine)),
            ("::ffff:192.0.2.7", Some(Local::Machine)),
            ("2001:db8::7", Some(Local::Machine)),
        ] {
            assert_eq!(local(address.parse().unwrap(), &own), expected, "{address}");
        }
    }

    #[test]
    fn exceptions_name_a_host_and_few_ports() {
        let exception: EgressException = "127.0.0.1:9000-9002".parse().unwrap();
        assert_eq!(exception.loopback_ports().collect::<Vec<_>>(), [9000, 9001, 9002]);
        assert!(exception.allows("127.0.0.1", 9001) && !exception.allows("127.0.0.1", 9003));
        let exception: EgressException = "[FD00::1]:443".parse().unwrap();
        assert!(exception.allows("fd00::1", 443) && exception.loopback_ports().count() == 0);
        let others = ["cloud.example:443=192.0.2.1:9443", "cloud.example:443=[fd00::1]:443"];
        for text in
            ["127.0.0.1:9000-9002", "cloud.example:443", "[fd00::1]:443"].iter().chain(&others)
        {
            assert_eq!(text.parse::<EgressException>().unwrap().to_string(), *text);
        }
        for text in [
            "127.0.0.1",
            ":80",
            "a:0",
            "a:1-70",
            "a:9-8",
            "a:99999",
            "a:x",
            "a:1=b",
            "a:1-2=192.0.2.1:1",
        ] {
            assert!(text.parse::<EgressException>().is_err(), "{text}");
        }
    }

    #[tokio::test]
    async fn a_host_is_reached_where_an_exception_says() {
        let exceptions = ["cloud.invalid:443=127.0.0.1:9443".parse().unwrap()];
        let found = addresses("Cloud.invalid", 443, &exceptions).await.unwrap();
        assert_eq!(found, ["127.0.0.1:9443".parse().unwrap()]);
        assert!(addresses("cloud.invalid", 444, &exceptions).await.is_err());
    }
}
