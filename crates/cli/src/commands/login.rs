//! `drover login`, `drover logout`.
//!
//! If the certificate authority of a server is unknown, one request without verification reads it,
//! and the user compares its fingerprint. Only then are secrets sent, over a connection that this
//! authority verifies.

use http::Method;
use serde_json::{Value, json};

use crate::api::{Api, read_authority, text};
use crate::args::LoginArgs;
use crate::browser::{self, CodeListener, Verifier};
use crate::commands::{credential, password};
use crate::config::{self, Login, LoginContext};
use crate::error::{CliError, Failure};
use crate::http::{Http, HttpError};
use crate::prompt;
use crate::tls::Trust;

/// Logs in, and stores the login as the current context.
///
/// # Errors
/// The server is not trusted, or rejects the credentials.
pub async fn login(args: LoginArgs) -> Result<(), CliError> {
    let url = config::normal_url(&args.url)?;
    let trust = establish_trust(&url, &args).await?;
    let ca_cert = match &trust {
        Trust::Authority(pem) => pem.clone(),
        _ => String::new(),
    };
    let (token, password) = match &args.token {
        Some(token) => (token.trim().to_owned(), None),
        None if args.token_stdin => (prompt::secret_on_stdin("token")?, None),
        None => fresh_login(&url, &trust, &args).await?,
    };
    let login = identify(&url, Login { token, ca_cert, ..Login::default() }, &args, password);
    store_login(&url, login.await?, &args)
}

/// Reads the user of the token, which also proves that the token is valid. Changes a password that
/// must be changed.
async fn identify(
    url: &str,
    mut login: Login,
    args: &LoginArgs,
    password: Option<String>,
) -> Result<Login, CliError> {
    let api = |login: &Login| {
        let login = login.clone();
        Api::new(url, LoginContext { server: url.to_owned(), login, ..LoginContext::default() })
    };
    let as_token = api(&login)?;
    let id = login.token.split(':').next().unwrap_or_default();
    let token = as_token.get("tokens", id, "checking the token").await?;
    text(&token, "userId").clone_into(&mut login.user);
    let user = match as_token.get("users", &login.user, "reading your user").await {
        Ok(user) => user,
        // Not every token may read its user; then the id is used as the name.
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

/// Stores the login, as the current one unless `--keep-current` is given. A login of the same name
/// and server keeps its cluster and project.
fn store_login(url: &str, login: Login, args: &LoginArgs) -> Result<(), CliError> {
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
        None => LoginContext { server: url.to_owned(), ..LoginContext::default() },
    };
    let user = if login.username.is_empty() { &login.user } else { &login.username }.clone();
    context.login = login;
    // Credentials of the previous login must not be used any more.
    credential::forget(&name)?;
    config.contexts.insert(name.clone(), context);
    if !args.keep_current || config.current.is_empty() {
        config.current.clone_from(&name);
    }
    config::save(&path, &config)?;
    notify!("logged in to {url} as {user}; this login is called \"{name}\"");
    Ok(())
}

/// Decides which certificate authority to trust for this server; prompts if it is unknown.
async fn establish_trust(url: &str, args: &LoginArgs) -> Result<Trust, CliError> {
    if let Some(file) = &args.ca_file {
        let trust = Trust::Authority(read_authority(file)?);
        ping(url, &trust).await?;
        return Ok(trust);
    }
    if let Some(pem) = config::load(&config::path()?)?.authority(url) {
        let trust = Trust::Authority(pem);
        match ping(url, &trust).await {
            Err(HttpError::Untrusted(..)) => {
                notify!("warning: {url} has another certificate authority than at your last login");
            }
            other => return Ok(other.map(|()| trust)?),
        }
    }
    match ping(url, &Trust::System).await {
        Err(HttpError::Untrusted(..)) => confirm_authority(url, args.yes).await,
        other => Ok(other.map(|()| Trust::System)?),
    }
}

async fn confirm_authority(url: &str, yes: bool) -> Result<Trust, CliError> {
    let unverified = Http::new(url, &Trust::AnyCertificate, "")?;
    let response = unverified.send(Method::GET, "/v3/settings/cacerts", None).await?;
    let setting: Value = serde_json::from_slice(&response.body).unwrap_or_default();
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
        .hint("the connection may be intercepted; give --ca-file to be sure"),
        other => other.into(),
    })?;
    notify!("{url} uses a certificate authority that this machine does not know.");
    notify!("SHA-256 of the authority: {}", tls_trust::ca_checksum(pem));
    let instead = "--yes to trust it, or --ca-file with the authority";
    if !yes && !prompt::confirm("Trust it from now on?", instead)? {
        return Err(CliError::new(Failure::Other, "the certificate authority is not trusted")
            .hint("compare its fingerprint with the one that the server's owner has"));
    }
    Ok(trust)
}

async fn ping(url: &str, trust: &Trust) -> Result<(), HttpError> {
    let http = Http::new(url, trust, "")
        .map_err(|error| HttpError::Transport(url.to_owned(), error.to_string()))?;
    http.send(Method::GET, "/ping", None).await.map(|_| ())
}

