//! `clientConfig`: the address of a webhook and the authorities that sign its certificate.

use api_meta::names;
use api_meta::status::Cause;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

const URL_FORMAT: &str = "; desired format: https://host[/path]";
const HTTPS_PORT: u16 = 443;

/// The location of a webhook, and how its server is verified.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientConfig {
    /// Where it listens.
    pub location: WebhookLocation,
    /// Path of the URL, with its leading slash.
    pub path: String,
    /// PEM text of the authorities; empty for those of the machine.
    pub ca_bundle: Vec<u8>,
}

/// Where a webhook listens.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WebhookLocation {
    /// Without scheme: `host`, `host:port`, `[::1]:port`.
    Url {
        authority: String,
    },
    Service {
        namespace: String,
        name: String,
        port: u16,
    },
}

impl ClientConfig {
    /// Reads a validated `clientConfig`.
    ///
    /// # Errors
    /// Why it is invalid: it was stored without validation.
    pub fn read(config: &Value) -> Result<Self, String> {
        let ca_bundle = STANDARD
            .decode(config["caBundle"].as_str().unwrap_or_default())
            .map_err(|error| format!("caBundle is not base64: {error}"))?;
        if let Some(url) = config["url"].as_str() {
            let parts = UrlParts::split(url).filter(|parts| parts.scheme == "https");
            let parts = parts.ok_or_else(|| format!("{url:?} is not an https URL"))?;
            let location = WebhookLocation::Url { authority: parts.authority.to_owned() };
            return Ok(Self { location, path: parts.path.to_owned(), ca_bundle });
        }
        let service = &config["service"];
        let text = |field: &str| service[field].as_str().unwrap_or_default().to_owned();
        let port = service["port"].as_u64().map_or(Some(HTTPS_PORT), |port| port.try_into().ok());
        let port = port.ok_or_else(|| format!("{} is not a port", service["port"]))?;
        let mut path = text("path");
        if !path.is_empty() && !path.starts_with('/') {
            path.insert(0, '/');
        }
        let location =
            WebhookLocation::Service { namespace: text("namespace"), name: text("name"), port };
        Ok(Self { location, path, ca_bundle })
    }

    /// Host and port in the URL of calls; for a Service its DNS name.
    pub fn authority(&self) -> String {
        match &self.location {
            WebhookLocation::Url { authority } => authority.clone(),
            WebhookLocation::Service { namespace, name, port } => {
                format!("{name}.{namespace}.svc:{port}")
            }
        }
    }

    /// The URL of calls, without parameters.
    pub fn url(&self) -> String {
        format!("https://{}{}", self.authority(), self.path)
    }

    /// Host and port of the URL; the certificate must be for the host.
    ///
    /// # Errors
    /// The URL has no valid host: the webhook cannot be called.
    pub fn host_and_port(&self) -> Result<(String, u16), String> {
        let authority = self.authority();
        let parsed: http::uri::Authority =
            authority.parse().map_err(|error| format!("{authority:?} is no host: {error}"))?;
        let host = parsed.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok((host, parsed.port_u16().unwrap_or(HTTPS_PORT)))
    }
}

/// The parts of a URL, not validated.
struct UrlParts<'a> {
    scheme: &'a str,
    user: Option<&'a str>,
    authority: &'a str,
    path: &'a str,
    query: &'a str,
    fragment: &'a str,
}

impl<'a> UrlParts<'a> {
    fn split(url: &'a str) -> Option<Self> {
        let (url, fragment) = url.split_once('#').unwrap_or((url, ""));
        let (url, query) = url.split_once('?').unwrap_or((url, ""));
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        if url.chars().any(|c| c.is_ascii_control() || c == ' ') {
            return None;
        }
        let at = if scheme.is_empty() { 0 } else { rest.find('/').unwrap_or(rest.len()) };
        let (authority, path) = rest.split_at(at);
        let (user, authority) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        if !authority.is_empty() && authority.parse::<http::uri::Authority>().is_err() {
            return None;
        }
        Some(Self { scheme, user, authority, path, query, fragment })
    }
}

/// Adds all violations of the `clientConfig` at `path` to `causes`, with the texts of
/// kube-apiserver.
pub fn validate(config: &Value, path: &str, causes: &mut Vec<Cause>) {
    match (&config["url"], &config["service"]) {
        (Value::Null, Value::Null) | (Value::String(_), Value::Object(_)) => {
            causes.push(Cause::required(path, "exactly one of url or service is required"));
        }
        (Value::String(url), _) => validate_url(url, &format!("{path}.url"), causes),
        (_, service) => validate_service(service, &format!("{path}.service"), causes),
    }
}

fn validate_url(url: &str, path: &str, causes: &mut Vec<Cause>) {
    let Some(parts) = UrlParts::split(url) else {
        let detail = format!("url must be a valid URL: {url:?} cannot be read{URL_FORMAT}");
        causes.push(Cause::required(path, &detail));
        return;
    };
    let mut refuse = |value: &str, detail: &str| {
        causes.push(Cause::invalid(path, &value.into(), detail));
    };
    if parts.scheme != "https" {
        refuse(parts.scheme, &format!("'https' is the only allowed URL scheme{URL_FORMAT}"));
    }
    if parts.authority.is_empty() {
        refuse(parts.authority, &format!("host must be specified{URL_FORMAT}"));
    }
    if let Some(user) = parts.user {
        refuse(user, "user information is not permitted in the URL");
    }
    if !parts.fragment.is_empty() {
        refuse(parts.fragment, "fragments are not permitted in the URL");
    }
    if !parts.query.is_empty() {
        refuse(parts.query, "query parameters are not permitted in the URL");
    }
}

fn validate_service(service: &Value, path: &str, causes: &mut Vec<Cause>) {
    for field in ["name", "namespace"] {
        if service[field].as_str().unwrap_or_default().is_empty() {
            causes.push(Cause::required(format!("{path}.{field}"), ""));
        }
    }
    let port = &service["port"];
    if port.as_i64().is_some_and(|port| !(1..=65535).contains(&port)) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        causes.push(Cause::invalid(format!("{path}.port"), port, detail));
    }
    let text = service["path"].as_str().unwrap_or_default();
    if matches!(text, "" | "/") {
        return;
    }
    let mut refuse = |detail: &str| {
        causes.push(Cause::invalid(format!("{path}.path"), &service["path"], detail));
    };
    if text == "//" {
        return refuse("segment[0] may not be empty");
    }
    if !text.starts_with('/') {
        refuse("must start with a '/'");
    }
    // Like kube-apiserver: the first character is dropped, whatever it is.
    let rest = text.char_indices().nth(1).map_or("", |(at, _)| &text[at..]);
    for (index, segment) in rest.strip_suffix('/').unwrap_or(rest).split('/').enumerate() {
        if segment.is_empty() {
            refuse(&format!("segment[{index}] may not be empty"));
            continue;
        }
        for problem in names::dns1123_subdomain(segment) {
            refuse(&format!("segment[{index}]: {problem}"));
        }
    }
}
