//! The condition `Drained` of a node: Unknown while it is being drained, True when its pods have
//! ended, False when a drain ended before that. Absent on nodes that take pods.

use api_management::{Condition, Node, condition, node};
use controller::{
    ConditionState, OwnedCondition, ReconcileError, StatusPatch, StatusTarget, Truth,
};
use kube::Client;
use rest_view::Key;
use serde_json::Value;

use super::task::Ending;

const DRAINED: OwnedCondition = OwnedCondition::of("Node", "Drained");

/// Reason of drains that somebody ended on purpose; all others are failures.
pub const STOPPED: &str = "Stopped";

/// How a drain of which nothing is known came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    Stopped,
    Restart,
}

/// Whether the node is being drained.
pub fn is_draining(conditions: &[Condition]) -> bool {
    condition::find(conditions, node::DRAINED).is_some_and(|found| found.status == "Unknown")
}

/// As it is stored, where the node has one.
pub fn stored(object: &Value) -> Option<&Value> {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().find(|condition| condition["type"] == node::DRAINED)
}

/// As [`is_draining`], of a stored node.
pub fn says_draining(node: &Value) -> bool {
    stored(node).is_some_and(|condition| condition["status"] == "Unknown")
}

/// For a node that takes pods: what was drained of it is of the past.
pub fn removed(patch: StatusPatch) -> StatusPatch {
    patch.without_condition(DRAINED)
}

pub(super) fn draining(progress: String) -> ConditionState {
    ConditionState::unknown("Draining", progress)
}

fn stopped() -> ConditionState {
    ConditionState::no(STOPPED, "Somebody stopped the drain. The node stays cordoned.")
}

pub(super) async fn write(
    writer: &Client,
    node: &Key,
    state: ConditionState,
) -> Result<(), ReconcileError> {
    let target = StatusTarget::of::<Node>(&node.namespace, &node.name);
    StatusPatch::new().condition(DRAINED, state).write(writer, &target).await.map(drop)
}

/// Says how a drain ended: nothing of a node that takes pods again, or is no more.
pub(super) async fn write_ending(
    writer: &Client,
    node: &Key,
    ending: &Ending,
) -> Result<(), ReconcileError> {
    let failed = |text: &str| {
        let text = format!("{text} The node stays cordoned: drain it again, or uncordon it.");
        ConditionState::no(ending.word(), text)
    };
    let state = match ending {
        Ending::Deleted => return Ok(()),
        Ending::Uncordoned => {
            let target = StatusTarget::of::<Node>(&node.namespace, &node.name);
            return removed(StatusPatch::new()).write(writer, &target).await.map(drop);
        }
        Ending::Drained { pods } => ConditionState {
            truth: Truth::True,
            reason: ending.word().to_owned(),
            message: format!("Pods evicted: {pods}."),
        },
        Ending::Stopped => stopped(),
        Ending::CredentialEnded => failed("The login that started the drain has ended."),
        Ending::Refused(text) => failed(&format!("The cluster refused: {text}.")),
        Ending::Obstructed(text) => failed(&format!("These came meanwhile: {text}.")),
        Ending::TimedOut(left) => failed(&format!("It did not end in time: {left}.")),
    };
    write(writer, node, state).await
}

/// Ends what the node says of a drain that does not run.
pub(super) async fn interrupt(
    writer: &Client,
    node: &Key,
    interruption: Interruption,
) -> Result<(), ReconcileError> {
    let state = match interruption {
        Interruption::Stopped => stopped(),
        Interruption::Restart => ConditionState::no(
            "Interrupted",
            "The server was restarted while it drained the node. The node stays cordoned: drain it again, or \
             uncordon it.",
        ),
    };
    let target = StatusTarget::of::<Node>(&node.namespace, &node.name);
    StatusPatch::new().condition(DRAINED, state).write_if(writer, &target, says_draining).await?;
    Ok(())
}
