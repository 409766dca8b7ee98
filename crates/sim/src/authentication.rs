//! The certificates and bearer tokens that a simulated cluster trusts: the flags of kube-apiserver,
//! with the same names.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use apiserver::authentication::oidc::{Algorithm, KEY_FETCH_PAUSE};
use apiserver::authentication::{
    OidcConfig, OidcTokens, ReviewVersion, TokenAuthenticator, TokenWebhook,
};
use clap::Args;

/// Flags for the credentials that a simulated cluster trusts.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Authentication")]
pub struct AuthenticationArgs {
    /// Trust client certificates of these authorities: the common name is the user, the
    /// organizations are the groups
    #[arg(long, value_name = "FILE")]
    pub client_ca_file: Option<PathBuf>,
    /// Accept tokens in Secrets of the type `bootstrap.kubernetes.io/token` in `kube-system`
    #[arg(long)]
    pub enable_bootstrap_token_auth: bool,
    /// Kubeconfig of a service that reviews tokens (TokenReview)
    #[arg(long, value_name = "FILE")]
    pub authentication_token_webhook_config_file: Option<PathBuf>,
    /// Version of the TokenReview that is sent to it
    #[arg(long, value_name = "VERSION", default_value = "v1beta1",
          value_parser = ["v1", "v1beta1"])]
    pub authentication_token_webhook_version: String,
    /// How long its responses are cached, such as `2m` or `30s`
    #[arg(long, value_name = "DURATION", default_value = "2m")]
    pub authentication_token_webhook_cache_ttl: String,
    /// URL of the OpenID Connect issuer whose tokens are trusted
    #[arg(long, value_name = "URL")]
    pub oidc_issuer_url: Option<String>,
    /// Audience that its tokens must have
    #[arg(long, value_name = "ID")]
    pub oidc_client_id: Option<String>,
    /// Authorities of the issuer's certificate; without it, those of the machine
    #[arg(long, value_name = "FILE")]
    pub oidc_ca_file: Option<PathBuf>,
    /// Claim that is the user's name
    #[arg(long, value_name = "CLAIM", default_value = "sub")]
    pub oidc_username_claim: String,
    /// Prefix of each user name; `-` for none [default: the issuer's URL and `#`, nothing for the
    /// claim `email`]
    #[arg(long, value_name = "TEXT")]
    pub oidc_username_prefix: Option<String>,
    /// Claim that lists the user's groups
    #[arg(long, value_name = "CLAIM")]
    pub oidc_groups_claim: Option<String>,
    /// Prefix of each group
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub oidc_groups_prefix: String,
    /// A claim that must have this value; may be given several times
    #[arg(long, value_name = "CLAIM=VALUE", value_delimiter = ',')]
    pub oidc_required_claim: Vec<String>,
    /// Accepted signing algorithms of tokens
    #[arg(long, value_name = "ALG,…", value_delimiter = ',', default_value = "RS256")]
    pub oidc_signing_algs: Vec<String>,
}

/// The trusted certificates and kinds of tokens, from the flags.
#[derive(Clone, Default)]
pub struct Authentication {
    /// Authorities of client certificates, as PEM.
    pub client_authorities_pem: Option<String>,
    pub bootstrap_tokens: bool,
    pub outside: Vec<Arc<dyn TokenAuthenticator>>,
}

impl AuthenticationArgs {
    /// # Errors
    /// Flags or files cannot be used; the message names them.
    pub fn resolve(&self) -> anyhow::Result<Authentication> {
        let mut outside: Vec<Arc<dyn TokenAuthenticator>> = Vec::new();
        if let Some(config) = self.oidc()? {
            outside.push(Arc::new(OidcTokens::new(config)?));
        }
        if let Some(file) = &self.authentication_token_webhook_config_file {
            outside.push(Arc::new(self.webhook(file)?));
        }
        let client_authorities_pem = self.client_ca_file.as_deref().map(|file| {
            std::fs::read_to_string(file)
                .with_context(|| format!("client-ca-file: cannot read \"{}\"", file.display()))
        });
        Ok(Authentication {
            client_authorities_pem: client_authorities_pem.transpose()?,
            bootstrap_tokens: self.enable_bootstrap_token_auth,
            outside,
        })
    }

