//! Bindings in the REST view that name a user by principal.

use api_management::user::LOCAL_PRINCIPAL;
use rest_view::Mapper;
use serde_json::{Map, Value};

/// Clients name people by principal; a local one is a user of ours.
pub struct LocalPrincipal;

impl Mapper for LocalPrincipal {
    fn to_view(&self, _: &Value, _: &mut Map<String, Value>) {}

    fn to_stored(&self, input: &Map<String, Value>, stored: &mut Value) {
        let principal = input.get("userPrincipalId").and_then(Value::as_str).unwrap_or_default();
        let has_user = stored["userName"].as_str().is_some_and(|user| !user.is_empty());
        if let Some(user) = principal.strip_prefix(LOCAL_PRINCIPAL)
            && !has_user
        {
            stored["userName"] = user.into();
        }
    }
}
