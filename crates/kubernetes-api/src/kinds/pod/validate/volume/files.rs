//! Volumes of files that the kubelet writes: from secrets, config maps and fields of the pod.

use api_meta::status::Cause;
use apiserver::fields::{items, str_of};
use serde_json::Value;

use super::super::field_reference::{self, FILES};
use super::super::{each, free_path, require_text, within};
use super::Paths;

const MODE_MAX: i64 = 0o777;
const MODE_TEXT: &str = "must be a number between 0 and 0777 (octal), both inclusive";
const TOKEN_SECONDS_MIN: i64 = 10 * 60;
const TOKEN_SECONDS_MAX: i64 = 1 << 32;
/// The types of one source of a projected volume.
const PROJECTED: [&str; 4] = ["secret", "configMap", "downwardAPI", "serviceAccountToken"];
const DUPLICATE_PATH: &str = "conflicting duplicate paths";

fn mode(path: &str, mode: &Value, causes: &mut Vec<Cause>) {
    within(path, mode, 0..=MODE_MAX, MODE_TEXT, causes);
}

/// Validates a `secret` source at `path`.
pub fn secret(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    require_text(&format!("{path}.secretName"), &source["secretName"], causes);
    mode(&format!("{path}.defaultMode"), &source["defaultMode"], causes);
    keys(path, source, causes);
}

/// Validates a `configMap` source at `path`.
pub fn config_map(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    require_text(&format!("{path}.name"), &source["name"], causes);
    mode(&format!("{path}.defaultMode"), &source["defaultMode"], causes);
    keys(path, source, causes);
}

/// The mapping of keys to files.
fn keys(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    for (path, item) in each(&format!("{path}.items"), &source["items"]) {
        require_text(&format!("{path}.key"), &item["key"], causes);
        file_path(&format!("{path}.path"), &item["path"], causes);
        mode(&format!("{path}.mode"), &item["mode"], causes);
    }
}

fn file_path(path: &str, value: &Value, causes: &mut Vec<Cause>) {
    if require_text(path, value, causes) {
        free_path(path, value, causes);
    }
}

/// Validates a `downwardAPI` source at `path`.
pub fn downward(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    mode(&format!("{path}.defaultMode"), &source["defaultMode"], causes);
    for item in items(&source["items"]) {
        downward_file(path, item, causes);
    }
}

fn downward_file(path: &str, item: &Value, causes: &mut Vec<Cause>) {
    file_path(&format!("{path}.path"), &item["path"], causes);
    let (of_pod, of_container) = (&item["fieldRef"], &item["resourceFieldRef"]);
    match (of_pod.is_object(), of_container.is_object()) {
        (true, both) => {
            field_reference::of_pod(&format!("{path}.fieldRef"), of_pod, FILES, causes);
            if both {
                let text = "fieldRef and resourceFieldRef can not be specified simultaneously";
                causes.push(Cause::invalid(path, &"resource".into(), text));
            }
        }
        (false, true) => {
            let path = format!("{path}.resourceFieldRef");
            field_reference::of_container(&path, of_container, true, causes);
        }
        (false, false) => {
            causes.push(Cause::required(path, "one of fieldRef and resourceFieldRef is required"));
        }
    }
    mode(&format!("{path}.mode"), &item["mode"], causes);
}

/// Validates a `projected` source at `path`, and that its files have distinct paths.
pub fn projected(path: &str, source: &Value, causes: &mut Vec<Cause>) {
    mode(&format!("{path}.defaultMode"), &source["defaultMode"], causes);
    let mut paths = Paths::new();
    for (at, part) in each(&format!("{path}.sources"), &source["sources"]) {
        let mut given = PROJECTED.into_iter().filter(|kind| part[kind].is_object());
        let count = given.clone().count();
        // The first one counts, besides the secret and the config map.
        for kind in given.by_ref() {
            projected_part(path, &at, kind, &part[kind], &mut paths, causes);
        }
        if count > 1 {
            let text = "may not specify more than 1 volume type per source";
            causes.push(Cause::forbidden(at, text));
        }
    }
}

/// `path` is the volume's, `at` the source's.
fn projected_part<'a>(
    path: &str,
    at: &str,
    kind: &str,
    part: &'a Value,
    paths: &mut Paths<'a>,
    causes: &mut Vec<Cause>,
) {
    let at = format!("{at}.{kind}");
    match kind {
        "serviceAccountToken" => return token(path, &at, part, causes),
        "downwardAPI" => {
            for item in items(&part["items"]) {
                downward_file(&at, item, causes);
            }
        }
        _ => {
            require_text(&format!("{at}.name"), &part["name"], causes);
            keys(&at, part, causes);
        }
    }
    for file in items(&part["items"]).iter().map(|item| str_of(&item["path"])) {
        if !file.is_empty() && !paths.insert(file) {
            let reported = if kind == "downwardAPI" { file } else { str_of(&part["name"]) };
            causes.push(Cause::invalid(path, &reported.into(), DUPLICATE_PATH));
        }
    }
}

fn token(path: &str, at: &str, token: &Value, causes: &mut Vec<Cause>) {
    let seconds = &token["expirationSeconds"];
    let problem = match seconds.as_i64() {
        Some(..TOKEN_SECONDS_MIN) => Some("may not specify a duration less than 10 minutes"),
        Some(seconds) if seconds > TOKEN_SECONDS_MAX => {
            Some("may not specify a duration larger than 2^32 seconds")
        }
        _ => None,
    };
    let field = format!("{at}.expirationSeconds");
    causes.extend(problem.map(|text| Cause::invalid(field, seconds, text)));
    file_path(&format!("{path}.path"), &token["path"], causes);
}
