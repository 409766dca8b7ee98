//! Kubeconfigs for one cluster, and the tokens inside them.

use std::collections::BTreeMap;

use api_management::token::{KIND_KUBECONFIG, KIND_KUBECTL_SHELL};
use api_management::{Token, User, ids, keys};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use feature_kit::ownership::owner_reference;
use identity::{TokenKey, generate_key, hash_key, random_text};
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use rest_view::{ApiError, Caller};
use serde_json::{Value, json};

/// What a token is made for.
#[derive(Clone, Debug)]
pub(crate) enum TokenPurpose {
    /// A file that its owner takes away. Good for whatever the caller's own token is good for.
    Kubeconfig,
    /// A shell inside the cluster with this id; good for nothing else.
    KubectlShell { cluster: String },
}

impl TokenPurpose {
    fn kind(&self) -> &'static str {
        match self {
            Self::Kubeconfig => KIND_KUBECONFIG,
            Self::KubectlShell { .. } => KIND_KUBECTL_SHELL,
        }
    }
    fn description(&self) -> &'static str {
        match self {
            Self::Kubeconfig => "Kubeconfig token",
            Self::KubectlShell { .. } => "Kubectl shell",
        }
    }
    fn cluster(&self, caller: &Caller) -> String {
        match self {
            Self::Kubeconfig => caller.token_cluster.clone().unwrap_or_default(),
            Self::KubectlShell { cluster } => cluster.clone(),
        }
    }
}

/// Creates a token of the caller, which lives for `ttl_millis` milliseconds; 0: unlimited. `client`
/// must be allowed to read users and create tokens.
///
/// # Errors
/// The API refused it.
pub(crate) async fn make_token(
    client: &Client,
    caller: &Caller,
    purpose: &TokenPurpose,
    ttl_millis: i64,
) -> Result<TokenKey, ApiError> {
    let user = Api::<User>::all(client.clone()).get(&caller.user_id).await?;
    let key = generate_key();
    let mut token = token_object(caller, purpose, hash_key(&key), ttl_millis);
    // The token goes when its person goes.
    token.metadata.owner_references = Some(vec![owner_reference(&user)]);
    let name = token.metadata.name.clone().unwrap_or_default();
    Api::<Token>::all(client.clone()).create(&PostParams::default(), &token).await?;
    Ok(TokenKey { name, key })
}

fn token_object(caller: &Caller, purpose: &TokenPurpose, hash: String, ttl_millis: i64) -> Token {
    let user = caller.user_id.clone();
    let labels = [(keys::TOKEN_USER_ID, user.as_str()), (keys::TOKEN_KIND, purpose.kind())];
    let annotations = [(keys::TOKEN_HASHED, "true"), (keys::CREATOR_ID, user.as_str())];
    let owned = |pairs: [(&str, &str); 2]| -> BTreeMap<String, String> {
        pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    };
    let suffix = random_text(ids::SUFFIX_LEN);
    Token {
        metadata: ObjectMeta {
            name: Some(format!("{}-{user}{suffix}", purpose.kind())),
            labels: Some(owned(labels)),
            annotations: Some(owned(annotations)),
            ..ObjectMeta::default()
        },
        token: hash,
        auth_provider: caller.auth_provider.clone().unwrap_or_else(|| "local".to_owned()),
        ttl_millis,
        description: purpose.description().to_owned(),
        is_derived: true,
        cluster_name: purpose.cluster(caller),
        enabled: Some(true),
        user_id: user,
        ..Token::default()
    }
}

/// How the kubeconfig's user proves who they are.
pub(crate) enum Credential {
    Token(TokenKey),
    /// The command line of clients that log in when needed.
    Plugin,
}

/// A kubeconfig with one cluster, one user and one context.
pub(crate) struct Kubeconfig<'a> {
    /// Scheme and host of the server.
    pub(crate) base: &'a str,
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    /// PEM; empty when the authority is a public one.
    pub(crate) ca_certs: &'a str,
    pub(crate) credential: Credential,
}

impl Kubeconfig<'_> {
    /// The file, which is also YAML.
    pub(crate) fn to_json(&self) -> Value {
        let name = self.name;
        let mut cluster = json!({"server": format!("{}/k8s/clusters/{}", self.base, self.id)});
        if !self.ca_certs.trim().is_empty() {
            let pem = format!("{}\n", self.ca_certs.trim_end());
            cluster["certificate-authority-data"] = BASE64_STANDARD.encode(pem).into();
        }
        let user = match &self.credential {
            Credential::Token(token) => json!({"token": token.expose()}),
            Credential::Plugin => {
                let host = self.base.split_once("://").map_or(self.base, |(_, host)| host);
                json!({"exec": {
                    "apiVersion": "client.authentication.k8s.io/v1beta1",
                    "command": "rancher",
                    "args": ["token", format!("--server={host}"), format!("--user={name}")],
                }})
            }
        };
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": name, "context": {"user": name, "cluster": name}}],
            "current-context": name,
        })
    }
}

#[cfg(test)]
mod tests {
    use api_management::kind::ObjectRules;
    use identity::{Secret, verify_key};

    use super::*;

    fn kubeconfig(credential: Credential) -> Value {
        Kubeconfig {
            base: "https://drover.example:8443",
            id: "c-abcde",
            name: "north",
            ca_certs: "-----BEGIN CERTIFICATE-----",
            credential,
        }
        .to_json()
    }

    #[test]
    fn a_kubeconfig_has_its_authority_and_its_token_inside() {
        let token = TokenKey { name: "kubeconfig-u-1xyz".to_owned(), key: Secret::new("key") };
        insta::assert_json_snapshot!("token", kubeconfig(Credential::Token(token)));
        insta::assert_json_snapshot!("plugin", kubeconfig(Credential::Plugin));
    }

    #[test]
    fn the_token_is_stored_as_a_hash_and_passes_the_kinds_own_rules() {
        let key = generate_key();
        let caller = Caller::user("u-alice");
        let token = token_object(&caller, &TokenPurpose::Kubeconfig, hash_key(&key), 60_000);
        assert!(token.validate(None).is_empty(), "{:?}", token.validate(None));
        assert!(verify_key(&token.token, &key));
        assert_eq!((token.user_id.as_str(), token.ttl_millis), ("u-alice", 60_000));
        assert!(!serde_json::to_string(&token).unwrap().contains(key.expose()));
    }

    #[test]
    fn a_token_bound_to_a_cluster_makes_only_tokens_bound_to_it() {
        let caller = Caller { token_cluster: Some("c-1".to_owned()), ..Caller::user("u-alice") };
        let made = token_object(&caller, &TokenPurpose::Kubeconfig, "$2:a:b".to_owned(), 0);
        assert_eq!(made.cluster_name, "c-1");
    }

    #[test]
    fn the_token_of_a_shell_is_bound_to_its_cluster() {
        let purpose = TokenPurpose::KubectlShell { cluster: "c-2".to_owned() };
        let made = token_object(&Caller::user("u-alice"), &purpose, "$2:a:b".to_owned(), 60_000);
        assert_eq!(made.cluster_name, "c-2");
        assert!(made.metadata.name.unwrap().starts_with("kubectl-shell-u-alice"));
    }
}
