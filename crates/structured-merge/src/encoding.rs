//! The `FieldsV1` encoding of a set: nested objects whose keys are path elements; `.` is the path
//! itself.

use serde_json::{Map, Value};

use crate::element::PathElement;
use crate::go_text;
use crate::set::{FieldSet, SetNode};

/// Depth of the deepest set that is decoded, in path elements. No object is deeper: the JSON parser
/// stops at 128.
pub const DEPTH_MAX: usize = 128;
/// Number of path elements that are decoded in one set. An object at the size limit of 3 MiB has
/// fewer.
pub const ELEMENTS_MAX: usize = 500_000;

/// Why a `fieldsV1` cannot be decoded. The owner of the object resets it by writing
/// `managedFields: []`.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    #[error("path element \"{element}\" is not valid: {reason}")]
    Element { element: String, reason: String },
    #[error("the value of path element \"{element}\" is not an object")]
    NotAnObject { element: String },
    #[error("the field set is not an object")]
    NotASet,
    #[error("the field set is not valid JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the field set is deeper than {DEPTH_MAX} levels")]
    TooDeep,
    #[error("the field set has more than {ELEMENTS_MAX} elements")]
    TooLarge,
}

impl FieldSet {
    /// Encodes the set as the exact text that kube-apiserver writes, with keys in the order of
    /// [`PathElement`].
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut out, false);
        out
    }

    fn write_json(&self, out: &mut String, itself: bool) {
        out.push('{');
        if itself && !self.is_empty() {
            out.push_str("\".\":{}");
        }
        let mut first = !itself || self.is_empty();
        for (element, node) in &self.nodes {
            if !std::mem::take(&mut first) {
                out.push(',');
            }
            go_text::json_string(out, &element.encode(), false);
            out.push(':');
            node.below.write_json(out, node.member);
        }
        out.push('}');
    }

    /// Encodes the set as a tree. The order of keys is that of [`serde_json::Map`].
    pub fn to_value(&self) -> Value {
        let fields = self.nodes.iter().map(|(element, node)| {
            let mut below = node.below.to_value();
            if node.member && !node.below.is_empty() {
                below["."] = Value::Object(Map::new());
            }
            (element.encode(), below)
        });
        Value::Object(fields.collect())
    }

    /// Decodes a set from JSON text.
    ///
    /// # Errors
    /// [`DecodeError::Json`] when the text is not JSON; else the errors of
    /// [`FieldSet::from_value`].
    pub fn from_json(text: &str) -> Result<Self, DecodeError> {
        Self::from_value(&serde_json::from_str(text)?)
    }

    /// Decodes a `fieldsV1`. Skips unknown types of elements, with everything below them. An absent
    /// or null set is empty.
    ///
    /// # Errors
    /// An element or its value is not valid, or the set exceeds [`DEPTH_MAX`] or [`ELEMENTS_MAX`].
    /// The caller ignores the stored entries or refuses the write.
    pub fn from_value(value: &Value) -> Result<Self, DecodeError> {
        let mut left = ELEMENTS_MAX;
        match value {
            Value::Null => Ok(Self::new()),
            Value::Object(_) => Ok(read(value, 0, &mut left)?.below),
            _ => Err(DecodeError::NotASet),
        }
    }
}

/// The set below one element. `member` says whether the element itself is in the set.
fn read(value: &Value, depth: usize, left: &mut usize) -> Result<SetNode, DecodeError> {
    if depth > DEPTH_MAX {
        return Err(DecodeError::TooDeep);
    }
    let mut node = SetNode::default();
    for (key, value) in value.as_object().into_iter().flatten() {
        *left = left.checked_sub(1).ok_or(DecodeError::TooLarge)?;
        if key == "." {
            node.member = true;
            continue;
        }
        let Some(element) = PathElement::decode(key)? else { continue };
        if !(value.is_object() || value.is_null()) {
            return Err(DecodeError::NotAnObject { element: key.clone() });
        }
        let child = read(value, depth + 1, left)?;
        // Two spellings of one element (`v:1`, `v:1.0`) become one.
        let place = node.below.nodes.entry(element).or_default();
        place.member |= child.member;
        place.below = place.below.union(&child.below);
    }
    node.member |= node.below.is_empty();
    Ok(node)
}