    fn oidc(&self) -> anyhow::Result<Option<OidcConfig>> {
        let (issuer_url, client_id) = match (&self.oidc_issuer_url, &self.oidc_client_id) {
            (None, None) => return Ok(None),
            (Some(issuer), Some(client)) => (issuer.clone(), client.clone()),
            _ => bail!("oidc-issuer-url and oidc-client-id must be specified together"),
        };
        let claim = |text: &String| {
            let pair = text.split_once('=').filter(|(claim, _)| !claim.is_empty());
            let (claim, value) = pair
                .with_context(|| format!("oidc-required-claim: \"{text}\" is not CLAIM=VALUE"))?;
            Ok((claim.to_owned(), value.to_owned()))
        };
        let algorithm = |name: &String| {
            Algorithm::from_name(name).with_context(|| {
                let known = Algorithm::ALL.map(|(name, _)| name).join(", ");
                format!("oidc-signing-algs: \"{name}\" is not supported; use any of {known}")
            })
        };
        Ok(Some(OidcConfig {
            issuer_url,
            client_id,
            username_claim: self.oidc_username_claim.clone(),
            username_prefix: self.oidc_username_prefix.clone(),
            groups_claim: self.oidc_groups_claim.clone(),
            groups_prefix: self.oidc_groups_prefix.clone(),
            required_claims: self
                .oidc_required_claim
                .iter()
                .map(claim)
                .collect::<anyhow::Result<_>>()?,
            algorithms: self
                .oidc_signing_algs
                .iter()
                .map(algorithm)
                .collect::<anyhow::Result<_>>()?,
            key_fetch_pause: KEY_FETCH_PAUSE,
            ca_pem: match &self.oidc_ca_file {
                Some(file) => std::fs::read(file)
                    .with_context(|| format!("oidc-ca-file: cannot read \"{}\"", file.display()))?,
                None => Vec::new(),
            },
        }))
    }

    fn webhook(&self, file: &Path) -> anyhow::Result<TokenWebhook> {
        let flag = "authentication-token-webhook-config-file";
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("{flag}: cannot read \"{}\"", file.display()))?;
        let version = match self.authentication_token_webhook_version.as_str() {
            "v1" => ReviewVersion::V1,
            _ => ReviewVersion::V1Beta1,
        };
        let keep = duration(&self.authentication_token_webhook_cache_ttl)?;
        let folder = file.parent().unwrap_or(Path::new("."));
        TokenWebhook::new(&text, folder, version, keep).with_context(|| flag.to_owned())
    }
}

fn duration(text: &str) -> anyhow::Result<Duration> {
    let seconds = api_meta::duration::seconds(text);
    let seconds = seconds
        .ok()
        .filter(|seconds| *seconds >= 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.with_context(|| {
        format!("authentication-token-webhook-cache-ttl: \"{text}\" is not a duration such as 2m")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signing_algorithm_that_is_not_supported_is_refused_with_those_that_are() {
        let resolve = |algorithms: &[&str]| {
            let args = AuthenticationArgs {
                oidc_issuer_url: Some("https://issuer.example.com".to_owned()),
                oidc_client_id: Some("drover".to_owned()),
                oidc_username_claim: "sub".to_owned(),
                oidc_signing_algs: algorithms.iter().map(|name| (*name).to_owned()).collect(),
                ..AuthenticationArgs::default()
            };
            args.resolve().map(|resolved| resolved.outside.len()).map_err(|error| error.to_string())
        };
        let all = Algorithm::ALL.map(|(name, _)| name);
        assert_eq!(resolve(&all), Ok(1));
        for name in ["ES512", "HS256", "none"] {
            let message = format!(
                "oidc-signing-algs: \"{name}\" is not supported; use any of RS256, RS384, RS512, \
                 PS256, PS384, PS512, ES256, ES384"
            );
            assert_eq!(resolve(&["RS256", name]), Err(message));
        }
    }
}
