//! `drover wait`, and `--wait` of commands that start something.

use std::str::FromStr;
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::api::{self, Api, id, text};
use crate::args::WaitCommandArgs;
use crate::checklist::Checklist;
use crate::error::{CliError, Failure};
use crate::types::Type;

/// Poll interval.
pub const POLL_EVERY: Duration = Duration::from_millis(200);

/// The state that is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Goal {
    /// The field at this path has this value.
    Field {
        path: String,
        value: String,
    },
    Condition {
        kind: String,
        status: String,
    },
    Deleted,
}

impl Goal {
    /// The goal of being active.
    pub fn active() -> Self {
        Self::Field { path: "state".to_owned(), value: "active".to_owned() }
    }

    fn holds(&self, object: &Value) -> bool {
        match self {
            Self::Field { path, value } => {
                let found = path.split('.').fold(object, |at, part| &at[part]);
                match found {
                    Value::Null => false,
                    Value::String(text) => text == value,
                    other => value.parse().is_ok_and(|expected: Value| *other == expected),
                }
            }
            Self::Condition { kind, status } => {
                let mut all = object["conditions"].as_array().into_iter().flatten();
                all.any(|one| text(one, "type") == kind && text(one, "status") == status)
            }
            Self::Deleted => false,
        }
    }
}

impl std::fmt::Display for Goal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Field { path, value } => write!(f, "{path}={value}"),
            Self::Condition { kind, status } => write!(f, "condition={kind}={status}"),
            Self::Deleted => f.write_str("deleted"),
        }
    }
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (left, right) = match text.split_once('=') {
            None if ["deleted", "delete"].contains(&text) => return Ok(Self::Deleted),
            Some((left, right)) if !left.is_empty() && !right.is_empty() => (left, right),
            _ => {
                return Err(
                    "must be FIELD=VALUE, condition=TYPE, condition=TYPE=STATUS or deleted"
                        .to_owned(),
                );
            }
        };
        if left != "condition" {
            return Ok(Self::Field { path: left.to_owned(), value: right.to_owned() });
        }
        let (kind, status) = right.split_once('=').unwrap_or((right, "True"));
        Ok(Self::Condition { kind: kind.to_owned(), status: status.to_owned() })
    }
}

/// Waits until an object has a state or condition, or is removed.
///
/// # Errors
/// The type does not exist, or the timeout has passed.
pub async fn run(args: WaitCommandArgs) -> Result<(), CliError> {
    let api = Api::open(args.server.name())?;
    let kind = Type::find(&api, &args.kind).await?;
    let found = match api.resolve(&kind.as_named(), &args.name).await {
        Err(error) if error.failure == Failure::NotFound && args.goal == Goal::Deleted => {
            return Ok(());
        }
        other => other?,
    };
    until(&api, &kind.plural, &found, &args.goal, args.timeout).await.map(|_| ())
}

/// Waits until the goal is reached, with progress at a terminal. Returns the last state of the
/// object; null if it was to be deleted and is.
pub async fn until(
    api: &Api,
    plural: &str,
    object: &Value,
    goal: &Goal,
    timeout: Duration,
) -> Result<Value, CliError> {
    let title = format!("{} \"{}\"", text(object, "type"), api::name(object));
    let mut steps = Checklist::on_terminal();
    steps.begin(&format!("{title}: {goal}"));
    let result = poll_until(api, plural, object, goal, timeout, &mut steps).await;
    match &result {
        Ok(_) => steps.done(""),
        Err(_) => steps.fail(),
    }
    result.map_err(|error| error.during(&title))
}

async fn poll_until(
    api: &Api,
    plural: &str,
    object: &Value,
    goal: &Goal,
    timeout: Duration,
    steps: &mut Checklist<std::io::Stderr>,
) -> Result<Value, CliError> {
    let deadline = Instant::now() + timeout;
    loop {
        let last = match api.get(plural, id(object), "reading it").await {
            Ok(now) if goal.holds(&now) => return Ok(now),
            Ok(now) => describe(&now),
            // A caller that may no longer see it gets 403.
            Err(error)
                if *goal == Goal::Deleted
                    && matches!(error.failure, Failure::NotFound | Failure::Forbidden) =>
            {
                return Ok(Value::Null);
            }
            Err(error) if error.failure == Failure::Unreachable => error.message,
            Err(error) => return Err(error),
        };
        steps.detail(&last);
        if Instant::now() >= deadline {
            let text = format!("not {goal} within {} s; last: {last}", timeout.as_secs());
            let hint = format!(
                "wait longer by --timeout; \"drover inspect {plural} {}\" shows all",
                id(object)
            );
            return Err(CliError::new(Failure::Timeout, text).hint(hint));
        }
        sleep(POLL_EVERY).await;
    }
}

/// The state of an object, and what blocks it.
fn describe(object: &Value) -> String {
    let state = match text(object, "state") {
        "" => "it has no state",
        state => state,
    };
    match text(object, "transitioningMessage") {
        "" => state.to_owned(),
        message => format!("{state} ({message})"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn goals_are_parsed_and_evaluated() {
        let object = json!({
            "state": "active", "nodeCount": 3, "spec": {"ready": true}, "absent": null,
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "Full", "status": "False"}],
        });
        for (goal, holds) in [
            ("state=active", true),
            ("state=removing", false),
            ("nodeCount=3", true),
            ("spec.ready=true", true),
            ("spec.ready.deeper=true", false),
            ("absent=null", false),
            ("condition=Ready", true),
            ("condition=Full", false),
            ("condition=Full=False", true),
            ("deleted", false),
        ] {
            assert_eq!(goal.parse::<Goal>().unwrap().holds(&object), holds, "{goal}");
            assert!(!goal.parse::<Goal>().unwrap().holds(&json!("text")), "{goal}");
        }
        for wrong in ["", "active", "=x", "state="] {
            assert!(wrong.parse::<Goal>().is_err(), "{wrong}");
        }
        let goal: Goal = "condition=Ready".parse().unwrap();
        assert_eq!(goal.to_string().parse::<Goal>().unwrap(), goal);
    }
}
