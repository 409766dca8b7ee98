//! `testAndApply` and `disable` on the configuration of a directory.
//!
//! The test is a login: the configuration is stored only after the caller's own account at the
//! directory logged in with it. That account is then one of the caller's principals, so whoever
//! enables a provider can use it.

use std::sync::Arc;

use api_management::credentials::Reference;
use api_meta::object::ObjectExt;
use futures::future::BoxFuture;
use http::{StatusCode, header};
use identity::Secret;
use identity::browser::login_cookies;
use identity::provider::ldap::{Flavour, LdapConfig, Problem};
use identity::provider::{IdentityProvider, Person, ProviderError};
use kube::Api;
use kube::api::{Patch, PatchParams};
use rest_view::store::{call, may};
use rest_view::{
    Action, ActionHandler, ActionRequest, ActionResponse, ApiError, Caller, Context, Descriptor,
    Field, FieldType, Key, Presentation, StructType,
};
use serde_json::{Map, Value, json};

use super::resource;
use crate::directory::Directory;
use crate::login::LoginRequest;
use crate::providers;
use crate::token::issue::{TokenOrigin, TokenRequest};

pub(super) const PASSWORD: &str = "serviceAccountPassword";
/// Refuses to send a stored password elsewhere.
pub(super) const ENTER_AGAIN: &str = "enter the service account's password again: it is not sent \
                                      to another server than it was entered for";
/// What decides where the password of the service account is sent.
const DESTINATION: [&str; 5] = ["servers", "port", "tls", "starttls", "certificate"];
/// The fields that stay when a provider is disabled.
const KEPT: [&str; 5] = ["apiVersion", "kind", "metadata", "type", "accessMode"];

/// The type with its actions, if it is that of a directory.
pub fn with_actions(descriptor: Descriptor, directory: &Arc<Directory>) -> Descriptor {
    let Some(flavour) = Flavour::of_config(&descriptor.id) else { return descriptor };
    let (input, config) = input_names(flavour);
    let fields = vec![
        Field::new(config, FieldType::Json).required(),
        Field::boolean("enabled"),
        Field::new("password", FieldType::Password).required(),
        Field::string("username").required(),
    ];
    descriptor
        .types([StructType::writable(input, fields)])
        .validator(validate)
        .action(
            Action::new("testAndApply", TestAndApply { directory: directory.clone(), flavour })
                .input(input)
                .needs_update(),
        )
        .action(
            Action::new("disable", Disable)
                .available_when(|stored, _| stored["enabled"] == true)
                .needs_update(),
        )
}

/// The input type of `testAndApply`, and its field with the configuration.
fn input_names(flavour: &Flavour) -> (&'static str, &'static str) {
    match flavour.provider {
        "activedirectory" => ("activeDirectoryTestAndApplyInput", "activeDirectoryConfig"),
        "freeipa" => ("freeIpaTestAndApplyInput", "ldapConfig"),
        _ => ("openLdapTestAndApplyInput", "ldapConfig"),
    }
}

fn validate(
    _: &Presentation<'_>,
    input: &Map<String, Value>,
    stored: Option<&Value>,
) -> Result<(), ApiError> {
    require_password(input, stored)
}

/// The password of the service account does not go to another server than it was entered for.
fn require_password(input: &Map<String, Value>, stored: Option<&Value>) -> Result<(), ApiError> {
    let Some(stored) = stored.filter(|stored| stored[PASSWORD].is_string()) else { return Ok(()) };
    let is_same = |name: &&str| {
        input.get(*name).is_none_or(|value| {
            let plain = |value: &Value| value.is_null() || *value == "" || *value == false;
            *value == stored[*name] || plain(value) && plain(&stored[*name])
        })
    };
    if is_new_password(input) || DESTINATION.iter().all(is_same) {
        return Ok(());
    }
    Err(ApiError::invalid_field("MissingRequired", PASSWORD, ENTER_AGAIN))
}

fn is_new_password(input: &Map<String, Value>) -> bool {
    let text = input.get(PASSWORD).and_then(Value::as_str).unwrap_or_default();
    // Clients send the reference that they know for "unchanged".
    !text.is_empty() && Reference::key(text).is_none() && !text.starts_with("cattle-global-data:")
}

/// Checks a configuration with a login and stores it.
struct TestAndApply {
    directory: Arc<Directory>,
    flavour: &'static Flavour,
}

