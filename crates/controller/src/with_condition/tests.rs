//! What the condition says after each run.

use kube::core::Status;

use super::*;
use crate::Truth;

const NEXT_STEP: &str = "apply the manifest again";

fn rejected(code: u16) -> Result<Outcome, ReconcileError> {
    let status = Status { code, message: "no".to_owned(), ..Status::default() };
    Err(ReconcileError::Api {
        attempt: "create clusterrole \"a\"".to_owned(),
        source: Box::new(kube::Error::Api(Box::new(status))),
    })
}

fn after(progress: &mut Progress, result: Result<Outcome, ReconcileError>) -> Option<Truth> {
    progress.state_after(&result, NEXT_STEP).map(|state| state.truth)
}

#[test]
fn a_rejection_is_reported_at_once_with_the_next_step() {
    let mut progress = Progress::default();
    let state = progress.state_after(&rejected(422), NEXT_STEP).unwrap();
    assert_eq!((state.truth, state.reason.as_str()), (Truth::False, FAILED));
    assert!(state.message.starts_with("could not create clusterrole \"a\""), "{}", state.message);
    assert!(state.message.ends_with("; apply the manifest again"), "{}", state.message);
    assert_eq!(after(&mut progress, Ok(Outcome::Done)), Some(Truth::True));
}

#[test]
fn a_failure_that_the_next_try_may_cure_is_reported_when_it_lasts() {
    let mut progress = Progress::default();
    for code in [403, 503] {
        assert_eq!(after(&mut progress, rejected(code)), None);
    }
    assert_eq!(after(&mut progress, rejected(503)), Some(Truth::False));
    assert_eq!(after(&mut progress, Ok(Outcome::Done)), Some(Truth::True));
    let watch = Err(ReconcileError::other("watch objects of kind Node", "connection reset"));
    assert_eq!(after(&mut progress, watch), None, "failures are counted in a row");
}

#[test]
fn waiting_is_unknown_and_what_only_a_change_cures_is_false() {
    let mut progress = Progress::default();
    let waiting = Ok(Outcome::WaitingFor("the namespace".to_owned()));
    assert_eq!(after(&mut progress, waiting), Some(Truth::Unknown));
    let terminal = Ok(Outcome::Terminal("no such role".to_owned()));
    assert_eq!(after(&mut progress, terminal), Some(Truth::False));
}
