//! Fills the small disk that it runs on while clients work, and frees space again:
//! `history-full-disk DIRECTORY SEED`.
//!
//! Succeeds if the storage refused clearly, served reads meanwhile, lost nothing, accepted writes
//! again without a restart, and all responses are one history.

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

/// Files that are deleted later to free space. The second is so small that a storage cannot open
/// before it is deleted.
const BALLAST: [(&str, usize); 2] = [("first", 1024 * 1024), ("second", 256 * 1024)];
const FILLER: &str = "filler";
const VALUE_BYTES: usize = 20_000;
const FILLING: &str = "/fill/";
/// Writes that must succeed once space is free.
const WRITES_AFTER: usize = 20;
/// Most refusals meanwhile, because of the concurrent work.
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
        return Err(format!("the refusal should say what is missing, not: {refused}").into());
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
            // The concurrent work may have used the space for a moment.
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
        // The space of its log and index was enough.
        Ok(storage) => storage.close(),
        Err(error) if error.to_string().contains("free some and restart") => {}
        Err(error) => return Err(format!("the error should say what to do, not: {error}").into()),
    }
    fs::remove_file(directory.join(BALLAST[1].0))?;
    let storage = EmbeddedStorage::open(&folder, EmbeddedConfig::default())?;
    expect_all(&storage, &made, "after a restart").await?;
    let entries = recorder.finish();
    let full = |entry: &&Entry| matches!(entry, Entry::Returned(_, Outcome::Full(_)));
    let full = entries.iter().filter(full).count();
    Ok(format!("{full} refused, {} filled, {:?}", made.len(), check(&entries)?))
}

/// Writes until a write is refused, and records the refusal: history may be compacted from then on.
/// Returns the message of the refusal.
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
                let number =
                    recorder.record_invocation(Operation::Put { key, value, expected: None });
                recorder.record_response(number, error.into());
                return Ok(said);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Fills the last free block.
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
