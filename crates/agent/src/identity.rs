//! The agent's key. It is stored in a Secret of the agent's own cluster, so that it survives
//! restarts and the agent's replicas share it.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tunnel::key::{KeyError, hex};
use tunnel::{AgentKey, RegistrationToken};

use crate::home::{Home, HomeError};

const SECRET: &str = "drover-agent-identity";
/// The key, in PKCS#8.
const FIELD_KEY: &str = "key";
/// Hash of the token with which the key was last accepted. The token itself is not stored.
const FIELD_ACCEPTED: &str = "acceptedWith";
/// Attempts to write the Secret. Another replica may write between read and write, but not so often
/// in a row.
const TRIES: usize = 5;

#[derive(Debug, thiserror::Error)]
pub(crate) enum IdentityError {
    #[error("store the agent's key")]
    Home(#[from] HomeError),
    #[error(
        "the Secret \"{SECRET}\" does not hold an agent's key; delete it, and this agent registers \
         again with a current token"
    )]
    Malformed,
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("store the agent's key: the Secret \"{SECRET}\" keeps changing")]
    Contended,
}

pub(crate) struct AgentIdentity {
    pub(crate) key: AgentKey,
    accepted_with: Option<String>,
}

fn token_hash(token: &RegistrationToken) -> String {
    hex(&Sha256::digest(token.reveal()))
}

fn field(secret: &Value, name: &str) -> Option<Vec<u8>> {
    STANDARD.decode(secret["data"][name].as_str()?).ok()
}

impl AgentIdentity {
    /// Reads the key, or generates one if there is none yet.
    pub(crate) async fn load(home: &Home) -> Result<Self, IdentityError> {
        for _ in 0..TRIES {
            if let Some(secret) = home.read_secret(SECRET).await? {
                return Self::parse(&secret);
            }
            let key = AgentKey::generate()?;
            let data = json!({ FIELD_KEY: STANDARD.encode(key.to_pkcs8()) });
            if home.create_secret(SECRET, data).await? {
                tracing::info!(key = %key.id(), "generated a key for this agent");
                return Ok(Self { key, accepted_with: None });
            }
        }
        Err(IdentityError::Contended)
    }

    fn parse(secret: &Value) -> Result<Self, IdentityError> {
        let der = field(secret, FIELD_KEY).ok_or(IdentityError::Malformed)?;
        let key = AgentKey::from_pkcs8(&der).map_err(|_| IdentityError::Malformed)?;
        let accepted_with = field(secret, FIELD_ACCEPTED);
        let accepted_with = accepted_with.and_then(|hash| String::from_utf8(hash).ok());
        Ok(Self { key, accepted_with })
    }

    /// Whether the server has accepted the key with `token`, so that the token need not be sent
    /// again.
    pub(crate) fn is_accepted_with(&self, token: &RegistrationToken) -> bool {
        self.accepted_with.as_deref() == Some(&*token_hash(token))
    }

    /// Whether any server ever accepted the key.
    pub(crate) fn has_been_accepted(&self) -> bool {
        self.accepted_with.is_some()
    }

    /// Records that the server accepted the key together with `token`.
    pub(crate) async fn accept(
        &mut self,
        home: &Home,
        token: &RegistrationToken,
    ) -> Result<(), IdentityError> {
        let hash = token_hash(token);
        let encoded = STANDARD.encode(&hash);
        self.accepted_with = Some(hash);
        self.change(home, |secret| secret["data"][FIELD_ACCEPTED] = encoded.clone().into()).await
    }

    /// Generates another key, because this one belongs to another cluster.
    pub(crate) async fn renew(&mut self, home: &Home) -> Result<(), IdentityError> {
        let key = AgentKey::generate()?;
        let encoded = STANDARD.encode(key.to_pkcs8());
        self.change(home, |secret| secret["data"] = json!({ FIELD_KEY: encoded })).await?;
        *self = Self { key, accepted_with: None };
        Ok(())
    }

    async fn change(&self, home: &Home, change: impl Fn(&mut Value)) -> Result<(), IdentityError> {
        for _ in 0..TRIES {
            let Some(mut secret) = home.read_secret(SECRET).await? else {
                return Err(IdentityError::Malformed);
            };
            change(&mut secret);
            if home.replace_secret(SECRET, &secret).await? {
                return Ok(());
            }
        }
        Err(IdentityError::Contended)
    }
}
