//! The file that events go to: JSON lines, written by a thread of its own, rotated by size and age.
//!
//! A request never waits for the disk, nor has it to wake the writer, which looks every few milliseconds while there is
//! something to write. What the writer does not keep up with waits in memory, up to [`QUEUED_BYTES_MAX`]; what comes above that, and what cannot be written because the disk is full
//! or broken, is lost, counted and told in the server's log. A line is written whole or not at all.

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

/// Bytes of events that wait for the disk.
pub const QUEUED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Events that wait for the disk.
const QUEUED_MAX: usize = 65_536;
/// Bytes that are written at once.
const BATCH_BYTES: usize = 1024 * 1024;
/// Pause after each batch: handing a line to a writer that waits for it costs a request more than all else of its event.
const BATCH_PAUSE: Duration = Duration::from_millis(5);
/// Longest time between two checks of the files' ages.
const AGE_CHECK_EVERY: Duration = Duration::from_secs(60 * 60);
/// Age at which a file is closed when earlier ones are limited by age alone.
const FILE_AGE: Duration = Duration::from_secs(24 * 60 * 60);
/// Pause between two complaints in the server's log.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);
/// The names of earlier files tell time as exactly as this.
const MILLISECOND: jiff::SignedDuration = jiff::SignedDuration::from_millis(1);

/// Where the log is and how much of it is kept.
#[derive(Clone, Debug)]
pub struct LogSettings {
    pub path: PathBuf,
    /// Bytes of one file; at this size a new one is begun.
    pub size_max: u64,
    /// Older files that are kept; 0 is all.
    pub backups_max: usize,
    /// Age at which older files go; zero is never. No event gets older than this and the time that one file is
    /// written for, which is this by the number of files, or a day.
    pub age_max: Duration,
}

impl LogSettings {
    /// Age at which a new file is begun.
    fn file_age_max(&self) -> Option<Duration> {
        let files = u32::try_from(self.backups_max).unwrap_or(u32::MAX).saturating_add(1);
        match (self.age_max, self.backups_max) {
            (Duration::ZERO, _) => None,
            (age, 0) => Some(age.min(FILE_AGE)),
            (age, _) => Some(age / files),
        }
    }
}

/// See the module.
pub struct Log {
    sender: Option<SyncSender<Vec<u8>>>,
    queued: Arc<AtomicUsize>,
    lost: IntCounterVec,
    complained: Mutex<Option<Instant>>,
    writer: Option<JoinHandle<()>>,
}

impl Log {
    /// Opens the file, which is made when it is not there, for its owner alone.
    ///
    /// # Errors
    /// It cannot be opened for writing.
    pub fn open(settings: LogSettings, lost: IntCounterVec) -> io::Result<Self> {
        let mut writer = Writer::open(settings)?;
        let (sender, receiver) = mpsc::sync_channel(QUEUED_MAX);
        let queued = Arc::new(AtomicUsize::new(0));
        let (of_writer, failed) = (queued.clone(), lost.clone());
        let writer = std::thread::Builder::new()
            .name("audit-log".to_owned())
            .spawn(move || writer.run(&receiver, &of_writer, &failed))?;
        let (sender, writer) = (Some(sender), Some(writer));
        Ok(Self { sender, queued, lost, complained: Mutex::default(), writer })
    }

    /// Hands one line to the writer. Never waits.
    pub fn write(&self, line: Vec<u8>) {
        let size = line.len();
        let queued = self.queued.fetch_add(size, Ordering::AcqRel) + size;
        let sender = self.sender.as_ref().expect("there is one until it is dropped");
        if queued <= QUEUED_BYTES_MAX && sender.try_send(line).is_ok() {
            return;
        }
        self.queued.fetch_sub(size, Ordering::AcqRel);
        self.lost.with_label_values(&["queue"]).inc();
        if complains(&mut self.complained.lock()) {
            tracing::error!("the disk does not keep up with the audit log, events are lost");
        }
    }
}

