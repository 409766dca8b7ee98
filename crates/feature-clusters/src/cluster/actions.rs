//! `generateKubeconfig`: a self-contained kubeconfig for one cluster, with a token made for it.
//!
//! Whoever may see the cluster may have one: it gives no right that its owner does not have, since
//! the token stands for that person. A token that is bound to a cluster makes only tokens bound to
//! the same one.

use std::collections::BTreeMap;

use api_management::setting::{
    CACERTS, KUBECONFIG_DEFAULT_TOKEN_TTL_MINUTES, KUBECONFIG_GENERATE_TOKEN,
};
use api_management::token::KIND_KUBECONFIG;
use api_management::{Token, User, ids, keys};
use api_meta::audit::{self as names, AuditEvent};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use feature_kit::ownership::owner_reference;
use feature_kit::rbac::ours;
use feature_kit::{ControllerIdentity, ManagementContext, Settings};
use futures::future::BoxFuture;
use identity::{TokenKey, generate_key, hash_key, random_text};
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use rest_view::{ActionHandler, ActionRequest, ActionResponse, ApiError, Caller};
use serde_json::{Map, Value, json};

const DESCRIPTION: &str = "Kubeconfig token";

/// Who makes the tokens: people have no right to make Token objects themselves.
pub fn identity() -> ControllerIdentity {
    let rules = vec![ours(&["tokens"], &["create"]), ours(&["users"], &["get"])];
    ControllerIdentity::new("kubeconfig-tokens", rules)
}

/// The action: each call creates a token of the caller.
pub struct GenerateKubeconfig {
    /// Acts as [`identity()`].
    client: Client,
    settings: Settings,
}

impl GenerateKubeconfig {
    /// The action; `client` acts as [`identity()`].
    pub fn new(context: &ManagementContext, client: Client) -> Self {
        Self { client, settings: context.settings.clone() }
    }

    async fn generate(&self, request: ActionRequest<'_>) -> Result<ActionResponse, ApiError> {
        let cluster = request.object.ok_or_else(ApiError::no_such_id)?;
        let id = cluster["metadata"]["name"].as_str().unwrap_or_default();
        let caller = request.context.caller;
        let outside = caller.token_cluster.as_deref().is_some_and(|bound| bound != id);
        if outside {
            return Err(ApiError::permission_denied("the token is good for another cluster only"));
        }
        let base = match self.settings.server_url() {
            url if url.is_empty() => request.context.urls.base().to_owned(),
            url => url,
        };
        let credential = if self.settings.get(KUBECONFIG_GENERATE_TOKEN) == "false" {
            Credential::Plugin
        } else {
            Credential::Token(self.make_token(caller).await?)
        };
        let name = match cluster["spec"]["displayName"].as_str() {
            Some(name) if !name.is_empty() => name,
            _ => id,
        };
        let file =
            Kubeconfig { base: &base, id, name, ca_certs: &self.settings.get(CACERTS), credential };
        let text = serde_saphyr::to_string(&file.to_json()).map_err(ApiError::server_error)?;
        let fields = Map::from_iter([("config".to_owned(), Value::from(text))]);
        Ok(ActionResponse::value("generateKubeConfigOutput", fields))
    }

    async fn make_token(&self, caller: &Caller) -> Result<TokenKey, ApiError> {
        let default = self.settings.minutes_as_millis(KUBECONFIG_DEFAULT_TOKEN_TTL_MINUTES);
        let ttl = self.settings.token_ttl_millis(default.unwrap_or_default());
        let user = Api::<User>::all(self.client.clone()).get(&caller.user_id).await?;
        let key = generate_key();
        let mut token = token_object(caller, hash_key(&key), ttl);
        // The token goes when its person goes.
        token.metadata.owner_references = Some(vec![owner_reference(&user)]);
        let name = token.metadata.name.clone().unwrap_or_default();
        let tokens = Api::<Token>::all(self.client.clone());
        tokens.create(&PostParams::default(), &token).await?;
        caller.audit.event(AuditEvent::TokenCreated);
        caller.audit.annotate(names::TOKEN, &name);
        Ok(TokenKey { name, key })
    }
}

impl ActionHandler for GenerateKubeconfig {
    fn run<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<ActionResponse, ApiError>> {
        Box::pin(self.generate(request))
    }
}

fn token_object(caller: &Caller, hash: String, ttl_millis: i64) -> Token {
    let user = caller.user_id.clone();
    let labels = [(keys::TOKEN_USER_ID, user.as_str()), (keys::TOKEN_KIND, KIND_KUBECONFIG)];
    let annotations = [(keys::TOKEN_HASHED, "true"), (keys::CREATOR_ID, user.as_str())];
    let owned = |pairs: [(&str, &str); 2]| -> BTreeMap<String, String> {
        pairs.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    };
    let suffix = random_text(ids::SUFFIX_LEN);
    Token {
        metadata: ObjectMeta {
            name: Some(format!("kubeconfig-{user}{suffix}")),
            labels: Some(owned(labels)),
            annotations: Some(owned(annotations)),
            ..ObjectMeta::default()
        },
        token: hash,
        auth_provider: caller.auth_provider.clone().unwrap_or_else(|| "local".to_owned()),
        ttl_millis,
        description: DESCRIPTION.to_owned(),
        is_derived: true,
        cluster_name: caller.token_cluster.clone().unwrap_or_default(),
        enabled: Some(true),
        user_id: user,
        ..Token::default()
    }
}

/// How the kubeconfig's user proves who they are.
enum Credential {
    Token(TokenKey),
    /// The command line of clients that log in when needed.
    Plugin,
}

struct Kubeconfig<'a> {
    /// Scheme and host of the server.
    base: &'a str,
    id: &'a str,
    name: &'a str,
    /// PEM; empty when the authority is a public one.
    ca_certs: &'a str,
    credential: Credential,
}

impl Kubeconfig<'_> {
    fn to_json(&self) -> Value {
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
        let token = token_object(&caller, hash_key(&key), 60_000);
        assert!(token.validate(None).is_empty(), "{:?}", token.validate(None));
        assert!(verify_key(&token.token, &key));
        assert_eq!((token.user_id.as_str(), token.ttl_millis), ("u-alice", 60_000));
        assert!(!serde_json::to_string(&token).unwrap().contains(key.expose()));
    }

    #[test]
    fn a_token_bound_to_a_cluster_makes_only_tokens_bound_to_it() {
        let caller = Caller { token_cluster: Some("c-1".to_owned()), ..Caller::user("u-alice") };
        assert_eq!(token_object(&caller, "$2:a:b".to_owned(), 0).cluster_name, "c-1");
    }
}
