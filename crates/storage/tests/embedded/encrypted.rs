//! The encrypted storage over files: what an attacker with all files can read.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use storage::embedded::{EmbeddedConfig, EmbeddedStorage};
use storage::encryption::{Encrypted, EncryptionKeys};
use storage::{Expect, RangeRequest, Storage};
use tempfile::TempDir;

/// Occurs in every value, and only there.
const CANARY: &str = "canary-5f1c09";

fn keys() -> EncryptionKeys {
    EncryptionKeys::parse(&EncryptionKeys::generate_file()).expect("it is a key file")
}

/// Like `super::empty`, encrypted, and without the mark of encryption: the cases list all keys.
pub async fn empty() -> (Arc<dyn Storage>, TempDir) {
    let (inner, dir) = super::empty();
    let storage = Encrypted::open(inner.clone(), keys()).await.expect("it is new");
    let mark = inner.range(RangeRequest::prefix("/")).await.expect("reads work").items.remove(0);
    inner.delete(&mark.key, mark.mod_revision).await.expect("nobody else writes");
    (storage, dir)
}

/// Checks every file of the folder in its current state, which is the state after a kill of the
/// process.
fn assert_nothing_shows(folder: &Path) {
    let mut files = 0;
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be listed").path();
        let bytes = std::fs::read(&path).expect("it can be read");
        let found = bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes());
        assert!(!found, "{} shows a value", path.display());
        files += 1;
    }
    assert!(files > 0, "no file was looked at");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_file_shows_a_value_at_any_time() {
    let folder = tempfile::tempdir().expect("there is room for a test");
    let inner = EmbeddedStorage::open(folder.path(), EmbeddedConfig::default());
    let inner = inner.expect("an empty directory opens");
    let storage = Encrypted::open(inner.clone(), keys()).await.expect("it is new");
    let value = |number: usize| format!("{{\"token\":\"{CANARY}-{number}\"}}").repeat(40);
    for number in 0..60 {
        let key = format!("/registry/secrets/{number}");
        let ttl = (number % 3 == 0).then_some(Duration::from_secs(1));
        let put = storage.put(&key, value(number).into(), Expect::Absent, ttl).await;
        let put = put.expect("the key is new");
        let expect = Expect::Revision(put.mod_revision);
        let put = storage.put(&key, value(number + 1).into(), expect, ttl).await;
        let put = put.expect("nobody else writes");
        if number % 2 == 0 {
            storage.delete(&key, put.mod_revision).await.expect("nobody else writes");
        }
    }
    assert_nothing_shows(folder.path());
    storage.compact(storage.revision().await.expect("it is open")).await.expect("it is reached");
    assert_nothing_shows(folder.path());
    inner.close();
    assert_nothing_shows(folder.path());

    // The search finds plain values that were written before encryption.
    let inner = EmbeddedStorage::open(folder.path(), EmbeddedConfig::default());
    let inner = inner.expect("it was closed");
    inner.put("/plain", CANARY.into(), Expect::Absent, None).await.expect("the key is new");
    inner.close();
    let plain = std::panic::catch_unwind(|| assert_nothing_shows(folder.path()));
    assert!(plain.is_err(), "the search sees nothing");
}
