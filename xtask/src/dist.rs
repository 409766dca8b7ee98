//! `cargo xtask dist`: the files of a release in one folder: the static program, the images of
//! server and agent, a cluster driver, the bill of materials ([`bill`]), and checksums.
//!
//! Nothing is signed or uploaded.

mod bill;
#[cfg(test)]
mod tests;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;
use sha2::{Digest, Sha256};

use crate::image::{self, AGENT, SERVER, binary};
use crate::{process, ui, workspace};

/// Below the root. Cargo keeps files of the profile `dist` beside it.
const FOLDER: &str = concat!("target/dist/drover-", env!("CARGO_PKG_VERSION"));
/// In the format of `sha256sum --check`.
const SUMS: &str = "SHA256SUMS";
const BILL: &str = "drover.cdx.json";
/// A cluster driver as a file that servers can fetch, and its package.
const DRIVER: &str = "kontainer-engine-driver-example";
const DRIVER_PACKAGE: &str = "drivers";
const PROGRAM_MODE: u32 = 0o755;

/// What to build.
#[derive(Args)]
pub struct Arguments {
    /// Platforms, as rustc names them; each needs its target and a C compiler [default: this
    /// machine's]
    #[arg(long = "target", value_name = "TRIPLE")]
    targets: Vec<String>,
    /// Folder to write [default: target/dist/drover-VERSION]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let start = Instant::now();
    let output = arguments.output.clone().unwrap_or_else(|| workspace::root().join(FOLDER));
    let targets = match arguments.targets.as_slice() {
        [] => vec![binary::host_target()?],
        given => given.to_vec(),
    };
    empty_folder(&output)?;
    // First: the program embeds it.
    ui::build()?;
    for target in &targets {
        build_platform(target, &output)?;
    }
    let text = bill::bill(&bill::BillInput::read(&targets)?)?;
    image::write(&output.join(BILL), text.as_bytes())?;
    image::write(&output.join(SUMS), sums(&output)?.as_bytes())?;
    eprintln!("{} in {}", output.display(), process::duration_text(start.elapsed()));
    print!("{}", fs::read_to_string(output.join(SUMS))?);
    Ok(())
}

/// Builds the program and the images of one platform.
fn build_platform(target: &str, output: &Path) -> Result<()> {
    let platform = format!("linux-{}", binary::architecture(target)?);
    for program in [SERVER, AGENT] {
        eprintln!("building {} for {target} (the first time takes long)", program.binary);
        let bytes = binary::build(program.package, program.binary, target, None)?;
        let file = output.join(format!("{}-{platform}", program.binary));
        image::write(&file, &bytes)?;
        fs::set_permissions(&file, fs::Permissions::from_mode(PROGRAM_MODE))?;
        let archive = output.join(format!("{}-image-{platform}.tar", program.binary));
        image::write_image(&program, target, &bytes, &archive)?;
    }
    eprintln!("building {DRIVER} for {target}");
    let bytes = binary::build(DRIVER_PACKAGE, DRIVER, target, None)?;
    let file = output.join(format!("{DRIVER}-{platform}"));
    image::write(&file, &bytes)?;
    fs::set_permissions(&file, fs::Permissions::from_mode(PROGRAM_MODE))?;
    Ok(())
}

/// Empties the output folder: files of an earlier version must not be mixed with those of this one.
/// Refuses a folder with other files.
fn empty_folder(output: &Path) -> Result<()> {
    if output.exists() {
        let is_replaceable = output.join(SUMS).exists() || fs::read_dir(output)?.next().is_none();
        ensure!(is_replaceable, "'{}' has other files; remove it first", output.display());
        fs::remove_dir_all(output)
            .with_context(|| format!("cannot remove '{}'", output.display()))?;
    }
    fs::create_dir_all(output).with_context(|| format!("cannot create '{}'", output.display()))
}

/// The checksums, one line for each file of the folder, sorted by name.
fn sums(folder: &Path) -> Result<String> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.sort();
    let mut text = String::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if name == SUMS {
            continue;
        }
        let bytes = fs::read(&file).with_context(|| format!("cannot read '{}'", file.display()))?;
        let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        text.push_str(&format!("{hex}  {name}\n"));
    }
    Ok(text)
}
