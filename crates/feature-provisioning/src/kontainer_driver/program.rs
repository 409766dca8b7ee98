//! Whether a file is a driver for this machine, or an archive with one.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

/// Prefix of the file names of drivers.
const FILE_PREFIX: &str = "kontainer-engine-driver-";
/// Largest program in an archive: a small archive can unpack to anything.
const PROGRAM_BYTES_MAX: u64 = 1 << 30;
/// Files of an archive that are looked at.
const ENTRIES_MAX: usize = 10_000;
/// All that is unpacked of an archive to find the program.
const UNPACKED_BYTES_MAX: u64 = 2 << 30;
const NAME_LENGTH_MAX: usize = 63;
const ELF: [u8; 4] = *b"\x7fELF";
const MACH_O: [u8; 4] = [0xcf, 0xfa, 0xed, 0xfe];
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZIP: [u8; 4] = *b"PK\x03\x04";
/// `ustar`, where it stands in a tar file.
const TAR: (u64, &[u8]) = (257, b"ustar");
/// What the first bytes of a page are compared with.
const PAGE_BEGINNINGS: [&str; 2] = ["<!doctype", "<html"];

/// Why a file is no driver.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The name says not what it is.
    #[error(
        "the file is called \"{0}\"; names of drivers begin with \"{FILE_PREFIX}\" and go on with \
         letters and digits"
    )]
    Name(String),
    /// A page with text, as error pages and login pages are.
    #[error("the address gives a web page, not a program; give the address of the file itself")]
    Page,
    /// For another system.
    #[error("the program is for {system}, and this server runs on {}", std::env::consts::ARCH)]
    OtherSystem {
        /// What it is for.
        system: &'static str,
    },
    /// Neither a program nor an archive.
    #[error("the file is neither a program for Linux nor an archive (.tar, .tar.gz or .zip)")]
    Unknown,
    /// No driver in it.
    #[error("the archive has no file whose name begins with \"{FILE_PREFIX}\"")]
    NotInArchive,
    /// More than [`ENTRIES_MAX`], [`PROGRAM_BYTES_MAX`] or [`UNPACKED_BYTES_MAX`].
    #[error("the archive unpacks to more than a driver can be: {0}")]
    TooLarge(&'static str),
    /// It cannot be read.
    #[error("the archive cannot be read: {0}")]
    Archive(#[source] io::Error),
    /// It cannot be read or written here.
    #[error("cannot install the program: {0}")]
    Store(#[from] io::Error),
}

/// A driver that was installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// The name of the driver, from that of its file.
    pub name: String,
    /// Its file.
    pub file: PathBuf,
}

/// Puts the driver in the downloaded file into `folder`, which must exist. `names` are the names
/// that the file may have.
///
/// # Errors
/// See [`ProgramError`].
pub fn install(
    downloaded: &Path,
    names: &[String],
    folder: &Path,
) -> Result<Installed, ProgramError> {
    let mut file = File::open(downloaded)?;
    let beginning = beginning(&mut file)?;
    let target = |name: &str| folder.join(format!("{FILE_PREFIX}{name}"));
    if beginning.starts_with(&ELF) || beginning.starts_with(&MACH_O) {
        let first = names.first().cloned().unwrap_or_default();
        let name = names.iter().find_map(|name| name_of_file(name, true));
        let name = name.ok_or(ProgramError::Name(first))?;
        check_system(&beginning)?;
        let path = target(&name);
        write_program(&mut file, &path)?;
        return Ok(Installed { name, file: path });
    }
    let path = folder.join("program");
    let found = if beginning.starts_with(&GZIP) {
        from_tar(GzDecoder::new(file), &path)?
    } else if beginning.starts_with(&ZIP) {
        from_zip(file, &path)?
    } else if is_tar(&mut file)? {
        from_tar(file, &path)?
    } else if is_page(&beginning) {
        return Err(ProgramError::Page);
    } else {
        return Err(ProgramError::Unknown);
    };
    let name = name_of_file(&found, false).ok_or(ProgramError::Name(found))?;
    let mut program = File::open(&path)?;
    check_system(&self::beginning(&mut program)?)?;
    let file = target(&name);
    std::fs::rename(&path, &file)?;
    Ok(Installed { name, file })
}

/// The name of the driver in a file name: what follows the prefix, of a file that is no archive up
/// to the first `-`, `_` or `.`.
fn name_of_file(file: &str, is_cut: bool) -> Option<String> {
    let rest = file.strip_prefix(FILE_PREFIX)?;
    let name = if is_cut { rest.split(['-', '_', '.']).next()? } else { rest };
    let name = name.to_ascii_lowercase();
    let is_letter = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_' | '.');
    let is_valid = name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.chars().all(is_letter)
        && name.len() <= NAME_LENGTH_MAX;
    is_valid.then_some(name)
}

/// The first bytes; the file is at its start again.
fn beginning(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(512).read_to_end(&mut bytes)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(bytes)
}

/// Refuses programs that cannot run here, by the header of the file (elf(5)).
fn check_system(beginning: &[u8]) -> Result<(), ProgramError> {
    if beginning.starts_with(&MACH_O) {
        return Err(ProgramError::OtherSystem { system: "macOS" });
    }
    if !beginning.starts_with(&ELF) {
        return Err(ProgramError::Unknown);
    }
    let machine = beginning.get(18..20).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
    let system = match machine {
        Some(62) => "x86_64",
        Some(183) => "aarch64",
        Some(3) => "x86 with 32 bits",
        Some(40) => "arm with 32 bits",
        Some(243) => "riscv64",
        _ => "another processor",
    };
    if system == std::env::consts::ARCH {
        Ok(())
    } else {
        Err(ProgramError::OtherSystem { system })
    }
}

fn is_tar(file: &mut File) -> io::Result<bool> {
    let (at, magic) = TAR;
    let mut found = Vec::new();
    file.seek(SeekFrom::Start(at))?;
    file.take(magic.len() as u64).read_to_end(&mut found)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(found == magic)
}

fn is_page(beginning: &[u8]) -> bool {
    let text = String::from_utf8_lossy(beginning).trim_start().to_ascii_lowercase();
    PAGE_BEGINNINGS.iter().any(|page| text.starts_with(page))
}

/// The name of a file of an archive, if it is a driver's. Only the name counts: nothing is written
/// where the archive says.
fn driver_in(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    name.starts_with(FILE_PREFIX).then(|| name.to_owned())
}

fn from_tar(tar: impl Read, target: &Path) -> Result<String, ProgramError> {
    // Also what is skipped is unpacked.
    let mut archive = tar::Archive::new(Limited { inner: tar, left: UNPACKED_BYTES_MAX });
    let entries = archive.entries().map_err(ProgramError::Archive)?;
    for (index, entry) in entries.enumerate() {
        if index == ENTRIES_MAX {
            return Err(ProgramError::TooLarge("too many files"));
        }
        let mut entry = entry.map_err(unreadable)?;
        let name = entry.path().ok().and_then(|path| driver_in(&path));
        if let Some(name) = name.filter(|_| entry.header().entry_type().is_file()) {
            write_program(&mut entry, target)?;
            return Ok(name);
        }
    }
    Err(ProgramError::NotInArchive)
}

fn from_zip(file: File, target: &Path) -> Result<String, ProgramError> {
    let unreadable = |error: zip::result::ZipError| ProgramError::Archive(io::Error::other(error));
    let mut archive = zip::ZipArchive::new(file).map_err(unreadable)?;
    if archive.len() > ENTRIES_MAX {
        return Err(ProgramError::TooLarge("too many files"));
    }
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(unreadable)?;
        let name = entry.name().ok().and_then(|name| driver_in(Path::new(name.as_ref())));
        if let Some(name) = name.filter(|_| entry.is_file()) {
            write_program(&mut entry, target)?;
            return Ok(name);
        }
    }
    Err(ProgramError::NotInArchive)
}

fn write_program(from: &mut impl Read, target: &Path) -> Result<(), ProgramError> {
    let mut file = File::create(target)?;
    let length = io::copy(&mut from.take(PROGRAM_BYTES_MAX + 1), &mut file).map_err(unreadable)?;
    if length > PROGRAM_BYTES_MAX {
        return Err(ProgramError::TooLarge("the program has more than 1 GiB"));
    }
    file.flush()?;
    // A driver may run as another user.
    file.set_permissions(std::fs::Permissions::from_mode(0o755))?;
    file.sync_all()?;
    Ok(())
}

fn unreadable(error: io::Error) -> ProgramError {
    match error.get_ref().is_some_and(|cause| cause.is::<LimitReached>()) {
        true => ProgramError::TooLarge("more than 2 GiB"),
        false => ProgramError::Archive(error),
    }
}

/// A reader that fails once its limit is reached.
struct Limited<R> {
    inner: R,
    left: u64,
}

#[derive(Debug, thiserror::Error)]
#[error("the limit is reached")]
struct LimitReached;

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.left =
            self.left.checked_sub(length as u64).ok_or_else(|| io::Error::other(LimitReached))?;
        Ok(length)
    }
}

#[cfg(test)]
mod tests;
