//! Kills a process that writes, at any moment, and checks its files.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use storage::embedded::{EmbeddedConfig, EmbeddedStorage};
use storage::{Expect, KeyValue, RangeRequest, Revision, Storage, StorageError};

/// Rounds of one test run; `DROVER_SOAK_SECONDS` makes it run longer.
const ROUNDS: usize = 5;
/// Acknowledged writes before the kill, at most.
const WRITES_MAX: u64 = 1500;

/// Ends the process also when the test fails.
struct Writer(Child);

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An acknowledged write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Acknowledged {
    revision: Revision,
    deleted: bool,
    number: u64,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_loses_nothing_acknowledged() {
    let dir = tempfile::tempdir().expect("there is room for a test");
    let soak = std::env::var("DROVER_SOAK_SECONDS").ok().and_then(|text| text.parse().ok());
    let until = Instant::now() + Duration::from_secs(soak.unwrap_or(0));
    let mut acknowledged = BTreeMap::new();
    let mut newest = 0;
    let mut rounds = 0;
    while rounds < ROUNDS || Instant::now() < until {
        rounds += 1;
        let writes = RandomState::new().hash_one(rounds) % WRITES_MAX;
        let written = write_and_kill(dir.path(), writes, &mut acknowledged);
        newest = check(dir.path(), &mut acknowledged, newest.max(written)).await;
    }
    println!("{rounds} kills, {newest} revisions");
}

/// Lets the writer acknowledge `writes` writes, kills it, and collects its output.
fn write_and_kill(
    dir: &Path,
    writes: u64,
    acknowledged: &mut BTreeMap<String, Acknowledged>,
) -> Revision {
    let mut writer = Writer(
        Command::new(env!("CARGO_BIN_EXE_storage-bench"))
            .arg("write")
            .arg(dir)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the writer starts"),
    );
    let output = BufReader::new(writer.0.stdout.take().expect("it is piped"));
    let mut newest = 0;
    for (number, line) in output.lines().enumerate() {
        let line = line.expect("the pipe works");
        if number as u64 == writes {
            let open = EmbeddedStorage::open(dir, EmbeddedConfig::default());
            let pid = format!("process {}", writer.0.id());
            let in_use = |error: &StorageError| error.to_string().contains(&pid);
            assert!(open.as_ref().is_err_and(in_use), "a living process holds the lock: {open:?}");
            writer.0.kill().expect("it is ours");
        }
        // A pipe accepts a short line completely or not at all, so no line is cut.
        let (key, write) = parse(&line).expect("the writer prints its writes");
        newest = newest.max(write.revision);
        let before = acknowledged.insert(key, write);
        assert!(before.is_none_or(|before| before.revision < write.revision), "{line}");
    }
    assert!(newest > 0, "the writer wrote nothing");
    newest
}

fn parse(line: &str) -> Option<(String, Acknowledged)> {
    let mut words = line.split(' ');
    let revision = words.next()?.parse().ok()?;
    let deleted = words.next()? == "delete";
    let key = words.next()?.to_owned();
    let number = words.next()?.parse().ok()?;
    Some((key, Acknowledged { revision, deleted, number }))
}

/// Opens the files: all acknowledged writes are complete, and revisions increase. Each writer may
/// have one more write that was committed and not acknowledged; it counts from now on.
async fn check(
    dir: &Path,
    acknowledged: &mut BTreeMap<String, Acknowledged>,
    newest: Revision,
) -> Revision {
    let started = Instant::now();
    let storage = EmbeddedStorage::open(dir, EmbeddedConfig::default())
        .expect("a dead writer is no obstacle");
    assert!(started.elapsed() < Duration::from_secs(5), "open took {:?}", started.elapsed());
    let states = storage.range(RangeRequest::prefix("/w/")).await.expect("reads work");
    assert!(states.revision >= newest, "revision {newest} was acknowledged");
    let states: BTreeMap<_, _> =
        states.items.into_iter().map(|item| (item.key.to_string(), item)).collect();
    for state in states.values() {
        check_whole(state);
    }
    let mut unanswered = BTreeSet::new();
    for (key, write) in &mut *acknowledged {
        let state = states.get(key);
        let found = Acknowledged {
            revision: state.map_or(write.revision, |state| state.mod_revision),
            deleted: state.is_none(),
            number: state.map_or(write.number, number),
        };
        if found == *write {
            continue;
        }
        let writer = key[..5].to_owned();
        assert!(found.revision >= write.revision, "{key}: {write:?} is lost, {found:?} is there");
        assert!(unanswered.insert(writer), "{key}: {write:?} is lost, {found:?} is there");
        *write = found;
    }
    let number = storage.revision().await.expect("it is open") + 1;
    let put = storage.put(&format!("/next/{number}"), Bytes::new(), Expect::Absent, None).await;
    let put = put.expect("writes work");
    assert!(put.mod_revision > newest, "revision {} was given before", put.mod_revision);
    storage.close();
    check_file(dir);
    put.mod_revision
}

fn number(state: &KeyValue) -> u64 {
    let (number, _) = state.value.split_first_chunk().expect("a value begins with its number");
    u64::from_be_bytes(*number)
}

fn check_whole(state: &KeyValue) {
    let number = number(state);
    let size = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % 12_000;
    assert_eq!(state.value.len() as u64, 8 + size, "{} is cut", state.key);
    assert!(state.value[8..].iter().all(|byte| *byte == number as u8), "{} is torn", state.key);
}

fn check_file(dir: &Path) {
    let file = rusqlite::Connection::open(dir.join("storage.db")).expect("the file opens");
    let result: String = file
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .expect("the file can be checked");
    assert_eq!(result, "ok");
    let orphans = "
        SELECT (SELECT count(*) FROM live WHERE revision NOT IN (SELECT revision FROM data)),
               (SELECT count(*) FROM data WHERE revision NOT IN (SELECT revision FROM live)
                    AND revision NOT IN (SELECT revision FROM changes)
                    AND revision NOT IN (SELECT prev_revision FROM changes)),
               (SELECT count(*) FROM expiry e WHERE NOT EXISTS
                    (SELECT 1 FROM live l WHERE l.key = e.key AND l.deadline = e.deadline))";
    let counts = file.query_row(orphans, [], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
    });
    assert_eq!(counts.expect("the tables are there"), (0, 0, 0), "values and states agree");
}