impl TestAndApply {
    async fn test_and_apply(&self, request: ActionRequest<'_>) -> Result<ActionResponse, ApiError> {
        let stored = request.object.ok_or_else(ApiError::no_such_id)?;
        require_update(request.context, stored).await?;
        let (_, field) = input_names(self.flavour);
        let given = request.input.get(field).and_then(Value::as_object);
        let given = given.ok_or_else(|| {
            ApiError::invalid_field("MissingRequired", field, "missing the configuration to test")
        })?;
        require_password(given, Some(stored))?;
        let is_enabled = request.input.get("enabled") != Some(&Value::Bool(false));
        let mut new = merged(stored, given);
        new["enabled"] = is_enabled.into();
        let person = self.test(&new, &request.input).await?;
        let caller = request.context.caller;
        self.require_free(&person, caller).await?;
        if new["accessMode"] == "restricted" || new["accessMode"] == "required" {
            // Whoever sets this up is not locked out by it.
            allow(&mut new, &person.user.id);
        }
        let key = Key { namespace: String::new(), name: stored.name().to_owned() };
        call(request.context, "PUT", &resource().object_path(&key), Some(&new)).await?;
        self.add_principal(&person, caller).await?;
        if !is_enabled || caller.csrf.is_none() {
            return Ok(ActionResponse::Empty(StatusCode::OK));
        }
        self.fresh_cookies(&person, caller).await
    }

    /// Logs in at the directory as the new configuration describes it.
    async fn test(&self, new: &Value, input: &Map<String, Value>) -> Result<Person, ApiError> {
        let text = |field: &str| input.get(field).and_then(Value::as_str).unwrap_or_default();
        let (username, password) = (text("username"), Secret::new(text("password")));
        for (field, value) in [("username", username), ("password", password.expose())] {
            if value.is_empty() {
                let text = "enter an account of the directory to test the configuration with";
                return Err(ApiError::invalid_field("MissingRequired", field, text));
            }
        }
        let object = self.directory.providers.with_credentials(new.clone()).await;
        let object = object.map_err(|cause| ApiError::new(503, "ServiceUnavailable", cause))?;
        let directory = providers::directory(self.flavour, &object).map_err(refusal)?;
        directory.authenticate(username, &password).await.map_err(|error| match error {
            ProviderError::Wrong => ApiError::invalid_field(
                "InvalidOption",
                "username",
                "the service account works, but the directory has no such user below \
                 userSearchBase, or the password is wrong; check both, and userLoginAttribute",
            ),
            ProviderError::Disabled => {
                let text = "the directory has disabled this account; test with another one";
                ApiError::invalid_field("InvalidOption", "username", text)
            }
            ProviderError::Unavailable(cause) => {
                let text = format!("{cause}; check servers, port, tls, starttls and certificate");
                ApiError::invalid_field("InvalidOption", "servers", text)
            }
            ProviderError::Misconfigured { field, text } => {
                ApiError::invalid_field("InvalidOption", field, text)
            }
        })
    }

    /// Two users must not be the same person.
    async fn require_free(&self, person: &Person, caller: &Caller) -> Result<(), ApiError> {
        let found = self.directory.user_by_principal(&person.user.id).await;
        let found = found.map_err(|error| ApiError::server_error(error.chain()))?;
        match found.and_then(|user| user.metadata.name.clone()) {
            Some(name) if name != caller.user_id => {
                let text = format!(
                    "this account already belongs to user \"{name}\"; test with another one, or \
                     delete that user first"
                );
                Err(ApiError::invalid_field("NotUnique", "username", text))
            }
            _ => Ok(()),
        }
    }

    /// The account becomes the caller's only one at this provider.
    async fn add_principal(&self, person: &Person, caller: &Caller) -> Result<(), ApiError> {
        let Some(user) = self.directory.user(&caller.user_id).await else { return Ok(()) };
        let others = user.principal_ids.iter().filter(|id| self.flavour.user_dn(id).is_none());
        let ids: Vec<&String> = others.chain([&person.user.id]).collect();
        let patch = Patch::Merge(json!({"principalIds": ids}));
        let api: Api<api_management::User> = Api::all(self.directory.client.clone());
        let patched = api.patch(&caller.user_id, &PatchParams::default(), &patch).await;
        patched.map(drop).map_err(|error| {
            tracing::error!(%error, user = caller.user_id, "adding a principal");
            ApiError::server_error(
                "the configuration is stored, but the account was not added to your user; do it \
                 once more",
            )
        })
    }

