//! The documents of OpenID Connect discovery, with which other parties verify service account
//! tokens.

use api_meta::status::Status;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, Response, StatusCode};
use serde_json::Value;

use super::set;
use crate::body::negotiate;
use crate::body::respond::{self, Body};

const CONFIGURATION_PATH: &str = "/.well-known/openid-configuration";
/// The path of the keys, also after the issuer's URL.
pub const KEYS_PATH: &str = "/openid/v1/jwks";
/// Clients that only accept `application/json` do not accept it.
const KEYS_MEDIA_TYPE: &str = "application/jwk-set+json";
const CLIENT_CACHE_POLICY: &str = "public, max-age=3600";

/// The two documents of OpenID Connect discovery.
pub struct OpenIdDocuments {
    /// The provider configuration.
    pub configuration: Value,
    /// The JSON web key set.
    pub keys: Value,
}

impl OpenIdDocuments {
    /// Responds with the document at a path; `None` for other paths. The inner error is a 406.
    pub(super) fn respond(
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
        set(&mut response, CACHE_CONTROL, CLIENT_CACHE_POLICY);
        Some(Ok(response))
    }
}
