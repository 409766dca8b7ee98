//! Reviews of identity: `TokenReview`, `SelfSubjectReview`.

use std::sync::Arc;

use api_meta::status::Status;
use apiserver::attributes::InvalidCredential;
use apiserver::authentication::TokenAuthenticator;
use apiserver::resource::{Call, Endpoint};
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::{user_json, with_status};

/// The identity behind a token. An invalid token is a result, not an error.
pub struct TokenReview {
    tokens: Arc<dyn TokenAuthenticator>,
    audiences: Vec<String>,
}

impl TokenReview {
    /// A review endpoint that authenticates with `tokens`, for `audiences` when the review names
    /// none.
    pub fn new(tokens: Arc<dyn TokenAuthenticator>, audiences: Vec<String>) -> Self {
        Self { tokens, audiences }
    }

    async fn review(&self, body: &Value) -> Result<Value, Status> {
        let token = body["spec"]["token"].as_str().unwrap_or_default();
        if token.is_empty() {
            let text = "token is required for TokenReview in authentication";
            return Err(Status::bad_request(text));
        }
        let audiences: Vec<String> = match &body["spec"]["audiences"] {
            Value::Null => Vec::new(),
            list => serde::Deserialize::deserialize(list)
                .map_err(|_| Status::bad_request("spec.audiences is not a list of strings"))?,
        };
        let audiences = if audiences.is_empty() { &self.audiences } else { &audiences };
        let status = match self.tokens.authenticate_token(token, audiences).await {
            Ok(Some(found)) => json!({
                "authenticated": true,
                "user": user_json(&found.user),
                "audiences": found.audiences,
            }),
            Ok(None) | Err(InvalidCredential) => {
                json!({"user": {}, "error": "invalid bearer token"})
            }
        };
        Ok(with_status(body, body["metadata"].clone(), Some(body["spec"].clone()), status))
    }
}

impl Endpoint for TokenReview {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<(u16, Value), Status>> {
        Box::pin(async move { Ok((201, self.review(&call.body).await?)) })
    }
}

/// The identity of the requester (`kubectl auth whoami`).
pub struct WhoAmI;

impl Endpoint for WhoAmI {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<(u16, Value), Status>> {
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let status = json!({"userInfo": user_json(&call.user)});
        let review = with_status(&call.body, json!({"creationTimestamp": now}), None, status);
        Box::pin(std::future::ready(Ok((201, review))))
    }
}
