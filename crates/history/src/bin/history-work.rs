//! Works on an embedded storage until it is killed, and prints the history: `history-work DIRECTORY
//! SEED EPOCH FIRST KNOWN WITNESSED`, where the last three come from the history of earlier runs:
//! the number of the first invocation, the newest reported revision, and the newest revision that a
//! watch of everything delivered.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use history::record::Recorder;
use history::run::{Load, Running};
use storage::embedded::{EmbeddedConfig, EmbeddedStorage};

/// More than any test waits for.
const STEPS: usize = 100_000;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [directory, numbers @ ..] = arguments.as_slice() else { return usage() };
    let numbers: Vec<u64> = numbers.iter().filter_map(|text| text.parse().ok()).collect();
    let [seed, epoch, first, known, witnessed] = numbers[..] else { return usage() };
    let storage = match EmbeddedStorage::open(Path::new(directory), EmbeddedConfig::default()) {
        Ok(storage) => storage,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let recorder = Arc::new(Recorder::printing(first, known));
    let load = Load { seed, epoch, clients: 5, steps: STEPS, watchers: 3 };
    match Running::begin(storage, recorder, witnessed, load).finish().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("history-work DIRECTORY SEED EPOCH FIRST KNOWN WITNESSED");
    ExitCode::FAILURE
}
