//! Reads settings: the value in force, without waiting.

use std::sync::Arc;

use api_management::{Setting, setting};
use controller::{Reflector, Reflectors, Whole};

/// The settings of the server, updated by a watch. Cheap to clone.
#[derive(Clone)]
pub struct Settings(Arc<Reflector<Whole<Setting>>>);

impl Settings {
    /// The settings from a shared watch.
    pub fn new(reflectors: &Reflectors) -> Self {
        Self(reflectors.get())
    }
    /// The watch itself, for code that reacts to changes.
    pub fn reflector(&self) -> &Arc<Reflector<Whole<Setting>>> {
        &self.0
    }
    /// The value in force; empty when there is no such setting.
    pub fn get(&self, name: &str) -> String {
        self.0.named(name).map(|setting| setting.effective().to_owned()).unwrap_or_default()
    }
    /// A number of minutes, with or without a fraction, as milliseconds; `None` when it is no
    /// number.
    pub fn minutes_as_millis(&self, name: &str) -> Option<i64> {
        setting::minutes_as_millis(&self.get(name))
    }
    /// The lifetime of a token for which `requested` milliseconds were requested: at most the limit
    /// in auth-token-max-ttl-minutes. 0 means "unlimited", in both.
    pub fn token_ttl_millis(&self, requested: i64) -> i64 {
        let cap = self.minutes_as_millis(setting::AUTH_TOKEN_MAX_TTL_MINUTES).unwrap_or_default();
        match requested.max(0) {
            requested if cap == 0 => requested,
            0 => cap,
            requested => requested.min(cap),
        }
    }
    /// The URL of the server, without a trailing slash. Empty when it was not set.
    pub fn server_url(&self) -> String {
        self.get(setting::SERVER_URL).trim_end_matches('/').to_owned()
    }
    /// Waits until all settings have been read once.
    pub async fn synced(&self) {
        self.0.synced().await;
    }
}