/// Logs in at a provider. Returns the token, and the password if there was one.
async fn fresh_login(
    url: &str,
    trust: &Trust,
    args: &LoginArgs,
) -> Result<(String, Option<String>), CliError> {
    let http = Http::new(url, trust, "")?;
    let provider = provider(&http, &args.provider).await?;
    let path = format!("/v3-public/{}s/{}?action=login", text(&provider, "type"), args.provider);
    if provider["redirectUrl"].is_string() {
        return Ok((browser_login(&http, url, &path, args).await?, None));
    }
    let (token, password) = password_login(&http, url, &path, args).await?;
    Ok((token, Some(password)))
}

/// The enabled provider of this name.
async fn provider(http: &Http, name: &str) -> Result<Value, CliError> {
    let response = http.send(Method::GET, "/v3-public/authProviders", None).await?;
    let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let all = body["data"].as_array().into_iter().flatten();
    if let Some(found) = all.clone().find(|provider| text(provider, "id") == name) {
        return Ok(found.clone());
    }
    if !response.status.is_success() || body["data"].is_null() {
        let text = format!("reading the identity providers: status {}", response.status);
        return Err(CliError::new(Failure::Other, text)
            .hint("check that the URL is that of a Drover server"));
    }
    let names: Vec<&str> = all.map(|provider| text(provider, "id")).collect();
    let message = format!("the server has no identity provider \"{name}\" enabled");
    Err(CliError::new(Failure::NotFound, message)
        .hint(format!("give another --provider: {}", names.join(", "))))
}

/// Logs in on the pages of the provider. Returns the token.
async fn browser_login(
    http: &Http,
    url: &str,
    path: &str,
    args: &LoginArgs,
) -> Result<String, CliError> {
    let verifier = Verifier::generate();
    let listener = CodeListener::bind().await;
    let port = listener.as_ref().map(|listener| format!("&port={}", listener.port()));
    let page = format!(
        "{url}/v1-login/{}?challenge={}{}",
        args.provider,
        verifier.challenge(),
        port.unwrap_or_default()
    );
    browser::open(&page, !args.no_browser);
    let code = browser::code(listener.as_ref()).await?;
    let body = json!({
        "code": code, "codeVerifier": verifier.expose(), "responseType": "json",
        "description": "drover login",
    });
    let hint = "begin again: a code is good once, for 5 minutes, and for this login only";
    issued(http, path, &body, &format!("logging in to {url}"), hint).await
}

/// Logs in with a password. Returns the token and the password.
async fn password_login(
    http: &Http,
    url: &str,
    path: &str,
    args: &LoginArgs,
) -> Result<(String, String), CliError> {
    let username = match &args.username {
        Some(username) => username.clone(),
        None => prompt::line("username", "--username, or --token")?,
    };
    let instead = "--password-stdin, or DROVER_PASSWORD";
    let given = args.password.clone();
    let password = prompt::read_secret(given, args.password_stdin, "password", instead)?;
    let body = json!({
        "username": username, "password": password, "responseType": "json",
        "description": "drover login",
    });
    let what = format!("logging in to {url} as \"{username}\"");
    let hint = "check the user name, the password and --provider";
    Ok((issued(http, path, &body, &what, hint).await?, password))
}

/// The token that the server issues. `wrong`: hint when it does not accept who logs in.
async fn issued(
    http: &Http,
    path: &str,
    body: &Value,
    what: &str,
    wrong: &str,
) -> Result<String, CliError> {
    let response = http.send(Method::POST, path, Some(body.to_string())).await?;
    let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    if response.status.is_success() && !text(&body, "token").is_empty() {
        return Ok(text(&body, "token").to_owned());
    }
    let reason = body["message"].as_str().unwrap_or("the server gave no reason");
    let (failure, hint) = match response.status.as_u16() {
        401 => (Failure::Unauthenticated, wrong),
        404 => {
            (Failure::NotFound, "the server has no such provider enabled; give another --provider")
        }
        503 => (Failure::Unreachable, "try again later, or log in as a local user"),
        403 => (Failure::Forbidden, "ask an administrator to enable the user"),
        429 => (Failure::Other, "wait before you try again"),
        _ => (Failure::Other, "check that the URL is that of a Drover server"),
    };
    Err(CliError::new(failure, format!("{what}: {reason}")).hint(hint))
}

/// Ends a login on the server and deletes it from the configuration; `server` is its name or URL,
/// the current one if absent.
///
/// # Errors
/// No such login is stored, or the configuration cannot be written.
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
        // An invalid login counts as ended.
        Err(error) if error.failure == Failure::Unauthenticated => {}
        Err(error) => {
            notify!("warning: {error}; the login is only deleted on this machine");
        }
    }
    config.forget(&name);
    config::save(&path, &config)?;
    notify!("logged out of {url}");
    Ok(())
}
