//! Conversion of custom resources by webhook: ConversionReview, versions v1 and v1beta1.
//!
//! What is asked and what answers are worth is here; who is asked when is
//! [`crate::registry::Registry`]'s. A webhook converts everything but metadata, of which it may
//! change labels and annotations.

use api_meta::labels::{validate_annotations, validate_labels};
use api_meta::object::ObjectExt;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::webhook::ClientConfig;

/// Versions of ConversionReview that a webhook can be sent.
pub const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// How the objects of a definition get from one version into another.
pub struct Conversion {
    /// Why the webhook cannot be called, when it cannot.
    pub client: Result<ClientConfig, String>,
    /// Group and version that objects are stored in.
    pub stored_as: String,
    review_version: &'static str,
}

impl Conversion {
    /// `None` when a definition's versions differ in their names only. `stored_as` is its storage
    /// version with the group.
    pub fn of(crd: &Value, stored_as: &str) -> Option<Self> {
        let conversion = &crd["spec"]["conversion"];
        if conversion["strategy"] != "Webhook" {
            return None;
        }
        let webhook = &conversion["webhook"];
        let versions = webhook["conversionReviewVersions"].as_array().into_iter().flatten();
        let known = |version: &Value| REVIEW_VERSIONS.into_iter().find(|known| version == known);
        Some(Self {
            client: ClientConfig::read(&webhook["clientConfig"]),
            stored_as: stored_as.to_owned(),
            review_version: versions.into_iter().find_map(known).unwrap_or("v1"),
        })
    }

    /// What the webhook is sent, to bring `objects` into the version `wanted`.
    pub fn question(&self, uid: &str, wanted: &str, objects: &[Value]) -> Bytes {
        crate::stored::to_bytes(&json!({
            "kind": "ConversionReview",
            "apiVersion": format!("apiextensions.k8s.io/{}", self.review_version),
            "request": {"uid": uid, "desiredAPIVersion": wanted, "objects": objects},
        }))
    }

    /// The converted objects out of an answer, with the metadata they had.
    ///
    /// # Errors
    /// Why this is no conversion of `objects`: what follows `conversion webhook for … `.
    pub fn answer(
        &self,
        uid: &str,
        wanted: &str,
        objects: &[Value],
        bytes: &[u8],
    ) -> Result<Vec<Value>, String> {
        let failed = |text: String| format!("failed: {text}");
        let mut review: Value = serde_json::from_slice(bytes)
            .map_err(|error| failed(format!("cannot decode the answer: {error}")))?;
        self.check(&review, uid).map_err(failed)?;
        let Value::Array(converted) = review["response"]["convertedObjects"].take() else {
            return Err(format!("returned 0 objects, expected {}", objects.len()));
        };
        if converted.len() != objects.len() {
            let (found, wanted) = (converted.len(), objects.len());
            return Err(format!("returned {found} objects, expected {wanted}"));
        }
        let pairs = converted.into_iter().zip(objects).enumerate();
        pairs
            .map(|(index, (converted, original))| {
                accepted(original, converted, wanted).map_err(|(what, problem)| {
                    let what = match (what, objects.len()) {
                        (Part::Type, 1) => "object at index 0".to_owned(),
                        (Part::Identity, 1) => "object".to_owned(),
                        (Part::Metadata, 1) => "metadata".to_owned(),
                        (Part::Type | Part::Identity, _) => {
                            format!("converted object at index {index}")
                        }
                        (Part::Metadata, _) => format!("metadata in object at index {index}"),
                    };
                    format!("returned invalid {what}: {problem}")
                })
            })
            .collect()
    }

    fn check(&self, review: &Value, uid: &str) -> Result<(), String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text(&review["apiVersion"]), text(&review["kind"]));
        let wanted = format!("apiextensions.k8s.io/{}", self.review_version);
        if (api_version.as_str(), kind.as_str()) != (wanted.as_str(), "ConversionReview") {
            return Err(format!(
                "expected webhook response of {wanted}, Kind=ConversionReview, got {api_version}, \
                 Kind={kind}"
            ));
        }
        let response = &review["response"];
        if !response.is_object() {
            return Err("no response provided".to_owned());
        }
        let found = text(&response["uid"]);
        if found != uid {
            return Err(format!("expected response.uid={uid:?}, got {found:?}"));
        }
        let result = &response["result"];
        match (text(&result["status"]).as_str(), text(&result["message"])) {
            ("Success", _) => Ok(()),
            (status, message) if message.is_empty() => {
                Err(format!("response.result.status was '{status}', not 'Success'"))
            }
            (_, message) => Err(message),
        }
    }
}

/// What of a converted object is wrong. Each is told in its own words, and of one object otherwise
/// than of several.
#[derive(Clone, Copy)]
enum Part {
    /// Version or kind.
    Type,
    /// Name, namespace or UID.
    Identity,
    Metadata,
}

/// The converted object with the metadata of the original one, but for labels and annotations.
///
/// # Errors
/// What part of it is wrong, and how.
fn accepted(original: &Value, mut converted: Value, wanted: &str) -> Result<Value, (Part, String)> {
    let metadata = |problem: String| (Part::Metadata, problem);
    let found = converted.api_version();
    if found != wanted {
        let text = format!("invalid groupVersion (expected {wanted}, received {found})");
        return Err((Part::Type, text));
    }
    if converted.kind() != original.kind() {
        let (wanted, found) = (original.kind(), converted.kind());
        let text = format!("invalid kind (expected {wanted}, received {found})");
        return Err((Part::Type, text));
    }
    let kept = [
        ("name", original.name(), converted.name()),
        ("namespace", original.namespace(), converted.namespace()),
        ("UID", original.uid(), converted.uid()),
    ];
    for (what, before, after) in kept {
        if before != after {
            let text = format!("must have the same {what}: {before} != {after}");
            return Err((Part::Identity, text));
        }
    }
    let Value::Object(told) = converted["metadata"].take() else {
        return Err(metadata("missing metadata in converted object".to_owned()));
    };
    converted["metadata"] = original["metadata"].clone();
    for field in ["labels", "annotations"] {
        let texts = texts(field, told.get(field)).map_err(metadata)?;
        match texts {
            Some(texts) => converted.set_meta(field, texts),
            None => {
                converted.remove_meta(field);
            }
        }
    }
    Ok(converted)
}

/// Labels or annotations that a webhook gives an object.
fn texts(field: &str, value: Option<&Value>) -> Result<Option<Map<String, Value>>, String> {
    let path = format!("metadata.{field}");
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(value @ Value::Object(map)) => {
            if let Some((key, _)) = map.iter().find(|(_, value)| !value.is_string()) {
                return Err(format!("{path}[{key}] must be a string in converted object"));
            }
            let causes = match field {
                "labels" => validate_labels(&path, value),
                _ => validate_annotations(&path, value),
            };
            match causes.first() {
                Some(cause) => Err(format!("{}: {}", cause.field, cause.message)),
                None => Ok(Some(map.clone())),
            }
        }
        Some(_) => Err(format!("{path} must be a map of texts in converted object")),
    }
}
