//! An OpenID Connect provider and a token webhook in one HTTPS server on loopback.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs as provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

pub struct Provider {
    address: SocketAddr,
    pub ca_pem: String,
    state: Arc<Mutex<State>>,
    _task: JoinSet<()>,
}

/// A received TokenReview.
#[derive(Clone, Debug)]
pub struct Review {
    pub authorization: String,
    pub body: Value,
}

#[derive(Default)]
struct State {
    issuer: String,
    keys: Vec<(String, Signer)>,
    /// Number of requests for the key set.
    key_fetches: usize,
    reviews: Vec<Review>,
}

pub enum Signer {
    Rsa(RsaKeyPair),
    Ecdsa(EcdsaKeyPair),
}

impl Signer {
    pub fn rsa() -> Self {
        Self::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap())
    }

    pub fn ecdsa() -> Self {
        Self::Ecdsa(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Rsa(_) => "RS256",
            Self::Ecdsa(_) => "ES256",
        }
    }

    /// A token with these claims that says to be signed by the key `id`.
    pub fn sign(&self, id: &str, claims: &Value) -> String {
        self.sign_as(self.algorithm(), id, claims)
    }

    pub fn sign_as(&self, algorithm: &str, id: &str, claims: &Value) -> String {
        self.sign_with(&json!({"alg": algorithm, "kid": id, "typ": "JWT"}), claims)
    }

    /// A token with this header; the key alone decides how it is signed.
    pub fn sign_with(&self, head: &Value, claims: &Value) -> String {
        let text = format!("{}.{}", encode(head.to_string()), encode(claims.to_string()));
        let random = SystemRandom::new();
        let signature = match self {
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, text.as_bytes(), &mut signature).unwrap();
                signature
            }
            Self::Ecdsa(key) => key.sign(&random, text.as_bytes()).unwrap().as_ref().to_vec(),
        };
        format!("{text}.{}", encode(signature))
    }

    fn jwk(&self, id: &str) -> Value {
        match self {
            Self::Rsa(key) => {
                // SEQUENCE { INTEGER of 257 bytes, the first 0; INTEGER of 3 bytes }
                let der = key.public_key().as_ref();
                json!({
                    "kty": "RSA", "use": "sig", "alg": "RS256", "kid": id,
                    "n": encode(&der[9..265]), "e": encode(&der[267..]),
                })
            }
            Self::Ecdsa(key) => {
                let point = key.public_key().as_ref();
                json!({
                    "kty": "EC", "use": "sig", "alg": "ES256", "kid": id, "crv": "P-256",
                    "x": encode(&point[1..33]), "y": encode(&point[33..]),
                })
            }
        }
    }
}

pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Provider {
    pub async fn start() -> Self {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()])
            .unwrap()
            .self_signed(&key)
            .unwrap();
        let private = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(provider::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let issuer = format!("https://{address}/realm");
        let state = Arc::new(Mutex::new(State { issuer, ..State::default() }));
        let mut task = JoinSet::new();
        task.spawn(accept(listener, TlsAcceptor::from(Arc::new(config)), state.clone()));
        Self { address, ca_pem: certificate.pem(), state, _task: task }
    }

    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    pub fn issuer(&self) -> String {
        self.url("/realm")
    }

    /// Changes the issuer in its discovery document.
    pub fn claim_issuer(&self, issuer: &str) {
        self.state.lock().issuer = issuer.to_owned();
    }

    /// Publishes these keys and no others.
    pub fn publish(&self, keys: Vec<(&str, Signer)>) {
        let keys = keys.into_iter().map(|(id, key)| (id.to_owned(), key)).collect();
        self.state.lock().keys = keys;
    }

    /// A token signed by a published key.
    pub fn token(&self, id: &str, claims: &Value) -> String {
        self.signed(id, |key| key.sign(id, claims))
    }

    /// The same with this header.
    pub fn token_with(&self, id: &str, head: &Value, claims: &Value) -> String {
        self.signed(id, |key| key.sign_with(head, claims))
    }

    fn signed(&self, id: &str, sign: impl Fn(&Signer) -> String) -> String {
        let state = self.state.lock();
        let (_, key) = state.keys.iter().find(|(other, _)| other == id).unwrap();
        sign(key)
    }

    pub fn key_fetches(&self) -> usize {
        self.state.lock().key_fetches
    }

    /// The reviews since the last call.
    pub fn take_reviews(&self) -> Vec<Review> {
        std::mem::take(&mut self.state.lock().reviews)
    }
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, state: Arc<Mutex<State>>) {
    let mut connections = JoinSet::new();
    loop {
        let (tcp, _) = listener.accept().await.unwrap();
        let (acceptor, state) = (acceptor.clone(), state.clone());
        connections.spawn(async move {
            let Ok(tls) = acceptor.accept(tcp).await else { return };
            let service = service_fn(|request| answer(request, state.clone()));
            let connection = hyper::server::conn::http1::Builder::new();
            // Clients may disconnect.
            let _ = connection.serve_connection(TokioIo::new(tls), service).await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    state: Arc<Mutex<State>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let mut state = state.lock();
    let answer = match parts.uri.path() {
        "/realm/.well-known/openid-configuration" => {
            let keys = format!("{}/keys", state.issuer);
            Some(json!({"issuer": state.issuer, "jwks_uri": keys}).to_string())
        }
        "/realm/keys" => {
            state.key_fetches += 1;
            let keys: Vec<Value> = state.keys.iter().map(|(id, key)| key.jwk(id)).collect();
            Some(json!({"keys": keys}).to_string())
        }
        "/review" => {
            let authorization = parts.headers.get("authorization");
            let authorization =
                authorization.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
            let body: Value = serde_json::from_slice(&body).unwrap();
            state.reviews.push(Review { authorization, body: body.clone() });
            review(body["spec"]["token"].as_str().unwrap(), state.reviews.len())
        }
        _ => None,
    };
    let mut response = Response::new(Full::from(answer.clone().unwrap_or_default()));
    if answer.is_none() {
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    }
    Ok(response)
}

/// The webhook's response; `None` is an error 500.
fn review(token: &str, calls: usize) -> Option<String> {
    let status = match token {
        "for-others" => {
            json!({"authenticated": true, "user": {"username": "x"}, "audiences": ["others"]})
        }
        "nameless" => json!({"authenticated": true, "user": {"groups": ["system:masters"]}}),
        "no-json" => return Some("<html>".to_owned()),
        "outside-late" if calls < 3 => return None,
        _ => match token.strip_prefix("outside-") {
            Some(name) => json!({"authenticated": true, "user": {
                "username": name, "uid": format!("u-{name}"), "groups": ["people"],
                "extra": {"team": ["red"]},
            }}),
            None => json!({"authenticated": false, "error": "no such token"}),
        },
    };
    Some(json!({"kind": "TokenReview", "status": status}).to_string())
}
