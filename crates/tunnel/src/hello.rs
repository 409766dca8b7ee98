//! What an agent claims about itself in the headers of its upgrade request.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::key::{KeyId, PublicKey};
use crate::limits::{LABEL_MAX_BYTES, PROTOCOL_VERSION, TOKEN_MAX_BYTES};
use crate::refusal::Refusal;

/// [`PROTOCOL_VERSION`].
pub const HEADER_VERSION: HeaderName = HeaderName::from_static("x-drover-tunnel-version");
/// [`Hello::key`].
pub const HEADER_KEY: HeaderName = HeaderName::from_static("x-drover-tunnel-key");
/// [`Hello::public_key`].
pub const HEADER_PUBLIC_KEY: HeaderName = HeaderName::from_static("x-drover-tunnel-public-key");
/// [`Hello::instance`].
pub const HEADER_INSTANCE: HeaderName = HeaderName::from_static("x-drover-tunnel-instance");
/// [`Hello::agent_version`].
pub const HEADER_AGENT_VERSION: HeaderName = HeaderName::from_static("x-drover-agent-version");
/// [`Hello::cluster_uid`].
pub const HEADER_CLUSTER_UID: HeaderName = HeaderName::from_static("x-drover-cluster-uid");
/// [`Hello::token`]. Rancher's agents use the same name.
pub const HEADER_TOKEN: HeaderName = HeaderName::from_static("x-api-tunnel-token");

/// A registration token. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct RegistrationToken(String);

impl RegistrationToken {
    /// `None` when the text is empty, longer than [`TOKEN_MAX_BYTES`], or not printable ASCII
    /// without blanks.
    pub fn new(text: &str) -> Option<Self> {
        let is_good = !text.is_empty()
            && text.len() <= TOKEN_MAX_BYTES
            && text.bytes().all(|b| b.is_ascii_graphic());
        is_good.then(|| Self(text.to_owned()))
    }

    /// The secret itself, for lookup and hashing only.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for RegistrationToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// The claims of an agent. Nothing in it is proven until the handshake has succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Id of the key that the agent will prove.
    pub key: KeyId,
    /// Present with a token, when the agent registers. Invariant: its id is `key`.
    pub public_key: Option<PublicKey>,
    pub token: Option<RegistrationToken>,
    /// Identifies one run of one agent process, 1 to 128 characters. A new session of an instance
    /// replaces its older ones.
    pub instance: String,
    pub agent_version: String,
    /// Uid of the namespace `kube-system` of the agent's cluster, which identifies the cluster for
    /// its lifetime. `None` from an agent that could not read it. It is a claim, so it may only be
    /// a reason to refuse this agent.
    pub cluster_uid: Option<String>,
}

impl Hello {
    /// Reads and checks the headers of an upgrade request.
    ///
    /// # Errors
    /// [`crate::RefusalReason::BadHello`] with the name of the header. Values are not repeated.
    /// Send it to the agent.
    pub fn from_headers(headers: &HeaderMap) -> Result<Self, Refusal> {
        let version = required(headers, &HEADER_VERSION)?;
        if version != PROTOCOL_VERSION.to_string() {
            return Err(Refusal::bad_hello(format_args!(
                "this server speaks tunnel version {PROTOCOL_VERSION} only; install the agent \
                 that belongs to this server"
            )));
        }
        let key: KeyId = required(headers, &HEADER_KEY)?
            .parse()
            .map_err(|error| bad_header(&HEADER_KEY, &error))?;
        let public_key = optional(headers, &HEADER_PUBLIC_KEY)?
            .map(|text| text.parse::<PublicKey>())
            .transpose()
            .map_err(|error| bad_header(&HEADER_PUBLIC_KEY, &error))?;
        let token = optional(headers, &HEADER_TOKEN)?
            .map(|text| RegistrationToken::new(text).ok_or("the token is malformed"))
            .transpose()
            .map_err(|error| bad_header(&HEADER_TOKEN, &error))?;
        if public_key.as_ref().is_some_and(|public_key| public_key.id() != key) {
            return Err(bad_header(&HEADER_PUBLIC_KEY, &"it is not the key that the id names"));
        }
        if token.is_some() && public_key.is_none() {
            return Err(bad_header(&HEADER_PUBLIC_KEY, &"a token must come with a public key"));
        }
        let instance = label(required(headers, &HEADER_INSTANCE)?, &HEADER_INSTANCE)?;
        let agent_version = optional(headers, &HEADER_AGENT_VERSION)?.unwrap_or("unknown");
        let agent_version = label(agent_version, &HEADER_AGENT_VERSION)?;
        let cluster_uid = optional(headers, &HEADER_CLUSTER_UID)?
            .map(|uid| label(uid, &HEADER_CLUSTER_UID))
            .transpose()?;
        Ok(Self { key, public_key, token, instance, agent_version, cluster_uid })
    }

    /// Writes the headers that [`Self::from_headers`] reads.
    pub fn write_headers(&self, headers: &mut HeaderMap) {
        headers.insert(HEADER_VERSION, HeaderValue::from(PROTOCOL_VERSION));
        let mut put = |name, text: &str, is_secret| {
            let value = HeaderValue::from_str(text);
            let mut value = value.unwrap_or_else(|_| HeaderValue::from_static("invalid"));
            value.set_sensitive(is_secret);
            headers.insert(name, value);
        };
        put(HEADER_KEY, self.key.as_str(), false);
        put(HEADER_INSTANCE, &self.instance, false);
        put(HEADER_AGENT_VERSION, &self.agent_version, false);
        if let Some(uid) = &self.cluster_uid {
            put(HEADER_CLUSTER_UID, uid, false);
        }
        if let Some(key) = &self.public_key {
            put(HEADER_PUBLIC_KEY, &key.to_string(), false);
        }
        if let Some(token) = &self.token {
            put(HEADER_TOKEN, token.reveal(), true);
        }
    }
}

fn bad_header(name: &HeaderName, detail: &dyn fmt::Display) -> Refusal {
    Refusal::bad_hello(format_args!("header \"{name}\": {detail}"))
}

/// The value of a header that occurs at most once: which of two values counts must not depend on
/// the reader.
fn optional<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(bad_header(name, &"it must occur once"));
    }
    let text = value.to_str().map_err(|_| bad_header(name, &"it must be printable ASCII"))?;
    Ok(Some(text))
}

fn required<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<&'a str, Refusal> {
    optional(headers, name)?.ok_or_else(|| bad_header(name, &"it is missing"))
}

fn label(text: &str, name: &HeaderName) -> Result<String, Refusal> {
    if text.is_empty() || text.len() > LABEL_MAX_BYTES {
        return Err(bad_header(name, &"it must have 1 to 128 characters"));
    }
    Ok(text.to_owned())
}
