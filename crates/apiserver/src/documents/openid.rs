//! Where others find what service account tokens are verified with: the documents of OpenID
//! Connect discovery.

use api_meta::status::Status;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, Response, StatusCode};
use serde_json::Value;

use super::set;
use crate::body::negotiate;
use crate::body::respond::{self, Body};

const CONFIGURATION_PATH: &str = "/.well-known/openid-configuration";
/// Also what the path of the keys is behind the issuer's URL.
pub const KEYS_PATH: &str = "/openid/v1/jwks";
/// Who takes `application/json` alone does not take it.
const KEYS_MEDIA_TYPE: &str = "application/jwk-set+json";
const KEPT_BY_CLIENTS: &str = "public, max-age=3600";

/// The two documents.
pub struct OpenIdDocuments {
    pub configuration: Value,
    pub keys: Value,
}

impl OpenIdDocuments {
    /// None for another path.
    pub(super) fn answer(
        &self,
        headers: &HeaderMap,
        path: &str,
    ) -> Option<Result<Response<Body>, Status>> {
        let (document, media_type) = match path {
            CONFIGURATION_PATH => (&self.configuration, "application/json"),
            KEYS_PATH => (&self.keys, KEYS_MEDIA_TYPE),
            _ => return None,
        };
        if negotiate::choose(headers, &[(media_type, ())]).is_none() {
            let text = format!("406: Not Acceptable\n\nAvailable representations: {media_type}");
            let details = Some(Box::default());
            return Some(Err(Status { details, ..Status::new(406, "NotAcceptable", text) }));
        }
        let mut response = respond::json_bytes(StatusCode::OK, document.to_string());
        set(&mut response, CONTENT_TYPE, media_type);
        set(&mut response, CACHE_CONTROL, KEPT_BY_CLIENTS);
        Some(Ok(response))
    }
}
