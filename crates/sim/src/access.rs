//! Credentials of a simulated cluster: an administrator's token and a kubeconfig.

use std::path::Path;

use anyhow::Context;
use apiserver::attributes::{GROUP_AUTHENTICATED, GROUP_MASTERS, UserInfo};
use apiserver::authentication::StaticTokens;
use serde_json::json;

/// The user of the token in the kubeconfig.
pub const ADMINISTRATOR: &str = "sim-admin";

/// The administrator's token.
pub struct AdminToken {
    token: String,
}

impl AdminToken {
    /// The token in `file`, created when there is none.
    pub fn ensure(file: &Path) -> anyhow::Result<Self> {
        if file.exists() {
            let text = std::fs::read_to_string(file)
                .with_context(|| format!("cannot read \"{}\"", file.display()))?;
            return Ok(Self { token: text.trim().to_owned() });
        }
        let bits: [u128; 2] = rand::random();
        let token = format!("{:032x}{:032x}", bits[0], bits[1]);
        pki::files::write_private(file, token.as_bytes())?;
        Ok(Self { token })
    }

    /// The token itself, as requests present it.
    pub fn expose(&self) -> &str {
        &self.token
    }

    /// An authenticator that accepts exactly this token.
    pub fn authenticator(&self) -> StaticTokens {
        let mut tokens = StaticTokens::new();
        let administrator = UserInfo::new(ADMINISTRATOR, &[GROUP_MASTERS, GROUP_AUTHENTICATED]);
        tokens.insert(&self.token, administrator);
        tokens
    }
}

/// The name of a cluster's kubeconfig in the folder that all clusters share.
pub fn shared_file(index: usize) -> String {
    match index {
        0 => "admin.kubeconfig".to_owned(),
        index => format!("admin-{index}.kubeconfig"),
    }
}

/// A self-contained kubeconfig.
pub fn kubeconfig(name: &str, url: &str, ca_pem: &str, token: &str) -> String {
    use base64::Engine;
    let ca = base64::engine::general_purpose::STANDARD.encode(ca_pem);
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": name,
            "cluster": {"server": url, "certificate-authority-data": ca},
        }],
        "users": [{"name": ADMINISTRATOR, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": ADMINISTRATOR}}],
        "current-context": name,
    });
    serde_saphyr::to_string(&config).expect("plain values serialise")
}

/// Writes a file atomically, readable for its owner only.
pub fn write(path: &Path, content: &str) -> anyhow::Result<()> {
    pki::files::write_private(path, content.as_bytes())
        .with_context(|| format!("cannot write \"{}\"", path.display()))
}
