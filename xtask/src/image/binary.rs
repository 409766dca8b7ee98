//! Builds a static program: linked with its C library, and identical on every machine.

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

use crate::{process, workspace};

/// Separator in `CARGO_ENCODED_RUSTFLAGS`, whose parts may contain spaces.
const FLAG_SEPARATOR: &str = "\u{1f}";

/// The banner of mimalloc contains the time of compilation.
const TIMELESS_C: &str = r#"-Wno-builtin-macro-redefined -D__DATE__="then" -D__TIME__="then""#;

/// The wrapper that cargo runs in place of rustc, below the root.
const WRAPPER: &str = "target/image/rustc";
const WRAPPER_TEXT: &str = r#"#!/bin/sh
exec "$@" --remap-path-prefix="$DROVER_CARGO=/cargo" \
    --remap-path-prefix="$DROVER_ROOT=/drover" --remap-path-prefix="$DROVER_TARGET=/target"
"#;

/// First parts of target triples, and their names in images.
const ARCHITECTURES: [(&str, &str); 2] = [("x86_64", "amd64"), ("aarch64", "arm64")];

/// The name in images of the processor of a target.
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
struct CargoMessage {
    reason: String,
    executable: Option<PathBuf>,
}

/// Builds a program of a package for `target` and returns the binary. `folder`: target folder in
/// place of the workspace's.
pub fn build(package: &str, program: &str, target: &str, folder: Option<&Path>) -> Result<Vec<u8>> {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--package", package, "--bin", program]);
    cargo.args(["--profile", "dist"]);
    cargo.args(["--target", target, "--message-format", "json-render-diagnostics"]);
    if let Some(folder) = folder {
        cargo.arg("--target-dir").arg(folder);
    }
    make_reproducible_and_static(&mut cargo, folder)?;
    let line = process::command_line(&cargo);
    let mut child = cargo.stdout(Stdio::piped()).spawn().context("cannot run cargo")?;
    let output = child.stdout.take().context("cargo has no standard output")?;
    let mut built = None;
    for message in BufReader::new(output).lines() {
        let message: CargoMessage =
            serde_json::from_str(&message?).context("cannot read the output of cargo")?;
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
    check_is_static(&binary).with_context(|| format!("'{}'", path.display()))?;
    Ok(binary)
}

/// Sets flags of cargo, rustc and C compilers in addition to the profile.
///
/// The binary must contain neither paths of this machine nor the time. A wrapper passes the path
/// flags to rustc, because cargo includes a hash of its flags in symbol names.
fn make_reproducible_and_static(cargo: &mut Command, folder: Option<&Path>) -> Result<()> {
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
    // The most specific last: the last match is applied.
    for (path, variable, name) in [
        (home, "DROVER_CARGO", "/cargo"),
        (root, "DROVER_ROOT", "/drover"),
        (target, "DROVER_TARGET", "/target"),
    ] {
        let mut flag = OsString::from("-ffile-prefix-map=");
        flag.push(&path);
        flag.push(format!("={name}"));
        c.push(flag);
        cargo.env(variable, path);
    }
    cargo.env("CFLAGS", c.join(" ".as_ref()));
    // getrandom must use the system call only: its other sources need dynamic symbols or device
    // files, which a static program and the image do not have.
    let rust = ["-Ctarget-feature=+crt-static", "--cfg=getrandom_backend=\"linux_getrandom\""];
    cargo.env("CARGO_ENCODED_RUSTFLAGS", rust.join(FLAG_SEPARATOR));
    Ok(())
}

fn write_wrapper(path: &Path) -> Result<()> {
    let failed = || format!("cannot write '{}'", path.display());
    fs::create_dir_all(path.parent().with_context(failed)?).with_context(failed)?;
    // An existing wrapper is not rewritten: it may be running.
    if fs::read_to_string(path).ok().as_deref() != Some(WRAPPER_TEXT) {
        fs::write(path, WRAPPER_TEXT).with_context(failed)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).with_context(failed)?;
    }
    Ok(())
}

/// Checks that a binary needs no loader or shared libraries, which the image does not have.
pub(super) fn check_is_static(binary: &[u8]) -> Result<()> {
    let file = ElfFile64::<object::Endianness>::parse(binary).context("not a 64-bit ELF file")?;
    let needs_loader = file
        .elf_program_headers()
        .iter()
        .any(|header| header.p_type(file.endian()) == elf::PT_INTERP);
    ensure!(!needs_loader, "it is linked dynamically and would not start in an empty image");
    Ok(())
}
