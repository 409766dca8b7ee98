//! Files that are drivers, and files that are none.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

use super::*;

/// The header of a program for a machine, as elf(5) numbers them.
fn elf(machine: u16) -> Vec<u8> {
    let mut header = vec![0; 64];
    header[..4].copy_from_slice(&ELF);
    header[18..20].copy_from_slice(&machine.to_le_bytes());
    header
}

fn own() -> Vec<u8> {
    elf(if cfg!(target_arch = "x86_64") { 62 } else { 183 })
}

fn tar_with(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, content) in entries {
        let mut header = tar::Header::new_gnu();
        // Not by the method of the builder, which refuses paths that lead out.
        let name = &mut header.as_old_mut().name;
        name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_size(content.len() as u64);
        header.set_mode(0o755);
        header.set_cksum();
        archive.append(&header, *content).unwrap();
    }
    archive.into_inner().unwrap()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn zip_with(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
    for (path, content) in entries {
        archive.start_file(*path, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// Installs what has this name and this content.
fn installed(name: &str, content: &[u8]) -> (TempDir, Result<Installed, ProgramError>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("download");
    std::fs::write(&file, content).unwrap();
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let result = install(&file, &[name.to_owned()], &inner);
    (folder, result)
}

#[test]
fn a_driver_is_named_after_its_file() {
    for (file, name) in [
        ("kontainer-engine-driver-example", "example"),
        ("kontainer-engine-driver-LKE-linux-amd64", "lke"),
        ("kontainer-engine-driver-oke_linux", "oke"),
        ("kontainer-engine-driver-otc.v1", "otc"),
    ] {
        let (_folder, result) = installed(file, &own());
        let result = result.unwrap();
        assert_eq!(result.name, name);
        let mode = result.file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
    }
}

#[test]
fn an_archive_has_the_driver_somewhere() {
    let own = own();
    let entries: [(&str, &[u8]); 2] =
        [("README", b"hello"), ("build/bin/kontainer-engine-driver-otccce", &own)];
    for archive in [tar_with(&entries), gzip(&tar_with(&entries)), zip_with(&entries)] {
        let (_folder, result) = installed("release", &archive);
        let result = result.unwrap();
        // The whole rest of the name.
        assert_eq!(result.name, "otccce");
        assert_eq!(std::fs::read(result.file).unwrap(), own);
    }
}

#[test]
fn an_archive_writes_nowhere_else() {
    let own = own();
    let entries: [(&str, &[u8]); 1] = [("../../../kontainer-engine-driver-evil", &own)];
    for archive in [tar_with(&entries), zip_with(&entries)] {
        let (folder, result) = installed("release", &archive);
        let file = result.unwrap().file;
        assert!(file.starts_with(folder.path().join("inner")), "{}", file.display());
    }
    // Also not by a name that goes on elsewhere.
    let name = "kontainer-engine-driver-..";
    let (_folder, result) = installed("release", &tar_with(&[(name, &own)]));
    assert!(matches!(result, Err(ProgramError::Name(_))), "{result:?}");
}

#[test]
fn each_file_that_is_no_driver_has_its_reason() {
    let name = "kontainer-engine-driver-x";
    let other = elf(if cfg!(target_arch = "x86_64") { 183 } else { 62 });
    let link = {
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        archive.append_link(&mut header, name, "/etc/shadow").unwrap();
        archive.into_inner().unwrap()
    };
    for (file, content, reason) in [
        (name, b"  <!DOCTYPE html><title>Log in</title>".to_vec(), "gives a web page"),
        (name, b"#!/bin/sh\n".to_vec(), "neither a program for Linux nor an archive"),
        (name, Vec::new(), "neither a program for Linux nor an archive"),
        (name, other, "the program is for "),
        (name, [&MACH_O[..], &[0; 60]].concat(), "the program is for macOS"),
        ("driver", own(), "names of drivers begin with"),
        ("kontainer-engine-driver-", own(), "names of drivers begin with"),
        (name, tar_with(&[("README", b"x")]), "the archive has no file"),
        (name, zip_with(&[("README", b"x")]), "the archive has no file"),
        (name, link, "the archive has no file"),
        (name, gzip(b"no archive"), "the archive"),
        (name, [&ZIP[..], &[0; 60]].concat(), "the archive cannot be read"),
        (name, zip_with(&[(name, b"text")]), "neither a program for Linux"),
    ] {
        let (_folder, result) = installed(file, &content);
        let error = result.unwrap_err().to_string();
        assert!(error.contains(reason), "{error}, and not {reason}");
    }
}

#[test]
fn an_archive_that_unpacks_to_too_much_is_left() {
    let mut limited = Limited { inner: io::repeat(0), left: 1 << 20 };
    let error = io::copy(&mut limited, &mut io::sink()).unwrap_err();
    assert!(matches!(unreadable(error), ProgramError::TooLarge("more than 2 GiB")));
    let many: Vec<(&str, &[u8])> = vec![("README", b""); ENTRIES_MAX + 1];
    let (_folder, result) = installed("release", &tar_with(&many));
    assert!(matches!(result, Err(ProgramError::TooLarge("too many files"))), "{result:?}");
}
