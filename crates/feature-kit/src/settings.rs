//! Reading settings: the value that holds now, without waiting.

use std::sync::Arc;

use api_management::{Setting, setting};
use controller::{Reflector, Reflectors, Whole};

/// The settings of the server, kept current by a watch. Cheap to clone.
#[derive(Clone)]
pub struct Settings(Arc<Reflector<Whole<Setting>>>);

impl Settings {
    pub fn new(reflectors: &Reflectors) -> Self {
        Self(reflectors.get())
    }
    /// The watch behind it, for those who act on changes.
    pub fn reflector(&self) -> &Arc<Reflector<Whole<Setting>>> {
        &self.0
    }
    /// The value that holds; empty when there is no such setting.
    pub fn get(&self, name: &str) -> String {
        self.0.named(name).map(|setting| setting.effective().to_owned()).unwrap_or_default()
    }
    /// A number of minutes, with a fraction or not, as milliseconds; `None` when it is no number.
    pub fn minutes_as_millis(&self, name: &str) -> Option<i64> {
        setting::minutes_as_millis(&self.get(name))
    }
    /// How long a token may hold when `requested` milliseconds are asked for: at most the cap in
    /// auth-token-max-ttl-minutes. 0 stands for "for ever", in both.
    pub fn token_ttl_millis(&self, requested: i64) -> i64 {
        let cap = self.minutes_as_millis(setting::AUTH_TOKEN_MAX_TTL_MINUTES).unwrap_or_default();
        match requested.max(0) {
            requested if cap == 0 => requested,
            0 => cap,
            requested => requested.min(cap),
        }
    }
    /// The URL under which the server is known, without a slash at its end. Empty when nobody set it.
    pub fn server_url(&self) -> String {
        self.get(setting::SERVER_URL).trim_end_matches('/').to_owned()
    }
    /// Waits until all settings have been read once.
    pub async fn synced(&self) {
        self.0.synced().await;
    }
}
