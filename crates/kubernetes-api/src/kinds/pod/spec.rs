//! Defaults of a pod spec, in pods and in templates.

use apiserver::fields::{Object, child, each, ensure, preset, text};
use serde_json::json;

/// Mode of files in volumes: 0644.
const FILE_MODE: i64 = 0o644;

/// Sets the defaults of a pod spec, like kube-apiserver. Idempotent.
pub fn default(spec: &mut Object) {
    preset(spec, "dnsPolicy", "ClusterFirst");
    preset(spec, "restartPolicy", "Always");
    preset(spec, "terminationGracePeriodSeconds", 30);
    preset(spec, "schedulerName", "default-scheduler");
    ensure(spec, "securityContext");
    // One field with two names.
    let account = match (text(spec, "serviceAccountName"), text(spec, "serviceAccount")) {
        ("", old) => old.to_owned(),
        (name, _) => name.to_owned(),
    };
    if !account.is_empty() {
        spec.insert("serviceAccountName".to_owned(), account.clone().into());
        spec.insert("serviceAccount".to_owned(), account.into());
    }
    for field in ["containers", "initContainers", "ephemeralContainers"] {
        each(spec, field, container);
    }
    each(spec, "volumes", volume);
}

fn container(container: &mut Object) {
    preset(container, "terminationMessagePath", "/dev/termination-log");
    preset(container, "terminationMessagePolicy", "File");
    let policy = pull_policy(text(container, "image"));
    preset(container, "imagePullPolicy", policy);
    ensure(container, "resources");
    each(container, "ports", |port| preset(port, "protocol", "TCP"));
    each(container, "env", |variable| {
        if let Some(source) = child(variable, "valueFrom") {
            field_references(source);
        }
    });
    for field in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = child(container, field) {
            preset(probe, "timeoutSeconds", 1);
            preset(probe, "periodSeconds", 10);
            preset(probe, "successThreshold", 1);
            preset(probe, "failureThreshold", 3);
            http_get(probe);
            if let Some(grpc) = child(probe, "grpc") {
                preset(grpc, "service", "");
            }
        }
    }
    if let Some(lifecycle) = child(container, "lifecycle") {
        for field in ["postStart", "preStop"] {
            if let Some(handler) = child(lifecycle, field) {
                http_get(handler);
            }
        }
    }
}

fn http_get(handler: &mut Object) {
    if let Some(get) = child(handler, "httpGet") {
        preset(get, "path", "/");
        preset(get, "scheme", "HTTP");
    }
}

/// The default depends on the tag: `latest` and a missing tag may move.
fn pull_policy(image: &str) -> &'static str {
    // A text that is no image name has no tag that may move either.
    let is_name = !image.is_empty() && !image.contains(char::is_whitespace);
    if image.contains('@') || !is_name {
        return "IfNotPresent";
    }
    let last = image.rsplit('/').next().unwrap_or(image);
    match last.split_once(':') {
        None | Some((_, "latest" | "")) => "Always",
        Some(_) => "IfNotPresent",
    }
}

fn field_references(source: &mut Object) {
    if let Some(reference) = child(source, "fieldRef") {
        preset(reference, "apiVersion", "v1");
    }
    if let Some(reference) = child(source, "resourceFieldRef") {
        preset(reference, "divisor", "0");
    }
}

fn volume(volume: &mut Object) {
    if volume.keys().all(|key| key == "name") {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    for field in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = child(volume, field) {
            preset(source, "defaultMode", FILE_MODE);
            each(source, "items", field_references);
            each(source, "sources", projected_source);
        }
    }
    if let Some(path) = child(volume, "hostPath") {
        preset(path, "type", "");
    }
    if let Some(iscsi) = child(volume, "iscsi") {
        preset(iscsi, "iscsiInterface", "default");
    }
    let template = child(volume, "ephemeral").and_then(|e| child(e, "volumeClaimTemplate"));
    if let Some(template) = template {
        ensure(template, "metadata");
        if let Some(spec) = ensure(template, "spec") {
            preset(spec, "volumeMode", "Filesystem");
        }
    }
}

fn projected_source(source: &mut Object) {
    if let Some(token) = child(source, "serviceAccountToken") {
        preset(token, "expirationSeconds", 3600);
    }
    if let Some(fields) = child(source, "downwardAPI") {
        each(fields, "items", field_references);
    }
}
