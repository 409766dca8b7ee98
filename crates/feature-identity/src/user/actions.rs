//! `setpassword` on a user, `changepassword` on oneself.

use std::sync::Arc;

use api_management::setting::FIRST_LOGIN;
use api_management::{Setting, User};
use api_meta::audit::{self as names, AuditEvent};
use feature_kit::view::resource_of;
use futures::future::BoxFuture;
use http::StatusCode;
use identity::Secret;
use rest_view::store::{call, may};
use rest_view::{ActionHandler, ActionRequest, ActionResponse, ApiError, Caller, Context, Key};
use serde_json::{Map, Value};

use crate::directory::Directory;
use crate::login::BUSY_RETRY_SECONDS;
use crate::user::guard::LoginGuard;
use crate::user::passwords::SetPasswordError;

/// Input: whether tokens for the API and in kubeconfigs end, too.
pub const END_TOKENS: &str = "endTokens";
/// What `changepassword` answers.
pub const CHANGED: &str = "changePasswordOutput";

/// Sets anybody's password, for who may update that user and has all roles of that user.
pub struct SetPassword(pub Arc<Directory>, pub LoginGuard);

impl ActionHandler for SetPassword {
    fn run<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<ActionResponse, ApiError>> {
        Box::pin(async move {
            let user = request.object.ok_or_else(ApiError::no_such_id)?;
            let name = user["metadata"]["name"].as_str().unwrap_or_default();
            let key = Key { namespace: String::new(), name: name.to_owned() };
            if !may(request.context, "update", &resource_of::<User>(), &key).await? {
                let text = format!("you may not update user \"{name}\"");
                return Err(ApiError::permission_denied(text));
            }
            let new = secret(&request.input, "newPassword");
            let caller = request.context.caller;
            caller.audit.annotate(names::SUBJECT, name);
            let checked = self.1.check(&caller.user_id, &caller.groups, name);
            checked.map_err(ApiError::permission_denied)?;
            let changed = self.0.set_password(name, new).await;
            record(caller, &changed);
            changed.map_err(|error| refusal(&error))?;
            end_first_login(request.context).await;
            // The administrator's own login goes on when it is their own password.
            let fields = self.0.end_logins(name, &request).await?;
            Ok(ActionResponse::ObjectWith(user.clone(), fields))
        })
    }
}

/// Changes the caller's own password.
pub struct ChangePassword(pub Arc<Directory>);

impl ActionHandler for ChangePassword {
    fn run<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<ActionResponse, ApiError>> {
        Box::pin(async move {
            let current = secret(&request.input, "currentPassword");
            let new = secret(&request.input, "newPassword");
            let user = &request.context.caller.user_id;
            let changed = self.0.change_password(user, current, new).await;
            record(request.context.caller, &changed);
            changed.map_err(|error| refusal(&error))?;
            end_first_login(request.context).await;
            let fields = self.0.end_logins(user, &request).await?;
            Ok(ActionResponse::value(CHANGED, fields))
        })
    }
}

/// Reads the groups of one user, or of all, from their providers anew.
pub struct RefreshAccess(pub Arc<Directory>);

impl RefreshAccess {
    async fn refresh(&self, request: ActionRequest<'_>) -> Result<ActionResponse, ApiError> {
        let name = request.object.and_then(|user| user["metadata"]["name"].as_str());
        let key = Key { namespace: String::new(), name: name.unwrap_or_default().to_owned() };
        if !may(request.context, "update", &resource_of::<User>(), &key).await? {
            return Err(ApiError::permission_denied("you may not update this user or all users"));
        }
        let users = match name {
            Some(name) => vec![name.to_owned()],
            None => self.0.users_elsewhere(),
        };
        for user in users {
            let refreshed = self.0.refresh_user(&user).await;
            refreshed.map_err(|error| ApiError::server_error(error.chain()))?;
        }
        Ok(ActionResponse::Empty(StatusCode::OK))
    }
}

impl ActionHandler for RefreshAccess {
    fn run<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<ActionResponse, ApiError>> {
        Box::pin(self.refresh(request))
    }
}

impl Directory {
    /// Ends what an earlier password gave: the user's logins but the present one, and all their
    /// tokens when that is requested for. Gives back what is said about it.
    async fn end_logins(
        &self,
        user: &str,
        request: &ActionRequest<'_>,
    ) -> Result<Map<String, Value>, ApiError> {
        let all = request.input.get(END_TOKENS) == Some(&Value::Bool(true));
        let present = request.context.caller.token_id.as_deref();
        let counts = self.end_tokens(user, present, all).await.map_err(|error| {
            tracing::error!(error = error.chain(), user, "ending logins after a new password");
            ApiError::server_error(
                "the password is set, but not all logins were ended; set it once more",
            )
        })?;
        Ok(Map::from_iter([
            ("endedTokens".to_owned(), counts.ended.into()),
            ("remainingTokens".to_owned(), counts.remaining.into()),
        ]))
    }
}

/// Says in the audit event what came of it.
fn record(caller: &Caller, changed: &Result<(), SetPasswordError>) {
    match changed {
        Ok(()) => caller.audit.event(AuditEvent::PasswordChanged),
        Err(error) => {
            caller.audit.event(AuditEvent::PasswordRefused);
            caller.audit.annotate(names::REASON, error.to_string());
        }
    }
}

/// Clients greet whoever logs in first until a password has been set. With the caller's rights: it
/// is the administrator's first login that counts, and an administrator may change settings.
async fn end_first_login(context: &Context<'_>) {
    let key = Key { namespace: String::new(), name: FIRST_LOGIN.to_owned() };
    let path = resource_of::<Setting>().object_path(&key);
    let noted = async {
        let mut setting = call(context, "GET", &path, None).await?;
        if setting["value"] != "false" {
            setting["value"] = "false".into();
            call(context, "PUT", &path, Some(&setting)).await?;
        }
        Ok::<(), ApiError>(())
    };
    if let Err(error) = noted.await {
        // The password is set all the same, and the next one ends it.
        tracing::debug!(%error, "setting \"{FIRST_LOGIN}\" stays as it is");
    }
}

fn secret(input: &Map<String, Value>, field: &str) -> Secret {
    Secret::new(input.get(field).and_then(Value::as_str).unwrap_or_default())
}

/// The code that clients know for each refusal.
pub(crate) fn refusal(error: &SetPasswordError) -> ApiError {
    let text = error.to_string();
    match error {
        SetPasswordError::NoUser => ApiError::not_found(text),
        SetPasswordError::WrongCurrent => ApiError::invalid_body(text),
        SetPasswordError::Slowed(wait) => {
            ApiError::new(429, "TooManyRequests", text).retry_after(*wait)
        }
        SetPasswordError::Busy => {
            ApiError::new(503, "ServiceUnavailable", text).retry_after(BUSY_RETRY_SECONDS)
        }
        SetPasswordError::Unfit(_) => ApiError::invalid_field("InvalidFormat", "newPassword", text),
        SetPasswordError::Failed(_) => {
            tracing::error!(error = %text, "setting a password");
            ApiError::server_error("could not set the password; the server's log says why")
        }
    }
}
