//! Conversion of custom resources by webhook: ConversionReview, versions v1 and v1beta1.
//!
//! This module builds the request and validates the response; [`crate::registry::Registry`] decides
//! when to call which webhook. A webhook converts everything except metadata, of which it may
//! change only labels and annotations.

use api_meta::labels::{validate_annotations, validate_labels};
use api_meta::object::ObjectExt;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::webhook::ClientConfig;

/// Versions of ConversionReview that a webhook can be sent.
pub const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// How objects of a CustomResourceDefinition are converted between its versions.
pub struct Conversion {
    /// The webhook, or why it cannot be called.
    pub client: Result<ClientConfig, String>,
    /// Group and version that objects are stored in.
    pub stored_as: String,
    review_version: &'static str,
}

impl Conversion {
    /// The conversion of a definition; `None` when its versions differ only in their names.
    /// `stored_as` is its storage version with the group.
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

    /// The body of a request to convert `objects` to the version `desired_version`, with this
    /// `uid`.
    pub fn request_body(&self, uid: &str, desired_version: &str, objects: &[Value]) -> Bytes {
        crate::stored::to_bytes(&json!({
            "kind": "ConversionReview",
            "apiVersion": format!("apiextensions.k8s.io/{}", self.review_version),
            "request": {"uid": uid, "desiredAPIVersion": desired_version, "objects": objects},
        }))
    }

    /// Validates the response of the webhook, and returns the converted objects with the metadata
    /// they had.
    ///
    /// # Errors
    /// Why the response is not a conversion of `objects`: what follows `conversion webhook for … `.
    pub fn converted_objects(
        &self,
        uid: &str,
        desired_version: &str,
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
            let (returned, expected) = (converted.len(), objects.len());
            return Err(format!("returned {returned} objects, expected {expected}"));
        }
        let pairs = converted.into_iter().zip(objects).enumerate();
        pairs
            .map(|(index, (converted, original))| {
                validate_converted(original, converted, desired_version).map_err(
                    |(what, problem)| {
                        let what = match (what, objects.len()) {
                            (InvalidPart::Type, 1) => "object at index 0".to_owned(),
                            (InvalidPart::Identity, 1) => "object".to_owned(),
                            (InvalidPart::Metadata, 1) => "metadata".to_owned(),
                            (InvalidPart::Type | InvalidPart::Identity, _) => {
                                format!("converted object at index {index}")
                            }
                            (InvalidPart::Metadata, _) => {
                                format!("metadata in object at index {index}")
                            }
                        };
                        format!("returned invalid {what}: {problem}")
                    },
                )
            })
            .collect()
    }

    fn check(&self, review: &Value, uid: &str) -> Result<(), String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text(&review["apiVersion"]), text(&review["kind"]));
        let expected = format!("apiextensions.k8s.io/{}", self.review_version);
        if (api_version.as_str(), kind.as_str()) != (expected.as_str(), "ConversionReview") {
            return Err(format!(
                "expected webhook response of {expected}, Kind=ConversionReview, got {api_version}, \
                 Kind={kind}"
            ));
        }
        let response = &review["response"];
        if !response.is_object() {
            return Err("no response provided".to_owned());
        }
        let returned = text(&response["uid"]);
        if returned != uid {
            return Err(format!("expected response.uid={uid:?}, got {returned:?}"));
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

/// What is invalid in a converted object. Each part has its own text, which also differs between
/// one object and several.
#[derive(Clone, Copy)]
enum InvalidPart {
    /// Version or kind.
    Type,
    /// Name, namespace or UID.
    Identity,
    Metadata,
}

/// The converted object with the metadata of the original one, except for labels and annotations.
///
/// # Errors
/// The invalid part, and why it is invalid.
fn validate_converted(
    original: &Value,
    mut converted: Value,
    desired_version: &str,
) -> Result<Value, (InvalidPart, String)> {
    let metadata = |problem: String| (InvalidPart::Metadata, problem);
    let returned = converted.api_version();
    if returned != desired_version {
        let text =
            format!("invalid groupVersion (expected {desired_version}, received {returned})");
        return Err((InvalidPart::Type, text));
    }
    if converted.kind() != original.kind() {
        let (expected, returned) = (original.kind(), converted.kind());
        let text = format!("invalid kind (expected {expected}, received {returned})");
        return Err((InvalidPart::Type, text));
    }
    let fixed = [
        ("name", original.name(), converted.name()),
        ("namespace", original.namespace(), converted.namespace()),
        ("UID", original.uid(), converted.uid()),
    ];
    for (what, before, after) in fixed {
        if before != after {
            let text = format!("must have the same {what}: {before} != {after}");
            return Err((InvalidPart::Identity, text));
        }
    }
    let Value::Object(returned_metadata) = converted["metadata"].take() else {
        return Err(metadata("missing metadata in converted object".to_owned()));
    };
    converted["metadata"] = original["metadata"].clone();
    for field in ["labels", "annotations"] {
        let texts = string_map(field, returned_metadata.get(field)).map_err(metadata)?;
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
fn string_map(field: &str, value: Option<&Value>) -> Result<Option<Map<String, Value>>, String> {
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
