//! The claims of a token.

use serde::{Deserialize, Serialize};

/// Seconds by which the clocks of replicas may differ, so that a fresh token of one is valid on the
/// other.
const CLOCK_SKEW_SECONDS: i64 = 60;

/// The claims of a token from a token request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// Issuer.
    pub iss: String,
    /// Subject: the user name.
    pub sub: String,
    /// Audiences.
    #[serde(default, deserialize_with = "one_or_many")]
    pub aud: Vec<String>,
    /// Expires at; unix seconds, like all times here.
    pub exp: i64,
    /// Not valid before.
    pub nbf: i64,
    /// Issued at.
    pub iat: i64,
    /// Id of the token; empty when it has none.
    #[serde(default)]
    pub jti: String,
    #[serde(rename = "kubernetes.io")]
    pub kubernetes: Kubernetes,
}

/// The account, and the objects that the token is bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kubernetes {
    pub namespace: String,
    pub serviceaccount: Bound,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<Bound>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Bound>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Bound>,
}

/// An object that must exist, with this UID.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    pub name: String,
    #[serde(default)]
    pub uid: String,
}

impl Claims {
    /// Whether the token is valid at `now` (unix seconds).
    pub fn is_valid_at(&self, now: i64) -> bool {
        self.nbf.saturating_sub(CLOCK_SKEW_SECONDS) <= now && now < self.exp
    }
}

fn one_or_many<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Audience {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Audience::deserialize(deserializer)? {
        Audience::One(one) => vec![one],
        Audience::Many(many) => many,
    })
}
