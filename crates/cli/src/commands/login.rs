//! `drover login`, `drover logout`.
//!
//! A server whose certificate authority is not known is looked at once without trust: it says which
//! authority it has, the person compares the fingerprint, and only then anything secret is sent,
//! over a connection that this authority vouches for.

use http::Method;
use serde_json::{Value, json};

use crate::api::{Api, read_authority, text};
use crate::args::LoginArgs;
use crate::commands::{credential, password};
use crate::config::{self, Context, Login};
use crate::error::{CliError, Failure};
use crate::http::{Http, HttpError};
use crate::prompt;
use crate::tls::{self, Trust};

pub async fn login(args: LoginArgs) -> Result<(), CliError> {
    let url = config::normal_url(&args.url)?;
    let trust = trusted(&url, &args).await?;
    let ca_cert = match &trust {
        Trust::Authority(pem) => pem.clone(),
        _ => String::new(),
    };
    let (token, password) = match &args.token {
        Some(token) => (token.trim().to_owned(), None),
        None if args.token_stdin => (prompt::secret_on_stdin("token")?, None),
        None => {
            let (token, password) = password_login(&url, &trust, &args).await?;
            (token, Some(password))
        }
    };
    let login = identified(&url, Login { token, ca_cert, ..Login::default() }, &args, password);
    remember(&url, login.await?, &args)
}

/// With whom the token belongs to, which also proves that it holds; a password that must be changed is.
async fn identified(
    url: &str,
    mut login: Login,
    args: &LoginArgs,
    password: Option<String>,
) -> Result<Login, CliError> {
    let api = |login: &Login| {
        let login = login.clone();
        Api::new(url, Context { server: url.to_owned(), login, ..Context::default() })
    };
    let as_token = api(&login)?;
    let id = login.token.split(':').next().unwrap_or_default();
    let token = as_token.get("tokens", id, "checking the token").await?;
    text(&token, "userId").clone_into(&mut login.user);
    let user = match as_token.get("users", &login.user, "reading your user").await {
        Ok(user) => user,
        // Not every token may read its user; the id serves in place of the name.
        Err(error) if matches!(error.failure, Failure::Forbidden | Failure::NotFound) => {
            Value::Null
        }
        Err(error) => return Err(error),
    };
    text(&user, "username").clone_into(&mut login.username);
    if let Some(password) = password
        && user["mustChangePassword"] == true
    {
        password::replace_at_login(&api(&login)?, args, &password).await?;
    }
    Ok(login)
}

/// As the current login, unless another is to stay that. One of the same name and server keeps its
/// cluster and project.
fn remember(url: &str, login: Login, args: &LoginArgs) -> Result<(), CliError> {
    let path = config::path()?;
    let mut config = config::load(&path)?;
    let name = args.name.clone().unwrap_or_else(|| config.name_for(url));
    let mut context = match config.contexts.get(&name) {
        Some(known) if known.server != url => {
            let text = format!("the name \"{name}\" is that of your login to {}", known.server);
            return Err(CliError::new(Failure::Conflict, text)
                .hint("choose another --name, or forget that one by \"drover context rm\""));
        }
        Some(known) => known.clone(),
        None => Context { server: url.to_owned(), ..Context::default() },
    };
    let user = if login.username.is_empty() { &login.user } else { &login.username }.clone();
    context.login = login;
    // Whoever logs in again expects that nothing of before stands in the way.
    credential::forget(&name)?;
    config.contexts.insert(name.clone(), context);
    if !args.keep_current || config.current.is_empty() {
        config.current.clone_from(&name);
    }
    config::save(&path, &config)?;
    tell!("logged in to {url} as {user}; this login is called \"{name}\"");
    Ok(())
}

/// What to trust on this server, asked for where that is not known.
async fn trusted(url: &str, args: &LoginArgs) -> Result<Trust, CliError> {
    if let Some(file) = &args.ca_file {
        let trust = Trust::Authority(read_authority(file)?);
        ping(url, &trust).await?;
        return Ok(trust);
    }
    if let Some(pem) = config::load(&config::path()?)?.authority(url) {
        let trust = Trust::Authority(pem);
        match ping(url, &trust).await {
            Err(HttpError::Untrusted(..)) => {
                tell!("warning: {url} has another certificate authority than at your last login");
            }
            other => return Ok(other.map(|()| trust)?),
        }
    }
    match ping(url, &Trust::System).await {
        Err(HttpError::Untrusted(..)) => ask_for_trust(url, args.yes).await,
        other => Ok(other.map(|()| Trust::System)?),
    }
}

