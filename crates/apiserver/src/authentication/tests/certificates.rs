//! Client certificates, and proxies that present one.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::FutureExt as _;
use http::request;
use pki::{CertificateAuthority, Issued};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

use super::parts;
use crate::attributes::{Authenticator, ClientCertificates, InvalidCredential, UserInfo};
use crate::authentication::{
    CertificateVerifier, FrontProxyAuthenticator, UnionAuthenticator, X509Authenticator,
};

const HOUR: Duration = Duration::from_secs(3600);

fn authority() -> CertificateAuthority {
    CertificateAuthority::generate("test", SystemTime::now()).unwrap()
}

fn verifier(ca: &CertificateAuthority) -> Arc<CertificateVerifier> {
    Arc::new(CertificateVerifier::new(ca.certificate_pem()).unwrap())
}

fn chain(pair: &Issued) -> ClientCertificates {
    let chain = CertificateDer::pem_slice_iter(pair.certificate_pem.as_bytes());
    ClientCertificates(Arc::new(chain.map(|der| der.unwrap().to_vec()).collect()))
}

fn parts_with_certificate(pair: &Issued, lines: &[(&str, &str)]) -> request::Parts {
    let mut parts = parts(lines);
    parts.extensions.insert(chain(pair));
    parts
}

type AuthenticationResult = Result<Option<UserInfo>, InvalidCredential>;

fn authenticate(authenticator: &dyn Authenticator, parts: &request::Parts) -> AuthenticationResult {
    authenticator.authenticate(parts).now_or_never().expect("authentication does not wait")
}

#[test]
fn the_common_name_is_the_user_and_the_organization_a_group() {
    let ca = authority();
    let now = SystemTime::now();
    let x509 = X509Authenticator::new(verifier(&ca));
    let pair = ca.issue_client("jane", Some("ops"), HOUR, now).unwrap();
    for _ in 0..2 {
        let user = authenticate(&x509, &parts_with_certificate(&pair, &[])).unwrap().unwrap();
        assert_eq!((user.name.as_str(), user.groups), ("jane", vec!["ops".to_owned()]));
        let id = &user.extra["authentication.kubernetes.io/credential-id"][0];
        let fingerprint =
            pki::CertificateInfo::from_pem(&pair.certificate_pem).unwrap().fingerprint;
        assert_eq!(*id, format!("X509SHA256={fingerprint}"));
    }
    assert_eq!(authenticate(&x509, &parts(&[])).unwrap(), None);
    let nameless = ca.issue_client("", Some("ops"), HOUR, now).unwrap();
    assert_eq!(authenticate(&x509, &parts_with_certificate(&nameless, &[])).unwrap(), None);
}

/// A certificate from `ca` with two organizations and a UID.
fn issue_with_two_groups(ca: &CertificateAuthority) -> Issued {
    use rcgen::{CertificateParams, DnType, Issuer, KeyPair};
    let issuer_key = KeyPair::from_pem(ca.key_pem()).unwrap();
    let issuer = Issuer::from_ca_cert_pem(ca.certificate_pem(), issuer_key).unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "jane");
    params.distinguished_name.push(DnType::OrganizationName, "ops");
    params.distinguished_name.push(DnType::CustomDnType(vec![2, 5, 4, 10]), "dev");
    let uid = DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
    params.distinguished_name.push(uid, "u-1");
    params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    Issued { certificate_pem: certificate.pem(), key_pem: key.serialize_pem() }
}

#[test]
fn every_organization_is_a_group_and_the_uid_is_used() {
    let ca = authority();
    let x509 = X509Authenticator::new(verifier(&ca));
    let user = authenticate(&x509, &parts_with_certificate(&issue_with_two_groups(&ca), &[]))
        .unwrap()
        .unwrap();
    assert_eq!(user.groups, ["ops", "dev"]);
    assert_eq!(user.uid, "u-1");
}

