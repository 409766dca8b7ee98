//! AdmissionReview, versions v1 and v1beta1: the request on the wire, and the validation of the
//! response.

use api_meta::status::{Cause, Status, StatusDetails};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};

use super::hook::Hook;

const GROUP: &str = "admission.k8s.io";

/// An encoded review request with its `uid`.
pub(super) struct ReviewRequest {
    pub(super) uid: String,
    pub(super) body: Bytes,
}

/// A valid review response.
pub(super) struct ReviewResponse {
    pub(super) warnings: Vec<String>,
    /// Keys and texts for the audit log.
    pub(super) annotations: Vec<(String, String)>,
    /// A JSON patch, if any, or the refusal of the write.
    pub(super) result: Result<Option<Value>, Status>,
}

/// Builds the review that is sent to `hook`.
pub(super) fn build_request(
    hook: &Hook,
    mut attributes: Value,
    object: &Value,
    old: &Value,
) -> ReviewRequest {
    let uid = crate::stored::new_uid();
    attributes["uid"] = uid.as_str().into();
    attributes["object"] = object.clone();
    attributes["oldObject"] = old.clone();
    let review = json!({
        "kind": "AdmissionReview",
        "apiVersion": format!("{GROUP}/{}", hook.review_version),
        "request": attributes,
    });
    ReviewRequest { uid, body: crate::stored::to_bytes(&review) }
}

/// Parses the response of `hook` to the request `uid`.
///
/// # Errors
/// Why it is no valid response to that request. The caller handles it as a failed call.
pub(super) fn parse_response(
    hook: &Hook,
    uid: &str,
    mutating: bool,
    bytes: &[u8],
) -> Result<ReviewResponse, String> {
    let review: Value = serde_json::from_slice(bytes)
        .map_err(|error| format!("failed to call webhook: cannot decode the response: {error}"))?;
    check_type(hook, &review)?;
    let invalid = |text: String| format!("received invalid webhook response: {text}");
    let Value::Object(response) = &review["response"] else {
        return Err(invalid("webhook response was absent".to_owned()));
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let strict = hook.review_version == "v1";
    if strict {
        let found = review["response"]["uid"].as_str().unwrap_or_default();
        if found != uid {
            return Err(invalid(format!("expected response.uid={uid:?}, got {found:?}")));
        }
    }
    let response = |field: &str| response.get(field).unwrap_or(&Value::Null);
    let Some(allowed) = response("allowed").as_bool() else {
        return Err(invalid("response.allowed is neither true nor false".to_owned()));
    };
    let (patch, patch_type) = (text(response("patch")), response("patchType"));
    let patch = if mutating {
        check_patch(&patch, patch_type, strict).map_err(invalid)?;
        patch
    } else {
        if strict && !patch.is_empty() {
            return Err(invalid("validating webhook may not return response.patch".to_owned()));
        }
        if strict && !patch_type.is_null() {
            return Err(invalid("validating webhook may not return response.patchType".to_owned()));
        }
        String::new()
    };
    let warnings = response("warnings").as_array().into_iter().flatten();
    let warnings = warnings.filter_map(Value::as_str).map(str::to_owned).collect();
    let annotations = response("auditAnnotations").as_object().into_iter().flatten();
    let annotations = annotations.map(|(key, value)| (format!("{}/{key}", hook.name), text(value)));
    let annotations = annotations.collect();
    if !allowed {
        return Ok(ReviewResponse {
            warnings,
            annotations,
            result: Err(refusal(&hook.name, response("status"))),
        });
    }
    let patch = STANDARD
        .decode(patch)
        .map_err(|error| format!("failed to call webhook: response.patch is no base64: {error}"))?;
    let undecodable = |error| format!("received undecodable patch in webhook response: {error}");
    let patch = match patch.is_empty() {
        true => None,
        false => Some(serde_json::from_slice(&patch).map_err(undecodable)?),
    };
    Ok(ReviewResponse { warnings, annotations, result: Ok(patch) })
}

/// Validates the type of a response. Responses in version v1beta1 may omit it.
fn check_type(hook: &Hook, review: &Value) -> Result<(), String> {
    let text = |field: &str| review[field].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let expected = format!("{GROUP}/{}", hook.review_version);
    let untyped = hook.review_version == "v1beta1" && api_version.is_empty() && kind.is_empty();
    if untyped || api_version == expected && kind == "AdmissionReview" {
        return Ok(());
    }
    Err(format!(
        "failed to call webhook: the response must be a review of {expected}, and is {kind:?} of \
         {api_version:?}"
    ))
}

fn check_patch(patch: &str, patch_type: &Value, strict: bool) -> Result<(), String> {
    let problem = match (patch.is_empty(), patch_type) {
        (_, _) if !strict => return Ok(()),
        (false, Value::Null) => "webhook returned response.patch but not response.patchType",
        (true, Value::Null) => return Ok(()),
        (true, _) => "webhook returned response.patchType but not response.patch",
        (false, kind) if kind == "JSONPatch" => return Ok(()),
        (false, kind) => {
            return Err(format!("webhook returned invalid response.patchType of {kind}"));
        }
    };
    Err(problem.to_owned())
}

/// The refusal that the client receives: the webhook's own status, or defaults for what it omits.
fn refusal(name: &str, returned: &Value) -> Status {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (message, reason) = (text(&returned["message"]), text(&returned["reason"]));
    let denied = format!("admission webhook {name:?} denied the request");
    let message = match (message.is_empty(), reason.is_empty()) {
        (false, _) => format!("{denied}: {message}"),
        (true, false) => format!("{denied}: {reason}"),
        (true, true) => format!("{denied} without explanation"),
    };
    let code = returned["code"].as_u64().and_then(|code| u16::try_from(code).ok());
    let code = code.filter(|code| (400..600).contains(code)).unwrap_or(400);
    let mut status = Status::new(code, "", message);
    status.reason = reason.into();
    let details = &returned["details"];
    if !details.is_object() {
        return status;
    }
    let causes = details["causes"].as_array().into_iter().flatten();
    let seconds = details["retryAfterSeconds"].as_u64();
    status.details = Some(Box::new(StatusDetails {
        name: text(&details["name"]),
        group: text(&details["group"]),
        kind: text(&details["kind"]),
        uid: text(&details["uid"]),
        causes: causes
            .map(|cause| {
                Cause::new(&text(&cause["reason"]), text(&cause["field"]), text(&cause["message"]))
            })
            .collect(),
        retry_after_seconds: seconds.and_then(|seconds| seconds.try_into().ok()),
    }));
    status
}
