//! The audit log file: JSON lines, written by its own thread, rotated by size and age.
//!
//! A request never waits for the disk and does not wake the writer, which polls every few
//! milliseconds while there are lines to write. Lines are queued in memory, up to
//! [`QUEUED_BYTES_MAX`]. Lines above that, and lines that cannot be written because the disk is
//! full or broken, are lost; they are counted, and an error is logged. A line is written completely
//! or not at all.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use prometheus::IntCounterVec;

/// The size of the queued events, in bytes.
pub const QUEUED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The number of queued events.
const QUEUED_MAX: usize = 65_536;
/// The size of one write, in bytes.
const BATCH_BYTES: usize = 1024 * 1024;
/// The pause after each batch. Without it, waking the writer costs a request more than all other
/// work for its event.
const BATCH_PAUSE: Duration = Duration::from_millis(5);
/// The interval between two checks of the files' ages.
const AGE_CHECK_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// The age at which a file is rotated when rotated files are limited by age alone.
const FILE_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// The minimum interval between two errors in the server's log.
const ERROR_INTERVAL: Duration = Duration::from_secs(60);
/// The precision of times in the names of rotated files.
const MILLISECOND: jiff::SignedDuration = jiff::SignedDuration::from_millis(1);

/// The path of the log and its rotation.
#[derive(Clone, Debug)]
pub struct LogSettings {
    /// The current file. Rotated files are beside it.
    pub path: PathBuf,
    /// The size at which a file is rotated, in bytes.
    pub size_max: u64,
    /// The number of rotated files that are retained; 0 for all.
    pub backups_max: usize,
    /// The age at which rotated files are deleted; zero for never. An event gets at most as old as
    /// this plus the time for which one file is written: this age divided by the number of files,
    /// or a day.
    pub age_max: Duration,
}

impl LogSettings {
    /// The age at which the current file is rotated.
    fn file_age_max(&self) -> Option<Duration> {
        let files = u32::try_from(self.backups_max).unwrap_or(u32::MAX).saturating_add(1);
        match (self.age_max, self.backups_max) {
            (Duration::ZERO, _) => None,
            (age, 0) => Some(age.min(FILE_AGE)),
            (age, _) => Some(age / files),
        }
    }
}

/// The open log. Dropping it writes the queued lines.
pub struct Log {
    sender: Option<SyncSender<Vec<u8>>>,
    queued: Arc<AtomicUsize>,
    lost: IntCounterVec,
    logged_at: Mutex<Option<Instant>>,
    writer: Option<JoinHandle<()>>,
}

impl Log {
    /// Opens the file, which is created with mode 0600 if it does not exist, and starts the writer
    /// thread. Counts lost lines in `lost`, by the label `queue` or `log`.
    ///
    /// # Errors
    /// The file cannot be opened for writing, or the thread cannot be started.
    pub fn open(settings: LogSettings, lost: IntCounterVec) -> io::Result<Self> {
        let mut writer = LogWriter::open(settings)?;
        let (sender, receiver) = mpsc::sync_channel(QUEUED_MAX);
        let queued = Arc::new(AtomicUsize::new(0));
        let (of_writer, failed) = (queued.clone(), lost.clone());
        let writer = std::thread::Builder::new()
            .name("audit-log".to_owned())
            .spawn(move || writer.run(&receiver, &of_writer, &failed))?;
        let (sender, writer) = (Some(sender), Some(writer));
        Ok(Self { sender, queued, lost, logged_at: Mutex::default(), writer })
    }

    /// Queues one line for the writer. Never waits; a line that exceeds the queue's limits is lost.
    pub fn write(&self, line: Vec<u8>) {
        let size = line.len();
        let queued = self.queued.fetch_add(size, Ordering::AcqRel) + size;
        let sender = self.sender.as_ref().expect("there is one until it is dropped");
        if queued <= QUEUED_BYTES_MAX && sender.try_send(line).is_ok() {
            return;
        }
        self.queued.fetch_sub(size, Ordering::AcqRel);
        self.lost.with_label_values(&["queue"]).inc();
        if should_log(&mut self.logged_at.lock()) {
            tracing::error!("the disk is too slow for the audit log, events are lost");
        }
    }
}