#[test]
fn a_certificate_is_valid_only_in_its_time_and_from_its_ca() {
    let (ca, other) = (authority(), authority());
    let verifier = verifier(&ca);
    let now = SystemTime::now();
    let good = chain(&ca.issue_client("jane", None, HOUR, now).unwrap());
    assert!(verifier.verify(&good, now).is_ok());
    assert!(verifier.verify(&good, now + 2 * HOUR).is_err(), "expired since it was cached");
    assert!(verifier.verify(&good, now - 2 * HOUR).is_err(), "not yet");
    let foreign = chain(&other.issue_client("jane", None, HOUR, now).unwrap());
    assert!(verifier.verify(&foreign, now).is_err());
    let serving = chain(&ca.issue_serving("jane", &[], now).unwrap());
    assert!(verifier.verify(&serving, now).is_err(), "a server is no client");
    assert!(verifier.verify(&ClientCertificates(Arc::default()), now).is_err());
    let rubbish = ClientCertificates(Arc::new(vec![vec![1, 2, 3]]));
    assert!(verifier.verify(&rubbish, now).is_err());
}

#[test]
fn replaced_cas_take_effect_at_once() {
    let (ca, next) = (authority(), authority());
    let verifier = verifier(&ca);
    let now = SystemTime::now();
    let old = chain(&ca.issue_client("jane", None, HOUR, now).unwrap());
    let new = chain(&next.issue_client("jane", None, HOUR, now).unwrap());
    assert!(verifier.verify(&old, now).is_ok() && verifier.verify(&new, now).is_err());
    assert!(verifier.replace("no certificate").is_err());
    assert!(verifier.verify(&old, now).is_ok());
    verifier.replace(next.certificate_pem()).unwrap();
    assert!(verifier.verify(&old, now).is_err() && verifier.verify(&new, now).is_ok());
}

const IDENTITY_HEADERS: &[(&str, &str)] = &[
    ("X-Remote-User", "jane"),
    ("X-Remote-Uid", "u-1"),
    ("X-Remote-Group", "g1"),
    ("X-Remote-Group", "g2"),
    ("X-Remote-Extra-Acme.com%2Fproj", "x"),
    ("X-Remote-Extra-Scopes", "a"),
    ("X-Remote-Extra-Scopes", "b"),
];

#[test]
fn a_proxy_with_its_certificate_is_trusted() {
    let ca = authority();
    let pair = ca.issue_client("front-proxy", None, HOUR, SystemTime::now()).unwrap();
    for names in [vec!["front-proxy".to_owned()], vec![]] {
        let proxy = FrontProxyAuthenticator::new(verifier(&ca), names);
        let user = authenticate(&proxy, &parts_with_certificate(&pair, IDENTITY_HEADERS))
            .unwrap()
            .unwrap();
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("jane", "u-1"));
        assert_eq!(user.groups, ["g1", "g2"]);
        assert_eq!(user.extra["acme.com/proj"], ["x"]);
        assert_eq!(user.extra["scopes"], ["a", "b"]);
        assert_eq!(authenticate(&proxy, &parts_with_certificate(&pair, &[])).unwrap(), None);
        let doubled = [IDENTITY_HEADERS, &[("x-remote-user", "root")]].concat();
        assert!(authenticate(&proxy, &parts_with_certificate(&pair, &doubled)).is_err());
    }
}

#[test]
fn other_certificates_are_not_trusted_as_proxies() {
    let (ca, client_ca) = (authority(), authority());
    let now = SystemTime::now();
    let proxy = FrontProxyAuthenticator::new(verifier(&ca), vec!["front-proxy".to_owned()]);
    let other_name = ca.issue_client("other", None, HOUR, now).unwrap();
    let client = client_ca.issue_client("eve", None, HOUR, now).unwrap();
    let expired = ca.issue_client("front-proxy", None, HOUR, now - 3 * HOUR).unwrap();
    for pair in [&other_name, &client, &expired] {
        assert!(authenticate(&proxy, &parts_with_certificate(pair, IDENTITY_HEADERS)).is_err());
    }
    assert_eq!(
        authenticate(&proxy, &parts(IDENTITY_HEADERS)).unwrap(),
        None,
        "without a certificate the headers are ignored"
    );

    // A client of the other CA has the identity of its certificate, whatever its headers say.
    let x509 = X509Authenticator::new(verifier(&client_ca));
    let union = UnionAuthenticator::new(vec![Arc::new(proxy), Arc::new(x509)], true);
    let user =
        authenticate(&union, &parts_with_certificate(&client, IDENTITY_HEADERS)).unwrap().unwrap();
    assert_eq!(user.name, "eve");
    assert_eq!(user.groups, ["system:authenticated"]);
}
