//! Compares the responses of two servers to the same requests.

use serde_json::{Value, json};

use super::side::TestResponse;

/// Number of requests that are sent concurrently.
pub const AT_ONCE: usize = 16;
const IMMUTABLE: &str = ": field is immutable";

/// The parts of the response that are compared. Go iterates over maps in random order, and prints
/// changes in the notation of its own structs.
fn comparable(response: &TestResponse) -> Value {
    let body = response.json();
    if response.code != 422 {
        return json!([response.code, body["reason"], body["message"]]);
    }
    let mut causes = body["details"]["causes"].as_array().unwrap().clone();
    for cause in &mut causes {
        let message = cause["message"].as_str().unwrap().lines().next().unwrap_or_default();
        let message = without_uids(message);
        let is_template = cause["field"].as_str().unwrap().starts_with("spec.template");
        // The whole patched object, with its fields in another order.
        if cause["field"] == "patch" {
            cause["message"] = message.rsplit_once("}\": ").unwrap_or_default().1.into();
            continue;
        }
        cause["message"] = match message.split_once(": {") {
            // The whole template in the notation of Go's structs.
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
        // The selector of a Service is a map.
        field == "spec.selector"
            || amounts.iter().any(|part| field.contains(part))
            || maps.iter().any(|map| field.ends_with(map))
    };
    let (mut of_maps, others): (Vec<_>, Vec<_>) = causes.into_iter().partition(is_of_map);
    of_maps.sort_by_key(ToString::to_string);
    json!([response.code, body["reason"], others, of_maps])
}

/// The text with one mark instead of each uid, which each server generates.
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

/// The responses of both servers, and their differences.
#[derive(Default)]
pub struct Tally {
    refused: usize,
    taken: usize,
    differences: String,
}

impl Tally {
    pub fn add(&mut self, what: &str, real: &TestResponse, drover: &TestResponse) {
        let (real, drover) = (comparable(real), comparable(drover));
        if real != drover {
            self.differences += &format!("{what}\n  kube-apiserver {real}\n  drover {drover}\n");
        }
        if real[0] == 422 { self.refused += 1 } else { self.taken += 1 }
    }

    /// Compares the status fields of both responses that `given` has.
    pub fn compare_status(
        &mut self,
        what: &str,
        given: &Value,
        real: &TestResponse,
        drover: &TestResponse,
    ) {
        let (real, drover) = (real.json(), drover.json());
        for field in given.as_object().unwrap().keys() {
            let (real, drover) = (&real["status"][field], &drover["status"][field]);
            if real != drover {
                self.differences +=
                    &format!("{what}\n  kube-apiserver {real}\n  drover {drover}\n");
            }
        }
    }

    #[track_caller]
    pub fn check(&self, refused: usize, taken: usize) {
        assert!(self.differences.is_empty(), "{}", self.differences);
        assert!(self.refused >= refused && self.taken >= taken, "{} {}", self.refused, self.taken);
    }
}
