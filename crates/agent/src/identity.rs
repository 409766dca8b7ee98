//! The agent's key, kept in a Secret of its own cluster so that it survives restarts and is shared
//! by the agent's replicas.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tunnel::key::{KeyError, hex};
use tunnel::{AgentKey, RegistrationToken};

use crate::home::{Home, HomeError};

const SECRET: &str = "drover-agent-identity";
/// PKCS#8.
const FIELD_KEY: &str = "key";
/// Hash of the token with which the key was last accepted. Not the token: that is not kept.
const FIELD_ACCEPTED: &str = "acceptedWith";
/// Another replica may write between our read and our write; so often in a row it does not.
const TRIES: usize = 5;

#[derive(Debug, thiserror::Error)]
pub(crate) enum IdentityError {
    #[error("keep the agent's key")]
    Home(#[from] HomeError),
    #[error(
        "the Secret \"{SECRET}\" does not hold an agent's key; delete it, and this agent registers \
         anew with a current token"
    )]
    Malformed,
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("keep the agent's key: the Secret \"{SECRET}\" keeps changing")]
    Contended,
}

pub(crate) struct Identity {
    pub(crate) key: AgentKey,
    accepted_with: Option<String>,
}

fn token_hash(token: &RegistrationToken) -> String {
    hex(&Sha256::digest(token.reveal()))
}

fn field(secret: &Value, name: &str) -> Option<Vec<u8>> {
    STANDARD.decode(secret["data"][name].as_str()?).ok()
}

impl Identity {
    /// Reads the key, or makes one if there is none yet.
    pub(crate) async fn load(home: &Home) -> Result<Self, IdentityError> {
        for _ in 0..TRIES {
            if let Some(secret) = home.read_secret(SECRET).await? {
                return Self::parse(&secret);
            }
            let key = AgentKey::generate()?;
            let data = json!({ FIELD_KEY: STANDARD.encode(key.to_pkcs8()) });
            if home.create_secret(SECRET, data).await? {
                tracing::info!(key = %key.id(), "made a key for this agent");
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

    /// Whether the server is known to accept the key, so that `token` can stay here.
    pub(crate) fn is_accepted_with(&self, token: &RegistrationToken) -> bool {
        self.accepted_with.as_deref() == Some(&*token_hash(token))
    }

    /// Whether some server ever accepted the key.
    pub(crate) fn was_accepted(&self) -> bool {
        self.accepted_with.is_some()
    }

    /// Notes that the server accepted the key together with `token`.
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

    /// Makes another key, because this one belongs to another cluster.
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
