//! Measures the embedded storage: `storage-bench [SECONDS] [DIRECTORY]`; or an etcd, its creates
//! only: `storage-bench SECONDS etcd://HOST:PORT,…`. With `encrypted` before, creates and lists of
//! an encrypted storage.
//!
//! Prints the times of the disk itself for the same amounts, then durable writes per second with
//! their latencies (checkpoints and compaction included), the file under churn, and lists of
//! 100,000 keys. Build it with `--release`; the directory must be on a disk.
//!
//! `storage-bench write DIRECTORY` writes until it is killed and prints each acknowledged write,
//! for tests.

mod disk;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt as _;
use storage::embedded::{EmbeddedConfig, EmbeddedStorage};
use storage::encryption::{Encrypted, EncryptionKeys};
use storage::etcd::{EtcdConfig, EtcdStorage};
use storage::{Expect, RangeRequest, Storage, StorageError, WatchItem};

const WRITERS: usize = 64;
const VALUE_BYTES: usize = 1024;
const CHURN_KEYS: usize = 1000;
const LIST_KEYS: usize = 100_000;
/// The encryption key of the benchmark's storage, which holds no real data.
const KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
const EVENT_TTL: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() -> Result<(), StorageError> {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if(|argument| argument == "write").is_some() {
        let directory = arguments.next().unwrap_or_else(|| ".".to_owned());
        return write_without_end(Path::new(&directory)).await;
    }
    let encrypted = arguments.next_if(|argument| argument == "encrypted").is_some();
    let seconds = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(20);
    let directory = arguments.next().unwrap_or_else(|| "target/storage-bench".to_owned());
    let duration = Duration::from_secs(seconds);
    if let Ok(config) = directory.parse::<EtcdConfig>() {
        return create_in(EtcdStorage::connect(config).await?, duration).await;
    }
    let directory = Path::new(&directory);
    if encrypted {
        let file = directory.join("encrypted.db");
        create_in(seal(open(&file)?).await?, duration).await?;
        print_files(&file);
        return list(&file, true).await;
    }
    disk::measure(directory, duration)
        .map_err(|e| StorageError::Failed { reason: e.to_string() })?;
    create(&directory.join("create.db"), duration).await?;
    churn(&directory.join("churn.db"), duration, 0).await?;
    churn(&directory.join("churn-read.db"), duration, 4).await?;
    expire_and_renew(&directory.join("come-and-go.db"), duration).await?;
    list(&directory.join("list.db"), false).await
}

fn open(file: &Path) -> Result<Arc<EmbeddedStorage>, StorageError> {
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", file.display()));
    }
    EmbeddedStorage::open(file, EmbeddedConfig::default())
}

async fn seal(storage: Arc<dyn Storage>) -> Result<Arc<dyn Storage>, StorageError> {
    let failed = |reason: String| StorageError::Failed { reason };
    // The same key at each opening.
    let keys = EncryptionKeys::parse(KEY).map_err(|error| failed(error.to_string()))?;
    let sealed = Encrypted::open(storage, keys).await;
    Ok(sealed.map_err(|error| failed(error.to_string()))?)
}

async fn create(file: &Path, duration: Duration) -> Result<(), StorageError> {
    create_in(open(file)?, duration).await?;
    print_files(file);
    Ok(())
}

async fn create_in(storage: Arc<dyn Storage>, duration: Duration) -> Result<(), StorageError> {
    let until = Instant::now() + duration;
    let writers = (0..WRITERS).map(|writer| {
        let storage = Arc::clone(&storage);
        tokio::spawn(async move {
            let mut latencies = Vec::new();
            for number in 0.. {
                let started = Instant::now();
                if started >= until {
                    break;
                }
                let key = key(writer, number);
                storage.put(&key, value(number), Expect::Absent, None).await?;
                latencies.push(started.elapsed());
            }
            Ok::<_, StorageError>(latencies)
        })
    });
    report("create", duration, collect(writers).await?);
    Ok(())
}

