//! `drover login`, `drover logout`.
//!
//! A server whose certificate authority is not known is looked at once without trust: it says which
//! authority it has, the person compares the fingerprint, and only then anything secret is sent,
//! over a connection that this authority vouches for.

use http::Method;
use serde_json::{Value, json};

use crate::api::{Api, text};
use crate::args::LoginArgs;
use crate::config::{self, Login};
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
    let token = match &args.token {
        Some(token) => token.trim().to_owned(),
        None => password_login(&url, &trust, &args).await?,
    };
    let mut login = Login { token, ca_cert, user: String::new() };
    login.user = user_of(&url, &login).await?;

    let path = config::path()?;
    let mut config = config::load(&path)?;
    let user = login.user.clone();
    config.servers.insert(url.clone(), login);
    config.current.clone_from(&url);
    config::save(&path, &config)?;
    eprintln!("logged in to {url} as {user}");
    Ok(())
}

/// What to trust on this server, asked for where that is not known.
async fn trusted(url: &str, args: &LoginArgs) -> Result<Trust, CliError> {
    if let Some(file) = &args.ca_file {
        let pem = std::fs::read_to_string(file).map_err(|error| {
            let text = format!("reading the certificate authority \"{}\": {error}", file.display());
            CliError::new(Failure::Other, text)
        })?;
        let trust = Trust::Authority(pem);
        ping(url, &trust).await?;
        return Ok(trust);
    }
    let known = config::load(&config::path()?)?.servers.get(url).map(|login| login.ca_cert.clone());
    if let Some(pem) = known.filter(|pem| !pem.is_empty()) {
        let trust = Trust::Authority(pem);
        match ping(url, &trust).await {
            Err(HttpError::Untrusted(..)) => {
                eprintln!(
                    "warning: {url} has another certificate authority than at your last login"
                );
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
    eprintln!("{url} uses a certificate authority that this machine does not know.");
    eprintln!("SHA-256 of the authority: {}", tls::fingerprint(pem));
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

async fn password_login(url: &str, trust: &Trust, args: &LoginArgs) -> Result<String, CliError> {
    let username = match &args.username {
        Some(username) => username.clone(),
        None => prompt::line("username", "--username, or --token")?,
    };
    let password = match &args.password {
        Some(password) => password.clone(),
        None => prompt::secret("password", "--password, or DROVER_PASSWORD")?,
    };
    let body = json!({
        "username": username, "password": password, "responseType": "json",
        "description": "drover login",
    });
    let http = Http::new(url, trust, "")?;
    let path = "/v3-public/localProviders/local?action=login";
    let answer = http.send(Method::POST, path, Some(body.to_string())).await?;
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    if answer.status.is_success() && !text(&body, "token").is_empty() {
        return Ok(text(&body, "token").to_owned());
    }
    let said = body["message"].as_str().unwrap_or("the server gave no reason");
    let failure = match answer.status.as_u16() {
        401 => Failure::Unauthenticated,
        403 => Failure::Forbidden,
        _ => Failure::Other,
    };
    Err(CliError::new(failure, format!("logging in to {url} as \"{username}\": {said}")))
}

/// Whom the token belongs to, which also proves that it holds.
async fn user_of(url: &str, login: &Login) -> Result<String, CliError> {
    let api = Api::new(url, login.clone())?;
    let id = login.token.split(':').next().unwrap_or_default();
    let token = api.get("tokens", id, "checking the token").await?;
    Ok(text(&token, "userId").to_owned())
}

pub async fn logout(server: Option<&str>) -> Result<(), CliError> {
    let path = config::path()?;
    let mut config = config::load(&path)?;
    let (url, _) = config.login(server)?;
    let api = Api::open(Some(&url))?;
    let what = "logging out";
    match api.call(Method::POST, "/v3/tokens?action=logout", Some(&json!({})), what).await {
        Ok(_) => {}
        // A login that does not hold any more is as good as ended.
        Err(error) if error.failure == Failure::Unauthenticated => {}
        Err(error) => eprintln!("warning: {error}; the login is only forgotten here"),
    }
    config.forget(&url);
    config::save(&path, &config)?;
    eprintln!("logged out of {url}");
    Ok(())
}
