//! Where the next page of a list begins, as clients are told it.

use api_meta::status::Status;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use storage::Revision;

const VERSION: &str = "meta.k8s.io/v1";
/// Stands for the newest revision.
const NEWEST: i64 = -1;

/// A place in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContinueToken {
    /// The snapshot to go on in; `None` is the newest.
    pub revision: Option<Revision>,
    /// The key to go on from, relative to the list's prefix. Never empty, and never leads out of it.
    pub start: String,
    pub left: Option<Left>,
}

/// How many objects a list has left in its snapshot, so that they need not be counted for each page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// The prefix of the list. The token goes on in other lists as well, where the number says nothing.
    of: String,
    number: u64,
}

impl Left {
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

    /// # Errors
    /// 400: it is none that [`ContinueToken::encode`] could have made.
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