async fn ask_for_trust(url: &str, yes: bool) -> Result<Trust, CliError> {
    let curious = Http::new(url, &Trust::Anyone, "")?;
    let answer = curious.send(Method::GET, "/v3/settings/cacerts", None).await?;
    let setting: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let pem = text(&setting, "value");
    if pem.trim().is_empty() {
        let message = format!("the certificate of {url} is not trusted, and it names no authority");
        return Err(CliError::new(Failure::Unreachable, message)
            .hint("give its certificate authority with --ca-file"));
    }
    let trust = Trust::Authority(pem.to_owned());
    ping(url, &trust).await.map_err(|error| match error {
        HttpError::Untrusted(..) => CliError::new(
            Failure::Unreachable,
            format!("the certificate of {url} is not from the authority that it names"),
        )
        .hint("something may stand between you and the server; give --ca-file to be sure"),
        other => other.into(),
    })?;
    tell!("{url} uses a certificate authority that this machine does not know.");
    tell!("SHA-256 of the authority: {}", tls::fingerprint(pem));
    let instead = "--yes to trust it, or --ca-file with the authority";
    if !yes && !prompt::confirm("Trust it from now on?", instead)? {
        return Err(CliError::new(Failure::Other, "the certificate authority is not trusted")
            .hint("compare its fingerprint with the one that the server's owner has"));
    }
    Ok(trust)
}

async fn ping(url: &str, trust: &Trust) -> Result<(), HttpError> {
    let http = Http::new(url, trust, "")
        .map_err(|error| HttpError::Exchange(url.to_owned(), error.to_string()))?;
    http.send(Method::GET, "/ping", None).await.map(|_| ())
}

/// The token, and the password that it was given for.
async fn password_login(
    url: &str,
    trust: &Trust,
    args: &LoginArgs,
) -> Result<(String, String), CliError> {
    let username = match &args.username {
        Some(username) => username.clone(),
        None => prompt::line("username", "--username, or --token")?,
    };
    let instead = "--password-stdin, or DROVER_PASSWORD";
    let given = args.password.clone();
    let password = prompt::given_or_asked(given, args.password_stdin, "password", instead)?;
    let body = json!({
        "username": username, "password": password, "responseType": "json",
        "description": "drover login",
    });
    let http = Http::new(url, trust, "")?;
    let path = "/v3-public/localProviders/local?action=login";
    let answer = http.send(Method::POST, path, Some(body.to_string())).await?;
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    if answer.status.is_success() && !text(&body, "token").is_empty() {
        return Ok((text(&body, "token").to_owned(), password));
    }
    let said = body["message"].as_str().unwrap_or("the server gave no reason");
    let (failure, hint) = match answer.status.as_u16() {
        401 => (Failure::Unauthenticated, "check the user name and the password"),
        403 => (Failure::Forbidden, "ask an administrator to enable the user"),
        429 => (Failure::Other, "wait before you try again"),
        _ => (Failure::Other, "check that the URL is that of a Drover server"),
    };
    let text = format!("logging in to {url} as \"{username}\": {said}");
    Err(CliError::new(failure, text).hint(hint))
}

pub async fn logout(server: Option<&str>) -> Result<(), CliError> {
    let path = config::path()?;
    let mut config = config::load(&path)?;
    let (name, context) = config.select(server)?;
    let (name, context) = (name.to_owned(), context.clone());
    let url = context.server.clone();
    let api = Api::new(&name, context)?;
    credential::revoke(&api).await?;
    let what = "logging out";
    match api.call(Method::POST, "/v3/tokens?action=logout", Some(&json!({})), what).await {
        Ok(_) => {}
        // A login that does not hold any more is as good as ended.
        Err(error) if error.failure == Failure::Unauthenticated => {}
        Err(error) => {
            tell!("warning: {error}; the login is only forgotten here");
        }
    }
    config.forget(&name);
    config::save(&path, &config)?;
    tell!("logged out of {url}");
    Ok(())
}
