//! Both ends of TLS, in memory.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::{ClientConnection, ServerConnection};

use super::authority;
use crate::authority::{CertificateAuthority, Issued};
use crate::files::CertificateFiles;
use crate::inspect::CertificateInfo;
use crate::serving::ServingCertificate;
use crate::tls::{ClientCertificatePolicy, client_config, server_config};

struct Server {
    files: CertificateFiles,
    serving: Arc<ServingCertificate>,
    config: Arc<rustls::ServerConfig>,
    _directory: tempfile::TempDir,
}

fn server(ca: &CertificateAuthority, clients: &ClientCertificatePolicy) -> Server {
    let directory = tempfile::tempdir().unwrap();
    let files = CertificateFiles::in_directory(directory.path(), "serving");
    files.write(&ca.issue_serving("server", &[], SystemTime::now()).unwrap()).unwrap();
    let serving = ServingCertificate::load(files.clone()).unwrap();
    let config = Arc::new(server_config(serving.clone(), clients).unwrap());
    Server { files, serving, config, _directory: directory }
}

struct Met {
    server_saw: Option<CertificateInfo>,
    client_saw: CertificateInfo,
    protocol: Vec<u8>,
}

/// Runs the handshake until neither side has anything to send.
fn meet(
    server: &Server,
    trusted: &str,
    identity: Option<&Issued>,
    name: &'static str,
) -> Result<Met, rustls::Error> {
    let config = Arc::new(client_config(trusted, identity).unwrap());
    let mut client = ClientConnection::new(config, name.try_into().unwrap()).unwrap();
    let mut server = ServerConnection::new(server.config.clone()).unwrap();
    let mut wire = Vec::new();
    while client.wants_write() || server.wants_write() {
        wire.clear();
        client.write_tls(&mut wire).unwrap();
        server.read_tls(&mut io::Cursor::new(&wire)).unwrap();
        server.process_new_packets()?;
        wire.clear();
        server.write_tls(&mut wire).unwrap();
        client.read_tls(&mut io::Cursor::new(&wire)).unwrap();
        client.process_new_packets()?;
    }
    let leaf = |chain: Option<&[rustls_pki_types::CertificateDer<'_>]>| {
        chain.map(|chain| CertificateInfo::from_der(&chain[0]).unwrap())
    };
    Ok(Met {
        server_saw: leaf(server.peer_certificates()),
        client_saw: leaf(client.peer_certificates()).unwrap(),
        protocol: server.alpn_protocol().unwrap_or_default().to_vec(),
    })
}

#[test]
fn every_local_name_is_trusted_and_http_2_is_spoken() {
    let ca = authority();
    let server = server(&ca, &ClientCertificatePolicy::None);
    for name in ["localhost", "127.0.0.1", "::1"] {
        let met = meet(&server, ca.certificate_pem(), None, name).unwrap();
        assert_eq!(met.protocol, b"h2");
        assert_eq!(met.client_saw.common_name, "server");
        assert_eq!(met.server_saw, None);
    }
    assert!(meet(&server, ca.certificate_pem(), None, "elsewhere.example.com").is_err());
    assert!(meet(&server, authority().certificate_pem(), None, "localhost").is_err());
}

#[test]
fn new_connections_get_the_replaced_certificate() {
    let ca = authority();
    let server = server(&ca, &ClientCertificatePolicy::None);
    let seen = || {
        let met = meet(&server, ca.certificate_pem(), None, "localhost").unwrap();
        met.client_saw.fingerprint
    };
    let first = seen();
    server.files.write(&ca.issue_serving("server", &[], SystemTime::now()).unwrap()).unwrap();
    assert_eq!(seen(), first);
    assert!(server.serving.reload_if_changed().unwrap());
    assert_ne!(seen(), first);
}

#[test]
fn client_certificates_are_optional_and_verified() {
    let (ca, client_ca) = (authority(), authority());
    let authorities_pem = client_ca.certificate_pem().to_owned();
    let server = server(&ca, &ClientCertificatePolicy::Verified { authorities_pem });
    let trusted = ca.certificate_pem();
    let hour = Duration::from_secs(3600);
    let now = SystemTime::now();

    assert_eq!(meet(&server, trusted, None, "localhost").unwrap().server_saw, None);
    let good = client_ca.issue_client("jane", Some("ops"), hour, now).unwrap();
    let met = meet(&server, trusted, Some(&good), "localhost").unwrap();
    assert_eq!(met.server_saw.unwrap().common_name, "jane");
    let foreign = ca.issue_client("jane", None, hour, now).unwrap();
    assert!(meet(&server, trusted, Some(&foreign), "localhost").is_err());
    let expired = client_ca.issue_client("jane", None, hour, now - 3 * hour).unwrap();
    assert!(meet(&server, trusted, Some(&expired), "localhost").is_err());
}

#[test]
fn a_requested_certificate_is_passed_on_unverified_but_not_without_its_key() {
    let ca = authority();
    let server = server(&ca, &ClientCertificatePolicy::Requested);
    let trusted = ca.certificate_pem();
    let hour = Duration::from_secs(3600);
    let foreign = authority().issue_client("jane", None, hour, SystemTime::now()).unwrap();
    let met = meet(&server, trusted, Some(&foreign), "localhost").unwrap();
    assert_eq!(met.server_saw.unwrap().common_name, "jane");

    // The certificate is public: a login as jane needs her key. rustls refuses such a pair on the
    // client's side already.
    let stolen = Issued {
        key_pem: authority().issue_client("eve", None, hour, SystemTime::now()).unwrap().key_pem,
        ..foreign
    };
    assert!(client_config(trusted, Some(&stolen)).is_err());
}
