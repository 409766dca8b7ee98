//! Parses a self-contained kubeconfig: its server and its credentials.

use std::path::Path;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// The first cluster and the first user of a kubeconfig.
#[derive(Clone, Debug)]
pub struct Kubeconfig {
    /// URL, possibly with a path.
    pub server: String,
    pub ca_pem: String,
    pub token: Option<String>,
    /// Certificate and key, PEM.
    pub certificate: Option<(String, String)>,
}

impl Kubeconfig {
    /// # Errors
    /// The file cannot be read or is not a self-contained kubeconfig.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read '{}'", path.display()))?;
        Self::parse(&text).with_context(|| format!("kubeconfig '{}'", path.display()))
    }

    /// # Errors
    /// The text is not a self-contained kubeconfig.
    pub fn parse(text: &str) -> Result<Self> {
        let document: Value = serde_saphyr::from_str(text).context("it is not YAML")?;
        let cluster = &document["clusters"][0]["cluster"];
        let user = &document["users"][0]["user"];
        let ca = cluster["certificate-authority-data"].as_str().context("it has no authority")?;
        let certificate = match &user["client-certificate-data"] {
            Value::String(certificate) => {
                let key = user["client-key-data"].as_str().context("it has no client key")?;
                Some((decoded(certificate)?, decoded(key)?))
            }
            _ => None,
        };
        Ok(Self {
            server: cluster["server"].as_str().context("it names no server")?.to_owned(),
            ca_pem: decoded(ca)?,
            token: user["token"].as_str().map(str::to_owned),
            certificate,
        })
    }
}

fn decoded(text: &str) -> Result<String> {
    let bytes = STANDARD.decode(text).context("it has data that is not base64")?;
    String::from_utf8(bytes).context("it has data that is not text")
}
