//! Validation of certificate requests and of their status.

use api_meta::names::{self, NameCheck};
use api_meta::status::Cause;
use apiserver::fields::{items, str_of};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::{Pem, parse_x509_pem};
use x509_parser::prelude::FromDer;

/// Shortest lifetime that may be requested for a certificate, in seconds.
const LIFE_SECONDS_MIN: i64 = 600;
/// The signer of requests from before signers had names.
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";

const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];
/// Conditions that cannot be removed, and whether `/approval` (else `/status`) sets them.
const LASTING: [(&str, bool); 3] = [("Approved", true), ("Denied", true), ("Failed", false)];

/// Returns all causes to refuse the object. `approves` is whether the write uses `/approval`; `old`
/// is the object before an update.
pub fn all(approves: bool, object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = match old {
        None => spec(&object["spec"]),
        Some(_) => Vec::new(),
    };
    let conditions = items(&object["status"]["conditions"]);
    causes.extend(states(conditions));
    causes.extend(certificate(&object["status"]["certificate"], old));
    for (kind, by_approval) in LASTING {
        let count = |conditions: &[Value]| conditions.iter().filter(|c| c["type"] == kind).count();
        let before = old.map_or(0, |old| count(items(&old["status"]["conditions"])));
        let after = count(conditions);
        let text = if after < before {
            format!("updates may not remove a condition of type \"{kind}\"")
        } else if after > before && by_approval && !approves {
            format!("updates may not add a condition of type \"{kind}\"")
        } else {
            continue;
        };
        causes.push(Cause::forbidden("status.conditions", &text));
    }
    let (before, after) =
        (old.map_or("", |old| str_of(&old["status"]["certificate"])), &object["status"]);
    if !before.is_empty() && before != str_of(&after["certificate"]) {
        let text = "updates may not modify existing certificate content";
        causes.push(Cause::forbidden("status.certificate", text));
    }
    causes
}

fn spec(spec: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if let Some(problem) = request_problem(str_of(&spec["request"])) {
        causes.push(Cause::invalid("spec.request", &spec["request"], problem));
    }
    let usages = items(&spec["usages"]);
    if usages.is_empty() {
        causes.push(Cause::required("spec.usages", ""));
    }
    for (index, usage) in usages.iter().enumerate() {
        let field = format!("spec.usages[{index}]");
        if !USAGES.contains(&str_of(usage)) {
            causes.push(Cause::not_supported(&*field, usage, &USAGES));
        }
        if usages[..index].contains(usage) {
            causes.push(Cause::duplicate(field, usage));
        }
    }
    causes.extend(signer(str_of(&spec["signerName"])));
    let seconds = &spec["expirationSeconds"];
    if seconds.as_i64().is_some_and(|seconds| seconds < LIFE_SECONDS_MIN) {
        let text = "may not specify a duration less than 600 seconds (10 minutes)";
        causes.push(Cause::invalid("spec.expirationSeconds", seconds, text));
    }
    causes
}

fn request_problem(request: &str) -> Option<&'static str> {
    let pem = STANDARD.decode(request).unwrap_or_default();
    match parse_x509_pem(&pem) {
        Ok((_, block)) if block.label == "CERTIFICATE REQUEST" => {
            let request = X509CertificationRequest::from_der(&block.contents);
            request.is_err().then_some("the block is no certificate request in DER")
        }
        _ => Some("PEM block type must be CERTIFICATE REQUEST"),
    }
}

fn signer(name: &str) -> Vec<Cause> {
    const FIELD: &str = "spec.signerName";
    if name.is_empty() {
        return vec![Cause::required(FIELD, "")];
    }
    if name == LEGACY_SIGNER {
        let text = "the legacy signerName is not allowed via this API version";
        return vec![Cause::invalid(FIELD, &name.into(), text)];
    }
    let parts: Vec<&str> = name.split('/').collect();
    let [domain, path] = parts[..] else {
        let text =
            "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return vec![Cause::invalid(FIELD, &name.into(), text)];
    };
    let mut causes = Vec::new();
    let checks: [(&str, NameCheck); 2] =
        [(domain, names::dns1123_label), (path, names::dns1123_subdomain)];
    for (part, check) in checks {
        for label in part.split('.') {
            for problem in check(label) {
                let text = format!("validating label \"{label}\": {problem}");
                causes.push(Cause::invalid(FIELD, &part.into(), &text));
            }
        }
        if part == domain && !domain.contains('.') {
            let text = "should be a domain with at least two segments separated by dots";
            causes.push(Cause::invalid(FIELD, &domain.into(), text));
        }
    }
    causes
}

fn states(conditions: &[Value]) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (index, condition) in conditions.iter().enumerate() {
        let field = format!("status.conditions[{index}]");
        let kind = str_of(&condition["type"]);
        if kind.is_empty() {
            causes.push(Cause::required(format!("{field}.type"), ""));
            continue;
        }
        let lasts = LASTING.iter().any(|(lasting, _)| *lasting == kind);
        let status = format!("{field}.status");
        match (str_of(&condition["status"]), lasts) {
            ("", _) => causes.push(Cause::required(status, "")),
            ("True", _) | ("False" | "Unknown", false) => {}
            (_, true) => causes.push(Cause::not_supported(status, &condition["status"], &["True"])),
            (_, false) => {
                let known = ["False", "True", "Unknown"];
                causes.push(Cause::not_supported(status, &condition["status"], &known));
            }
        }
        let excludes = match kind {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        if conditions[..index].iter().any(|other| other["type"] == excludes) {
            let text = "Approved and Denied conditions are mutually exclusive";
            causes.push(Cause::invalid("status.conditions", &kind.into(), text));
        }
        if conditions[..index].iter().any(|other| other["type"] == kind) {
            causes.push(Cause::duplicate(format!("{field}.type"), &kind.into()));
        }
    }
    causes
}

/// A new certificate must consist of one or more PEM blocks.
fn certificate(given: &Value, old: Option<&Value>) -> Option<Cause> {
    let same = old.is_some_and(|old| old["status"]["certificate"] == *given);
    if same || str_of(given).is_empty() {
        return None;
    }
    let pem = STANDARD.decode(str_of(given)).unwrap_or_default();
    let mut blocks = Pem::iter_from_buffer(&pem).filter_map(Result::ok);
    let found = blocks.any(|block| block.label == "CERTIFICATE" && block.parse_x509().is_ok());
    let text = "must contain at least one CERTIFICATE PEM block";
    (!found).then(|| Cause::invalid("status.certificate", &"<certificate data>".into(), text))
}
