//! The file: reopening, the lock, foreign and damaged content, closing.

use super::*;
use crate::RangeRequest;

fn reason(opened: Result<Arc<EmbeddedStorage>, StorageError>) -> String {
    opened.expect_err("it should have been refused").to_string()
}

#[tokio::test]
async fn a_reopened_storage_has_what_was_written() {
    let dir = dir();
    let storage = open(&dir);
    let old = put(&storage, "/a", "old").await;
    let new = put(&storage, "/a", "new").await;
    drop(storage);
    let storage = open(&dir);
    assert_eq!(storage.revision().await.unwrap(), 2);
    assert_eq!(get(&storage, "/a").await, Some(new.clone()));
    assert_eq!(storage.get("/a", Some(1)).await.unwrap().1, Some(old));
    let mut watch = storage.watch("/a", 0).await.unwrap();
    let events = events_until(&mut watch, |event| event.revision == 2).await.unwrap();
    assert_eq!(events.len(), 2);
    assert_eq!(storage.delete("/a", new.mod_revision).await.unwrap(), (3, new));
}

#[tokio::test]
async fn revisions_continue_after_all_history_was_compacted() {
    let dir = dir();
    let storage = open(&dir);
    let made = put(&storage, "/a", "1").await;
    storage.delete("/a", made.mod_revision).await.unwrap();
    storage.compact(2).await.unwrap();
    drop(storage);
    let storage = open(&dir);
    assert_eq!(storage.compacted_revision().await.unwrap(), 2);
    assert_eq!(put(&storage, "/a", "2").await.create_revision, 3);
}

#[tokio::test]
async fn a_directory_or_a_file_can_be_named() {
    let dir = dir();
    let file = dir.path().join("deep/inside/own.db");
    drop(EmbeddedStorage::open(&file, config()).unwrap());
    assert!(file.is_file());
    let directory = dir.path().join("deep/other");
    drop(EmbeddedStorage::open(&directory, config()).unwrap());
    assert!(directory.join("storage.db").is_file());
}

#[tokio::test]
async fn the_file_is_for_one_at_a_time_and_for_its_owner_only() {
    let dir = dir();
    let storage = open(&dir);
    let refused = reason(EmbeddedStorage::open(dir.path(), config()));
    let holder = format!("in use by process {}", std::process::id());
    assert!(refused.contains(&holder), "{refused}");
    put(&storage, "/a", "x").await;
    #[cfg(unix)]
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        use std::os::unix::fs::PermissionsExt as _;
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{:?} is readable for others", entry.path());
    }
    storage.close();
    drop(open(&dir));
}

#[tokio::test]
async fn a_file_of_another_program_or_format_is_refused() {
    let dir = dir();
    let database = dir.path().join("storage.db");
    let foreign = rusqlite::Connection::open(&database).unwrap();
    foreign.execute_batch("CREATE TABLE live (a); PRAGMA user_version = 1;").unwrap();
    let refused = reason(EmbeddedStorage::open(dir.path(), config()));
    assert!(refused.contains("another program"), "{refused}");
    drop(foreign);
    std::fs::remove_file(&database).unwrap();
    drop(open(&dir));
    let newer = rusqlite::Connection::open(&database).unwrap();
    newer.pragma_update(None, "user_version", 2).unwrap();
    let refused = reason(EmbeddedStorage::open(dir.path(), config()));
    assert!(refused.contains("format 2"), "{refused}");
    drop(newer);
    std::fs::write(&database, vec![b'x'; 8192]).unwrap();
    let refused = reason(EmbeddedStorage::open(dir.path(), config()));
    assert!(refused.contains("not a database"), "{refused}");
    // A refused file is not held.
    std::fs::remove_file(&database).unwrap();
    drop(open(&dir));
}

#[tokio::test]
async fn a_revision_in_the_history_is_known_to_all_operations() {
    let dir = dir();
    let storage = open(&dir);
    put(&storage, "/a", "x").await;
    // A commit that readers see and the writer has not published yet.
    let file = rusqlite::Connection::open(dir.path().join("storage.db")).unwrap();
    file.execute_batch(
        "BEGIN IMMEDIATE;
         INSERT INTO live (key, revision, create_revision) VALUES ('/b', 2, 2);
         INSERT INTO data (revision, value) VALUES (2, x'');
         INSERT INTO changes VALUES (2, '/b', 2, 0, 0);
         COMMIT;",
    )
    .unwrap();
    let mut watch = storage.watch("/", 0).await.unwrap();
    events_until(&mut watch, |event| event.revision == 2).await.unwrap();
    assert_eq!(storage.revision().await.unwrap(), 2);
    assert!(storage.watch("/", 2).await.is_ok());
}

#[tokio::test]
async fn operations_of_a_closed_storage_fail_with_closed() {
    let dir = dir();
    let storage = open(&dir);
    let mut watch = storage.watch("/", 0).await.unwrap();
    let made = put(&storage, "/a", "x").await;
    storage.close();
    storage.close();
    let events = events_until(&mut watch, |event| event.revision == made.mod_revision).await;
    assert_eq!(events.unwrap().len(), 1, "what was committed is delivered");
    assert!(matches!(watch.next().await, Some(Ok(WatchItem::Progress(1)))));
    assert!(matches!(watch.next().await, Some(Err(StorageError::Closed))));
    assert!(watch.next().await.is_none());
    let closed = |error| matches!(error, StorageError::Closed);
    assert!(storage.revision().await.is_err_and(closed));
    assert!(storage.get("/a", None).await.is_err_and(closed));
    assert!(storage.range(RangeRequest::prefix("/")).await.is_err_and(closed));
    let again = storage.put("/b", Bytes::new(), Expect::Absent, None).await;
    assert!(again.is_err_and(closed));
    assert!(storage.delete("/a", made.mod_revision).await.is_err_and(closed));
    assert!(storage.compact(1).await.is_err_and(closed));
    assert!(storage.watch("/", 0).await.err().is_some_and(closed));
}

#[tokio::test]
async fn closing_finishes_the_writes_that_were_begun() {
    let dir = dir();
    let storage = open(&dir);
    // Fewer than a task can begin before tokio makes it yield.
    let keys: Vec<_> = (0..100).map(|number| format!("/q/{number:03}")).collect();
    let mut puts = Vec::new();
    for key in &keys {
        let mut put = storage.put(key, Bytes::from_static(b"x"), Expect::Absent, None);
        let _ = futures::poll!(&mut put);
        puts.push(put);
    }
    storage.close();
    for put in puts {
        put.await.unwrap();
    }
    drop(storage);
    let wal = dir.path().join("storage.db-wal");
    assert_eq!(std::fs::metadata(wal).map_or(0, |wal| wal.len()), 0, "the log was moved");
    let listed = open(&dir).range(RangeRequest::prefix("/q/")).await.unwrap().items;
    assert_eq!(listed.iter().map(|item| &*item.key).collect::<Vec<_>>(), keys);
}
