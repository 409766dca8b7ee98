//! The continue token of a list: where its next page begins.

use api_meta::status::Status;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use storage::Revision;

const VERSION: &str = "meta.k8s.io/v1";
/// Means the newest revision.
const NEWEST: i64 = -1;

/// A position in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContinueToken {
    /// The snapshot of the list; `None` is the newest.
    pub revision: Option<Revision>,
    /// The key to continue from, relative to the prefix of the list. Never empty, and never outside
    /// of the prefix.
    pub start: String,
    /// Spares counting; `None` in tokens of filtered lists.
    pub left: Option<Left>,
}

/// The number of objects that a list has left in its snapshot, so that they need not be counted for
/// each page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// The prefix of the list. The token can also continue other lists, for which the number is
    /// wrong.
    of: String,
    number: u64,
}

impl Left {
    /// The number of objects left in the list with this prefix.
    pub fn new(prefix: &str, number: u64) -> Self {
        Self { of: prefix.to_owned(), number }
    }
    /// The number, if it is that of the list with this prefix.
    pub fn of(&self, prefix: &str) -> Option<u64> {
        (self.of == prefix).then_some(self.number)
    }
}

#[derive(Serialize, Deserialize)]
struct Encoded {
    v: String,
    rv: i64,
    start: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left: Option<Left>,
}

impl ContinueToken {
    /// The token as clients receive it: JSON in URL-safe base64.
    pub fn encode(&self) -> String {
        let revision = self.revision.map(|revision| i64::try_from(revision).unwrap_or(i64::MAX));
        let token = Encoded {
            v: VERSION.to_owned(),
            rv: revision.unwrap_or(NEWEST),
            start: self.start.clone(),
            left: self.left.clone(),
        };
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).expect("plain strings serialise"))
    }

    /// Decodes a token of a client.
    ///
    /// # Errors
    /// 400 when [`ContinueToken::encode`] cannot have made it.
    pub fn decode(token: &str) -> Result<Self, Status> {
        let bad = |what: &str| {
            let text = format!("invalid continue token: continue key is not valid: {what}");
            Status::bad_request(text)
        };
        let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|error| bad(&error.to_string()))?;
        let token: Encoded =
            serde_json::from_slice(&bytes).map_err(|error| bad(&error.to_string()))?;
        if token.v != VERSION {
            return Err(bad("unknown version"));
        }
        if token.start.is_empty() || token.start.split('/').any(|part| part == "..") {
            return Err(bad("bad start"));
        }
        let revision = match token.rv {
            NEWEST => None,
            0 => {
                return Err(bad(
                    "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
                ));
            }
            revision => Some(u64::try_from(revision).map_err(|_| bad("negative revision"))?),
        };
        Ok(Self { revision, start: token.start, left: token.left })
    }
}
