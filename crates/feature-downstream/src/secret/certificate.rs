//! Certificates with their keys, and what the first certificate says of itself.

use rest_view::Mapper;
use serde_json::{Map, Value};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;
use x509_parser::time::ASN1Time;
use x509_parser::x509::X509Name;

use super::content::{put, show, text};

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";

/// See the module.
pub struct Certificate;

impl Mapper for Certificate {
    fn to_view(&self, stored: &Value, fields: &mut Map<String, Value>) {
        show(stored, CERTIFICATE, fields, "certs");
        let first = text(stored, CERTIFICATE).and_then(|text| {
            let pem = Pem::iter_from_buffer(text.as_bytes()).next()?.ok()?;
            describe(&pem.contents)
        });
        fields.extend(first.unwrap_or_default());
    }

    fn to_stored(&self, input: &Map<String, Value>, stored: &mut Value) {
        put(stored, CERTIFICATE, input.get("certs"));
        put(stored, KEY, input.get("key"));
    }
}

/// Fields about one certificate. `None` for what is none: anybody may put anything into a Secret.
fn describe(der: &[u8]) -> Option<Map<String, Value>> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    set("cn", common_name(certificate.subject()).into());
    set("issuer", common_name(certificate.issuer()).into());
    set("issuedAt", time(certificate.validity().not_before).into());
    set("expiresAt", time(certificate.validity().not_after).into());
    set("serialNumber", certificate.serial.to_string().into());
    // The encoding counts from zero.
    set("version", (certificate.version().0 + 1).to_string().into());
    let key = certificate.public_key().parsed().ok();
    let (algorithm, bits) = match &key {
        Some(PublicKey::RSA(key)) => ("RSA", key.key_size()),
        Some(PublicKey::EC(point)) => ("ECDSA", point.key_size()),
        _ => ("", 0),
    };
    if bits > 0 {
        set("algorithm", algorithm.into());
        set("keySize", bits.to_string().into());
    }
    let names = certificate.subject_alternative_name().ok().flatten();
    let names = names.into_iter().flat_map(|names| &names.value.general_names);
    set("subjectAlternativeNames", names.filter_map(alternative_name).collect());
    Some(fields)
}

fn common_name(name: &X509Name<'_>) -> String {
    name.iter_common_name().find_map(|part| part.as_str().ok()).unwrap_or_default().to_owned()
}

fn time(time: ASN1Time) -> String {
    let rfc3339 = jiff::Timestamp::from_second(time.timestamp());
    rfc3339.map(|time| time.to_string()).unwrap_or_default()
}

fn alternative_name(name: &GeneralName<'_>) -> Option<Value> {
    match name {
        GeneralName::DNSName(name) | GeneralName::RFC822Name(name) | GeneralName::URI(name) => {
            Some((*name).into())
        }
        GeneralName::IPAddress(bytes) => {
            let v4 = <[u8; 4]>::try_from(*bytes).map(std::net::IpAddr::from);
            let v6 = || <[u8; 16]>::try_from(*bytes).map(std::net::IpAddr::from);
            v4.or_else(|_| v6()).ok().map(|address| address.to_string().into())
        }
        _ => None,
    }
}
