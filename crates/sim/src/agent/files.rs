//! Volumes of a pod as files: secrets, config maps, the downward API, and service account tokens.

use std::path::{Component, Path};

use anyhow::{Context, bail, ensure};
use api_meta::object::ObjectExt;
use apiserver::UserInfo;
use apiserver::attributes::GROUP_MASTERS;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

use super::container::{list, pod_field, read_map, text};
use super::{Runner, make_private};

/// Writes the volume's files into `folder`. Existing files are replaced, each atomically.
pub async fn write_volume(
    runner: &Runner,
    pod: &Value,
    volume: &Value,
    folder: &Path,
) -> anyhow::Result<()> {
    make_private(folder)?;
    if volume["secret"].is_object() {
        let source = &volume["secret"];
        let name = text(&source["secretName"]);
        return write_map(runner, pod, "secrets", name, source, folder).await;
    }
    if volume["configMap"].is_object() {
        let source = &volume["configMap"];
        return write_map(runner, pod, "configmaps", text(&source["name"]), source, folder).await;
    }
    if volume["downwardAPI"].is_object() {
        return write_fields(pod, &volume["downwardAPI"], folder);
    }
    for source in list(&volume["projected"]["sources"]) {
        if source["serviceAccountToken"].is_object() {
            let request = &source["serviceAccountToken"];
            let token = request_token(runner, pod, request).await?;
            write_file(folder, text(&request["path"]), token.as_bytes())?;
        } else if source["configMap"].is_object() {
            let source = &source["configMap"];
            let name = text(&source["name"]);
            write_map(runner, pod, "configmaps", name, source, folder).await?;
        } else if source["secret"].is_object() {
            let source = &source["secret"];
            write_map(runner, pod, "secrets", text(&source["name"]), source, folder).await?;
        } else if source["downwardAPI"].is_object() {
            write_fields(pod, &source["downwardAPI"], folder)?;
        }
    }
    Ok(())
}

async fn write_map(
    runner: &Runner,
    pod: &Value,
    plural: &str,
    name: &str,
    source: &Value,
    folder: &Path,
) -> anyhow::Result<()> {
    let Some(values) = read_map(runner, pod.namespace(), plural, name).await? else {
        ensure!(source["optional"] == true, "\"{name}\" in {plural} does not exist");
        return Ok(());
    };
    let items = list(&source["items"]);
    if items.is_empty() {
        return values.iter().try_for_each(|(key, bytes)| write_file(folder, key, bytes));
    }
    for item in items {
        let key = text(&item["key"]);
        match values.iter().find(|(known, _)| known == key) {
            Some((_, bytes)) => write_file(folder, text(&item["path"]), bytes)?,
            None if source["optional"] == true => {}
            None => bail!("key \"{key}\" of \"{name}\" in {plural} does not exist"),
        }
    }
    Ok(())
}

fn write_fields(pod: &Value, source: &Value, folder: &Path) -> anyhow::Result<()> {
    for item in list(&source["items"]) {
        let value = pod_field(pod, text(&item["fieldRef"]["fieldPath"]));
        write_file(folder, text(&item["path"]), value.as_bytes())?;
    }
    Ok(())
}

/// Writes one file below `folder`, readable for its owner only.
pub fn write_file(folder: &Path, name: &str, content: &[u8]) -> anyhow::Result<()> {
    let relative = Path::new(name);
    let plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
    ensure!(plain && !name.is_empty(), "\"{name}\" does not stay inside its volume");
    let file = folder.join(relative);
    if let Some(folder) = file.parent() {
        make_private(folder)?;
    }
    pki::files::write_private(&file, content)
        .with_context(|| format!("cannot write \"{}\"", file.display()))
}

/// A token of the pod's service account, bound to the pod.
async fn request_token(runner: &Runner, pod: &Value, request: &Value) -> anyhow::Result<String> {
    let kubelet = UserInfo::new("system:node", &[GROUP_MASTERS]);
    let client = kube::Client::new(runner.server.as_user(kubelet), "default");
    let accounts: Api<ServiceAccount> = Api::namespaced(client, pod.namespace());
    let mut audiences = Vec::new();
    if let Some(audience) = request["audience"].as_str() {
        audiences.push(audience);
    }
    let request: TokenRequest = serde_json::from_value(json!({
        "spec": {
            "audiences": audiences,
            "expirationSeconds": request["expirationSeconds"],
            "boundObjectRef": {
                "apiVersion": "v1", "kind": "Pod", "name": pod.name(), "uid": pod.uid(),
            },
        },
    }))?;
    let account = text(&pod["spec"]["serviceAccountName"]);
    let response =
        accounts
            .create_token_request(account, &PostParams::default(), &request)
            .await
            .with_context(|| format!("cannot get a token of service account \"{account}\""))?;
    response
        .status
        .and_then(|status| status.token)
        .context("the response to the token request has no token")
}
