//! Changes of the caller's own password: by `drover user set-password`, and at a login with a
//! password that must be changed.

use http::Method;
use serde_json::{Value, json};

use crate::api::Api;
use crate::args::{LoginArgs, NewPassword};
use crate::error::CliError;
use crate::prompt;

/// Changes the caller's own password. Other logins of the caller end; tokens stay valid unless
/// `end_tokens`.
pub async fn change_own(
    api: &Api,
    current: &str,
    new: &str,
    end_tokens: bool,
) -> Result<(), CliError> {
    let body = json!({"currentPassword": current, "newPassword": new, "endTokens": end_tokens});
    let path = "/v3/users?action=changepassword";
    let done = api.call(Method::POST, path, Some(&body), "changing your password").await?;
    notify!("your password is changed; other logins and tokens ended: {}", ended_count(&done));
    report_remaining_tokens(&done);
    Ok(())
}

/// Number of logins and tokens that ended with a change of password.
pub fn ended_count(done: &Value) -> u64 {
    done["endedTokens"].as_u64().unwrap_or_default()
}

/// Reports how many tokens stay valid after a change of password.
pub fn report_remaining_tokens(done: &Value) {
    let remaining = done["remainingTokens"].as_u64().unwrap_or_default();
    if remaining > 0 {
        notify!(
            "tokens for the API or in kubeconfigs that stay valid: {remaining}; \"--end-tokens\" ends them, too"
        );
    }
}

/// Reads a new password for a user; prompts twice if it is not given.
pub fn new_password(given: NewPassword, user: &str) -> Result<String, CliError> {
    let question = format!("new password for {user}");
    let instead = "--password-stdin, or DROVER_USER_PASSWORD";
    prompt::new_secret(given.password, given.password_stdin, &question, instead)
}

/// Changes the password that a login was made with. If that fails, the login ends, because it could
/// not be used for anything else.
pub async fn replace_at_login(api: &Api, args: &LoginArgs, current: &str) -> Result<(), CliError> {
    let username = &api.login().username;
    notify!("the password of {username} must be changed before it can be used");
    let instead = "--new-password-stdin, or DROVER_NEW_PASSWORD";
    let question = format!("new password for {username}");
    let given = args.new_password.clone();
    let changed = async {
        let new = prompt::new_secret(given, args.new_password_stdin, &question, instead)?;
        change_own(api, current, &new, false).await
    };
    let Err(error) = changed.await else { return Ok(()) };
    let logout = "/v3/tokens?action=logout";
    if let Err(logout_error) =
        api.call(Method::POST, logout, Some(&json!({})), "ending the login").await
    {
        tracing::debug!(error = %logout_error, "an unused login stays valid until it expires");
    }
    let step =
        format!("logging in to {} as \"{username}\": the password must be changed", api.url());
    Err(error.during(&step))
}
