//! Settings: values that concern the whole server, with their defaults.
//!
//! Each known setting is an object from the start. Its `default` is ours and follows the release
//! and the configuration; its `value` is the administrator's; a value from the environment wins
//! over both and cannot be changed here ([`setting`]).

pub mod setting;

use std::collections::BTreeMap;
use std::sync::Arc;

use api_management::{Setting, setting as names};
use feature_kit::{Feature, KindRules, ViewSpec};

/// Prefix of environment variables that set a setting: `CATTLE_SERVER_URL` sets `server-url`.
pub const ENV_PREFIX: &str = "CATTLE_";

/// What the server tells of itself.
#[derive(Clone, Debug, Default)]
pub struct SettingsConfig {
    /// URL under which agents and people reach the server, when nobody sets another.
    pub server_url: String,
    /// PEM of the authority that signed the server's certificate; empty for a public one.
    pub ca_certs: String,
    /// The version that clients get; must parse as a version.
    pub server_version: String,
    /// The agent image that fits this server.
    pub agent_image: String,
    /// A random id, made at the first start.
    pub install_uuid: String,
    /// Settings from the environment, by name: see [`from_env`].
    pub env: BTreeMap<String, String>,
}

/// The settings among environment variables.
pub fn from_env(vars: impl IntoIterator<Item = (String, String)>) -> BTreeMap<String, String> {
    let known = setting::defaults(&SettingsConfig::default());
    let by_variable = known
        .keys()
        .map(|name| (format!("{ENV_PREFIX}{}", name.to_ascii_uppercase().replace('-', "_")), name));
    let by_variable: BTreeMap<String, &&'static str> = by_variable.collect();
    let named = vars.into_iter().filter_map(|(variable, value)| {
        let name = by_variable.get(&variable)?;
        (!value.is_empty()).then(|| ((**name).to_owned(), value))
    });
    named.collect()
}

/// The feature; `config` has the defaults and what the environment sets.
pub fn feature(config: &SettingsConfig) -> Feature {
    let rules = KindRules::of::<Setting>().admit_with(Arc::new(setting::SettingRules));
    let seeds = setting::defaults(config).into_iter().map(|(name, default)| {
        setting::seed(name, &default, config.env.get(name).map(String::as_str))
    });
    Feature::new("settings")
        .kind_with(rules)
        .seed(seeds)
        .seed(setting::view::public_rights())
        .view(ViewSpec::new(|_| vec![setting::view::view()]))
}

/// The name of the setting that holds the authority's certificate.
pub const CACERTS: &str = names::CACERTS;

#[cfg(test)]
mod tests;
