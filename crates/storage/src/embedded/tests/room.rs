//! The writer's count of the space on the disk.

use super::*;
use crate::embedded::room::{Load, Room};

#[tokio::test]
async fn a_load_larger_than_the_disk_is_missing_bytes_and_a_small_one_is_not() {
    let dir = dir();
    let storage = EmbeddedStorage::open(dir.path(), config()).unwrap();
    put(&storage, "/k", "x").await;
    let database = dir.path().join("storage.db");
    let connection = rusqlite::Connection::open(&database).unwrap();
    let room = Room::of(&database);
    let missing = |bytes, log_is_free| {
        room.missing(&connection, Load { writes: 1, bytes }, log_is_free).unwrap()
    };
    let one_pebibyte = 1 << 50;
    assert_eq!(missing(1000, false), 0, "there is room for a test");
    assert!(missing(one_pebibyte, false) > one_pebibyte, "it is written to the log and moved");
    assert!(missing(one_pebibyte, true) <= missing(one_pebibyte, false));
    let advice = room.advice(3000);
    assert!(advice.starts_with("free 3 KiB more on the disk of \""), "{advice}");
}
