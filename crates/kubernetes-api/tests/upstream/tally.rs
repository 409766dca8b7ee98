//! What two servers answered to the same, told apart.

use serde_json::{Value, json};

use super::side::Answer;

/// Objects that are sent before the first is answered.
pub const AT_ONCE: usize = 16;
const IMMUTABLE: &str = ": field is immutable";

/// What counts of the answer. Go goes through maps in any order, and shows changes in the form of its
/// own structures.
fn judged(answer: &Answer) -> Value {
    let body = answer.json();
    if answer.code != 422 {
        return json!([answer.code, body["reason"], body["message"]]);
    }
    let mut causes = body["details"]["causes"].as_array().unwrap().clone();
    for cause in &mut causes {
        let message = cause["message"].as_str().unwrap().lines().next().unwrap_or_default();
        let message = without_uids(message);
        let is_template = cause["field"].as_str().unwrap().starts_with("spec.template");
        // All of the patched object, with its fields in an order of their own.
        if cause["field"] == "patch" {
            cause["message"] = message.rsplit_once("}\": ").unwrap_or_default().1.into();
            continue;
        }
        cause["message"] = match message.split_once(": {") {
            // All of the template in the form of Go's own structures.
            Some((kind, _)) if is_template && message.ends_with(IMMUTABLE) => {
                format!("{kind}{IMMUTABLE}").into()
            }
            _ => message.into(),
        };
    }
    let is_of_map = |cause: &Value| {
        let field = cause["field"].as_str().unwrap();
        let maps = [".nodeSelector", ".matchLabels", ".labels", ".annotations"];
        let amounts = [
            "resources",
            "overhead",
            "status.allocat",
            "status.capacity",
            "status.hard",
            "status.used",
        ];
        amounts.iter().any(|part| field.contains(part))
            || maps.iter().any(|map| field.ends_with(map))
    };
    let (mut of_maps, others): (Vec<_>, Vec<_>) = causes.into_iter().partition(is_of_map);
    of_maps.sort_by_key(ToString::to_string);
    json!([answer.code, body["reason"], others, of_maps])
}

/// The text with one mark in place of each uid, which each server gives as it likes.
fn without_uids(text: &str) -> String {
    let is_uid = |part: &str| {
        let lengths = part.split('-').map(str::len);
        lengths.eq([8, 4, 4, 4, 12])
            && part.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
    };
    let parts = text.split_inclusive(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let masked = parts.map(|part| {
        let bare = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        if is_uid(bare) { format!("UID{}", &part[bare.len()..]) } else { part.to_owned() }
    });
    masked.collect()
}

/// What the two servers said, told apart.
#[derive(Default)]
pub struct Tally {
    refused: usize,
    taken: usize,
    differences: String,
}

impl Tally {
    pub fn add(&mut self, what: &str, real: &Answer, ours: &Answer) {
        let (real, ours) = (judged(real), judged(ours));
        if real != ours {
            self.differences += &format!("{what}\n  theirs {real}\n  ours   {ours}\n");
        }
        if real[0] == 422 { self.refused += 1 } else { self.taken += 1 }
    }

    /// Compares what both tell in the status of the fields of `given`.
    pub fn add_told(&mut self, what: &str, given: &Value, real: &Answer, ours: &Answer) {
        let (real, ours) = (real.json(), ours.json());
        for field in given.as_object().unwrap().keys() {
            let (real, ours) = (&real["status"][field], &ours["status"][field]);
            if real != ours {
                self.differences += &format!("{what}\n  theirs {real}\n  ours   {ours}\n");
            }
        }
    }

    #[track_caller]
    pub fn check(&self, refused: usize, taken: usize) {
        assert!(self.differences.is_empty(), "{}", self.differences);
        assert!(self.refused >= refused && self.taken >= taken, "{} {}", self.refused, self.taken);
    }
}