/// Rewrites the same keys; `readers` list them and get one of them, without a pause.
async fn churn(file: &Path, duration: Duration, readers: usize) -> Result<(), StorageError> {
    let storage = open(file)?;
    let readers: Vec<_> = (0..readers)
        .map(|_| {
            let storage = Arc::clone(&storage);
            tokio::spawn(async move {
                for number in 0.. {
                    if storage.range(RangeRequest::prefix("/registry/")).await.is_err()
                        || storage.get(&key(0, number % CHURN_KEYS), None).await.is_err()
                    {
                        return number;
                    }
                }
                0
            })
        })
        .collect();
    let mut events = storage.watch("/registry/", 0).await?;
    let watcher = tokio::spawn(async move {
        let mut seen = 0;
        while let Some(Ok(item)) = events.next().await {
            if let WatchItem::Events(events) = item {
                seen += events.len();
            }
        }
        seen
    });
    let until = Instant::now() + duration;
    let writers = (0..WRITERS).map(|writer| {
        let storage = Arc::clone(&storage);
        tokio::spawn(async move {
            let keys: Vec<_> =
                (writer..CHURN_KEYS).step_by(WRITERS).map(|number| key(0, number)).collect();
            let mut expected = vec![Expect::Absent; keys.len()];
            let mut latencies = Vec::new();
            for number in 0.. {
                let started = Instant::now();
                if started >= until {
                    break;
                }
                let at = number % keys.len();
                let put = storage.put(&keys[at], value(number), expected[at], None).await?;
                expected[at] = Expect::Revision(put.mod_revision);
                latencies.push(started.elapsed());
            }
            Ok::<_, StorageError>(latencies)
        })
    });
    let sampled = file.to_owned();
    let sampler = tokio::spawn(async move {
        let mut every = tokio::time::interval((duration / 5).max(Duration::from_secs(1)));
        loop {
            every.tick().await;
            print_files(&sampled);
        }
    });
    let latencies = collect(writers).await?;
    sampler.abort();
    report("churn", duration, latencies);
    storage.close();
    println!("  {} events watched", watcher.await.unwrap_or_default());
    for reader in readers {
        println!("  {} lists and gets", reader.await.unwrap_or_default());
    }
    print_files(file);
    Ok(())
}

/// Events that expire and leases that are renewed, with a history so short that compaction, expiry
/// and the reuse of pages are always active.
async fn expire_and_renew(file: &Path, duration: Duration) -> Result<(), StorageError> {
    open(file)?.close();
    let config = EmbeddedConfig {
        history_keep: Duration::from_secs(1),
        history_revisions_max: 20_000,
        ..EmbeddedConfig::default()
    };
    let storage = EmbeddedStorage::open(file, config)?;
    let until = Instant::now() + duration;
    let writers = (0..WRITERS).map(|writer| {
        let storage = Arc::clone(&storage);
        tokio::spawn(async move {
            let lease = key(CHURN_KEYS, writer);
            let mut expected = Expect::Absent;
            let mut latencies = Vec::new();
            for number in 0.. {
                let started = Instant::now();
                if started >= until {
                    break;
                }
                if number % 2 == 0 {
                    let put = storage.put(&lease, value(number), expected, None).await?;
                    expected = Expect::Revision(put.mod_revision);
                } else {
                    let event = key(writer, number);
                    storage.put(&event, value(number), Expect::Absent, Some(EVENT_TTL)).await?;
                }
                latencies.push(started.elapsed());
            }
            Ok::<_, StorageError>(latencies)
        })
    });
    report("leases and events", duration, collect(writers).await?);
    println!(
        "  compacted to {} of {}",
        storage.compacted_revision().await?,
        storage.revision().await?
    );
    print_files(file);
    Ok(())
}

async fn list(file: &Path, encrypted: bool) -> Result<(), StorageError> {
    let mut storage: Arc<dyn Storage> = open(file)?;
    if encrypted {
        storage = seal(storage).await?;
    }
    let writers = (0..WRITERS).map(|writer| {
        let storage = Arc::clone(&storage);
        tokio::spawn(async move {
            for number in (writer..LIST_KEYS).step_by(WRITERS) {
                storage.put(&key(0, number), value(number), Expect::Absent, None).await?;
            }
            Ok::<_, StorageError>(Vec::new())
        })
    });
    collect(writers).await?;
    drop(storage);
    let started = Instant::now();
    let mut storage: Arc<dyn Storage> = EmbeddedStorage::open(file, EmbeddedConfig::default())?;
    if encrypted {
        storage = seal(storage).await?;
    }
    println!("open with {LIST_KEYS} keys: {:?}", started.elapsed());
    println!("resident after open: {} KiB", resident_kib());
    for attempt in ["first", "second"] {
        let started = Instant::now();
        let response = storage.range(RangeRequest::prefix("/registry/")).await?;
        println!("range of {} keys, {attempt}: {:?}", response.items.len(), started.elapsed());
    }
    let started = Instant::now();
    let page = RangeRequest { limit: Some(500), ..RangeRequest::prefix("/registry/") };
    let response = storage.range(page).await?;
    let remaining = response.remaining;
    println!("first page of 500, {remaining} remaining: {:?}", started.elapsed());
    let started = Instant::now();
    let at = Some(response.revision - 500);
    let page = RangeRequest { limit: Some(500), at, ..RangeRequest::prefix("/registry/") };
    storage.range(page).await?;
    println!("first page of 500, 500 revisions ago: {:?}", started.elapsed());
    let started = Instant::now();
    for number in 0..1000 {
        storage.get(&key(0, number * 97 % LIST_KEYS), None).await?;
    }
    println!("1000 gets one after another: {:?}", started.elapsed());
    Ok(())
}

