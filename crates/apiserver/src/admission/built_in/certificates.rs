//! CertificateApproval, CertificateSigning and CertificateSubjectRestriction: who may approve and
//! sign certificate signing requests, and that no request names the masters group.

use api_meta::status::Status;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::FromDer;

use crate::attributes::{Attributes, Decision, GROUP_MASTERS};
use crate::built_in_plugins::Switchable;
use crate::fields::str_of;
use crate::registry::Registry;
use crate::registry::admission::{AdmissionOperation, AdmissionRequest};

const GROUP: &str = "certificates.k8s.io";
const PLURAL: &str = "certificatesigningrequests";
/// The API server trusts the certificates of this signer, so none may name the masters group.
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// Refuses an approval or a signature by a user without the permission on the signer, and a create
/// whose subject is in the masters group.
///
/// # Errors
/// 403 with the reason.
pub(super) fn check(
    registry: &Registry,
    request: &AdmissionRequest<'_>,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    if (request.resource.group.as_str(), request.resource.plural.as_str()) != (GROUP, PLURAL) {
        return Ok(());
    }
    let refused = |text: &str| Err(request.forbidden(Some(object), text));
    // The signer never changes; the stored one is authoritative.
    let signer = str_of(&old.unwrap_or(object)["spec"]["signerName"]);
    let verb = match (request.operation, request.subresource, old) {
        (AdmissionOperation::Create, "", _) if signer == CLIENT_SIGNER => {
            if !registry.has(Switchable::CertificateSubjectRestriction) {
                return Ok(());
            }
            let organizations = match organizations(&object["spec"]["request"]) {
                Ok(organizations) => organizations,
                Err(problem) => return refused(&format!("failed to parse CSR: {problem}")),
            };
            if organizations.iter().any(|name| name == GROUP_MASTERS) {
                let text =
                    format!("use of {signer} signer with {GROUP_MASTERS} group is not allowed");
                return refused(&text);
            }
            return Ok(());
        }
        (AdmissionOperation::Update, "approval", _)
            if registry.has(Switchable::CertificateApproval) =>
        {
            "approve"
        }
        (AdmissionOperation::Update, "status", Some(old))
            if registry.has(Switchable::CertificateSigning) && changes_signature(object, old) =>
        {
            "sign"
        }
        _ => return Ok(()),
    };
    if can_use_signer(registry, request, verb, signer) {
        return Ok(());
    }
    refused(&format!("user not permitted to {verb} requests with signerName {signer:?}"))
}

fn changes_signature(object: &Value, old: &Value) -> bool {
    ["certificate", "conditions"]
        .iter()
        .any(|field| object["status"][*field] != old["status"][*field])
}

/// Whether the user may use the verb on a signer, by its name or by its domain with `*`.
fn can_use_signer(
    registry: &Registry,
    request: &AdmissionRequest<'_>,
    verb: &str,
    signer: &str,
) -> bool {
    let Some(authorizer) = registry.authorizer() else { return false };
    let domain = signer.split('/').next().unwrap_or_default();
    [signer.to_owned(), format!("{domain}/*")].into_iter().any(|name| {
        let attributes = Attributes {
            user: request.options.user.clone(),
            verb: verb.to_owned(),
            is_resource: true,
            group: GROUP.to_owned(),
            version: "*".to_owned(),
            resource: "signers".to_owned(),
            name,
            ..Attributes::default()
        };
        matches!(authorizer.authorize(&attributes), Decision::Allow { .. })
    })
}

/// The organizations in the subject of a signing request.
fn organizations(request: &Value) -> Result<Vec<String>, String> {
    let pem = STANDARD.decode(str_of(request)).map_err(|error| error.to_string())?;
    let (_, block) = parse_x509_pem(&pem).map_err(|error| error.to_string())?;
    let (_, request) =
        X509CertificationRequest::from_der(&block.contents).map_err(|error| error.to_string())?;
    let names = request.certification_request_info.subject.iter_organization();
    Ok(names.filter_map(|name| name.as_str().ok().map(str::to_owned)).collect())
}
