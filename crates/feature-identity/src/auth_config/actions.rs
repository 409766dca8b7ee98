//! `test`, `testAndApply` and `disable` on the configuration of a provider, and `configureTest`
//! where people log in on the provider's own pages.
//!
//! The test is a login ([`trial`](super::trial)): the configuration is stored only after the
//! caller's own account at the provider logged in with it. That account is then one of the
//! caller's principals, so whoever enables a provider can use it.

use std::sync::Arc;

use api_management::credentials::{self, Reference};
use api_meta::object::ObjectExt;
use futures::future::BoxFuture;
use http::{StatusCode, header};
use identity::Secret;
use identity::browser::login_cookies;
use identity::provider::{CodeLogin, Person, Problem, provider_of_user};
use kube::Api;
use kube::api::{Patch, PatchParams};
use rest_view::store::{call, may};
use rest_view::{
    Action, ActionHandler, ActionRequest, ActionResponse, ApiError, Caller, Context, Descriptor,
    Field, FieldType, Key, Presentation, StructType,
};
use serde_json::{Map, Value, json};

use super::{resource, trial};
use crate::directory::Directory;
use crate::login::LoginRequest;
use crate::provider_kind::{LoginWay, ProviderKind};
use crate::providers;
use crate::token::issue::{TokenOrigin, TokenRequest};

/// Refuses to send a stored credential to another server.
pub(super) const ENTER_AGAIN: &str =
    "enter it again: it is not sent to another server than it was entered for";
/// The output of `test`.
const TESTED: &str = "authConfigTestedOutput";
/// The fields that stay when a provider is disabled.
const KEPT: [&str; 5] = ["apiVersion", "kind", "metadata", "type", "accessMode"];

/// The types of what the actions of several providers return.
pub fn types() -> [StructType; 1] {
    let groups = Field::new("groupPrincipalIds", FieldType::array(FieldType::String));
    [StructType::writable(TESTED, vec![groups, Field::string("principalId")])]
}

/// The type with its actions, if people can log in through the provider.
pub fn with_actions(descriptor: Descriptor, directory: &Arc<Directory>) -> Descriptor {
    let Some(kind) = ProviderKind::of_config(&descriptor.id) else { return descriptor };
    let (input, config) = (kind.types.apply, kind.types.apply_field);
    let login = TestLogin { directory: directory.clone(), kind };
    let descriptor = descriptor
        .validator(
            move |_: &Presentation<'_>, input: &Map<String, Value>, stored: Option<&Value>| {
                require_credentials(kind, input, stored)
            },
        )
        .action(Action::new("test", Test(login.clone())).input(input).output(TESTED).needs_update())
        .action(Action::new("testAndApply", TestAndApply(login)).input(input).needs_update())
        .action(
            Action::new("disable", Disable)
                .available_when(|stored, _| stored["enabled"] == true)
                .needs_update(),
        );
    match kind.way {
        LoginWay::Password => {
            let fields = vec![
                Field::new(config, FieldType::Json).required(),
                Field::boolean("enabled"),
                Field::new("password", FieldType::Password).required(),
                Field::string("username").required(),
            ];
            descriptor.types([StructType::writable(input, fields)])
        }
        LoginWay::Pages => {
            let configure = ConfigureTest { directory: directory.clone(), kind };
            let mut configure = Action::new("configureTest", configure).output(kind.types.tested);
            configure.input = kind.types.test.map(str::to_owned);
            let descriptor = descriptor.action(configure.needs_update());
            if !kind.declares(|kind| kind.types.apply) {
                return descriptor;
            }
            let fields = vec![
                Field::string("code"),
                Field::boolean("enabled"),
                Field::new(config, FieldType::Json),
            ];
            let output = vec![Field::string("redirectUrl")];
            descriptor.types([
                StructType::writable(input, fields),
                StructType::writable(kind.types.tested, output),
            ])
        }
    }
}

