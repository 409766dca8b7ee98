//! A program as one file that needs no other: linked with its C library, and alike wherever it is
//! built.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use object::elf;
use object::read::elf::{ElfFile64, ProgramHeader};
use serde::Deserialize;

use super::Program;
use crate::{process, workspace};

/// Between the parts of `CARGO_ENCODED_RUSTFLAGS`, which may hold blanks.
const FLAG_SEPARATOR: &str = "\u{1f}";

/// mimalloc says in its banner when it was compiled.
const TIMELESS_C: &str = r#"-Wno-builtin-macro-redefined -D__DATE__="then" -D__TIME__="then""#;

/// Called by cargo in place of rustc, below the root.
const WRAPPER: &str = "target/image/rustc";
const WRAPPER_TEXT: &str = r#"#!/bin/sh
exec "$@" --remap-path-prefix="$DROVER_CARGO=/cargo" \
    --remap-path-prefix="$DROVER_ROOT=/drover" --remap-path-prefix="$DROVER_TARGET=/target"
"#;

/// First parts of target triples, and what images call them.
const ARCHITECTURES: [(&str, &str); 2] = [("x86_64", "amd64"), ("aarch64", "arm64")];

/// What images call the processor of a target.
pub fn architecture(target: &str) -> Result<&'static str> {
    let processor = target.split('-').next().unwrap_or_default();
    let known = ARCHITECTURES.iter().find(|(name, _)| *name == processor);
    let Some((_, architecture)) = known.filter(|_| target.contains("-linux-")) else {
        let names = ARCHITECTURES.map(|(name, _)| name).join(", ");
        bail!("the image is for Linux on one of {names}; '{target}' is something else");
    };
    Ok(architecture)
}

/// The platform of this machine.
pub fn host_target() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("cannot run rustc")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("`rustc -vV` names no host")
}

#[derive(Deserialize)]
struct Message {
    reason: String,
    executable: Option<PathBuf>,
}

/// Builds the program for `target` and reads it. `folder` takes what cargo makes, in place of the
/// workspace's target folder.
pub fn build(program: &Program, target: &str, folder: Option<&Path>) -> Result<Vec<u8>> {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--package", program.package, "--bin", program.binary]);
    cargo.args(["--profile", "dist"]);
    cargo.args(["--target", target, "--message-format", "json-render-diagnostics"]);
    if let Some(folder) = folder {
        cargo.arg("--target-dir").arg(folder);
    }
    reproducible_and_static(&mut cargo, folder)?;
    let line = process::shown(&cargo);
    let mut child = cargo.stdout(Stdio::piped()).spawn().context("cannot run cargo")?;
    let output = child.stdout.take().context("cargo has no standard output")?;
    let mut built = None;
    for message in BufReader::new(output).lines() {
        let message: Message =
            serde_json::from_str(&message?).context("cannot read cargo's words")?;
        if message.reason == "compiler-artifact" {
            built = message.executable.or(built);
        }
    }
    ensure!(
        child.wait()?.success(),
        "`{line}` failed; a static build needs the C library as an archive too (glibc's comes with \
         libc6-dev or glibc-static; for musl's, install musl-tools and name a musl --target)"
    );
    let path = built.context("cargo built no program")?;
    let binary = fs::read(&path).with_context(|| format!("cannot read '{}'", path.display()))?;
    needs_no_other_file(&binary).with_context(|| format!("'{}'", path.display()))?;
    Ok(binary)
}

/// Sets what cargo, rustc and C compilers are told beyond the profile.
///
/// Neither paths of this machine nor the time may get into the binary. The ones for rustc go past cargo, by a
/// wrapper, because cargo puts a hash of its flags into the names of symbols.
fn reproducible_and_static(cargo: &mut Command, folder: Option<&Path>) -> Result<()> {
    let home = match std::env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => std::env::home_dir().context("no home directory")?.join(".cargo"),
    };
    let root = workspace::root();
    let target = folder.map_or_else(|| root.join("target"), Path::to_owned);
    let wrapper = workspace::root().join(WRAPPER);
    write_wrapper(&wrapper)?;
    cargo.env("RUSTC_WRAPPER", wrapper);

    let mut c = vec![std::env::var_os("CFLAGS").unwrap_or_default(), TIMELESS_C.into()];
    // The most particular last: the last one that fits counts.
    for (place, variable, name) in [
        (home, "DROVER_CARGO", "/cargo"),
        (root, "DROVER_ROOT", "/drover"),
        (target, "DROVER_TARGET", "/target"),
    ] {
        let mut flag = OsString::from("-ffile-prefix-map=");
        flag.push(&place);
        flag.push(format!("={name}"));
        c.push(flag);
        cargo.env(variable, place);
    }
    cargo.env("CFLAGS", c.join(" ".as_ref()));
    // By the system call alone: what getrandom would look for first is no part of a static program,
    // and the files that it would read then are no part of the image.
    let rust = ["-Ctarget-feature=+crt-static", "--cfg=getrandom_backend=\"linux_getrandom\""];
    cargo.env("CARGO_ENCODED_RUSTFLAGS", rust.join(FLAG_SEPARATOR));
    Ok(())
}

fn write_wrapper(path: &Path) -> Result<()> {
    let failed = || format!("cannot write '{}'", path.display());
    fs::create_dir_all(path.parent().with_context(failed)?).with_context(failed)?;
    // Not written anew when it is there: it may be running.
    if fs::read_to_string(path).ok().as_deref() != Some(WRAPPER_TEXT) {
        fs::write(path, WRAPPER_TEXT).with_context(failed)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).with_context(failed)?;
    }
    Ok(())
}

/// An image without libraries can only run a program that asks for none, and for no loader.
pub(super) fn needs_no_other_file(binary: &[u8]) -> Result<()> {
    let file = ElfFile64::<object::Endianness>::parse(binary).context("no 64-bit ELF file")?;
    let asks = file
        .elf_program_headers()
        .iter()
        .any(|header| header.p_type(file.endian()) == elf::PT_INTERP);
    ensure!(!asks, "it is linked dynamically and would not start in an empty image");
    Ok(())
}
