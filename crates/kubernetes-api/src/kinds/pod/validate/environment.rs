//! Environment variables of a container.

use api_meta::names;
use api_meta::status::Cause;
use apiserver::fields::str_of;
use serde_json::Value;

use super::volume::Volumes;
use super::{each, field_reference, free_path, not_found, require_text, required_name};

const VALUE_SOURCES: [&str; 5] =
    ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
const NAME_TEXT: &str = "a valid environment variable name must consist only of printable ASCII \
    characters other than '='";
const ONE_SOURCE: &str = "may not have more than one field specified at a time";

fn name_problems(name: &str) -> Vec<String> {
    let fits = name.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=');
    if fits { Vec::new() } else { vec![NAME_TEXT.to_owned()] }
}

/// Validates the variables at `field`; appends a cause for each problem. `volumes` are the pod's.
pub fn variables(field: &str, list: &Value, volumes: &Volumes<'_>, causes: &mut Vec<Cause>) {
    for (path, variable) in each(field, list) {
        required_name(&format!("{path}.name"), &variable["name"], name_problems, causes);
        let source = &variable["valueFrom"];
        if source.is_object() {
            let has_value = !str_of(&variable["value"]).is_empty();
            value_source(&format!("{path}.valueFrom"), source, has_value, causes);
        }
    }
    for (path, variable) in each(field, list) {
        let file = &variable["valueFrom"]["fileKeyRef"];
        if file.is_object() {
            let volume = str_of(&file["volumeName"]);
            let path = format!("{path}.valueFrom.fileKeyRef.volumeName");
            match volumes.get(volume) {
                None => causes.push(not_found(&path, volume)),
                Some(source) if source["emptyDir"].is_null() => {
                    let text = "referenced volume must be of type emptyDir";
                    causes.push(Cause::invalid(path, &volume.into(), text));
                }
                Some(_) => {}
            }
        }
    }
}

fn value_source(path: &str, source: &Value, has_value: bool, causes: &mut Vec<Cause>) {
    let given = VALUE_SOURCES.into_iter().filter(|kind| source[kind].is_object());
    for kind in given.clone() {
        let (path, reference) = (format!("{path}.{kind}"), &source[kind]);
        match kind {
            "fieldRef" => {
                field_reference::of_pod(&path, reference, field_reference::VARIABLES, causes);
            }
            "resourceFieldRef" => field_reference::of_container(&path, reference, false, causes),
            "fileKeyRef" => file_key(&path, reference, causes),
            _ => object_key(&path, reference, causes),
        }
    }
    let problem = match (given.count(), has_value) {
        (0, _) => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, \
             `secretKeyRef` or `fileKeyRef`"
        }
        (_, true) => "may not be specified when `value` is not empty",
        (1, false) => return,
        (_, false) => ONE_SOURCE,
    };
    causes.push(Cause::invalid(path, &"".into(), problem));
}

/// A key of a config map or secret.
fn object_key(path: &str, reference: &Value, causes: &mut Vec<Cause>) {
    super::name(&format!("{path}.name"), &reference["name"], names::dns1123_subdomain, causes);
    required_name(&format!("{path}.key"), &reference["key"], names::config_key, causes);
}

/// A key in a file of a volume.
fn file_key(path: &str, reference: &Value, causes: &mut Vec<Cause>) {
    required_name(&format!("{path}.key"), &reference["key"], name_problems, causes);
    let (volume, file) = (&reference["volumeName"], &reference["path"]);
    required_name(&format!("{path}.volumeName"), volume, names::dns1123_label, causes);
    let path = format!("{path}.path");
    if require_text(&path, file, causes) {
        // An absolute path counts as one below the volume.
        let below = str_of(file).trim_start_matches('/');
        free_path(&path, &below.into(), causes);
    }
}

/// Validates `envFrom`: config maps and secrets whose keys all become variables.
pub fn sources(field: &str, list: &Value, causes: &mut Vec<Cause>) {
    for (path, source) in each(field, list) {
        let prefix = &source["prefix"];
        super::name_if_any(&format!("{path}.prefix"), prefix, name_problems, causes);
        let kinds = ["configMapRef", "secretRef"].into_iter();
        let given = kinds.filter(|kind| source[kind].is_object());
        for kind in given.clone() {
            let path = format!("{path}.{kind}.name");
            required_name(&path, &source[kind]["name"], names::dns1123_subdomain, causes);
        }
        let problem = match given.count() {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => ONE_SOURCE,
        };
        causes.push(Cause::invalid(field, &"".into(), problem));
    }
}
