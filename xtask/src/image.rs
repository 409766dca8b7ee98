//! `cargo xtask image`: the agent image, as a file that needs no registry and no daemon to make. The server's image, which
//! `cargo xtask dist` makes as well, is made the same way.
//!
//! An image holds one static binary and the certificate authorities of public servers: no shell,
//! no users, no libraries. Nothing of the machine or the moment shall get in, so that the same
//! sources give the same bytes; `--reproduce` checks that. [`binary`] builds the program and checks
//! that it needs nothing else, [`layer`] makes the file system, [`archive`] the image.

mod archive;
pub(crate) mod binary;
mod layer;
mod program;
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

use crate::{process, workspace};
use archive::{Archive, Description};
pub(crate) use program::{AGENT, Program, SERVER};

/// Where the system tests look for the image, below the root.
const OUTPUT: &str = "target/image/drover-agent.tar";
/// Seconds since 1970 for every time in the image, as reproducible builds agreed on.
const TIME_ENV: &str = "SOURCE_DATE_EPOCH";

/// What to build.
#[derive(Args, Default)]
pub struct Arguments {
    /// Name of the image [default: drover-agent:VERSION, as the server names it by default]
    #[arg(long, value_name = "REF")]
    name: Option<String>,
    /// Platform of the nodes, as rustc names it [default: this machine's]
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// File to write [default: target/image/drover-agent.tar]
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Build once more from nothing, in another folder, and fail unless the image is the same
    #[arg(long)]
    reproduce: bool,
}

pub fn run(arguments: &Arguments) -> Result<()> {
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
    write(&output, &archive.bytes)?;
    println!(
        "{} {}\n{}: {:.1} MB, in {}",
        description.name,
        archive.digest,
        output.display(),
        megabytes(archive.bytes.len()),
        process::length(start.elapsed())
    );
    Ok(())
}

fn build(description: &Description, target: &str, folder: Option<&Path>) -> Result<Archive> {
    pack(&AGENT, description, &binary::build(&AGENT, target, folder)?)
}

fn pack(program: &Program, description: &Description, binary: &[u8]) -> Result<Archive> {
    let layer = layer::layer(program, binary, description.time)?;
    archive::archive(program, description, &layer)
}

/// Writes the image of a program that has been built for `target`, under its usual name.
///
/// # Errors
/// The target is none of an image, or the file cannot be written.
pub(crate) fn write_image(
    program: &Program,
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

/// Replaced in one step: somebody may be importing the file just now.
pub(crate) fn write(output: &Path, bytes: &[u8]) -> Result<()> {
    let failed = || format!("cannot write '{}'", output.display());
    let folder = output.parent().with_context(failed)?;
    fs::create_dir_all(folder).with_context(failed)?;
    let unfinished = output.with_extension("unfinished");
    fs::write(&unfinished, bytes).with_context(failed)?;
    fs::rename(&unfinished, output).with_context(failed)
}

/// A name that can be given to something new: with a tag and without a digest.
fn name(program: &Program, wanted: Option<&str>) -> Result<ImageReference> {
    let usual = program.image_name();
    let text = wanted.unwrap_or(&usual);
    let name: ImageReference = text.parse().with_context(|| format!("--name '{text}'"))?;
    ensure!(
        name.tag().is_some() && name.digest().is_none(),
        "--name '{text}' must end with a tag, such as '{usual}'"
    );
    Ok(name)
}

/// The time that `SOURCE_DATE_EPOCH` gives, else the epoch: never the time of the build.
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

/// The commit that is built, when the sources are exactly that commit.
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

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}