/// Stored credentials do not go to another server than they were entered for.
fn require_credentials(
    kind: &'static ProviderKind,
    input: &Map<String, Value>,
    stored: Option<&Value>,
) -> Result<(), ApiError> {
    let Some(stored) = stored else { return Ok(()) };
    if !credentials::is_redirected(providers::KIND, &merged(kind, stored, input), stored) {
        return Ok(());
    }
    let is_taken_along = |field: &&&str| stored[**field].is_string() && !is_new(input, field);
    match kind.credential_fields.iter().find(is_taken_along) {
        Some(field) => Err(ApiError::invalid_field("MissingRequired", field, ENTER_AGAIN)),
        None => Ok(()),
    }
}

/// Whether the input has a credential of its own in this field.
fn is_new(input: &Map<String, Value>, field: &str) -> bool {
    let text = input.get(field).and_then(Value::as_str).unwrap_or_default();
    // Clients send the reference that they know for "unchanged".
    !text.is_empty() && Reference::key(text).is_none() && !text.starts_with("cattle-global-data:")
}

/// Says where the caller logs in to test a configuration.
struct ConfigureTest {
    directory: Arc<Directory>,
    kind: &'static ProviderKind,
}

impl ConfigureTest {
    async fn begin(&self, request: ActionRequest<'_>) -> Result<ActionResponse, ApiError> {
        let stored = request.object.ok_or_else(ApiError::no_such_id)?;
        require_update(request.context, stored).await?;
        require_credentials(self.kind, &request.input, Some(stored))?;
        let new = merged(self.kind, stored, &request.input);
        let url = trial::begin(&self.directory, self.kind, &new, request.context.caller).await?;
        let fields = Map::from_iter([("redirectUrl".to_owned(), Value::from(url))]);
        let id = self.kind.types.tested.to_owned();
        Ok(ActionResponse::Struct { status: StatusCode::OK, id, fields })
    }
}

impl ActionHandler for ConfigureTest {
    fn run<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<ActionResponse, ApiError>> {
        Box::pin(self.begin(request))
    }
}

/// A configuration, and the login that tests it.
#[derive(Clone)]
struct TestLogin {
    directory: Arc<Directory>,
    kind: &'static ProviderKind,
}

impl TestLogin {
    /// Logs in with the stored configuration and what the request changes of it.
    async fn log_in(&self, request: &ActionRequest<'_>) -> Result<(Value, CodeLogin), ApiError> {
        let stored = request.object.ok_or_else(ApiError::no_such_id)?;
        require_update(request.context, stored).await?;
        let field = self.kind.types.apply_field;
        let given = request.input.get(field).and_then(Value::as_object);
        let given = given.ok_or_else(|| {
            ApiError::invalid_field("MissingRequired", field, "missing the configuration to test")
        })?;
        require_credentials(self.kind, given, Some(stored))?;
        // Terraform says it in the configuration only, and the schema's default is false.
        let says =
            |fields: &Map<String, Value>, is: bool| fields.get("enabled") == Some(&is.into());
        let is_enabled = !says(&request.input, false) || says(given, true);
        let mut new = merged(self.kind, stored, given);
        new["enabled"] = is_enabled.into();
        let caller = request.context.caller;
        let login = trial::log_in(&self.directory, self.kind, &new, &request.input, caller).await?;
        Ok((new, login))
    }
}

/// Checks a configuration with a login, tells who logged in, and stores nothing.
struct Test(TestLogin);

impl ActionHandler for Test {
    fn run<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<ActionResponse, ApiError>> {
        Box::pin(async move {
            let (_, CodeLogin { person, .. }) = self.0.log_in(&request).await?;
            let groups = person.groups.into_iter().map(|group| Value::from(group.id));
            let fields = Map::from_iter([
                ("groupPrincipalIds".to_owned(), groups.collect()),
                ("principalId".to_owned(), person.user.id.into()),
            ]);
            Ok(ActionResponse::value(TESTED, fields))
        })
    }
}

/// Checks a configuration with a login and stores it.
struct TestAndApply(TestLogin);

