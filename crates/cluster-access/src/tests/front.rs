//! The proxy behind a real HTTP server, and clients that can send anything.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use api_meta::status::Status;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::downstream::{Downstream, by_name};
use crate::proxy::{
    AccessResolver, Attributes, DownstreamIdentity, Impersonation, Proxy, ProxyCaller, Resolved,
};
use crate::{Body, ClusterAccess};

/// The identity headers that the downstream gets for alice, exactly: name and values.
pub const ALICE: [(&str, &[&str]); 5] = [
    ("authorization", &["Bearer downstream-token"]),
    ("impersonate-user", &["u-alice"]),
    ("impersonate-uid", &["1234"]),
    ("impersonate-group", &["drover:cluster:c-1:cluster-member", "system:authenticated"]),
    ("impersonate-extra-principal%2Fid", &["local://alice"]),
];

/// Every caller is in `c-1` and may impersonate the users and groups in `may`.
#[derive(Default)]
pub struct Roles {
    pub may: Mutex<Vec<String>>,
    pub checked: Mutex<Vec<Attributes>>,
    pub role: CancellationToken,
}

impl AccessResolver for Roles {
    fn resolve<'a>(
        &'a self,
        cluster: &'a str,
        caller: &'a ProxyCaller,
    ) -> BoxFuture<'a, Result<Resolved, Status>> {
        Box::pin(async move {
            if cluster != "c-1" && cluster != "c-unreported" {
                return Err(Status::not_found("", "clusters", cluster));
            }
            let mut groups = vec![format!("drover:cluster:{cluster}:cluster-member")];
            groups.extend(caller.groups.clone());
            let identity = DownstreamIdentity {
                user: caller.user.clone(),
                uid: caller.uid.clone(),
                groups,
                extra: caller.extra.clone(),
            };
            Ok(Resolved { identity, revoked: self.role.clone() })
        })
    }

    fn may_impersonate<'a>(
        &'a self,
        _: &'a str,
        _: &'a ProxyCaller,
        what: &'a Attributes,
    ) -> BoxFuture<'a, Result<bool, Status>> {
        Box::pin(async move {
            self.checked.lock().push(what.clone());
            Ok(self.may.lock().contains(&what.name))
        })
    }

    fn resolve_impersonated<'a>(
        &'a self,
        _: &'a str,
        _: &'a ProxyCaller,
        requested: &'a Impersonation,
    ) -> BoxFuture<'a, Result<Resolved, Status>> {
        Box::pin(async move {
            let mut groups = requested.groups.clone();
            if requested.user == "u-bob" {
                groups.push("drover:cluster:c-1:cluster-owner".to_owned());
            }
            let identity = DownstreamIdentity {
                user: requested.user.clone(),
                uid: requested.uid.clone(),
                groups,
                extra: requested.extra.clone(),
            };
            Ok(Resolved { identity, revoked: CancellationToken::new() })
        })
    }
}

/// A running proxy, with the fake behind it.
pub struct Front {
    pub downstream: Downstream,
    pub access: ClusterAccess,
    pub roles: Arc<Roles>,
    pub caller: Arc<Mutex<ProxyCaller>>,
    pub port: u16,
}

impl Front {
    /// Starts the proxy, with one cluster `c-1` whose API server offers these protocols.
    pub async fn start(alpn: &[&str]) -> Self {
        let downstream = Downstream::start(alpn).await;
        let access = ClusterAccess::new(tunnel::Sessions::new(), by_name());
        access.set_endpoint("c-1", downstream.endpoint.clone()).unwrap();
        let roles = Arc::<Roles>::default();
        let caller = Arc::new(Mutex::new(ProxyCaller {
            user: "u-alice".to_owned(),
            uid: "1234".to_owned(),
            groups: vec!["system:authenticated".to_owned()],
            extra: BTreeMap::from([("principal/id".to_owned(), vec!["local://alice".to_owned()])]),
            project: None,
            revoked: CancellationToken::new(),
        }));
        let proxy = Proxy::new(access.clone(), roles.clone(), "drover:");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let callers = caller.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                tokio::spawn(Self::serve(stream, proxy.clone(), callers.clone()));
            }
        });
        Self { downstream, access, roles, caller, port }
    }

    async fn serve(stream: TcpStream, proxy: Proxy, caller: Arc<Mutex<ProxyCaller>>) {
        let service = hyper::service::service_fn(move |request: Request<Incoming>| {
            let (proxy, caller) = (proxy.clone(), caller.lock().clone());
            async move { Ok::<_, Infallible>(proxy.handle(caller, request).await) }
        });
        let mut builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
        builder.http2().enable_connect_protocol();
        let _ = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).await;
    }

    /// A connection to the proxy, for bytes that no client would send.
    pub async fn open(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// Sends HTTP/1.1 as written (`\n` becomes a line end) and reads the head of the response.
    pub async fn raw(&self, request: &str) -> (TcpStream, String) {
        let mut stream = self.open().await;
        stream.write_all(request.replace('\n', "\r\n").as_bytes()).await.unwrap();
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).await.unwrap() > 0 {
            head.push(byte[0]);
        }
        (stream, String::from_utf8(head).unwrap())
    }

    /// A request of a client library, over HTTP/1.1.
    pub async fn send(&self, mut request: Request<Body>) -> Response<Incoming> {
        let io = TokioIo::new(self.open().await);
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        request.headers_mut().insert("host", "drover".parse().unwrap());
        sender.send_request(request).await.unwrap()
    }

    /// An HTTP/2 client that checks nothing.
    pub async fn http2(&self) -> h2::client::SendRequest<Bytes> {
        let (sender, connection) = h2::client::handshake(self.open().await).await.unwrap();
        tokio::spawn(connection);
        sender.ready().await.unwrap()
    }

    /// Asserts that the last request downstream carried exactly these identity headers and no other
    /// header that could be taken for one.
    pub fn assert_identity(&self, expected: &[(&str, &[&str])], case: &str) {
        let seen = self.downstream.last();
        for (name, values) in expected {
            assert_eq!(seen.values(&name.to_lowercase()), *values, "{case}: {name}");
        }
        let names: Vec<String> = expected.iter().map(|(name, _)| name.to_lowercase()).collect();
        for name in seen.headers.keys() {
            let speaks = ["impersonate", "authorization", "cookie", "x-remote", "forward", "x-api"];
            let is_identity = speaks.iter().any(|part| name.as_str().contains(part));
            assert!(!is_identity || names.contains(&name.to_string()), "{case}: {name}");
        }
        assert_eq!(seen.trailers, None, "{case}");
    }
}
