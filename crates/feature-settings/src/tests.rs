//! Defaults, the environment and who may change what, without a server.

use api_management::Setting;
use api_management::setting::ValueType;
use serde_json::json;

use crate::setting::{change, defaults};
use crate::{SettingsConfig, from_env};

fn stored(value: &str, default: &str, source: &str) -> Setting {
    let [value, default, source] = [value, default, source].map(str::to_owned);
    Setting { value, default, source, ..Setting::default() }
}

#[test]
fn a_new_release_changes_the_default_and_not_what_somebody_set() {
    assert_eq!(change(&stored("mine", "old", "db"), "new", None), Some(json!({"default": "new"})));
    assert_eq!(change(&stored("mine", "new", "db"), "new", None), None);
}

#[test]
fn the_environment_wins_and_leaves_nothing_behind() {
    let set = change(&stored("mine", "d", "db"), "d", Some("env"));
    assert_eq!(set, Some(json!({"value": "env", "source": "env"})));
    assert_eq!(change(&stored("env", "d", "env"), "d", Some("env")), None);
    let unset = change(&stored("env", "d", "env"), "d", None);
    assert_eq!(unset, Some(json!({"value": "", "source": "default"})));
}

#[test]
fn only_known_settings_are_taken_from_the_environment() {
    let vars = [("CATTLE_SERVER_URL", "https://a"), ("CATTLE_NODE_NAME", "n"), ("PATH", "/bin")];
    let env = from_env(vars.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(env.into_iter().collect::<Vec<_>>(), [("server-url".into(), "https://a".into())]);
}

#[test]
fn every_default_is_of_the_type_of_its_setting() {
    let config = SettingsConfig {
        server_url: "https://drover.example".to_owned(),
        agent_image: "drover-agent:1".to_owned(),
        ..SettingsConfig::default()
    };
    for (name, default) in defaults(&config).into_iter().filter(|(_, value)| !value.is_empty()) {
        assert_eq!(ValueType::of(name).check(&default), Ok(()), "{name}");
    }
}

#[test]
fn the_authority_is_kept_without_a_newline_at_its_end() {
    let config = SettingsConfig { ca_certs: "PEM\n".to_owned(), ..SettingsConfig::default() };
    assert_eq!(defaults(&config)["cacerts"], "PEM");
}

#[tokio::test]
async fn people_cannot_change_what_the_server_or_its_environment_says() {
    use feature_kit::{Admit, Review, ReviewOperation};
    let refused = async |name: &'static str, user: &'static str, source: &'static str| {
        let old = json!({"value": "a", "source": source});
        let new = json!({"value": "b"});
        let review = Review {
            operation: ReviewOperation::Update,
            user,
            groups: &[],
            namespace: "",
            name,
            dry_run: false,
            object: Some(&new),
            old: Some(&old),
        };
        crate::setting::SettingRules.admit(&review).await.is_err()
    };
    assert!(refused("cacerts", "u-1", "default").await);
    assert!(refused("server-url", "u-1", "env").await);
    assert!(!refused("server-url", "u-1", "db").await);
    assert!(!refused("cacerts", "system:drover:server", "default").await);
}