impl TestAndApply {
    async fn test_and_apply(&self, request: ActionRequest<'_>) -> Result<ActionResponse, ApiError> {
        let (mut new, CodeLogin { person, grant }) = self.0.log_in(&request).await?;
        let caller = request.context.caller;
        self.require_free(&person, caller).await?;
        if new["accessMode"] == "restricted" || new["accessMode"] == "required" {
            // Whoever sets this up is not locked out by it.
            allow(&mut new, &person.user.id);
        }
        let key = Key { namespace: String::new(), name: new.name().to_owned() };
        call(request.context, "PUT", &resource().object_path(&key), Some(&new)).await?;
        self.add_principal(&person, caller).await?;
        self.store_grant(grant, caller).await?;
        if new["enabled"] != true || caller.csrf.is_none() {
            return Ok(ActionResponse::Empty(StatusCode::OK));
        }
        self.fresh_cookies(&person, caller).await
    }

    /// With it the caller can be read anew later.
    async fn store_grant(&self, grant: Option<Secret>, caller: &Caller) -> Result<(), ApiError> {
        let (Some(grant), Some(user)) = (grant, self.0.directory.user(&caller.user_id).await)
        else {
            return Ok(());
        };
        let stored = self.0.directory.store_grant(&user, self.0.kind.name, &grant).await;
        stored.map_err(|error| ApiError::server_error(error.chain()))
    }

    /// Two users must not be the same person.
    async fn require_free(&self, person: &Person, caller: &Caller) -> Result<(), ApiError> {
        let found = self.0.directory.user_by_principal(&person.user.id).await;
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
        let Some(user) = self.0.directory.user(&caller.user_id).await else { return Ok(()) };
        let is_other =
            |id: &&String| provider_of_user(id).is_none_or(|(name, _)| name != self.0.kind.name);
        let others = user.principal_ids.iter().filter(is_other);
        let ids: Vec<&String> = others.chain([&person.user.id]).collect();
        let patch = Patch::Merge(json!({"principalIds": ids}));
        let api: Api<api_management::User> = Api::all(self.0.directory.client.clone());
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
        let login = LoginRequest::default();
        let provider = self.0.kind.name;
        let token = TokenRequest {
            auth_provider: provider.to_owned(),
            ..self.0.directory.token_of_login(&caller.user_id, &login)
        };
        let origin = TokenOrigin::of(provider, person);
        let issued = self.0.directory.issue_for(token, origin).await;
        let issued = issued.map_err(|error| ApiError::server_error(error.chain()))?;
        let mut response = http::Response::new(bytes::Bytes::new());
        for cookie in login_cookies(&issued.key) {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
        Ok(ActionResponse::Raw(response))
    }
}

/// The stored configuration with what was given, but for what is not for this action to change.
fn merged(kind: &'static ProviderKind, stored: &Value, given: &Map<String, Value>) -> Value {
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
        if kind.credential_fields.contains(&name.as_str()) && !is_new(given, name) {
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
pub(super) fn refusal(problems: Vec<Problem>) -> ApiError {
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

#[cfg(test)]
mod tests {
    use super::*;

    const OPENLDAP: &ProviderKind = &ProviderKind::OPEN_LDAP;

    #[test]
    fn a_stored_password_goes_to_no_other_server() {
        let stored = json!({"serviceAccountPassword": "drover-credential://p-1",
                            "servers": ["a.example"], "port": 636, "tls": true});
        let check =
            |input: Value| require_credentials(OPENLDAP, input.as_object().unwrap(), Some(&stored));
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
        let new = merged(OPENLDAP, &stored, given.as_object().unwrap());
        assert_eq!(new["port"], 636);
        assert_eq!(new["type"], "openLdapConfig");
        assert_eq!(new["metadata"], stored["metadata"]);
        assert_eq!(new["serviceAccountPassword"], "drover-credential://p-1");
        assert!(new.get("id").is_none());
    }
}
