//! The format of stored values, the keys that open them, and the rotation of keys.

use std::sync::Arc;

use bytes::Bytes;
use tempfile::TempDir;

use super::envelope::{OVERHEAD, OpenError, Sealer};
use super::{Encrypted, EncryptionError, EncryptionKeys, KeyFileError, Rewritten, is_encrypted};
use crate::embedded::{EmbeddedConfig, EmbeddedStorage};
use crate::{Expect, RangeRequest, Storage, StorageError};

const KEY: &str = "/registry/secrets/default/s";
const VALUE: &[u8] = b"{\"data\":{\"password\":\"canary\"}}";

/// A line of a key file, derived from a letter.
fn line(letter: u8) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode([letter; 32])
}

fn keys(letters: &[u8]) -> EncryptionKeys {
    let lines: Vec<_> = letters.iter().map(|letter| line(*letter)).collect();
    EncryptionKeys::parse(&lines.join("\n")).unwrap()
}

fn embedded() -> (Arc<EmbeddedStorage>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (EmbeddedStorage::open(folder.path(), EmbeddedConfig::default()).unwrap(), folder)
}

#[test]
fn a_value_opens_under_its_key_alone() {
    let sealer = Sealer::new(keys(b"a"));
    let sealed = sealer.seal(KEY, VALUE);
    assert_eq!(sealed.len(), VALUE.len() + OVERHEAD);
    assert!(!sealed.windows(6).any(|window| window == b"canary"));
    assert_eq!(sealer.open(KEY, &sealed).unwrap(), VALUE);
    assert_eq!(sealer.open("/registry/secrets/default/t", &sealed), Err(OpenError::Damaged));
    let restarted = Sealer::new(keys(b"a"));
    assert_eq!(restarted.open(KEY, &sealed).unwrap(), VALUE);
    assert_ne!(restarted.seal(KEY, VALUE), sealer.seal(KEY, VALUE));
}

#[test]
fn no_byte_of_a_sealed_value_can_change() {
    let sealer = Sealer::new(keys(b"a"));
    let sealed = sealer.seal(KEY, VALUE);
    for at in 0..sealed.len() {
        let mut changed = sealed.to_vec();
        changed[at] ^= 1;
        let changed = Bytes::from(changed);
        let opened = sealer.open(KEY, &changed);
        // Without its first bytes it is no sealed value, but a plain value that replaced it.
        assert!(opened.is_err() || (at < 4 && opened.as_ref() == Ok(&changed)), "byte {at}");
    }
    for size in 4..sealed.len() {
        assert_eq!(sealer.open(KEY, &sealed.slice(..size)).ok(), None, "cut to {size} bytes");
    }
}

#[test]
fn an_unusable_key_file_reports_the_line() {
    let refused = |text: &str| EncryptionKeys::parse(text).map(|keys| keys.ids().count());
    assert_eq!(refused("# none\n\n"), Err(KeyFileError::Empty));
    assert_eq!(refused(&format!("{}\nshort\n", line(1))), Err(KeyFileError::NotAKey { line: 2 }));
    assert_eq!(refused("AAAA"), Err(KeyFileError::NotAKey { line: 1 }));
    let twice = format!("# a\n{0}\n\n{0}\n", line(1));
    assert_eq!(refused(&twice), Err(KeyFileError::Repeated { line: 4 }));
    let many: Vec<_> = (0..20).map(line).collect();
    assert_eq!(refused(&many.join("\n")), Err(KeyFileError::TooMany));
    assert_eq!(refused(&EncryptionKeys::generate_file()), Ok(1));
}

#[test]
fn keys_do_not_show() {
    let text = EncryptionKeys::generate_file();
    let secret = text.lines().last().unwrap();
    let shown = format!("{:?}", EncryptionKeys::parse(&text).unwrap());
    assert!(!shown.contains(secret) && shown.len() < 30, "{shown}");
}

