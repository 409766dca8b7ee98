//! Certificates that operators bring: which are taken, with which authority, and what is said of
//! the others.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use pki::{CertificateAuthority, CertificateFiles, Issued};
use tempfile::TempDir;

use super::{CertificateError, Serving, TlsSettings, Trust, covers};
use crate::files::{DataFolder, Keys};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

struct World {
    folder: TempDir,
    keys: Arc<Keys>,
    authority: CertificateAuthority,
    now: SystemTime,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let keys = DataFolder::open(&folder.path().join("data")).unwrap().keys(&[]).unwrap();
        let keys = Arc::new(keys);
        let now = SystemTime::now();
        let authority = CertificateAuthority::generate("a company", now).unwrap();
        Self { folder, keys, authority, now }
    }

    fn issue(&self, now: SystemTime) -> Issued {
        let names = ["drover.example.com".to_owned()];
        self.authority.issue_serving("drover.example.com", &names, now).unwrap()
    }

    /// Writes the pair, and returns the flags that name it.
    fn give(&self, pair: &Issued) -> TlsSettings {
        let files = CertificateFiles::in_directory(self.folder.path(), "given");
        files.write(pair).unwrap();
        TlsSettings { tls_cert: Some(files.certificate), tls_key: Some(files.key), tls_ca: None }
    }

    fn load(&self, tls: &TlsSettings) -> Result<Serving, CertificateError> {
        Serving::load(tls, &self.keys, self.now)
    }

    fn refusal(&self, tls: &TlsSettings) -> String {
        match self.load(tls) {
            Ok(serving) => panic!("the certificate was taken with {:?}", serving.trust),
            Err(error) => format!("{:#}", anyhow::Error::from(error)),
        }
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }
}

/// The chain without the root that this authority puts at its end.
fn without_root(pair: &Issued, authority: &CertificateAuthority) -> Issued {
    let leaf = pair.certificate_pem.strip_suffix(authority.certificate_pem()).unwrap();
    Issued { certificate_pem: leaf.to_owned(), key_pem: pair.key_pem.clone() }
}

fn same_certificate(one: &str, other: &str) -> bool {
    let read = |pem: &str| pki::CertificateInfo::from_pem(pem).unwrap().fingerprint;
    read(one) == read(other)
}

#[test]
fn without_flags_the_server_has_a_certificate_of_its_own_authority() {
    let world = World::new();
    let serving = world.load(&TlsSettings::default()).unwrap();
    assert_eq!(serving.trust, Trust::Pinned(world.keys.authority.certificate_pem().to_owned()));
}

#[test]
fn a_certificate_of_the_server_s_own_is_renewed_while_it_runs() {
    let world = World::new();
    let serving = world.load(&TlsSettings::default()).unwrap();
    let first = serving.certificate.certificate_pem();
    assert!(!serving.renew(world.now).unwrap());
    assert!(serving.renew(world.now + DAY * 300).unwrap());
    let second = serving.certificate.certificate_pem();
    let ends = |pem: &str| pki::CertificateInfo::from_pem(pem).unwrap().not_after;
    assert!(ends(&second) > ends(&first));
    assert!(second.ends_with(world.keys.authority.certificate_pem()));
}

#[test]
fn the_root_at_the_end_of_a_given_chain_is_what_agents_pin() {
    let world = World::new();
    let serving = world.load(&world.give(&world.issue(world.now))).unwrap();
    assert!(same_certificate(serving.trust.pem(), world.authority.certificate_pem()));
    assert_eq!(serving.trust.checksum(), tls_trust::ca_checksum(serving.trust.pem()));
}

#[test]
fn a_chain_without_its_root_needs_an_authority_that_the_system_trusts_or_tls_ca() {
    let world = World::new();
    let mut tls = world.give(&without_root(&world.issue(world.now), &world.authority));
    let refusal = world.refusal(&tls);
    assert!(refusal.contains("authorities of this system"), "{refusal}");
    assert!(refusal.contains("--tls-ca"), "{refusal}");
    tls.tls_ca = Some(world.write("root.pem", world.authority.certificate_pem()));
    let serving = world.load(&tls).unwrap();
    assert!(same_certificate(serving.trust.pem(), world.authority.certificate_pem()));
}