    /// The caller's browser goes on as somebody who logged in through the provider.
    async fn fresh_cookies(
        &self,
        person: &Person,
        caller: &Caller,
    ) -> Result<ActionResponse, ApiError> {
        let login = LoginRequest {
            username: String::new(),
            password: Secret::default(),
            description: String::new(),
            kubeconfig: None,
            address: None,
        };
        let provider = self.flavour.provider;
        let token = TokenRequest {
            auth_provider: provider.to_owned(),
            ..self.directory.token_of_login(&caller.user_id, &login)
        };
        let origin = TokenOrigin::of(provider, person);
        let issued = self.directory.issue_for(token, origin).await;
        let issued = issued.map_err(|error| ApiError::server_error(error.chain()))?;
        let mut response = http::Response::new(bytes::Bytes::new());
        for cookie in login_cookies(&issued.key) {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
        Ok(ActionResponse::Raw(response))
    }
}

/// The stored configuration with what was given, but for what is not for this action to change.
fn merged(stored: &Value, given: &Map<String, Value>) -> Value {
    let mut new = stored.clone();
    let is_config = |name: &str| {
        !matches!(
            name,
            "id" | "type"
                | "baseType"
                | "kind"
                | "apiVersion"
                | "metadata"
                | "status"
                | "enabled"
                | "links"
                | "actions"
                | "actionLinks"
                | "name"
                | "annotations"
                | "labels"
                | "uuid"
                | "created"
                | "createdTS"
                | "creatorId"
                | "removed"
                | "ownerReferences"
                | "data"
        )
    };
    for (name, value) in given.iter().filter(|(name, _)| is_config(name)) {
        if name == PASSWORD && !is_new_password(given) {
            continue;
        }
        match value.is_null() {
            true => {
                new.as_object_mut().and_then(|fields| fields.remove(name));
            }
            false => new[name.as_str()] = value.clone(),
        }
    }
    new
}

fn allow(config: &mut Value, principal: &str) {
    match config["allowedPrincipalIds"].as_array_mut() {
        Some(list) if list.iter().any(|id| id == principal) => {}
        Some(list) => list.push(principal.into()),
        None => config["allowedPrincipalIds"] = json!([principal]),
    }
}

/// All problems in one text; the field of the first.
fn refusal(problems: Vec<Problem>) -> ApiError {
    let texts = problems.iter().map(|problem| format!("{} {}", problem.field, problem.text));
    let text = texts.collect::<Vec<_>>().join("; ");
    let field = problems.first().map_or("", |problem| problem.field);
    ApiError::invalid_field("InvalidOption", field, text)
}

async fn require_update(context: &Context<'_>, stored: &Value) -> Result<(), ApiError> {
    let key = Key { namespace: String::new(), name: stored.name().to_owned() };
    if may(context, "update", &resource(), &key).await? {
        return Ok(());
    }
    let text = format!("you may not update provider \"{}\"", stored.name());
    Err(ApiError::permission_denied(text))
}

impl ActionHandler for TestAndApply {
    fn run<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<ActionResponse, ApiError>> {
        Box::pin(self.test_and_apply(request))
    }
}

/// Removes the configuration: what is left has no credentials. The tokens of its logins end.
struct Disable;

impl ActionHandler for Disable {
    fn run<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<ActionResponse, ApiError>> {
        Box::pin(async move {
            let mut object = request.object.ok_or_else(ApiError::no_such_id)?.clone();
            if let Some(fields) = object.as_object_mut() {
                fields.retain(|name, _| KEPT.contains(&name.as_str()));
            }
            object["enabled"] = false.into();
            let key = Key { namespace: String::new(), name: object.name().to_owned() };
            call(request.context, "PUT", &resource().object_path(&key), Some(&object)).await?;
            Ok(ActionResponse::Empty(StatusCode::OK))
        })
    }
}

/// The problems of an enabled configuration, for admission. Its password is a reference there.
pub(super) fn problems(flavour: &Flavour, object: &Value) -> Vec<Problem> {
    LdapConfig::read(flavour, object).err().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_password_goes_to_no_other_server() {
        let stored = json!({"serviceAccountPassword": "drover-credential://p-1",
                            "servers": ["a.example"], "port": 636, "tls": true});
        let check = |input: Value| require_password(input.as_object().unwrap(), Some(&stored));
        assert!(check(json!({"servers": ["a.example"], "port": 636, "tls": true})).is_ok());
        assert!(check(json!({"starttls": false, "certificate": ""})).is_ok());
        assert!(check(json!({"servers": ["evil.example"]})).is_err());
        assert!(check(json!({"tls": false})).is_err());
        let referring = json!({"servers": ["evil.example"],
                               "serviceAccountPassword": "drover-credential://p-1"});
        assert!(check(referring).is_err());
        let anew = json!({"servers": ["b.example"], "serviceAccountPassword": "secret"});
        assert!(check(anew).is_ok());
    }

    #[test]
    fn a_test_changes_fields_of_the_configuration_only() {
        let stored = json!({"metadata": {"name": "openldap"}, "type": "openLdapConfig",
                            "serviceAccountPassword": "drover-credential://p-1", "port": 389});
        let given = json!({"type": "x", "metadata": {"name": "y"}, "id": "z", "port": 636,
                           "serviceAccountPassword": ""});
        let new = merged(&stored, given.as_object().unwrap());
        assert_eq!(new["port"], 636);
        assert_eq!(new["type"], "openLdapConfig");
        assert_eq!(new["metadata"], stored["metadata"]);
        assert_eq!(new["serviceAccountPassword"], "drover-credential://p-1");
        assert!(new.get("id").is_none());
    }
}