impl Drop for Log {
    /// Ends when everything that was handed over has been written, or failed to be.
    fn drop(&mut self) {
        drop(self.sender.take());
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

/// Whether it is time to complain again.
fn complains(last: &mut Option<Instant>) -> bool {
    let due = last.is_none_or(|last| last.elapsed() >= COMPLAIN_EVERY);
    if due {
        *last = Some(Instant::now());
    }
    due
}

struct Writer {
    settings: LogSettings,
    file: File,
    /// Bytes in the file, all of them whole lines.
    size: u64,
    /// Not later than its first line.
    begun_at: SystemTime,
    /// When ages were checked last.
    checked_at: SystemTime,
    /// By which the newest earlier file is named.
    rotated_at: jiff::Timestamp,
    complained: Option<Instant>,
}

impl Writer {
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
            complained: None,
        })
    }

    fn run(&mut self, lines: &Receiver<Vec<u8>>, queued: &AtomicUsize, lost: &IntCounterVec) {
        loop {
            let first = lines.recv_timeout(AGE_CHECK_EVERY);
            if let Err(error) = self.check_age(SystemTime::now()) {
                self.complain(&error);
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
                self.complain(&error);
            }
            queued.fetch_sub(batch.len(), Ordering::AcqRel);
            #[expect(clippy::disallowed_methods, reason = "the pause lets lines gather")]
            std::thread::sleep(BATCH_PAUSE);
        }
    }

    fn complain(&mut self, error: &io::Error) {
        if complains(&mut self.complained) {
            let path = self.settings.path.display();
            tracing::error!(%error, %path, "cannot write the audit log, events are lost");
        }
    }

    /// Begins a new file when this one is old, and removes old ones, at most once an hour.
    fn check_age(&mut self, now: SystemTime) -> io::Result<()> {
        if now.duration_since(self.checked_at).is_ok_and(|since| since < AGE_CHECK_EVERY) {
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
                // A part of a line would spoil the next one.
                self.file.set_len(self.size)?;
                Err(error)
            }
        }
    }

    fn rotate(&mut self, now: SystemTime) -> io::Result<()> {
        // Each is named a millisecond later than the one before, so that names sort by age.
        let named_at = jiff::Timestamp::now().max(self.rotated_at + MILLISECOND);
        self.rotated_at = named_at;
        std::fs::rename(&self.settings.path, backup(&self.settings.path, named_at))?;
        (self.file, self.size) = open(&self.settings.path)?;
        self.begun_at = now;
        self.remove_outdated(now)
    }

    fn remove_outdated(&self, now: SystemTime) -> io::Result<()> {
        for old in outdated(&self.settings, now)? {
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

/// When the file was made, where its system knows that.
fn begun_at(file: &File, size: u64) -> io::Result<SystemTime> {
    if size == 0 {
        return Ok(SystemTime::now());
    }
    let metadata = file.metadata()?;
    metadata.created().or_else(|_| metadata.modified())
}

/// `audit-2026-01-02T03-04-05.678.log` beside `audit.log`.
fn backup(path: &Path, now: jiff::Timestamp) -> PathBuf {
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

/// An earlier file of a log.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Backup {
    name: String,
    pub path: PathBuf,
    modified: SystemTime,
}

/// The earlier files of a log, oldest first.
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

/// Earlier files that go: those above the number, oldest first, and those above the age.
fn outdated(settings: &LogSettings, now: SystemTime) -> io::Result<Vec<PathBuf>> {
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
    fn every_line_is_in_one_of_the_files_and_old_files_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let mut writer = Writer::open(settings(path.clone(), 100)).unwrap();
        for number in 0..45 {
            writer.append(&line(number)).unwrap();
        }
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().path()).collect();
        files.sort();
        // 9 lines of 11 bytes fit into a file: of five files two old ones and the newest stay.
        assert_eq!(files.len(), 3, "{files:?}");
        let mut text = String::new();
        for file in files {
            assert!(std::fs::metadata(&file).unwrap().len() <= 100);
            text += &std::fs::read_to_string(file).unwrap();
        }
        let kept: Vec<&str> = text.lines().collect();
        assert_eq!(kept.first(), Some(&"{\"n\":0018}"));
        assert_eq!(kept.last(), Some(&"{\"n\":0044}"));
        assert_eq!(kept.len(), 27);
    }

    #[test]
    fn events_of_a_quiet_server_grow_no_older_than_they_may() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let day = Duration::from_secs(24 * 60 * 60);
        let settings = LogSettings { age_max: 30 * day, ..settings(path.clone(), u64::MAX) };
        let mut writer = Writer::open(settings).unwrap();
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
    fn a_disk_that_takes_nothing_loses_events_and_says_so() {
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
        // A pipe that nobody reads from takes 64 KiB, and then nothing.
        let reader = OpenOptions::new().read(true).write(true).open(&fifo).unwrap();
        let lost = lost();
        let log = Log::open(settings(fifo, u64::MAX), lost.clone()).unwrap();
        let line = vec![b'x'; 64 * 1024];
        for _ in 0..400 {
            log.write(line.clone());
        }
        let dropped = lost.with_label_values(&["queue"]).get();
        let held = (QUEUED_BYTES_MAX / line.len()) as u64;
        assert!(dropped >= 400 - held - 2, "{dropped} of 400 were dropped");
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
    fn a_log_that_is_there_is_continued() {
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