#[tokio::test]
async fn another_key_opens_nothing_and_reports_the_missing_one() {
    let (inner, _folder) = embedded();
    assert!(!is_encrypted(&*inner).await.unwrap());
    let first = Encrypted::open(inner.clone(), keys(b"a")).await.unwrap();
    first.put(KEY, VALUE.into(), Expect::Absent, None).await.unwrap();
    assert!(is_encrypted(&*inner).await.unwrap());

    let refused = Encrypted::open(inner.clone(), keys(b"bc")).await.unwrap_err();
    let EncryptionError::UnknownKey { needed, given } = &refused else { panic!("{refused}") };
    assert_eq!(*needed, first.write_key_id());
    assert_eq!(given.split(", ").count(), 2);
    // A process that lost a key later, when another process had written the check.
    let both = Encrypted::open(inner.clone(), keys(b"ba")).await.unwrap();
    both.put("/other", VALUE.into(), Expect::Absent, None).await.unwrap();
    let unreadable = first.get("/other", None).await.unwrap_err();
    let StorageError::Failed { reason } = &unreadable else { panic!("{unreadable}") };
    assert!(reason.contains("\"/other\"") && reason.contains(&both.write_key_id()), "{reason}");
}

#[tokio::test]
async fn a_value_that_was_moved_to_another_key_is_refused() {
    let (inner, _folder) = embedded();
    let storage = Encrypted::open(inner.clone(), keys(b"a")).await.unwrap();
    storage.put(KEY, VALUE.into(), Expect::Absent, None).await.unwrap();
    let sealed = inner.get(KEY, None).await.unwrap().1.unwrap().value;
    inner.put("/registry/configmaps/default/mine", sealed, Expect::Absent, None).await.unwrap();
    let read = storage.get("/registry/configmaps/default/mine", None).await;
    assert!(matches!(&read, Err(StorageError::Failed { reason }) if reason.contains("tampered")));
}

#[tokio::test]
async fn plain_values_are_read_and_sealed_and_keys_change_by_rewriting() {
    let hour = std::time::Duration::from_secs(3600);
    let (inner, _folder) = embedded();
    for number in 0..250 {
        inner.put(&format!("/k/{number:03}"), VALUE.into(), Expect::Absent, None).await.unwrap();
    }
    inner.put("/event", VALUE.into(), Expect::Absent, Some(hour)).await.unwrap();

    let storage = Encrypted::open(inner.clone(), keys(b"a")).await.unwrap();
    let all = |storage: Arc<dyn Storage>| async move {
        let list = storage.range(RangeRequest::prefix("/")).await.unwrap();
        list.items.into_iter().filter(|item| !item.key.starts_with("/encryption/"))
    };
    assert!(all(storage.clone()).await.all(|item| item.value == VALUE));
    let mut steps = 0;
    let done = storage.rewrite(|_| steps += 1).await.unwrap();
    assert_eq!((done, steps), (Rewritten { seen: 252, rewritten: 251 }, 3));
    assert!(all(inner.clone()).await.all(|item| item.value != VALUE));
    assert_eq!(storage.rewrite(|_| ()).await.unwrap(), Rewritten { seen: 252, rewritten: 0 });

    let rotated = Encrypted::open(inner.clone(), keys(b"ba")).await.unwrap();
    // Dropped during the rewrite, which loses nothing.
    let half = std::cell::Cell::new(false);
    let begun = rotated.rewrite(|_| half.set(true));
    let until_half = async {
        while !half.get() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        done = begun => panic!("nobody stopped it: {done:?}"),
        () = until_half => {}
    }
    let rest = rotated.rewrite(|_| ()).await.unwrap();
    assert!(rest.rewritten > 0 && rest.rewritten < 252, "{rest:?}");
    let alone = Encrypted::open(inner.clone(), keys(b"b")).await.unwrap();
    let items: Vec<_> = all(alone.clone()).await.collect();
    assert_eq!(items.len(), 251);
    assert!(items.iter().all(|item| item.value == VALUE));
    let left = alone.expiring().await.unwrap();
    assert!(left.len() == 1 && left[0].0 == "/event" && left[0].1 > hour / 2, "{left:?}");
}
