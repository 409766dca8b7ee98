//! `generateKubeconfig`: a self-contained kubeconfig for one cluster, with a token made for it.
//!
//! Whoever may see the cluster may have one: it gives no right that its owner does not have, since
//! the token stands for that person. A token that is bound to a cluster makes only tokens bound to
//! the same one.

use api_management::setting::{
    CACERTS, KUBECONFIG_DEFAULT_TOKEN_TTL_MINUTES, KUBECONFIG_GENERATE_TOKEN,
};
use api_meta::audit::{self as names, AuditEvent};
use feature_kit::rbac::ours;
use feature_kit::{ControllerIdentity, ManagementContext, Settings};
use futures::future::BoxFuture;
use identity::TokenKey;
use kube::Client;
use rest_view::{ActionHandler, ActionRequest, ActionResponse, ApiError, Caller};
use serde_json::{Map, Value};

use crate::kubeconfig::{Credential, Kubeconfig, TokenPurpose, make_token};

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
        let token = make_token(&self.client, caller, &TokenPurpose::Kubeconfig, ttl).await?;
        caller.audit.event(AuditEvent::TokenCreated);
        caller.audit.annotate(names::TOKEN, &token.name);
        Ok(token)
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
