//! Replaces the subject of a certificate by one with several organisations, and signs it again.
//!
//! `rcgen` keeps one value per kind of name; Kubernetes reads one group from each organisation. So
//! this module parses the top level of the finished certificate (DER, X.680 and RFC 5280 section
//! 4.1), replaces the subject, and signs the result with the same key and algorithm.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{KeyPair, SigningKey};

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const BIT_STRING: u8 = 0x03;
const UTF8_STRING: u8 = 0x0c;
/// 2.5.4.3 and 2.5.4.10 with tag and length.
const COMMON_NAME: [u8; 5] = [0x06, 0x03, 0x55, 0x04, 0x03];
const ORGANIZATION: [u8; 5] = [0x06, 0x03, 0x55, 0x04, 0x0a];
/// Version, serial number, signature algorithm, issuer, validity, *subject*, …
const SUBJECT_POSITION: usize = 5;

/// The PEM of `certificate` with the new subject, signed by `signer`.
pub(super) fn with_groups(
    certificate: &[u8],
    user: &str,
    groups: &[&str],
    signer: &KeyPair,
) -> Result<String, rcgen::Error> {
    let broken = || rcgen::Error::CouldNotParseCertificate;
    let outer = elements(contents(certificate).ok_or_else(broken)?).ok_or_else(broken)?;
    let [to_be_signed, algorithm, _signature] = outer[..] else { return Err(broken()) };
    let mut fields = elements(contents(to_be_signed).ok_or_else(broken)?).ok_or_else(broken)?;
    let subject = name(user, groups);
    *fields.get_mut(SUBJECT_POSITION).ok_or_else(broken)? = &subject;

    let to_be_signed = element(SEQUENCE, &fields.concat());
    let mut signature = vec![0];
    signature.extend(signer.sign(&to_be_signed)?);
    let signature = element(BIT_STRING, &signature);
    Ok(pem(&element(SEQUENCE, &[&to_be_signed, algorithm, &signature].concat())))
}

fn name(user: &str, groups: &[&str]) -> Vec<u8> {
    let part = |kind: &[u8], value: &str| {
        let value = element(UTF8_STRING, value.as_bytes());
        element(SET, &element(SEQUENCE, &[kind, &value].concat()))
    };
    let mut parts: Vec<Vec<u8>> = groups.iter().map(|group| part(&ORGANIZATION, group)).collect();
    parts.push(part(&COMMON_NAME, user));
    element(SEQUENCE, &parts.concat())
}

fn element(tag: u8, contents: &[u8]) -> Vec<u8> {
    let mut encoded = vec![tag];
    if contents.len() < 0x80 {
        encoded.push(contents.len() as u8);
    } else {
        let length: Vec<u8> =
            contents.len().to_be_bytes().into_iter().skip_while(|byte| *byte == 0).collect();
        encoded.push(0x80 | length.len() as u8);
        encoded.extend(length);
    }
    encoded.extend(contents);
    encoded
}

/// Header length and contents length of the element at the start of `encoded`.
fn measure(encoded: &[u8]) -> Option<(usize, usize)> {
    let first = usize::from(*encoded.get(1)?);
    if first < 0x80 {
        return Some((2, first));
    }
    let length = encoded.get(2..2 + (first & 0x7f))?;
    let contents = length.iter().fold(0, |sum, byte| (sum << 8) | usize::from(*byte));
    Some((2 + length.len(), contents))
}

fn contents(encoded: &[u8]) -> Option<&[u8]> {
    let (header, length) = measure(encoded)?;
    encoded.get(header..header + length)
}

fn elements(mut rest: &[u8]) -> Option<Vec<&[u8]>> {
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (header, length) = measure(rest)?;
        let (one, after) = rest.split_at_checked(header + length)?;
        found.push(one);
        rest = after;
    }
    Some(found)
}

fn pem(der: &[u8]) -> String {
    let encoded = STANDARD.encode(der);
    let mut text = String::from("-----BEGIN CERTIFICATE-----\n");
    for line in encoded.as_bytes().chunks(64) {
        text.push_str(&String::from_utf8_lossy(line));
        text.push('\n');
    }
    text.push_str("-----END CERTIFICATE-----\n");
    text
}