impl Drop for Log {
    /// Blocks until every queued line was written or failed to be written.
    fn drop(&mut self) {
        drop(self.sender.take());
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

/// Whether another error may be logged now.
fn should_log(last: &mut Option<Instant>) -> bool {
    let due = last.is_none_or(|last| last.elapsed() >= ERROR_INTERVAL);
    if due {
        *last = Some(Instant::now());
    }
    due
}

struct LogWriter {
    settings: LogSettings,
    file: File,
    /// The size of the file in bytes, all of them whole lines.
    size: u64,
    /// A time not later than the first line of the file.
    begun_at: SystemTime,
    /// The time of the last check of ages.
    checked_at: SystemTime,
    /// The time in the name of the newest rotated file.
    rotated_at: jiff::Timestamp,
    logged_at: Option<Instant>,
}

impl LogWriter {
    fn open(settings: LogSettings) -> io::Result<Self> {
        let (file, size) = open(&settings.path)?;
        let begun_at = begun_at(&file, size)?;
        let rotated_at = jiff::Timestamp::UNIX_EPOCH;
        Ok(Self {
            settings,
            file,
            size,
            begun_at,
            checked_at: UNIX_EPOCH,
            rotated_at,
            logged_at: None,
        })
    }

    fn run(&mut self, lines: &Receiver<Vec<u8>>, queued: &AtomicUsize, lost: &IntCounterVec) {
        loop {
            let first = lines.recv_timeout(AGE_CHECK_INTERVAL);
            if let Err(error) = self.check_age(SystemTime::now()) {
                self.log_error(&error);
            }
            let (mut batch, mut count) = match first {
                Ok(first) => (first, 1),
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            while batch.len() < BATCH_BYTES
                && let Ok(line) = lines.try_recv()
            {
                batch.extend_from_slice(&line);
                count += 1;
            }
            if let Err(error) = self.append(&batch) {
                lost.with_label_values(&["log"]).inc_by(count);
                self.log_error(&error);
            }
            queued.fetch_sub(batch.len(), Ordering::AcqRel);
            #[expect(clippy::disallowed_methods, reason = "the pause lets lines gather")]
            std::thread::sleep(BATCH_PAUSE);
        }
    }

    fn log_error(&mut self, error: &io::Error) {
        if should_log(&mut self.logged_at) {
            let path = self.settings.path.display();
            tracing::error!(%error, %path, "cannot write the audit log, events are lost");
        }
    }

    /// Rotates the file if it is old, and removes outdated files, at most once per interval.
    fn check_age(&mut self, now: SystemTime) -> io::Result<()> {
        if now.duration_since(self.checked_at).is_ok_and(|since| since < AGE_CHECK_INTERVAL) {
            return Ok(());
        }
        self.checked_at = now;
        let age = now.duration_since(self.begun_at).unwrap_or_default();
        if self.size > 0 && self.settings.file_age_max().is_some_and(|max| age >= max) {
            return self.rotate(now);
        }
        self.remove_outdated(now)
    }

    fn append(&mut self, batch: &[u8]) -> io::Result<()> {
        if self.size > 0 && self.size + batch.len() as u64 > self.settings.size_max {
            self.rotate(SystemTime::now())?;
        }
        match self.file.write_all(batch) {
            Ok(()) => {
                self.size += batch.len() as u64;
                Ok(())
            }
            Err(error) => {
                // A partial line would corrupt the next one.
                self.file.set_len(self.size)?;
                Err(error)
            }
        }
    }

    fn rotate(&mut self, now: SystemTime) -> io::Result<()> {
        // Each is named at least a millisecond later than the one before, so that names sort by
        // age.
        let named_at = jiff::Timestamp::now().max(self.rotated_at + MILLISECOND);
        self.rotated_at = named_at;
        std::fs::rename(&self.settings.path, backup_path(&self.settings.path, named_at))?;
        (self.file, self.size) = open(&self.settings.path)?;
        self.begun_at = now;
        self.remove_outdated(now)
    }

    fn remove_outdated(&self, now: SystemTime) -> io::Result<()> {
        for old in outdated_files(&self.settings, now)? {
            std::fs::remove_file(old)?;
        }
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    let size = file.metadata()?.len();
    Ok((file, size))
}

/// When the file was created, or modified if the file system does not record that.
fn begun_at(file: &File, size: u64) -> io::Result<SystemTime> {
    if size == 0 {
        return Ok(SystemTime::now());
    }
    let metadata = file.metadata()?;
    metadata.created().or_else(|_| metadata.modified())
}

/// `audit-2026-01-02T03-04-05.678.log` beside `audit.log`.
fn backup_path(path: &Path, now: jiff::Timestamp) -> PathBuf {
    let (stem, ending) = parts(path);
    let time = now.strftime("%Y-%m-%dT%H-%M-%S.%3f");
    path.with_file_name(format!("{stem}-{time}{ending}"))
}

fn parts(path: &Path) -> (String, String) {
    fn text(part: &std::ffi::OsStr) -> String {
        part.to_string_lossy().into_owned()
    }
    let ending = path.extension().map(|ending| format!(".{}", text(ending)));
    (path.file_stem().map(text).unwrap_or_default(), ending.unwrap_or_default())
}

/// A rotated file of a log.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Backup {
    name: String,
    pub path: PathBuf,
    modified: SystemTime,
}

/// The rotated files of a log, oldest first.
///
/// # Errors
/// The folder cannot be listed.
pub(super) fn backups(log: &Path) -> io::Result<Vec<Backup>> {
    let (stem, ending) = parts(log);
    let folder = log.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut backups = Vec::new();
    for entry in std::fs::read_dir(folder.unwrap_or(Path::new(".")))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let time = name.strip_prefix(&format!("{stem}-")).and_then(|n| n.strip_suffix(&ending));
        if time.is_some_and(|time| time.starts_with(|c: char| c.is_ascii_digit())) {
            let modified = match entry.metadata() {
                Ok(metadata) => metadata.modified()?,
                // Removed meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            backups.push(Backup { name, path: entry.path(), modified });
        }
    }
    // Their names sort by time.
    backups.sort();
    Ok(backups)
}

/// The rotated files to delete: those above the number, oldest first, and those above the age.
fn outdated_files(settings: &LogSettings, now: SystemTime) -> io::Result<Vec<PathBuf>> {
    let backups = backups(&settings.path)?;
    let extra = match settings.backups_max {
        0 => 0,
        max => backups.len().saturating_sub(max),
    };
    let is_old = |modified: SystemTime| {
        let age = now.duration_since(modified).unwrap_or_default();
        !settings.age_max.is_zero() && age > settings.age_max
    };
    let outdated = backups.into_iter().enumerate();
    let outdated = outdated.filter(|(index, file)| *index < extra || is_old(file.modified));
    Ok(outdated.map(|(_, file)| file.path).collect())
}

#[cfg(test)]
mod tests {
    use prometheus::Opts;

    use super::*;

    fn lost() -> IntCounterVec {
        IntCounterVec::new(Opts::new("lost", "lost"), &["plugin"]).unwrap()
    }

    fn settings(path: PathBuf, size_max: u64) -> LogSettings {
        LogSettings { path, size_max, backups_max: 2, age_max: Duration::ZERO }
    }

    fn line(number: usize) -> Vec<u8> {
        format!("{{\"n\":{number:04}}}\n").into_bytes()
    }

    #[test]
    fn every_line_is_in_one_of_the_files_and_old_files_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let mut writer = LogWriter::open(settings(path.clone(), 100)).unwrap();
        for number in 0..45 {
            writer.append(&line(number)).unwrap();
        }
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().path()).collect();
        files.sort();
        // 9 lines of 11 bytes fit into a file: of five files two rotated ones and the newest
        // remain.
        assert_eq!(files.len(), 3, "{files:?}");
        let mut text = String::new();
        for file in files {
            assert!(std::fs::metadata(&file).unwrap().len() <= 100);
            text += &std::fs::read_to_string(file).unwrap();
        }
        let retained: Vec<&str> = text.lines().collect();
        assert_eq!(retained.first(), Some(&"{\"n\":0018}"));
        assert_eq!(retained.last(), Some(&"{\"n\":0044}"));
        assert_eq!(retained.len(), 27);
    }

    #[test]
    fn events_of_an_idle_server_are_deleted_at_their_maximum_age() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let day = Duration::from_secs(24 * 60 * 60);
        let settings = LogSettings { age_max: 30 * day, ..settings(path.clone(), u64::MAX) };
        let mut writer = LogWriter::open(settings).unwrap();
        let files = || std::fs::read_dir(folder.path()).unwrap().count();
        writer.append(&line(1)).unwrap();
        let begun = SystemTime::now();
        writer.check_age(begun + 9 * day).unwrap();
        assert_eq!(files(), 1);
        writer.check_age(begun + 10 * day).unwrap();
        assert_eq!(files(), 2, "a third of the age for each of three files");
        writer.check_age(begun + 29 * day).unwrap();
        assert_eq!(files(), 2);
        writer.check_age(begun + 31 * day).unwrap();
        assert_eq!(files(), 1);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
    }

