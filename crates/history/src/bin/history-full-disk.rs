//! Fills the small disk that it runs on, under work, and makes room again: `history-full-disk
//! DIRECTORY SEED`.
//!
//! Ends well if the storage refused clearly, answered reads meanwhile, lost nothing, wrote again
//! without a restart, and all that was told is one history.

use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use history::check::check;
use history::record::{Entry, Operation, Outcome, Recorder};
use history::run::{Load, Running};
use storage::embedded::{EmbeddedConfig, EmbeddedStorage};
use storage::{Expect, KeyValue, RangeRequest, Storage, StorageError};

/// Kept for later, to make room with; and so little that a storage cannot open without.
const BALLAST: [(&str, usize); 2] = [("first", 1024 * 1024), ("second", 256 * 1024)];
const FILLER: &str = "filler";
const VALUE_BYTES: usize = 20_000;
const FILLING: &str = "/fill/";
/// Writes that must find room again.
const WRITES_AFTER: usize = 20;
/// Refused meanwhile, because of the work beside.
const REFUSALS_MAX: usize = 10_000;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [directory, seed] = arguments.as_slice() else {
        eprintln!("history-full-disk DIRECTORY SEED");
        return ExitCode::FAILURE;
    };
    match run(Path::new(directory), seed).await {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("seed {seed}: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(directory: &Path, seed: &str) -> Result<String, Box<dyn Error>> {
    for (name, bytes) in BALLAST {
        fs::write(directory.join(name), vec![1; bytes])?;
    }
    let folder = directory.join("data");
    let storage = EmbeddedStorage::open(&folder, EmbeddedConfig::default())?;
    let recorder = Arc::new(Recorder::default());
    let load = Load { seed: seed.parse()?, epoch: 0, clients: 4, steps: 400, watchers: 2 };
    let subject = Arc::clone(&storage);
    let running = Running::begin(subject, Arc::clone(&recorder), 0, load);
    let mut made = Vec::new();
    let refused = fill(&storage, &recorder, &mut made).await?;
    if !refused.contains("space") {
        return Err(format!("it should have told what is missing, not: {refused}").into());
    }
    expect_all(&storage, &made, "while the disk is full").await?;
    fs::remove_file(directory.join(BALLAST[0].0))?;
    let (mut after, mut refused) = (0, 0);
    while after < WRITES_AFTER {
        match put(&storage, made.len()).await {
            Ok(state) => {
                made.push(state);
                after += 1;
            }
            // The work beside may have taken the room for a moment.
            Err(StorageError::Full { .. }) if refused < REFUSALS_MAX => {
                refused += 1;
                tokio::task::yield_now().await;
            }
            Err(error) => return Err(error.into()),
        }
    }
    expect_all(&storage, &made, "after room was made").await?;
    running.finish().await?;
    storage.close();
    fill_disk(directory);
    match EmbeddedStorage::open(&folder, EmbeddedConfig::default()) {
        // What its log and index had was enough.
        Ok(storage) => storage.close(),
        Err(error) if error.to_string().contains("free some and start again") => {}
        Err(error) => return Err(format!("it should have told what to do, not: {error}").into()),
    }
    fs::remove_file(directory.join(BALLAST[1].0))?;
    let storage = EmbeddedStorage::open(&folder, EmbeddedConfig::default())?;
    expect_all(&storage, &made, "after a restart").await?;
    let entries = recorder.finish();
    let full = |entry: &&Entry| matches!(entry, Entry::Told(_, Outcome::Full(_)));
    let full = entries.iter().filter(full).count();
    Ok(format!("{full} refused, {} filled, {:?}", made.len(), check(&entries)?))
}

/// Writes until it is refused, which is written down: history may be forgotten from then on.
/// Answers the words.
async fn fill(
    storage: &EmbeddedStorage,
    recorder: &Recorder,
    made: &mut Vec<KeyValue>,
) -> Result<String, StorageError> {
    loop {
        match put(storage, made.len()).await {
            Ok(state) => made.push(state),
            Err(error @ StorageError::Full { .. }) => {
                let said = error.to_string();
                let (key, value) = (format!("{FILLING}last"), "last".to_owned());
                let number = recorder.ask(Operation::Put { key, value, expected: None });
                recorder.tell(number, error.into());
                return Ok(said);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Leaves not a block.
fn fill_disk(directory: &Path) {
    let Ok(mut file) = fs::File::create(directory.join(FILLER)) else { return };
    while file.write_all(&[1; 512]).is_ok() {}
}

async fn put(storage: &EmbeddedStorage, number: usize) -> Result<KeyValue, StorageError> {
    let value = vec![number as u8; VALUE_BYTES].into();
    storage.put(&format!("{FILLING}{number:06}"), value, Expect::Absent, None).await
}

async fn expect_all(
    storage: &EmbeddedStorage,
    made: &[KeyValue],
    when: &str,
) -> Result<(), Box<dyn Error>> {
    let there = storage.range(RangeRequest::prefix(FILLING)).await?.items;
    if there != made {
        return Err(format!("{when} there are {} of {}", there.len(), made.len()).into());
    }
    Ok(())
}
