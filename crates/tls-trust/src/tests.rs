//! Both ends of TLS, in memory.

use std::io;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::CertificateError::{
    BadSignature, ExpiredContext, NotValidForNameContext, NotValidYetContext, UnknownIssuer,
};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConnection, Error, ServerConfig, ServerConnection, SupportedProtocolVersion};
use rustls_pki_types::PrivateKeyDer;

use super::*;

const NAME: &str = "drover.example.com";
/// First and last year of a valid certificate.
const VALID: [i32; 2] = [2000, 4000];

struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    fn server(&self, [from, to]: [i32; 2]) -> Server {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![NAME.to_owned()]).unwrap();
        params.not_before = date_time_ymd(from, 1, 1);
        params.not_after = date_time_ymd(to, 1, 1);
        let certificate = params.signed_by(&key, &self.issuer).unwrap().der().clone();
        Server { certificate, key, version: &TLS13 }
    }

    fn roots(&self) -> RootCertStore {
        roots_from_pem(&self.pem).unwrap()
    }

    /// A client of each mode that trusts this authority.
    fn clients(&self) -> [(&'static str, ClientConfigBuilder); 3] {
        let pinned = pinned_roots(&self.pem, &ca_checksum(&self.pem)).unwrap();
        [
            ("roots", trust_roots(self.roots())),
            ("pinned", trust_roots(pinned)),
            ("any certificate", trust_any_certificate()),
        ]
    }
}

struct Server {
    certificate: CertificateDer<'static>,
    key: KeyPair,
    version: &'static SupportedProtocolVersion,
}

#[derive(Debug)]
struct Presented(Arc<CertifiedKey>);

impl ResolvesServerCert for Presented {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}

impl Server {
    fn config(&self) -> Arc<ServerConfig> {
        let key = PrivateKeyDer::try_from(self.key.serialize_der()).unwrap();
        let key = provider::sign::any_supported_type(&key).unwrap();
        let presented = CertifiedKey::new(vec![self.certificate.clone()], key);
        let config = ServerConfig::builder_with_provider(crypto_provider())
            .with_protocol_versions(&[self.version])
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Presented(Arc::new(presented))));
        Arc::new(config)
    }

    /// The result of the handshake at the client.
    fn meet(&self, client: ClientConfigBuilder, name: &'static str) -> Result<(), Error> {
        let client = Arc::new(client.with_no_client_auth());
        let mut client = ClientConnection::new(client, name.try_into().unwrap()).unwrap();
        let mut server = ServerConnection::new(self.config()).unwrap();
        while client.is_handshaking() {
            let mut wire = Vec::new();
            client.write_tls(&mut wire).unwrap();
            server.read_tls(&mut io::Cursor::new(&wire)).unwrap();
            server.process_new_packets().unwrap();
            wire.clear();
            while server.wants_write() {
                server.write_tls(&mut wire).unwrap();
            }
            client.read_tls(&mut io::Cursor::new(&wire)).unwrap();
            client.process_new_packets()?;
        }
        assert_eq!(client.protocol_version(), Some(self.version.version));
        Ok(())
    }
}

#[test]
fn every_mode_accepts_a_valid_server() {
    let authority = Authority::new();
    for version in [&TLS12, &TLS13] {
        let server = Server { version, ..authority.server(VALID) };
        for (mode, client) in authority.clients() {
            server.meet(client, NAME).unwrap_or_else(|error| panic!("{mode}: {error}"));
        }
    }
}

#[test]
fn every_mode_refuses_a_server_that_lacks_the_key_of_its_certificate() {
    let authority = Authority::new();
    for version in [&TLS12, &TLS13] {
        let key = KeyPair::generate().unwrap();
        let server = Server { version, key, ..authority.server(VALID) };
        for (mode, client) in authority.clients() {
            let met = server.meet(client, NAME);
            assert_eq!(met, Err(Error::InvalidCertificate(BadSignature)), "{mode} {version:?}");
        }
    }
}

#[test]
fn roots_refuse_expired_future_foreign_and_other_certificates() {
    let authority = Authority::new();
    let refused = |server: Server, name, roots| match server.meet(trust_roots(roots), name) {
        Err(Error::InvalidCertificate(reason)) => reason,
        other => panic!("{other:?}"),
    };
    let reason = refused(authority.server([2000, 2001]), NAME, authority.roots());
    assert!(matches!(reason, ExpiredContext { .. }), "{reason:?}");
    let reason = refused(authority.server([3000, 4000]), NAME, authority.roots());
    assert!(matches!(reason, NotValidYetContext { .. }), "{reason:?}");
    let reason = refused(authority.server(VALID), "other.example.com", authority.roots());
    assert!(matches!(reason, NotValidForNameContext { .. }), "{reason:?}");
    // Another authority of the same name: the signature is not its own.
    let reason = refused(authority.server(VALID), NAME, Authority::new().roots());
    assert!(matches!(reason, BadSignature | UnknownIssuer), "{reason:?}");
}

#[test]
fn any_certificate_is_accepted_whatever_its_issuer_name_and_time() {
    let authority = Authority::new();
    for years in [VALID, [2000, 2001], [3000, 4000]] {
        authority.server(years).meet(trust_any_certificate(), "other.example.com").unwrap();
    }
}

#[test]
fn roots_with_another_checksum_are_refused() {
    let (authority, other) = (Authority::new(), Authority::new());
    let actual = ca_checksum(&authority.pem);
    match pinned_roots(&authority.pem, &ca_checksum(&other.pem)) {
        Err(error @ RootsError::Checksum { .. }) => assert!(error.to_string().contains(&actual)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_text_with_an_undecodable_or_no_certificate_gives_no_roots() {
    let good = Authority::new().pem;
    let error = |text: &str| roots_from_pem(text).unwrap_err();
    assert!(matches!(error(""), RootsError::Empty));
    assert!(matches!(error("rubbish"), RootsError::Empty));
    let cut = good.replace("-----END CERTIFICATE-----", "");
    assert!(matches!(error(&format!("{good}{cut}")), RootsError::Pem(_)));
    let empty = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(matches!(error(&format!("{good}{empty}")), RootsError::Certificate(_)));
    assert_eq!(roots_from_pem(&format!("# ours\n{good}\n{good}")).unwrap().len(), 2);
}

#[test]
fn the_checksum_does_not_depend_on_newlines_at_the_end() {
    // printf 'abc\n' | sha256sum
    let expected = "edeaaff3f1774ad2888673770c6d64097e391bc362d7d6fb34982ddf0efd18cb";
    for text in ["abc", "abc\n", "abc\n\n", "abc\r\n"] {
        assert_eq!(ca_checksum(text), expected);
    }
    assert_ne!(ca_checksum("abd"), expected);
}
