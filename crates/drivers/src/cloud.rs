//! What drivers of clouds share: requests that are repeated while a cloud is busy, its refusals in
//! words, and waiting for what takes minutes.

use std::ops::ControlFlow;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use backoff::Backoff;
use driver_sdk::service_account;
use driver_sdk::types::ClusterInfo;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use reqwest::{Client, Request, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::time::{Instant, sleep};

/// Of one request.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(60);
/// Of one request that a cloud does not take. With the delays some two minutes.
const ATTEMPTS_MAX: u32 = 10;
/// Of one request to a cloud that is not reached: its name may be wrong.
const UNREACHABLE_ATTEMPTS_MAX: u32 = 5;
const BETWEEN_ATTEMPTS: Backoff =
    Backoff::new(Duration::from_millis(500), Duration::from_secs(20)).with_jitter(0.3);
/// Longest delay that a cloud may ask for before the next attempt.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);
/// Looks at what takes minutes: soon at first, for what fails at once.
const BETWEEN_LOOKS: Backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(10));
/// Characters of a response that is not in the cloud's own form, in a message.
const UNKNOWN_TEXT_MAX: usize = 200;
/// Codes of AWS for "too many requests", which come with the status 400.
const BUSY_CODES: [&str; 4] =
    ["Throttling", "ThrottlingException", "RequestLimitExceeded", "TooManyRequestsException"];

/// A cloud did not do it.
#[derive(Debug, thiserror::Error)]
pub enum CloudError {
    /// It says why.
    #[error("{cloud} refuses it: {message} ({})", if code.is_empty() { status.as_str() } else { code })]
    Refused {
        /// Its name.
        cloud: &'static str,
        /// Of the response.
        status: StatusCode,
        /// The reason for programs; empty if there is none.
        code: String,
        /// The reason for people.
        message: String,
    },
    /// It is not reached.
    #[error("{cloud} is not reached at {host}: {text}")]
    Unreachable {
        /// Its name.
        cloud: &'static str,
        /// The host of the request.
        host: String,
        /// Why.
        text: String,
    },
    /// The request cannot be made of what is given.
    #[error("{0}")]
    Request(String),
}

impl CloudError {
    /// The reason for programs, if the cloud refused.
    pub fn code(&self) -> &str {
        match self {
            Self::Refused { code, .. } => code,
            Self::Unreachable { .. } | Self::Request(_) => "",
        }
    }

    /// Whether the cloud responded with this status.
    pub fn has_status(&self, expected: StatusCode) -> bool {
        matches!(self, Self::Refused { status, .. } if *status == expected)
    }

    /// How often the request is sent if it fails so.
    fn attempts_max(&self) -> u32 {
        match self {
            Self::Refused { status, code, .. } => {
                let is_temporary = *status == StatusCode::TOO_MANY_REQUESTS
                    || status.is_server_error()
                    || BUSY_CODES.contains(&code.as_str());
                if is_temporary { ATTEMPTS_MAX } else { 1 }
            }
            Self::Unreachable { .. } => UNREACHABLE_ATTEMPTS_MAX,
            Self::Request(_) => 1,
        }
    }
}

/// The code and the message in the body of a refusal; `None` if it has another form.
pub type Explain = fn(&str) -> Option<(String, String)>;

/// What a cloud responds.
#[derive(Clone, Debug)]
pub struct CloudResponse {
    pub headers: HeaderMap,
    pub body: String,
}

impl CloudResponse {
    /// The body; null if it is empty.
    ///
    /// # Errors
    /// It is something else.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, CloudError> {
        let body = if self.body.trim().is_empty() { "null" } else { &self.body };
        serde_json::from_str(body)
            .map_err(|error| CloudError::Request(format!("the response cannot be read: {error}")))
    }
}

/// A client of one cloud.
#[derive(Clone, Debug)]
pub struct Cloud {
    name: &'static str,
    http: Client,
    explain: Explain,
}

impl Cloud {
    /// Trusts what the machine trusts. `name` is for messages.
    ///
    /// # Errors
    /// The machine has no certificate authorities.
    pub fn new(name: &'static str, explain: Explain) -> Result<Self> {
        let tls = tls_trust::trust_roots(tls_trust::system_roots()).with_no_client_auth();
        let http = Client::builder()
            .tls_backend_preconfigured(tls)
            .timeout(REQUEST_TIME_MAX)
            .user_agent(concat!("drover/", env!("CARGO_PKG_VERSION")))
            .build()
            .context("cannot make a client for HTTPS")?;
        Ok(Self { name, http, explain })
    }

    /// To build requests.
    pub fn http(&self) -> &Client {
        &self.http
    }

    /// Sends the request that `build` makes, again and again while the cloud is busy or not
    /// reached. Whatever it does must be harmless a second time.
    ///
    /// # Errors
    /// What the cloud says, or why it is not reached.
    pub async fn call(
        &self,
        mut build: impl FnMut() -> Result<Request>,
    ) -> Result<CloudResponse, CloudError> {
        let mut attempts = 1;
        loop {
            let request = build().map_err(|error| CloudError::Request(format!("{error:#}")))?;
            let (error, wait) = match self.attempt(request).await {
                Ok(response) => return Ok(response),
                Err(failed) => failed,
            };
            let most = error.attempts_max();
            if attempts >= most {
                return Err(error);
            }
            let wait = wait.unwrap_or_else(|| BETWEEN_ATTEMPTS.delay(attempts));
            println!("attempt {attempts} of {most} failed, the next follows: {error}");
            attempts += 1;
            sleep(wait).await;
        }
    }