#[test]
fn another_authority_than_that_of_the_certificate_is_refused() {
    let world = World::new();
    let other = CertificateAuthority::generate("another company", world.now).unwrap();
    let mut tls = world.give(&world.issue(world.now));
    tls.tls_ca = Some(world.write("other.pem", other.certificate_pem()));
    let refusal = world.refusal(&tls);
    assert!(refusal.contains("does not verify with its authority"), "{refusal}");
    tls.tls_ca = Some("/nonexistent/ca.pem".to_owned());
    assert!(world.refusal(&tls).starts_with("tls-ca: cannot read \"/nonexistent/ca.pem\""));
}

#[test]
fn files_that_cannot_be_used_are_named_with_what_is_wrong() {
    let world = World::new();
    let pair = world.issue(world.now);
    let missing = TlsSettings {
        tls_cert: Some("/nonexistent/c".into()),
        tls_key: Some("/nonexistent/k".into()),
        tls_ca: None,
    };
    let stranger = world.issue(world.now);
    let mixed = Issued { key_pem: stranger.key_pem, ..pair.clone() };
    let garbled = Issued { certificate_pem: "no certificate".to_owned(), ..pair.clone() };
    let keyless = Issued { key_pem: "no key".to_owned(), ..pair };
    let cases =
        [(missing, "/nonexistent/c"), (world.give(&mixed), "does not belong to the certificate")];
    for (tls, said) in cases {
        let refusal = world.refusal(&tls);
        assert!(refusal.starts_with("tls-cert, tls-key"), "{refusal}");
        assert!(refusal.contains(said), "{refusal}");
    }
    for (pair, file) in [(garbled, "given.pem"), (keyless, "given-key.pem")] {
        let refusal = world.refusal(&world.give(&pair));
        assert!(refusal.contains(file), "{refusal}");
    }
}

#[test]
fn a_certificate_outside_of_its_time_is_refused_with_that_time() {
    let world = World::new();
    let refusal = world.refusal(&world.give(&world.issue(world.now - DAY * 500)));
    assert!(refusal.contains("\"drover.example.com\""), "{refusal}");
    assert!(refusal.contains("has expired at"), "{refusal}");
    let refusal = world.refusal(&world.give(&world.issue(world.now + DAY)));
    assert!(refusal.contains("is not valid before"), "{refusal}");
}

#[test]
fn renewed_files_are_taken_and_those_of_another_authority_are_not() {
    let world = World::new();
    let serving = world.load(&world.give(&world.issue(world.now))).unwrap();
    assert!(!serving.renew(world.now).unwrap());
    let renewed = world.issue(world.now);
    world.give(&renewed);
    assert!(serving.renew(world.now).unwrap());
    assert_eq!(serving.certificate.certificate_pem(), renewed.certificate_pem);

    let other = CertificateAuthority::generate("another company", world.now).unwrap();
    let names = ["drover.example.com".to_owned()];
    world.give(&other.issue_serving("drover.example.com", &names, world.now).unwrap());
    assert!(serving.renew(world.now).is_err());
    assert_eq!(serving.certificate.certificate_pem(), renewed.certificate_pem);
    assert!(Path::new(&serving.certificate.files().certificate).exists());
}

#[test]
fn a_proxy_in_front_decides_what_others_verify_the_server_with() {
    let world = World::new();
    let public = TlsSettings { tls_ca: Some("system".to_owned()), ..TlsSettings::default() };
    let serving = world.load(&public).unwrap();
    assert_eq!((serving.trust.pem(), serving.trust.checksum().as_str()), ("", ""));
    let file = world.write("proxy-ca.pem", world.authority.certificate_pem());
    let private = TlsSettings { tls_ca: Some(file), ..TlsSettings::default() };
    let serving = world.load(&private).unwrap();
    assert!(same_certificate(serving.trust.pem(), world.authority.certificate_pem()));
}

#[test]
fn names_with_an_asterisk_are_good_for_one_label() {
    assert!(covers("drover.example.com", "Drover.example.com"));
    assert!(covers("*.example.com", "drover.example.com"));
    assert!(!covers("*.example.com", "a.b.example.com"));
    assert!(!covers("*.example.com", "example.com"));
}