/// Keys of each writer of [`write_without_end`].
const ENDLESS_KEYS: u64 = 40;

/// Each writer rewrites its own keys, and deletes every seventh time. Each acknowledgement is
/// printed as a line: revision, `put` or `delete`, key, number. The value is the number, followed
/// by its lowest byte repeated as often as the number's hash determines.
async fn write_without_end(directory: &Path) -> Result<(), StorageError> {
    // A short history, so that compaction and the reuse of pages are always active.
    let config = EmbeddedConfig {
        history_keep: Duration::ZERO,
        history_revisions_min: 100,
        tick: Duration::from_millis(20),
        ..EmbeddedConfig::default()
    };
    let storage = EmbeddedStorage::open(directory, config)?;
    let writers = (0..16u64).map(|writer| {
        let storage = Arc::clone(&storage);
        tokio::spawn(async move {
            let start = storage.revision().await?;
            for number in start.. {
                let key = format!("/w/{writer:02}/{:02}", number % ENDLESS_KEYS);
                let found = storage.get(&key, None).await?.1;
                let (revision, verb) = match found {
                    Some(found) if number % 7 == 0 => {
                        (storage.delete(&key, found.mod_revision).await?.0, "delete")
                    }
                    found => {
                        let expect =
                            found.map_or(Expect::Absent, |f| Expect::Revision(f.mod_revision));
                        let ttl = (number % 11 == 0).then_some(Duration::from_secs(3600));
                        let put = storage.put(&key, endless_value(number), expect, ttl).await?;
                        (put.mod_revision, "put")
                    }
                };
                println!("{revision} {verb} {key} {number}");
            }
            Ok(Vec::new())
        })
    });
    collect(writers).await.map(drop)
}

fn endless_value(number: u64) -> Bytes {
    let size = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % 12_000;
    let mut value = number.to_be_bytes().to_vec();
    value.resize(8 + size as usize, number as u8);
    value.into()
}

type WriterTask = tokio::task::JoinHandle<Result<Vec<Duration>, StorageError>>;

async fn collect(writers: impl Iterator<Item = WriterTask>) -> Result<Vec<Duration>, StorageError> {
    let writers: Vec<_> = writers.collect();
    let mut latencies = Vec::new();
    for writer in writers {
        latencies.extend(writer.await.map_err(|_| StorageError::Closed)??);
    }
    latencies.sort_unstable();
    Ok(latencies)
}

fn report(name: &str, duration: Duration, latencies: Vec<Duration>) {
    let rate = latencies.len() as f64 / duration.as_secs_f64();
    let latencies = quantiles(&latencies);
    println!("{name}: {WRITERS} writers, {VALUE_BYTES} B: {rate:.0} puts/s, {latencies}");
}

/// The quantiles of sorted latencies.
fn quantiles(latencies: &[Duration]) -> String {
    let quantile = |of: usize| latencies[(latencies.len() - 1) * of / 1000];
    format!(
        "p50 {:.1?}, p99 {:.1?}, p99.9 {:.1?}, max {:.1?}",
        quantile(500),
        quantile(990),
        quantile(999),
        quantile(1000),
    )
}

fn print_files(file: &Path) {
    let size = |suffix| {
        let file = format!("{}{suffix}", file.display());
        std::fs::metadata(file).map_or(0, |metadata| metadata.len()) / 1024
    };
    let resident = resident_kib();
    println!("  file {} KiB, log {} KiB, resident {resident} KiB", size(""), size("-wal"));
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default()
}

fn key(writer: usize, number: usize) -> String {
    format!("/registry/configmaps/namespace-{writer:03}/name-of-an-object-{number:07}")
}

fn value(number: usize) -> Bytes {
    let mut value = vec![b'x'; VALUE_BYTES];
    let text = number.to_string();
    value[..text.len()].copy_from_slice(text.as_bytes());
    value.into()
}