    async fn attempt(
        &self,
        request: Request,
    ) -> Result<CloudResponse, (CloudError, Option<Duration>)> {
        let host = request.url().host_str().unwrap_or_default().to_owned();
        let unreachable = |error: reqwest::Error| {
            let (cloud, text) = (self.name, chain(&error.without_url()));
            (CloudError::Unreachable { cloud, host: host.clone(), text }, None)
        };
        let response = self.http.execute(request).await.map_err(unreachable)?;
        let (status, wait) = (response.status(), retry_after(&response));
        let headers = response.headers().clone();
        let text = response.text().await.map_err(unreachable)?;
        if status.is_success() {
            return Ok(CloudResponse { headers, body: text });
        }
        let (code, message) = (self.explain)(&text).unwrap_or_else(|| {
            let text = text.trim().chars().take(UNKNOWN_TEXT_MAX).collect();
            (String::new(), text)
        });
        Err((CloudError::Refused { cloud: self.name, status, code, message }, wait))
    }
}

fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds).min(RETRY_AFTER_MAX))
}

/// An error with its causes: the first of `reqwest` only says that a request failed.
fn chain(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(found) = cause {
        text = format!("{text}: {found}");
        cause = found.source();
    }
    text
}

/// Looks until there is a result. What a look says meanwhile is printed when it changes.
///
/// # Errors
/// A look fails, or there is nothing after `limit`.
pub async fn until<T, F>(what: &str, limit: Duration, mut look: impl FnMut() -> F) -> Result<T>
where
    F: Future<Output = Result<ControlFlow<T, String>>>,
{
    let (deadline, mut looks, mut said) = (Instant::now() + limit, 0, String::new());
    loop {
        if Instant::now() >= deadline {
            bail!("{what}: not done after {} minutes; {said}", limit.as_secs() / 60);
        }
        // Each request of a look has a limit of its own.
        match look().await? {
            ControlFlow::Break(result) => return Ok(result),
            ControlFlow::Continue(text) if text != said => {
                println!("{what}: {text}");
                said = text;
            }
            ControlFlow::Continue(_) => {}
        }
        looks += 1;
        sleep(BETWEEN_LOOKS.delay(looks)).await;
    }
}

/// Completes `info` with an account of the manager in the cluster, by a token of the cloud.
///
/// # Errors
/// The cluster is not reached, or refuses the token.
pub async fn fill_by_token(
    info: &mut ClusterInfo,
    endpoint: &str,
    authority: &str,
    token: &str,
) -> Result<()> {
    let scheme = if endpoint.contains("://") { "" } else { "https://" };
    let kubeconfig = json!({
        "clusters": [{"name": "c", "cluster": {
            "server": format!("{scheme}{endpoint}"),
            "certificate-authority-data": authority,
        }}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    });
    service_account::fill_from_kubeconfig(info, &kubeconfig.to_string()).await
}

/// `KEY=VALUE` texts as pairs.
///
/// # Errors
/// One has no `=`.
pub fn pairs(option: &str, texts: &[String]) -> Result<serde_json::Map<String, serde_json::Value>> {
    let pair = |text: &String| {
        let (key, value) = text.split_once('=').with_context(|| {
            format!("the option {option} needs KEY=VALUE, and \"{text}\" is none")
        })?;
        Ok((key.to_owned(), value.into()))
    };
    texts.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, code: &str) -> CloudError {
        let status = StatusCode::from_u16(status).unwrap();
        let (code, message) = (code.to_owned(), "no".to_owned());
        CloudError::Refused { cloud: "The cloud", status, code, message }
    }

    #[test]
    fn what_passes_is_tried_again_and_what_is_wrong_is_not() {
        for (status, code) in [(429, ""), (503, "x"), (500, ""), (400, "Throttling")] {
            assert_eq!(refused(status, code).attempts_max(), ATTEMPTS_MAX, "{status} {code}");
        }
        for (status, code) in [(400, "ValidationError"), (401, ""), (403, "quota"), (409, "")] {
            assert_eq!(refused(status, code).attempts_max(), 1, "{status} {code}");
        }
    }

    #[test]
    fn a_refusal_has_the_clouds_own_words() {
        assert_eq!(refused(403, "Denied").to_string(), "The cloud refuses it: no (Denied)");
        assert_eq!(refused(403, "").to_string(), "The cloud refuses it: no (403)");
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_ends_with_the_limit_and_says_what_was_seen_last() {
        let limit = Duration::from_secs(600);
        let look = || async { Ok(ControlFlow::<(), _>::Continue("half made".to_owned())) };
        let error = until("the cluster", limit, look).await.unwrap_err();
        assert_eq!(error.to_string(), "the cluster: not done after 10 minutes; half made");
    }

    #[test]
    fn labels_are_pairs() {
        let texts = ["a=b".to_owned(), "c=d=e".to_owned()];
        assert_eq!(pairs("labels", &texts).unwrap()["c"], "d=e");
        let error = pairs("labels", &["a".to_owned()]).unwrap_err().to_string();
        assert_eq!(error, "the option labels needs KEY=VALUE, and \"a\" is none");
    }
}
