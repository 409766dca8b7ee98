//! The disk itself, for comparison.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::quantiles;

/// Approximate bytes that a commit of half of [`super::WRITERS`] appends to the log: two pages for
/// each write. The other half is queued meanwhile.
const COMMIT_BYTES: usize = 320 * 1024;
/// Size of the log when it is moved into the database.
const CHECKPOINT_BYTES: usize = 8 * 1024 * 1024;

/// The disk without a storage: durable appends of a commit's size to one file, alone and while
/// another is written as a checkpoint writes the database.
pub fn measure(directory: &Path, duration: Duration) -> std::io::Result<()> {
    std::fs::create_dir_all(directory)?;
    let (log, database) = (directory.join("disk.log"), directory.join("disk.db"));
    println!("disk, alone: {}", appends(&log, duration / 4)?);
    let stop = AtomicBool::new(false);
    let beside = std::thread::scope(|scope| {
        let checkpoints = scope.spawn(|| overwrite_until(&stop, &database));
        let beside = appends(&log, duration / 4);
        stop.store(true, Ordering::Relaxed);
        checkpoints.join().expect("it does not panic")?;
        beside
    });
    println!("disk, beside checkpoints: {}", beside?);
    std::fs::remove_file(log)?;
    std::fs::remove_file(database)
}

fn appends(file: &Path, duration: Duration) -> std::io::Result<String> {
    let mut file = File::create(file)?;
    let commit = vec![b'x'; COMMIT_BYTES];
    let until = Instant::now() + duration;
    let mut latencies = Vec::new();
    while Instant::now() < until {
        // The log restarts like the storage's, with its blocks allocated.
        if latencies.len() % (2 * CHECKPOINT_BYTES / COMMIT_BYTES) == 0 {
            file.rewind()?;
        }
        let started = Instant::now();
        file.write_all(&commit)?;
        file.sync_data()?;
        latencies.push(started.elapsed());
    }
    latencies.sort_unstable();
    let rate = latencies.len() as f64 / duration.as_secs_f64();
    Ok(format!("{rate:.0} appends/s of {COMMIT_BYTES} B, {}", quantiles(&latencies)))
}

fn overwrite_until(stop: &AtomicBool, file: &Path) -> std::io::Result<()> {
    let mut file = File::create(file)?;
    let pages = vec![b'x'; CHECKPOINT_BYTES];
    while !stop.load(Ordering::Relaxed) {
        file.rewind()?;
        file.write_all(&pages)?;
        file.sync_data()?;
    }
    Ok(())
}