    #[test]
    fn a_full_disk_counts_lost_events() {
        let lost = lost();
        let log = Log::open(settings("/dev/full".into(), u64::MAX), lost.clone()).unwrap();
        for number in 0..20 {
            log.write(line(number));
        }
        drop(log);
        assert_eq!(lost.with_label_values(&["log"]).get(), 20);
    }

    #[test]
    fn memory_is_bounded_when_the_disk_is_slow() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("slow");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        // A pipe without a reader takes 64 KiB, and then nothing.
        let reader = OpenOptions::new().read(true).write(true).open(&fifo).unwrap();
        let lost = lost();
        let log = Log::open(settings(fifo, u64::MAX), lost.clone()).unwrap();
        let line = vec![b'x'; 64 * 1024];
        for _ in 0..400 {
            log.write(line.clone());
        }
        let dropped = lost.with_label_values(&["queue"]).get();
        let queued_lines = (QUEUED_BYTES_MAX / line.len()) as u64;
        assert!(dropped >= 400 - queued_lines - 2, "{dropped} of 400 were dropped");
        let mut drain = reader;
        let reading = std::thread::spawn(move || {
            let mut left = (400 - dropped) as usize * 64 * 1024;
            let mut buffer = vec![0; 1 << 20];
            while left > 0 {
                left -= std::io::Read::read(&mut drain, &mut buffer).unwrap();
            }
        });
        drop(log);
        reading.join().unwrap();
    }

    #[test]
    fn an_existing_log_is_appended_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        for number in 0..2 {
            let log = Log::open(settings(path.clone(), 1000), lost()).unwrap();
            log.write(line(number));
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 2);
        let missing = settings(folder.path().join("no/audit.log"), 1);
        assert!(Log::open(missing, lost()).is_err());
    }
}
