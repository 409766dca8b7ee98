//! CertificateApproval, CertificateSigning and CertificateSubjectRestriction: who may approve and sign
//! requests for certificates, and that nobody asks for a master's.

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
use crate::registry::admission::{Operation, Request};

const GROUP: &str = "certificates.k8s.io";
const PLURAL: &str = "certificatesigningrequests";
/// What it signs is believed by the API server: nobody gets a master's certificate of it.
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// Refuses what its writer may not say of the signer.
///
/// # Errors
/// 403.
pub(super) fn check(
    registry: &Registry,
    request: &Request<'_>,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    if (request.resource.group.as_str(), request.resource.plural.as_str()) != (GROUP, PLURAL) {
        return Ok(());
    }
    let refused = |text: &str| Err(request.forbidden(Some(object), text));
    // The signer never changes; what was is what counts.
    let signer = str_of(&old.unwrap_or(object)["spec"]["signerName"]);
    let verb = match (request.operation, request.subresource, old) {
        (Operation::Create, "", _) if signer == CLIENT_SIGNER => {
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
        (Operation::Update, "approval", _) if registry.has(Switchable::CertificateApproval) => {
            "approve"
        }
        (Operation::Update, "status", Some(old))
            if registry.has(Switchable::CertificateSigning) && signs(object, old) =>
        {
            "sign"
        }
        _ => return Ok(()),
    };
    if may(registry, request, verb, signer) {
        return Ok(());
    }
    refused(&format!("user not permitted to {verb} requests with signerName {signer:?}"))
}

fn signs(object: &Value, old: &Value) -> bool {
    ["certificate", "conditions"]
        .iter()
        .any(|field| object["status"][*field] != old["status"][*field])
}

/// Whether the writer has the verb on a signer, by its name or by that of its domain with `*`.
fn may(registry: &Registry, request: &Request<'_>, verb: &str, signer: &str) -> bool {
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

/// The organizations that the subject of a request names.
fn organizations(request: &Value) -> Result<Vec<String>, String> {
    let pem = STANDARD.decode(str_of(request)).map_err(|error| error.to_string())?;
    let (_, block) = parse_x509_pem(&pem).map_err(|error| error.to_string())?;
    let (_, request) =
        X509CertificationRequest::from_der(&block.contents).map_err(|error| error.to_string())?;
    let names = request.certification_request_info.subject.iter_organization();
    Ok(names.filter_map(|name| name.as_str().ok().map(str::to_owned)).collect())
}
