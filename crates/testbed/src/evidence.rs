//! Evidence of a failed test, for its analysis: the logs of its processes, its commands and
//! requests, the state of its servers, and the load of the machine.
//!
//! The test runner names the folder in [`EVIDENCE_ENV`]; without it nothing is written. A hook on
//! panics collects everything while the processes still run. The folder of a test is found by the
//! name of its thread, which is the name of the test.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};
use std::time::{Duration, SystemTime};

/// Variable with the prefix of the folder of every failed test; the rest is the name of the test.
pub const EVIDENCE_ENV: &str = "DROVER_TEST_EVIDENCE";
/// The file with the calls that [`record_call`] recorded.
pub const CALLS_FILE: &str = "clients.log";
/// The file with the load of the machine.
pub const MACHINE_FILE: &str = "machine.txt";

/// The size of the end of each log that is copied: a loop of errors must not fill the disk.
const LOG_BYTES_MAX: u64 = 4 << 20;
/// Most calls that are stored, of all tests of the program.
const CALLS_MAX: usize = 400;
/// Most bytes that are stored of the output of one call.
const CALL_BYTES_MAX: usize = 4096;
/// A witness that takes longer is abandoned: its server may hang.
const WITNESS_TIMEOUT: Duration = Duration::from_secs(20);
/// Name of the witnesses' thread; a panic in it produces no evidence of its own.
const WITNESS_THREAD: &str = "evidence";

/// Writes a report into the folder of a failed test.
type Report = dyn Fn(&Path) + Send + Sync;

/// Reports into the folder of each test that fails while this value lives.
pub struct Witness(
    #[expect(dead_code, reason = "held, so that the weak reference leads to it")] Arc<Report>,
);

impl std::fmt::Debug for Witness {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Witness").finish_non_exhaustive()
    }
}

struct Log {
    name: String,
    path: PathBuf,
}

#[derive(Default)]
struct Collected {
    logs: Vec<Log>,
    /// Time of each call, and the call with its result.
    calls: VecDeque<(String, String)>,
    witnesses: Vec<Weak<Report>>,
}

static COLLECTED: Mutex<Collected> =
    Mutex::new(Collected { logs: Vec::new(), calls: VecDeque::new(), witnesses: Vec::new() });

fn collected() -> std::sync::MutexGuard<'static, Collected> {
    COLLECTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers `log`, which is copied when a test fails, as long as the file exists.
pub fn collect_log(name: &str, log: &Path) {
    install();
    let mut collected = collected();
    collected.logs.retain(|known| known.path.exists() && known.path != log);
    collected.logs.push(Log { name: name.to_owned(), path: log.to_owned() });
}

/// Stores a command or request of a test, and its result.
pub fn record_call(call: &str, result: &str) {
    install();
    let mut end = result.len().min(CALL_BYTES_MAX);
    while !result.is_char_boundary(end) {
        end -= 1;
    }
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("another thread");
    let text = format!("[{name}] {call}\n{}\n", result[..end].trim_end());
    let calls = &mut collected().calls;
    // Tests poll for a state by repeating a request: the last one is enough.
    if calls.back().is_some_and(|(_, last)| *last == text) {
        calls.pop_back();
    } else if calls.len() == CALLS_MAX {
        calls.pop_front();
    }
    calls.push_back((clock(), text));
}

/// Registers `report`, which writes into the folder of each test that fails until the value is
/// dropped. It runs in a thread of its own, and is abandoned after [`WITNESS_TIMEOUT`].
pub fn witness(report: impl Fn(&Path) + Send + Sync + 'static) -> Witness {
    install();
    let report: Arc<Report> = Arc::new(report);
    let mut collected = collected();
    collected.witnesses.retain(|known| known.strong_count() > 0);
    collected.witnesses.push(Arc::downgrade(&report));
    Witness(report)
}

fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Some(prefix) = std::env::var_os(EVIDENCE_ENV) else { return };
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            print(panic);
            let thread = std::thread::current();
            if let Some(test) = thread.name().filter(|name| *name != WITNESS_THREAD) {
                let mut folder = prefix.clone();
                folder.push(test);
                // The only destination for this error is the test's own output.
                if let Err(cause) = collect(Path::new(&folder)) {
                    eprintln!("cannot store evidence in '{}': {cause}", folder.display());
                }
            }
        }));
    });
}

fn collect(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    // The load of the machine first, before the copies add to it.
    fs::write(folder.join(MACHINE_FILE), machine())?;
    let witnesses: Vec<_> = {
        let collected = collected();
        for (number, log) in collected.logs.iter().enumerate() {
            let name = log.name.replace(['/', ' '], "-");
            // Another test may remove a log with its folder at the same time.
            let _ = copy_end(&log.path, &folder.join(format!("{number:02}-{name}.log")));
        }
        let calls = collected.calls.iter().map(|(time, call)| format!("{time} {call}"));
        fs::write(folder.join(CALLS_FILE), calls.collect::<String>())?;
        collected.witnesses.iter().filter_map(Weak::upgrade).collect()
    };
    let (done, reported) = mpsc::channel();
    let folder = folder.to_owned();
    std::thread::Builder::new().name(WITNESS_THREAD.to_owned()).spawn(move || {
        witnesses.iter().for_each(|report| report(&folder));
        let _ = done.send(());
    })?;
    // Too late or panicked: what was written until then remains.
    let _ = reported.recv_timeout(WITNESS_TIMEOUT);
    Ok(())
}

fn copy_end(from: &Path, to: &Path) -> std::io::Result<()> {
    let mut source = File::open(from)?;
    let size = source.metadata()?.len();
    source.seek(SeekFrom::Start(size.saturating_sub(LOG_BYTES_MAX)))?;
    let mut bytes = Vec::new();
    source.take(LOG_BYTES_MAX).read_to_end(&mut bytes)?;
    File::create(to)?.write_all(&bytes)
}

/// Load, memory, pressure, and the processes that used the processor most.
fn machine() -> String {
    let mut text = format!("at {}\n", clock());
    for file in ["/proc/loadavg", "/proc/pressure/cpu", "/proc/pressure/io", "/proc/meminfo"] {
        // Not every kernel has all of these files.
        let Ok(content) = fs::read_to_string(file) else { continue };
        let first: Vec<&str> = content.lines().take(5).collect();
        text.push_str(&format!("{file}:\n{}\n", first.join("\n")));
    }
    text.push_str("\nprocesses by processor time (ticks, id, name):\n");
    let mut processes = processes();
    processes.sort_by(|one, other| other.cmp(one));
    for (ticks, id, name) in processes.into_iter().take(30) {
        text.push_str(&format!("{ticks:>10} {id:>8} {name}\n"));
    }
    text
}

fn processes() -> Vec<(u64, u32, String)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    ids.filter_map(|id| {
        // `pid (name) state ppid …`: user and system time are the 14th and 15th word.
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        let (head, rest) = stat.rsplit_once(") ")?;
        let words: Vec<&str> = rest.split(' ').collect();
        let ticks = |index: usize| words.get(index)?.parse::<u64>().ok();
        Some((ticks(11)? + ticks(12)?, id, head.split_once('(')?.1.to_owned()))
    })
    .collect()
}

/// Seconds since 1970, to compare logs of different processes.
fn clock() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("{}.{:03}", now.as_secs(), now.subsec_millis())
}
