//! The embedded storage from outside: conformance, random work, and crashes of a real process.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use storage::Storage;
use storage::conformance::model::{self, Guess, ModelStep};
use storage::embedded::{EmbeddedConfig, EmbeddedStorage};
use tempfile::TempDir;

#[path = "embedded/crash.rs"]
mod crash;
#[path = "embedded/encrypted.rs"]
mod encrypted;

/// An empty storage with a short tick, so that expiry is visible soon.
fn empty() -> (Arc<dyn Storage>, TempDir) {
    let dir = tempfile::tempdir().expect("there is room for a test");
    let config = EmbeddedConfig { tick: Duration::from_millis(10), ..EmbeddedConfig::default() };
    (EmbeddedStorage::open(dir.path(), config).expect("an empty directory opens"), dir)
}

mod conformance {
    storage::conformance_tests!(super::empty());
}

mod conformance_encrypted {
    storage::conformance_tests!(super::encrypted::empty().await);
}

fn guess() -> impl Strategy<Value = Guess> {
    prop_oneof![8 => Just(Guess::Right), 1 => Just(Guess::Absent), 1 => Just(Guess::Wrong)]
}

fn step() -> impl Strategy<Value = ModelStep> {
    prop_oneof![
        14 => (0..8usize, any::<u8>(), guess())
            .prop_map(|(key, value, guess)| ModelStep::Put { key, value, guess }),
        5 => (0..8usize, guess()).prop_map(|(key, guess)| ModelStep::Delete { key, guess }),
        1 => (0..15u64).prop_map(|back| ModelStep::Compact { back }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_work_agrees_with_the_model(steps in prop::collection::vec(step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (storage, _dir) = empty();
        runtime.block_on(model::check(&storage, &steps));
    }
}
