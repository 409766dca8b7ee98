//! Parses the import manifest: the settings of the agent in it.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Name of the Deployment and of its namespace, which existing clients know.
pub const AGENT_DEPLOYMENT: &str = "cattle-cluster-agent";
pub const AGENT_NAMESPACE: &str = "cattle-system";

/// All objects of a manifest.
#[derive(Clone, Debug)]
pub struct Manifest {
    pub text: String,
    pub objects: Vec<Value>,
}

/// The inputs that a kubelet would give to the agent's container.
#[derive(Clone, Debug)]
pub struct Container {
    pub image: String,
    pub command: Vec<String>,
    pub arguments: Vec<String>,
    pub environment: BTreeMap<String, String>,
    pub service_account: String,
    /// Files of mounted Secrets, by mount path.
    pub secrets: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
}

impl Manifest {
    /// # Errors
    /// It is not YAML.
    pub fn parse(text: &str) -> Result<Self> {
        let objects: Vec<Value> = serde_saphyr::from_multiple(text).context("manifest")?;
        let objects = objects.into_iter().filter(Value::is_object).collect();
        Ok(Self { text: text.to_owned(), objects })
    }

    /// The objects of a kind.
    pub fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.objects.iter().filter(move |object| object["kind"] == kind)
    }

    /// The first container of the agent's Deployment, with all references resolved.
    ///
    /// # Errors
    /// The manifest has no such Deployment, or refers to objects that it does not have.
    pub fn agent(&self) -> Result<Container> {
        let deployment = self
            .of_kind("Deployment")
            .find(|object| object["metadata"]["name"] == AGENT_DEPLOYMENT)
            .context("the manifest has no Deployment of the agent")?;
        let pod = &deployment["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        let mut environment = BTreeMap::new();
        for variable in items(&container["env"]) {
            let name = variable["name"].as_str().context("a variable without a name")?;
            environment.insert(name.to_owned(), self.value_of(deployment, variable)?);
        }
        let mut secrets = BTreeMap::new();
        for mount in items(&container["volumeMounts"]) {
            let volume = items(&pod["volumes"])
                .find(|volume| volume["name"] == mount["name"])
                .with_context(|| format!("no volume {}", mount["name"]))?;
            if let Some(name) = volume["secret"]["secretName"].as_str() {
                let path = mount["mountPath"].as_str().context("a mount without a path")?;
                secrets.insert(path.to_owned(), self.secret(name)?);
            }
        }
        Ok(Container {
            image: text(&container["image"]),
            command: items(&container["command"]).map(text).collect(),
            arguments: items(&container["args"]).map(text).collect(),
            environment,
            service_account: text(&pod["serviceAccountName"]),
            secrets,
        })
    }

    fn value_of(&self, deployment: &Value, variable: &Value) -> Result<String> {
        let source = &variable["valueFrom"];
        if source.is_null() {
            return Ok(text(&variable["value"]));
        }
        if let Some(path) = source["fieldRef"]["fieldPath"].as_str() {
            return match path {
                "metadata.namespace" => Ok(text(&deployment["metadata"]["namespace"])),
                "metadata.name" => Ok(format!("{AGENT_DEPLOYMENT}-0")),
                "metadata.uid" => Ok("00000000-0000-4000-8000-000000000000".to_owned()),
                "spec.nodeName" => Ok("no-node".to_owned()),
                "status.podIP" | "status.hostIP" => Ok("127.0.0.1".to_owned()),
                other => bail!("{} refers to the field '{other}'", variable["name"]),
            };
        }
        let key = &source["secretKeyRef"];
        let name = key["name"].as_str().context("a variable from something unknown")?;
        let secret = self.secret(name)?;
        let value = secret.get(&text(&key["key"])).context("a missing key of a Secret")?;
        Ok(String::from_utf8(value.clone())?)
    }

    fn secret(&self, name: &str) -> Result<BTreeMap<String, Vec<u8>>> {
        let secret = self
            .of_kind("Secret")
            .find(|object| object["metadata"]["name"] == name)
            .with_context(|| format!("the manifest has no Secret '{name}'"))?;
        let mut files = BTreeMap::new();
        for (key, value) in secret["data"].as_object().into_iter().flatten() {
            files.insert(key.clone(), STANDARD.decode(text(value)).context("data of a Secret")?);
        }
        for (key, value) in secret["stringData"].as_object().into_iter().flatten() {
            files.insert(key.clone(), text(value).into_bytes());
        }
        Ok(files)
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(
        || if value.is_null() { String::new() } else { value.to_string() },
        str::to_owned,
    )
}
