//! Volumes that a container mounts or uses as block devices.

use std::collections::BTreeSet;

use api_meta::status::Cause;
use apiserver::fields::{items, str_of};
use serde_json::Value;

use super::volume::Volumes;
use super::{descending_path, each, not_found, require_text};

const PROPAGATIONS: [&str; 3] = ["Bidirectional", "HostToContainer", "None"];
const READ_ONLY_MODES: [&str; 3] = ["Disabled", "Enabled", "IfPossible"];

/// Texts of one field of the items of a list.
fn texts<'a>(list: &'a Value, name: &str) -> BTreeSet<&'a str> {
    items(list).iter().map(|item| str_of(&item[name])).collect()
}

/// Validates the `volumeMounts` of the container at `path`; appends a cause for each problem.
pub fn volumes(path: &str, container: &Value, volumes: &Volumes<'_>, causes: &mut Vec<Cause>) {
    let field = format!("{path}.volumeMounts");
    let devices = &container["volumeDevices"];
    let (names, paths) = (texts(devices, "name"), texts(devices, "devicePath"));
    let mut seen = BTreeSet::new();
    for (path, mount) in each(&field, &container["volumeMounts"]) {
        let (of_name, of_path) = (format!("{path}.name"), format!("{path}.mountPath"));
        let (name, at) = (&mount["name"], &mount["mountPath"]);
        require_text(&of_name, name, causes);
        if !volumes.contains_key(str_of(name)) {
            causes.push(not_found(&of_name, str_of(name)));
        }
        require_text(&of_path, at, causes);
        if !seen.insert(str_of(at)) {
            causes.push(Cause::invalid(&of_path, &str_of(at).into(), "must be unique"));
        }
        if names.contains(str_of(name)) {
            let text = "must not already exist in volumeDevices";
            causes.push(Cause::invalid(of_name, &str_of(name).into(), text));
        }
        if paths.contains(str_of(at)) {
            let text = "must not already exist as a path in volumeDevices";
            causes.push(Cause::invalid(of_path, &str_of(at).into(), text));
        }
        sub_path(&field, &path, mount, causes);
        propagation(&field, container, mount, causes);
        read_only(&field, mount, causes);
    }
}

fn sub_path(field: &str, path: &str, mount: &Value, causes: &mut Vec<Cause>) {
    descending_path(&format!("{field}.subPath"), &mount["subPath"], causes);
    let expression = &mount["subPathExpr"];
    if !str_of(expression).is_empty() && !str_of(&mount["subPath"]).is_empty() {
        let text = "subPathExpr and subPath are mutually exclusive";
        causes.push(Cause::invalid(format!("{path}.subPathExpr"), expression, text));
    }
    descending_path(&format!("{field}.subPathExpr"), expression, causes);
}

fn propagation(field: &str, container: &Value, mount: &Value, causes: &mut Vec<Cause>) {
    let (field, given) = (format!("{field}.mountPropagation"), &mount["mountPropagation"]);
    if given.is_null() {
        return;
    }
    super::require_one_of(&field, given, &PROPAGATIONS, causes);
    if given == "Bidirectional" && container["securityContext"]["privileged"] != true {
        let text = "Bidirectional mount propagation is available only to privileged containers";
        causes.push(Cause::forbidden(field, text));
    }
}

fn read_only(field: &str, mount: &Value, causes: &mut Vec<Cause>) {
    let (field, given) = (format!("{field}.recursiveReadOnly"), &mount["recursiveReadOnly"]);
    if given.is_null() {
        return;
    }
    super::require_one_of(&field, given, &READ_ONLY_MODES, causes);
    if !matches!(str_of(given), "Enabled" | "IfPossible") {
        return;
    }
    if mount["readOnly"] != true {
        causes.push(Cause::forbidden(&field, "may only be specified when readOnly is true"));
    }
    if !matches!(str_of(&mount["mountPropagation"]), "" | "None") {
        let text = "may only be specified when mountPropagation is None or not specified";
        causes.push(Cause::forbidden(field, text));
    }
}

/// Validates the `volumeDevices` of the container at `path`; appends a cause for each problem.
pub fn devices(path: &str, container: &Value, volumes: &Volumes<'_>, causes: &mut Vec<Cause>) {
    let field = format!("{path}.volumeDevices");
    let mounts = &container["volumeMounts"];
    let (names, paths) = (texts(mounts, "name"), texts(mounts, "mountPath"));
    let (mut names_seen, mut paths_seen) = (BTreeSet::new(), BTreeSet::new());
    for (path, device) in each(&field, &container["volumeDevices"]) {
        let (of_name, of_path) = (format!("{path}.name"), format!("{path}.devicePath"));
        let (name, at) = (str_of(&device["name"]), str_of(&device["devicePath"]));
        let refuse =
            |field: &str, value: &str, why: &str| Cause::invalid(field, &value.into(), why);
        require_text(&of_name, &device["name"], causes);
        if !name.is_empty() && !names_seen.insert(name) {
            causes.push(refuse(&of_name, name, "must be unique"));
        }
        match volumes.get(name) {
            None => causes.push(not_found(&of_name, name)),
            Some(volume) => {
                let kinds = ["persistentVolumeClaim", "ephemeral"];
                if kinds.iter().all(|kind| volume[kind].is_null()) {
                    let text = "can only use volume source type of PersistentVolumeClaim or \
                                Ephemeral for block mode";
                    causes.push(refuse(&of_name, name, text));
                }
            }
        }
        require_text(&of_path, &device["devicePath"], causes);
        if paths_seen.contains(at) {
            causes.push(refuse(&of_path, at, "must be unique"));
        }
        if at.split('/').any(|part| part == "..") {
            causes.push(refuse(&of_path, at, "can not contain backsteps ('..')"));
        } else {
            paths_seen.insert(at);
        }
        if names.contains(name) {
            causes.push(refuse(&of_name, name, "must not already exist in volumeMounts"));
        }
        if paths.contains(at) {
            let text = "must not already exist as a path in volumeMounts";
            causes.push(refuse(&of_path, at, text));
        }
    }
}
