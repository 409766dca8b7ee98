//! Who is that: `TokenReview`, `SelfSubjectReview`.

use std::sync::Arc;

use api_meta::status::Status;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::{answered, user_json};
use crate::attributes::InvalidCredential;
use crate::authentication::TokenAuthenticator;
use crate::resource::{Call, Endpoint};

/// Whose token this is. A token that does not hold is an answer, not a failure.
pub struct TokenReview {
    tokens: Arc<dyn TokenAuthenticator>,
    audiences: Vec<String>,
}

impl TokenReview {
    pub fn new(tokens: Arc<dyn TokenAuthenticator>, audiences: Vec<String>) -> Self {
        Self { tokens, audiences }
    }

    async fn review(&self, body: &Value) -> Result<Value, Status> {
        let token = body["spec"]["token"].as_str().unwrap_or_default();
        if token.is_empty() {
            let text = "token is required for TokenReview in authentication";
            return Err(Status::bad_request(text));
        }
        let wanted: Vec<String> = match &body["spec"]["audiences"] {
            Value::Null => Vec::new(),
            list => serde::Deserialize::deserialize(list)
                .map_err(|_| Status::bad_request("spec.audiences is not a list of strings"))?,
        };
        let wanted = if wanted.is_empty() { &self.audiences } else { &wanted };
        let status = match self.tokens.authenticate_token(token, wanted).await {
            Ok(Some(found)) => json!({
                "authenticated": true,
                "user": user_json(&found.user),
                "audiences": found.audiences,
            }),
            Ok(None) | Err(InvalidCredential) => {
                json!({"user": {}, "error": "invalid bearer token"})
            }
        };
        Ok(answered(body, body["metadata"].clone(), Some(body["spec"].clone()), status))
    }
}

impl Endpoint for TokenReview {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<(u16, Value), Status>> {
        Box::pin(async move { Ok((201, self.review(&call.body).await?)) })
    }
}

/// Who asks, as the server sees him (`kubectl auth whoami`).
pub struct WhoAmI;

impl Endpoint for WhoAmI {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<(u16, Value), Status>> {
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let status = json!({"userInfo": user_json(&call.user)});
        let answer = answered(&call.body, json!({"creationTimestamp": now}), None, status);
        Box::pin(std::future::ready(Ok((201, answer))))
    }
}
