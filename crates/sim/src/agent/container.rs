//! The inputs of a container: arguments, environment, and its volumes as files.

use std::path::Path;

use anyhow::{Context, bail};
use api_meta::object::ObjectExt;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{Runner, files, make_private};

/// The two mounts whose directories agents read from a variable.
const KNOWN_MOUNTS: &[(&str, &str)] = &[
    ("/var/run/secrets/kubernetes.io/serviceaccount", "DROVER_SERVICEACCOUNT_DIR"),
    ("/cattle-credentials", "DROVER_CREDENTIALS_DIR"),
];

/// A container that is ready to start.
#[derive(Debug, Default)]
pub struct Prepared {
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
}

/// Reads what the pod's first container refers to and writes its volumes below `folder`.
pub async fn prepare(runner: &Runner, pod: &Value, folder: &Path) -> anyhow::Result<Prepared> {
    make_private(folder)?;
    let container = &pod["spec"]["containers"][0];
    let mut environment = vec![
        ("KUBERNETES_SERVICE_HOST".to_owned(), runner.api.ip().to_string()),
        ("KUBERNETES_SERVICE_PORT".to_owned(), runner.api.port().to_string()),
        ("KUBERNETES_SERVICE_PORT_HTTPS".to_owned(), runner.api.port().to_string()),
        ("HOSTNAME".to_owned(), pod.name().to_owned()),
    ];
    for source in list(&container["envFrom"]) {
        let prefix = text(&source["prefix"]);
        for (key, bytes) in referred_map(runner, pod, source).await? {
            let value = String::from_utf8_lossy(&bytes).into_owned();
            environment.push((format!("{prefix}{key}"), value));
        }
    }
    for variable in list(&container["env"]) {
        if let Some(value) = variable_value(runner, pod, variable).await? {
            let value = expand(&value, &environment);
            environment.push((text(&variable["name"]).to_owned(), value));
        }
    }
    for mount in list(&container["volumeMounts"]) {
        let volumes = list(&pod["spec"]["volumes"]);
        let Some(volume) = volumes.iter().find(|volume| volume["name"] == mount["name"]) else {
            bail!("volume {} is not in the pod", mount["name"]);
        };
        let place = folder.join("volumes").join(text(&volume["name"]));
        files::write_volume(runner, pod, volume, &place).await?;
        let path = text(&mount["mountPath"]);
        let place = place.join(text(&mount["subPath"])).display().to_string();
        let known = KNOWN_MOUNTS.iter().filter(|(mounted, _)| *mounted == path);
        environment.extend(known.map(|(_, name)| ((*name).to_owned(), place.clone())));
        environment.push((mount_variable(path), place));
    }
    let arguments = list(&container["args"]);
    let arguments = arguments.iter().map(|part| expand(text(part), &environment)).collect();
    Ok(Prepared { arguments, environment })
}

/// `DROVER_MOUNT_ETC_THINGS` for `/etc/things`.
pub fn mount_variable(path: &str) -> String {
    let named: String = path
        .trim_matches('/')
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
        .collect();
    format!("DROVER_MOUNT_{named}")
}

/// The items of a list; none if `value` is no list.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The text; empty if `value` is no text.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Replaces `$(NAME)` by earlier variables; `$$` is a dollar sign.
pub fn expand(value: &str, environment: &[(String, String)]) -> String {
    let mut out = String::new();
    let mut rest = value;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some((name, after)) =
            rest.strip_prefix('(').and_then(|inner| inner.split_once(')'))
        {
            match environment.iter().rev().find(|(known, _)| known == name) {
                Some((_, value)) => out.push_str(value),
                None => out.push_str(&format!("$({name})")),
            }
            rest = after;
        } else {
            out.push('$');
        }
    }
    out.push_str(rest);
    out
}

/// The value of one variable; `None` when it refers to something optional that does not exist.
async fn variable_value(
    runner: &Runner,
    pod: &Value,
    variable: &Value,
) -> anyhow::Result<Option<String>> {
    let source = &variable["valueFrom"];
    if source.is_null() {
        return Ok(Some(text(&variable["value"]).to_owned()));
    }
    if let Some(path) = source["fieldRef"]["fieldPath"].as_str() {
        return Ok(Some(pod_field(pod, path)));
    }
    for (kind, plural) in [("secretKeyRef", "secrets"), ("configMapKeyRef", "configmaps")] {
        let reference = &source[kind];
        if !reference.is_object() {
            continue;
        }
        let (name, key) = (text(&reference["name"]), text(&reference["key"]));
        let found = read_map(runner, pod.namespace(), plural, name).await?;
        let value = found.and_then(|map| map.into_iter().find(|(known, _)| known == key));
        return match value {
            Some((_, bytes)) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            None if reference["optional"] == true => Ok(None),
            None => bail!("key \"{key}\" of \"{name}\" in {plural} does not exist"),
        };
    }
    Ok(Some(String::new()))
}

/// A field of the pod that the downward API offers.
pub fn pod_field(pod: &Value, path: &str) -> String {
    let subscript = |prefix: &str| {
        let inner = path.strip_prefix(prefix)?.strip_prefix("['")?;
        inner.strip_suffix("']")
    };
    if let Some(key) = subscript("metadata.labels") {
        return pod.label(key).unwrap_or_default().to_owned();
    }
    if let Some(key) = subscript("metadata.annotations") {
        return pod.annotation(key).unwrap_or_default().to_owned();
    }
    let value = path.split('.').fold(pod, |value, step| &value[step]);
    match value {
        Value::Object(map) => {
            let lines: Vec<String> =
                map.iter().map(|(key, value)| format!("{key}={value}")).collect();
            lines.join("\n")
        }
        value => text(value).to_owned(),
    }
}

async fn referred_map(
    runner: &Runner,
    pod: &Value,
    source: &Value,
) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    for (kind, plural) in [("secretRef", "secrets"), ("configMapRef", "configmaps")] {
        let reference = &source[kind];
        if reference.is_object() {
            let name = text(&reference["name"]);
            return match read_map(runner, pod.namespace(), plural, name).await? {
                Some(map) => Ok(map),
                None if reference["optional"] == true => Ok(Vec::new()),
                None => bail!("\"{name}\" in {plural} does not exist"),
            };
        }
    }
    Ok(Vec::new())
}

/// Keys and values of a Secret or ConfigMap.
pub async fn read_map(
    runner: &Runner,
    namespace: &str,
    plural: &str,
    name: &str,
) -> anyhow::Result<Option<Vec<(String, Vec<u8>)>>> {
    let registry = &runner.world.registry;
    let kind = registry.find("", plural).with_context(|| format!("{plural} are not served"))?;
    let object = match registry.get(&kind, namespace, name).await {
        Ok(found) => found.value(),
        Err(status) if status.code == 404 => return Ok(None),
        Err(status) => return Err(status.into()),
    };
    let encoded = |field: &str| {
        let map = object[field].as_object();
        map.into_iter().flatten().map(|(key, value)| {
            Ok((key.clone(), STANDARD.decode(text(value)).context("not base64")?))
        })
    };
    let plain = |field: &str| {
        let map = object[field].as_object();
        map.into_iter().flatten().map(|(key, value)| (key.clone(), text(value).as_bytes().to_vec()))
    };
    if plural == "secrets" {
        return encoded("data").collect::<anyhow::Result<_>>().map(Some);
    }
    let mut values: Vec<(String, Vec<u8>)> = plain("data").collect();
    values.extend(encoded("binaryData").collect::<anyhow::Result<Vec<_>>>()?);
    Ok(Some(values))
}
