//! `cargo xtask image`: builds the agent image as a file, without a registry or a daemon; with
//! `--shell` that of kubectl shells ([`shell`]). `cargo xtask dist` builds the server's image in
//! the same way.
//!
//! The image of a program contains one static binary and the public certificate authorities: no
//! shell, no users, no libraries. Builds are reproducible: the same sources give the same bytes on
//! any machine at any time; `--reproduce` checks that. [`binary`] builds the program and checks
//! that it is static, [`layer`] creates the file system, [`archive`] the image.

mod archive;
pub(crate) mod binary;
mod layer;
mod program;
mod shell;
#[cfg(test)]
mod tests;
mod timeless;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use api_meta::image::ImageReference;
use clap::Args;
use jiff::Timestamp;

use crate::{deps, process, workspace};
use archive::{Archive, Description};
pub(crate) use program::{AGENT, ImageProgram, SERVER};

/// The files that the system tests read, below the root.
const OUTPUT: &str = "target/image/drover-agent.tar";
const SHELL_OUTPUT: &str = "target/image/drover-shell.tar";
/// Seconds since 1970 for every time in the image, the convention of reproducible builds.
const TIME_ENV: &str = "SOURCE_DATE_EPOCH";

/// What to build.
#[derive(Args, Default)]
pub struct Arguments {
    /// Build the image of kubectl shells instead, from what `cargo xtask deps` builds
    #[arg(long, conflicts_with_all = ["target", "reproduce"])]
    shell: bool,
    /// Name of the image [default: drover-agent:VERSION or drover-shell:VERSION, as the server
    /// names it by default]
    #[arg(long, value_name = "REF")]
    name: Option<String>,
    /// Platform of the nodes, as rustc names it [default: this machine's]
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// File to write [default: target/image/drover-agent.tar or drover-shell.tar]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Build once more from nothing, in another folder, and fail unless the image is the same
    #[arg(long)]
    reproduce: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    match arguments.shell {
        true => run_shell(arguments),
        false => run_agent(arguments),
    }
}

fn run_shell(arguments: &Arguments) -> Result<()> {
    let start = Instant::now();
    deps::run()?;
    let description = Description {
        name: name(&shell::SHELL, arguments.name.as_deref())?,
        architecture: binary::architecture(&binary::host_target()?)?,
        time: time(std::env::var(TIME_ENV).ok().as_deref())?,
        revision: revision(),
    };
    let layer = shell::layer(description.time)?;
    let archive = archive::archive(&shell::SHELL, &description, &layer)?;
    let output = arguments.output.clone().unwrap_or_else(|| workspace::root().join(SHELL_OUTPUT));
    report(&description, &archive, &output, start)
}

fn run_agent(arguments: &Arguments) -> Result<()> {
    let start = Instant::now();
    let target = match &arguments.target {
        Some(target) => target.clone(),
        None => binary::host_target()?,
    };
    let description = Description {
        name: name(&AGENT, arguments.name.as_deref())?,
        architecture: binary::architecture(&target)?,
        time: time(std::env::var(TIME_ENV).ok().as_deref())?,
        revision: revision(),
    };
    eprintln!("building drover-agent for {target} (the first time takes minutes)");
    let archive = build(&description, &target, None)?;
    if arguments.reproduce {
        let folder = tempfile::tempdir()?;
        eprintln!("building it again from nothing");
        let again = build(&description, &target, Some(folder.path()))?;
        ensure!(
            archive.bytes == again.bytes,
            "the second build gives another image: {} instead of {}",
            again.digest,
            archive.digest
        );
    }
    let output = arguments.output.clone().unwrap_or_else(|| workspace::root().join(OUTPUT));
    report(&description, &archive, &output, start)
}

fn report(
    description: &Description,
    archive: &Archive,
    output: &Path,
    start: Instant,
) -> Result<()> {
    write(output, &archive.bytes)?;
    println!(
        "{} {}\n{}: {:.1} MB, in {}",
        description.name,
        archive.digest,
        output.display(),
        megabytes(archive.bytes.len()),
        process::duration_text(start.elapsed())
    );
    Ok(())
}

fn build(description: &Description, target: &str, folder: Option<&Path>) -> Result<Archive> {
    pack(&AGENT, description, &binary::build(AGENT.package, AGENT.binary, target, folder)?)
}

fn pack(program: &ImageProgram, description: &Description, binary: &[u8]) -> Result<Archive> {
    let layer = layer::layer(program, binary, description.time)?;
    archive::archive(program, description, &layer)
}

/// Writes the image of a program that has been built for `target`, under its usual name.
///
/// # Errors
/// The target is not supported, or the file cannot be written.
pub(crate) fn write_image(
    program: &ImageProgram,
    target: &str,
    binary: &[u8],
    output: &Path,
) -> Result<()> {
    let description = Description {
        name: name(program, None)?,
        architecture: binary::architecture(target)?,
        time: time(std::env::var(TIME_ENV).ok().as_deref())?,
        revision: revision(),
    };
    write(output, &pack(program, &description, binary)?.bytes)
}

/// Writes a file atomically: another process may be importing it.
pub(crate) fn write(output: &Path, bytes: &[u8]) -> Result<()> {
    let failed = || format!("cannot write '{}'", output.display());
    let folder = output.parent().with_context(failed)?;
    fs::create_dir_all(folder).with_context(failed)?;
    let unfinished = output.with_extension("unfinished");
    fs::write(&unfinished, bytes).with_context(failed)?;
    fs::rename(&unfinished, output).with_context(failed)
}

/// The name of a new image: with a tag and without a digest.
fn name(program: &ImageProgram, requested: Option<&str>) -> Result<ImageReference> {
    let default = program.image_name();
    let text = requested.unwrap_or(&default);
    let name: ImageReference = text.parse().with_context(|| format!("--name '{text}'"))?;
    ensure!(
        name.tag().is_some() && name.digest().is_none(),
        "--name '{text}' must end with a tag, such as '{default}'"
    );
    Ok(name)
}

/// The time of `SOURCE_DATE_EPOCH`, else the epoch: never the time of the build.
fn time(variable: Option<&str>) -> Result<Timestamp> {
    let Some(text) = variable.filter(|text| !text.is_empty()) else {
        return Ok(Timestamp::UNIX_EPOCH);
    };
    let seconds = text.parse().ok().filter(|seconds| *seconds >= 0);
    match seconds.map(Timestamp::from_second) {
        Some(Ok(time)) => Ok(time),
        _ => bail!("{TIME_ENV} must be whole seconds since 1970, not '{text}'"),
    }
}

/// The commit, if the sources have no uncommitted changes.
fn revision() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").current_dir(workspace::root()).args(arguments).output();
        let output = output.ok().filter(|output| output.status.success())?;
        String::from_utf8(output.stdout).ok()
    };
    let is_clean = git(&["status", "--porcelain"])?.is_empty();
    let commit = git(&["rev-parse", "HEAD"])?;
    is_clean.then(|| commit.trim().to_owned())
}

#[expect(clippy::cast_precision_loss, reason = "only for display")]
fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}
