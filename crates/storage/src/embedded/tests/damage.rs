//! Files that are garbled in the middle: reads return what was written, or an error that says what
//! to do.

use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rand::rngs::StdRng;
use rand::{Rng as _, RngExt as _, SeedableRng as _};

use super::*;
use crate::RangeRequest;

const PAGE: u64 = 4096;
const SECTOR: usize = 512;
const SEEDS: u64 = 80;

/// A storage with some hundred keys of all sizes and some history, closed.
async fn write_sample(dir: &TempDir) -> Vec<KeyValue> {
    let storage = open(dir);
    let mut random = StdRng::seed_from_u64(1);
    for number in 0..400 {
        let mut value = vec![0; random.random_range(0..9000)];
        random.fill_bytes(&mut value);
        put(&storage, &format!("/k/{:03}", number % 300), value).await;
    }
    let all = storage.range(RangeRequest::prefix("/")).await.unwrap().items;
    storage.close();
    all
}

fn garble(file: &Path, random: &mut StdRng) -> String {
    let file = std::fs::OpenOptions::new().read(true).write(true).open(file).unwrap();
    let pages = file.metadata().unwrap().len() / PAGE;
    let page = random.random_range(0..pages) * PAGE;
    let sector = page + (random.random_range(0..PAGE as usize / SECTOR) * SECTOR) as u64;
    let (what, at, bytes) = match random.random_range(0..5) {
        0 => ("page of noise", page, noise(PAGE as usize, random)),
        1 => ("page of zeros", page, vec![0; PAGE as usize]),
        2 => ("sector of noise", sector, noise(SECTOR, random)),
        3 => ("sector of zeros", sector, vec![0; SECTOR]),
        _ => {
            let at = page + random.random_range(0..PAGE);
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).unwrap();
            ("bit", at, vec![byte[0] ^ 1 << random.random_range(0..8)])
        }
    };
    file.write_all_at(&bytes, at).unwrap();
    format!("{what} at {at}")
}

fn noise(length: usize, random: &mut StdRng) -> Vec<u8> {
    let mut bytes = vec![0; length];
    random.fill_bytes(&mut bytes);
    bytes
}

fn names_the_damage(error: &StorageError) -> bool {
    let text = error.to_string();
    text.contains("restore its data directory from a backup")
        || text.contains("not a database")
        || text.contains("another program")
        || text.contains("has format")
}

#[tokio::test]
async fn a_garbled_file_is_refused_and_not_served() {
    let sound = dir();
    let all = write_sample(&sound).await;
    let (mut refused, mut unharmed, mut served) = (0, 0, Vec::new());
    for seed in 0..SEEDS {
        let mut random = StdRng::seed_from_u64(seed);
        let dir = dir();
        let database = dir.path().join("storage.db");
        std::fs::copy(sound.path().join("storage.db"), &database).unwrap();
        let damage = garble(&database, &mut random);
        let storage = match EmbeddedStorage::open(dir.path(), config()) {
            Ok(storage) => storage,
            Err(error) => {
                if !names_the_damage(&error) {
                    served.push(format!("seed {seed}, {damage}: {error}"));
                }
                refused += 1;
                continue;
            }
        };
        match storage.range(RangeRequest::prefix("/")).await {
            Ok(listed) if listed.items == all => unharmed += 1,
            Ok(listed) => served.push(format!("seed {seed}, {damage}: {}", listed.items.len())),
            Err(error) => {
                if !names_the_damage(&error) {
                    served.push(format!("seed {seed}, {damage}: {error}"));
                }
                refused += 1;
            }
        }
    }
    println!("{refused} refused, {unharmed} unharmed");
    assert!(served.is_empty(), "{served:#?}");
    assert!(refused > 0, "nothing was harmed");
}

#[tokio::test]
async fn a_garbled_or_lost_value_is_reported_and_can_be_deleted() {
    for damage in
        ["UPDATE data SET value = x'00' WHERE revision = 2", "DELETE FROM data WHERE revision = 2"]
    {
        let dir = dir();
        let storage = open(&dir);
        let other = put(&storage, "/a", "x").await;
        let harmed = put(&storage, "/b", "as it was").await;
        drop(storage);
        let file = rusqlite::Connection::open(dir.path().join("storage.db")).unwrap();
        file.execute(damage, []).unwrap();
        drop(file);
        let storage = open(&dir);
        let error = storage.get("/b", None).await.unwrap_err();
        assert!(
            names_the_damage(&error) && error.to_string().contains("\"/b\" at revision 2"),
            "{error}"
        );
        assert!(names_the_damage(&storage.range(RangeRequest::prefix("/")).await.unwrap_err()));
        assert_eq!(get(&storage, "/a").await, Some(other.clone()));
        let mut watch = storage.watch("/", 0).await.unwrap();
        assert!(names_the_damage(&events_until(&mut watch, |_| false).await.unwrap_err()));
        let empty = KeyValue { value: Bytes::new(), ..harmed.clone() };
        assert_eq!(storage.delete("/b", harmed.mod_revision).await.unwrap(), (3, empty));
        assert_eq!(storage.range(RangeRequest::prefix("/")).await.unwrap().items, [other]);
    }
}

#[tokio::test]
async fn a_file_from_before_there_were_checksums_is_read_and_gets_them() {
    let dir = dir();
    let storage = open(&dir);
    let old = put(&storage, "/old", "x").await;
    drop(storage);
    let file = rusqlite::Connection::open(dir.path().join("storage.db")).unwrap();
    file.execute_batch("ALTER TABLE data DROP COLUMN checksum").unwrap();
    drop(file);
    let storage = open(&dir);
    assert_eq!(get(&storage, "/old").await, Some(old));
    put(&storage, "/new", "x").await;
    drop(storage);
    let file = rusqlite::Connection::open(dir.path().join("storage.db")).unwrap();
    file.execute("UPDATE data SET value = x'00'", []).unwrap();
    drop(file);
    let storage = open(&dir);
    assert!(storage.get("/old", None).await.is_ok(), "nobody knows what it was");
    assert!(names_the_damage(&storage.get("/new", None).await.unwrap_err()));
}
