//! When a token was last used, to ten minutes. Each token is written at most once in that time, by
//! itself, and no request waits for it.

use std::collections::HashMap;

use api_management::Token;
use controller::error::words_of;
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use parking_lot::Mutex;
use serde_json::json;

use crate::directory::Directory;

/// What is shown may be older than the last use by this time.
const PRECISION_MILLIS: i64 = 600_000;
/// Tokens whose use is being written at once; others have their turn at their next use.
const WRITING_MAX: usize = 32;

/// Tokens whose use was written, or is being written.
#[derive(Default)]
pub struct LastUses(Mutex<Noted>);

#[derive(Default)]
struct Noted {
    /// Milliseconds since 1970, by token.
    at: HashMap<String, i64>,
    writing: usize,
}

impl LastUses {
    /// Whether to write now that the token was used.
    fn begin(&self, token: &str, now_millis: i64) -> bool {
        let mut noted = self.0.lock();
        if noted.at.get(token).is_some_and(|at| now_millis - at < PRECISION_MILLIS)
            || noted.writing >= WRITING_MAX
        {
            return false;
        }
        noted.at.retain(|_, at| now_millis - *at < PRECISION_MILLIS);
        noted.at.insert(token.to_owned(), now_millis);
        noted.writing += 1;
        true
    }

    fn end(&self) {
        self.0.lock().writing -= 1;
    }
}

/// Whether the use that is stored is recent enough. Pure.
fn is_recent(stored: &str, now_millis: i64) -> bool {
    let at = stored.parse::<Timestamp>().map_or(0, Timestamp::as_millisecond);
    now_millis - at < PRECISION_MILLIS
}

impl Directory {
    /// Notes that the token is used now. Does not wait.
    pub(crate) fn note_use(&self, token: &Token, now_millis: i64) {
        let name = token.name_any();
        if is_recent(&token.last_used_at, now_millis) || !self.last_uses.begin(&name, now_millis) {
            return;
        }
        let Some(own) = self.own.upgrade() else { return };
        tokio::spawn(async move {
            let patch = Patch::Merge(json!({"lastUsedAt": controller::status::now()}));
            let api: Api<Token> = Api::all(own.client.clone());
            if let Err(error) = api.patch(&name, &PatchParams::default(), &patch).await {
                let error = words_of(&error);
                tracing::info!(token = name, error, "the use of a token was not noted");
            }
            own.last_uses.end();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_is_noted_once_in_ten_minutes() {
        let uses = LastUses::default();
        assert!(uses.begin("a", 1_000_000) && uses.begin("b", 1_000_000));
        uses.end();
        assert!(!uses.begin("a", 1_000_000 + PRECISION_MILLIS - 1));
        assert!(uses.begin("a", 1_000_000 + PRECISION_MILLIS));
    }

    #[test]
    fn few_are_written_at_once() {
        let uses = LastUses::default();
        assert!((0..WRITING_MAX).all(|n| uses.begin(&n.to_string(), 0)));
        assert!(!uses.begin("late", 0));
        uses.end();
        assert!(uses.begin("late", 0));
    }

    #[test]
    fn what_was_never_used_is_not_recent() {
        let at = "2026-01-01T00:00:00Z";
        let millis = at.parse::<Timestamp>().unwrap().as_millisecond();
        assert!(is_recent(at, millis + PRECISION_MILLIS - 1));
        assert!(!is_recent(at, millis + PRECISION_MILLIS) && !is_recent("", millis));
    }
}
