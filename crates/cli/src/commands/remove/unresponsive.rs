//! The message on a cluster that does not respond before it is removed or detached, and the choice
//! of the user. Pure except for [`decide`], which prompts.

use api_management::cluster::{CONNECTED, LEFTOVERS, PENDING, REMOVAL_WAIT_MAX};
use api_management::keys::SYSTEM_NS;
use jiff::Timestamp;
use serde_json::Value;

use crate::api::text;
use crate::error::{CliError, Failure};
use crate::output::age;
use crate::prompt;

/// What to do about a cluster that does not respond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Wait for it until the server ends the wait.
    Wait,
    /// End now and leave what cannot be deleted.
    Force,
    /// Like `Force`, and also leave machines that Drover created.
    Detach,
}

/// Since when a cluster does not respond, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence {
    since: String,
    why: String,
}

impl Silence {
    /// None for a cluster that responds, and for one without an agent so far: nothing was created
    /// in it.
    pub fn of(cluster: &Value) -> Option<Self> {
        let find = |kind: &str| {
            let mut conditions = cluster["conditions"].as_array().into_iter().flatten();
            conditions.find(|condition| text(condition, "type") == kind)
        };
        let is_true = |kind: &str| find(kind).is_some_and(|it| text(it, "status") == "True");
        if !is_true(PENDING) || is_true(CONNECTED) {
            return None;
        }
        let connected = find(CONNECTED).cloned().unwrap_or_default();
        Some(Self {
            since: text(&connected, "lastTransitionTime").to_owned(),
            why: text(&connected, "message").to_owned(),
        })
    }

    /// The message: since when, why, and what stays. `shown`: name and id of the cluster.
    pub fn describe(&self, shown: &str, now: Timestamp) -> String {
        let since = match age(&self.since, now) {
            age if age.is_empty() => String::new(),
            age => format!(" since {} ({age})", self.since),
        };
        let why = if self.why.is_empty() { "its agent is not connected" } else { &self.why };
        let mut lines = vec![
            format!("cluster {shown} does not respond{since}: {why}"),
            "objects that Drover created in it cannot be deleted now; without the cluster these stay in it:"
                .to_owned(),
        ];
        lines.extend(LEFTOVERS.map(|(kind, name)| match kind {
            "Namespace" => format!("  {kind} {name}, with the agent, its key and its credentials"),
            _ => format!("  {kind} {name}"),
        }));
        lines.push("  the roles and bindings of users, with the label drover.io/owned".to_owned());
        lines.push(format!(
            "to delete them later, in the cluster: kubectl delete namespace {SYSTEM_NS}"
        ));
        lines.join("\n")
    }
}

/// The effect of each choice, with its flags.
fn choices(command: &str, name: &str) -> String {
    let minutes = REMOVAL_WAIT_MAX.as_secs() / 60;
    let mut lines = vec![
        format!(
            "  wait    --wait: wait up to {minutes} minutes for the cluster; after that the server ends \
             as with --force"
        ),
        "  force   --force: end now; the report lists what stays in the cluster".to_owned(),
    ];
    if command == "rm" {
        lines.push(format!(
            "  detach  drover cluster detach {name} --force: as force, and a cluster that Drover made \
             keeps its machines"
        ));
    }
    lines.join("\n")
}

/// The choice of the flags, else of the user at a prompt. `--yes` does not make this choice.
///
/// # Errors
/// There is no terminal to prompt at, or nothing was chosen. Nothing was changed.
pub fn decide(
    flags: (bool, bool),
    yes: bool,
    command: &str,
    name: &str,
) -> Result<Choice, CliError> {
    match flags {
        (true, _) => return Ok(Choice::Force),
        (_, true) => return Ok(Choice::Wait),
        _ => {}
    }
    let offered_choices = choices(command, name);
    if yes || !prompt::is_interactive() {
        let text = format!("cluster {name} does not respond; choose what to do about it");
        return Err(
            CliError::new(Failure::Unreachable, text).hint(format!("one of:\n{offered_choices}"))
        );
    }
    notify!("{offered_choices}");
    let offered = if command == "rm" { "wait, force, detach" } else { "wait, force" };
    let input = prompt::line(&format!("{offered} or nothing"), "--wait or --force")?;
    parse_choice(&input, command == "rm")
        .ok_or_else(|| CliError::new(Failure::Other, "nothing was changed"))
}

/// Parses the input as a whole word: one mistyped letter must not remove a cluster.
fn parse_choice(input: &str, may_detach: bool) -> Option<Choice> {
    match input.trim().to_ascii_lowercase().as_str() {
        "wait" => Some(Choice::Wait),
        "force" => Some(Choice::Force),
        "detach" if may_detach => Some(Choice::Detach),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cluster(pending: &str, connected: &str) -> Value {
        json!({"conditions": [
            {"type": "Pending", "status": pending},
            {"type": "Connected", "status": connected, "message": "cluster agent is not connected",
             "lastTransitionTime": "2024-01-01T00:00:00Z"},
        ]})
    }

    #[test]
    fn only_a_cluster_that_joined_and_is_not_connected_does_not_respond() {
        assert!(Silence::of(&cluster("True", "False")).is_some());
        assert!(Silence::of(&cluster("True", "True")).is_none());
        assert!(Silence::of(&cluster("Unknown", "Unknown")).is_none());
        assert!(Silence::of(&json!({})).is_none());
    }

    #[test]
    fn an_unresponsive_cluster_is_described_with_since_when_and_what_stays() {
        let now = "2024-01-01T00:04:00Z".parse().unwrap();
        let silence = Silence::of(&cluster("True", "False")).unwrap();
        insta::assert_snapshot!(silence.describe("edge (c-1)", now), @r"
        cluster edge (c-1) does not respond since 2024-01-01T00:00:00Z (4m): cluster agent is not connected
        objects that Drover created in it cannot be deleted now; without the cluster these stay in it:
          Namespace cattle-system, with the agent, its key and its credentials
          ClusterRole drover-cluster-agent
          ClusterRoleBinding drover-cluster-agent
          the roles and bindings of users, with the label drover.io/owned
        to delete them later, in the cluster: kubectl delete namespace cattle-system
        ");
    }

    #[test]
    fn without_a_flag_nobody_decides_for_the_user() {
        assert_eq!(decide((true, false), true, "rm", "edge").unwrap(), Choice::Force);
        assert_eq!(decide((false, true), true, "rm", "edge").unwrap(), Choice::Wait);
        let error = decide((false, false), true, "rm", "edge").unwrap_err();
        assert_eq!(error.failure, Failure::Unreachable);
        let hint = error.hint.unwrap_or_default();
        for flag in ["--wait", "--force", "drover cluster detach edge --force"] {
            assert!(hint.contains(flag), "{flag}: {hint}");
        }
    }

    #[test]
    fn only_whole_words_are_a_choice() {
        assert_eq!(parse_choice(" Force\n", true), Some(Choice::Force));
        assert_eq!(parse_choice("detach", true), Some(Choice::Detach));
        assert_eq!(parse_choice("detach", false), None);
        for other in ["", "f", "y", "yes"] {
            assert_eq!(parse_choice(other, true), None, "{other}");
        }
    }
}
