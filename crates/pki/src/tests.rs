//! Authorities, certificates and their files.

mod handshakes;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, SystemTime};

use crate::authority::{AUTHORITY_LIFE, CertificateAuthority, SERVING_LIFE};
use crate::files::{CertificateFiles, ensure_authority, ensure_serving, write_private};
use crate::inspect::CertificateInfo;
use crate::serving::ServingCertificate;

const HOUR: Duration = Duration::from_secs(3600);

fn authority() -> CertificateAuthority {
    CertificateAuthority::generate("test authority", SystemTime::now()).unwrap()
}

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn an_authority_survives_its_pem_encoding() {
    let made = authority();
    let loaded = CertificateAuthority::load(made.certificate_pem(), made.key_pem()).unwrap();
    let info = CertificateInfo::from_pem(loaded.certificate_pem()).unwrap();
    assert!(info.is_authority);
    assert_eq!(info.common_name, "test authority");
    assert!(info.not_after > SystemTime::now() + AUTHORITY_LIFE - HOUR);
    assert!(!info.is_due_at(SystemTime::now()));
    assert!(!format!("{loaded:?}").contains("PRIVATE"));
}

#[test]
fn a_foreign_key_or_a_leaf_is_no_authority() {
    let (one, two) = (authority(), authority());
    assert!(CertificateAuthority::load(one.certificate_pem(), two.key_pem()).is_err());
    let leaf = one.issue_serving("server", &[], SystemTime::now()).unwrap();
    assert!(CertificateAuthority::load(&leaf.certificate_pem, &leaf.key_pem).is_err());
    assert!(CertificateAuthority::load("no PEM", two.key_pem()).is_err());
    assert!(CertificateAuthority::load(one.certificate_pem(), "no PEM").is_err());
}

#[test]
fn a_serving_certificate_has_the_local_names_and_those_given() {
    let now = SystemTime::now();
    let requested = names(&["drover.example.com", "192.0.2.7", "localhost", ""]);
    let pair = authority().issue_serving("drover", &requested, now).unwrap();
    let info = CertificateInfo::from_pem(&pair.certificate_pem).unwrap();
    assert_eq!(info.names, ["127.0.0.1", "192.0.2.7", "::1", "drover.example.com", "localhost"]);
    assert!(!info.is_authority);
    assert!(info.is_valid_at(now) && info.is_valid_at(now - HOUR / 2));
    assert!(!info.is_valid_at(now - 2 * HOUR));
    assert!(!info.is_valid_at(now + SERVING_LIFE + HOUR));
    assert!(!info.is_due_at(now + SERVING_LIFE / 2) && info.is_due_at(now + SERVING_LIFE * 3 / 4));
    assert!(!format!("{pair:?}").contains("PRIVATE"));
    assert!(authority().issue_serving("drover", &names(&["bücher"]), now).is_err());
}

#[test]
fn a_client_certificate_names_user_and_group() {
    let life = Duration::from_secs(60);
    let now = SystemTime::now();
    let pair = authority().issue_client("jane", Some("system:masters"), life, now).unwrap();
    let info = CertificateInfo::from_pem(&pair.certificate_pem).unwrap();
    assert_eq!(info.common_name, "jane");
    assert_eq!(info.organizations, ["system:masters"]);
    assert!(info.names.is_empty());
    assert!(!info.is_valid_at(now + HOUR));
}

#[test]
fn files_are_made_once_and_keys_are_private() {
    let directory = tempfile::tempdir().unwrap();
    let files = CertificateFiles::in_directory(&directory.path().join("tls"), "ca");
    let now = SystemTime::now();
    let first = ensure_authority(&files, "ca", now).unwrap();
    let second = ensure_authority(&files, "ca", now).unwrap();
    assert_eq!(first.certificate_pem(), second.certificate_pem());
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&files.key), 0o600);
    assert_eq!(mode(&files.certificate), 0o644);
    assert_eq!(mode(files.key.parent().unwrap()), 0o700);
    let left = fs::read_dir(files.key.parent().unwrap()).unwrap().count();
    assert_eq!(left, 2, "no temporary file is left");

    fs::write(&files.certificate, "rubbish").unwrap();
    assert!(ensure_authority(&files, "ca", now).is_err(), "never replaced unasked");
}

#[test]
fn a_key_without_its_certificate_is_a_first_start_that_was_cut_off() {
    let directory = tempfile::tempdir().unwrap();
    let files = CertificateFiles::in_directory(directory.path(), "ca");
    write_private(&files.key, b"half a start").unwrap();
    ensure_authority(&files, "ca", SystemTime::now()).unwrap();
    ensure_authority(&files, "ca", SystemTime::now()).unwrap();
}

#[test]
fn a_serving_certificate_is_renewed_when_it_no_longer_serves() {
    let directory = tempfile::tempdir().unwrap();
    let files = CertificateFiles::in_directory(directory.path(), "serving");
    let (ca, other_ca) = (authority(), authority());
    let now = SystemTime::now();
    let later = now + SERVING_LIFE * 3 / 4;
    let more = names(&["drover.example.com"]);
    let ensure = |ca: &CertificateAuthority, names: &[String], now: SystemTime| {
        ensure_serving(&files, ca, "drover", names, now).unwrap()
    };
    assert!(ensure(&ca, &[], now), "missing");
    assert!(!ensure(&ca, &[], now));
    assert!(ensure(&ca, &more, now), "a new name");
    assert!(!ensure(&ca, &[], now), "more names than needed are fine");
    assert!(ensure(&ca, &more, later), "due");
    assert!(!ensure(&ca, &more, later));
    assert!(ensure(&other_ca, &more, later), "another authority");
    fs::write(&files.key, ca.key_pem()).unwrap();
    assert!(ensure(&other_ca, &more, later), "a key that is not its own");
    fs::write(&files.certificate, "rubbish").unwrap();
    assert!(ensure(&other_ca, &more, later));
}

#[test]
fn a_replaced_certificate_is_reloaded_and_a_broken_one_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let files = CertificateFiles::in_directory(directory.path(), "serving");
    let ca = authority();
    let now = SystemTime::now();
    ensure_serving(&files, &ca, "drover", &[], now).unwrap();
    let serving = ServingCertificate::load(files.clone()).unwrap();
    let first = serving.certificate_pem();
    assert!(!serving.reload_if_changed().unwrap());

    let second = ca.issue_serving("drover", &[], now).unwrap();
    write_private(&files.key, second.key_pem.as_bytes()).unwrap();
    assert!(serving.reload_if_changed().is_err(), "half replaced");
    assert_eq!(serving.certificate_pem(), first);
    files.write(&second).unwrap();
    assert!(serving.reload_if_changed().unwrap());
    assert_eq!(serving.certificate_pem(), second.certificate_pem);

    fs::remove_file(&files.certificate).unwrap();
    assert!(serving.reload_if_changed().is_err());
    assert_eq!(serving.certificate_pem(), second.certificate_pem);
    assert!(ServingCertificate::load(files).is_err());
}

#[test]
fn oversized_files_are_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let files = CertificateFiles::in_directory(directory.path(), "big");
    let length = usize::try_from(crate::files::FILE_BYTES_MAX).unwrap() + 1;
    fs::write(&files.certificate, vec![b'x'; length]).unwrap();
    write_private(&files.key, b"x").unwrap();
    let error = files.read().unwrap_err().to_string();
    assert!(error.contains("larger than"), "{error}");
}
