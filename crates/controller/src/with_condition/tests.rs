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
    after_at(progress, result, Instant::now())
}

fn after_at(
    progress: &mut Progress,
    result: Result<Outcome, ReconcileError>,
    now: Instant,
) -> Option<Truth> {
    progress.state_after(&result, now, NEXT_STEP).map(|state| state.truth)
}

#[test]
fn a_rejection_is_reported_at_once_with_the_next_step() {
    let mut progress = Progress::default();
    let state = progress.state_after(&rejected(422), Instant::now(), NEXT_STEP).unwrap();
    assert_eq!((state.truth, state.reason.as_str()), (Truth::False, FAILED));
    assert!(state.message.starts_with("could not create clusterrole \"a\""), "{}", state.message);
    assert!(state.message.ends_with("; apply the manifest again"), "{}", state.message);
    assert_eq!(after(&mut progress, Ok(Outcome::Done)), Some(Truth::True));
}

#[test]
fn a_failure_that_the_next_try_may_cure_is_reported_when_it_lasts() {
    let mut progress = Progress::default();
    let watch = || Err(ReconcileError::other("watch objects of kind Node", "forbidden"));
    let start = Instant::now();
    // As fast as a controller tries again.
    for millis in [0, 100, 300, 700, 1500] {
        let now = start + Duration::from_millis(millis);
        assert_eq!(after_at(&mut progress, rejected(403), now), None);
        assert_eq!(after_at(&mut progress, watch(), now), None);
    }
    let late = start + TRANSIENT_MAX;
    assert_eq!(after_at(&mut progress, watch(), late), Some(Truth::False));
    assert_eq!(after_at(&mut progress, rejected(503), late), Some(Truth::False));
    assert_eq!(after_at(&mut progress, Ok(Outcome::Done), late), Some(Truth::True));
    assert_eq!(after_at(&mut progress, watch(), late), None, "failures are counted in a row");
}

#[test]
fn waiting_is_unknown_and_what_only_a_change_cures_is_false() {
    let mut progress = Progress::default();
    let waiting = Ok(Outcome::WaitingFor("the namespace".to_owned()));
    assert_eq!(after(&mut progress, waiting), Some(Truth::Unknown));
    let terminal = Ok(Outcome::Terminal("no such role".to_owned()));
    assert_eq!(after(&mut progress, terminal), Some(Truth::False));
}
