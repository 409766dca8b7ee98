//! `cargo xtask testbed up NAME` and `down NAME`: a real cluster that stays after the command.
//!
//! All its files are in `target/testbed/NAME`. `down` ends only the processes that `up` recorded
//! there. A record has the start time beside the process id, so that a reused id is not ended.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::Subcommand;
use testbed::{Options, Program, RealCluster, RealNode, RecordedProcess};

use crate::{deps, process, workspace};

#[derive(Subcommand)]
pub enum TestbedCommand {
    /// Start a cluster and write target/testbed/NAME/admin.kubeconfig.
    Up {
        /// Lower-case letters, digits and dashes.
        name: String,
        /// Let etcd wait for the disk, for measurements.
        #[arg(long)]
        durable: bool,
        /// With a node, on which pods run; needs root.
        #[arg(long)]
        node: bool,
        /// Image that the node gets, an OCI or Docker archive; may be repeated
        #[arg(long, value_name = "FILE", requires = "node")]
        image: Vec<PathBuf>,
        /// The cluster serves metrics.k8s.io.
        #[arg(long, requires = "node")]
        metrics: bool,
    },
    /// Stop all of a cluster and remove its folder.
    Down {
        /// The name it was started with.
        name: String,
    },
}

pub fn run(command: &TestbedCommand) -> Result<()> {
    match command {
        TestbedCommand::Up { name, durable, node, image, metrics } => {
            deps::run()?;
            up(&folder(name)?, *durable, node.then_some((image, *metrics)))
        }
        TestbedCommand::Down { name } => down(&folder(name)?),
    }
}

fn folder(name: &str) -> Result<PathBuf> {
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    ensure!(
        name.starts_with(plain) && name.chars().all(|letter| plain(letter) || letter == '-'),
        "a testbed's name may hold lower-case letters, digits and dashes, not '{name}'"
    );
    Ok(workspace::root().join("target/testbed").join(name))
}

/// `node`: the images that it gets, and whether it has metrics; `None`: without a node.
fn up(folder: &Path, durable: bool, node: Option<(&Vec<PathBuf>, bool)>) -> Result<()> {
    if recorded_processes(folder)?.iter().any(RecordedProcess::is_running) {
        bail!("'{}' is up; `cargo xtask testbed down` ends it", folder.display());
    }
    // Leftovers of an earlier cluster of this name, which is not running.
    RealNode::end_recorded(folder)?;
    remove(folder)?;
    let start = Instant::now();
    let options =
        Options { folder: Some(folder.to_owned()), detached: true, durable, ..Options::default() };
    let Some((images, has_metrics)) = node else {
        return ready(&RealCluster::start_with(&options)?, start);
    };
    let mut node = RealNode::start_with(&options)?;
    if let Err(error) = equip(&mut node, images, has_metrics) {
        // Nobody would end it. Its logs stay.
        drop(node);
        end(folder)?;
        return Err(error.into());
    }
    eprintln!("this machine is {} for pods", node.host_address());
    ready(node.cluster(), start)
}

/// Gives a node what it was asked to have.
fn equip(node: &mut RealNode, images: &[PathBuf], has_metrics: bool) -> Result<(), testbed::Error> {
    for image in images {
        node.import(image)?;
    }
    if has_metrics {
        node.serve_metrics()?;
    }
    Ok(())
}

fn ready(cluster: &RealCluster, start: Instant) -> Result<()> {
    eprintln!("ready in {} at {}", process::duration_text(start.elapsed()), cluster.server_url());
    for program in Program::CONTROL_PLANE {
        if let Some(size) = cluster.process_id(program).and_then(resident_kib) {
            eprintln!("  {:<24} {:>4} MiB resident", program.name(), size / 1024);
        }
    }
    println!("{}", cluster.kubeconfig_path().display());
    Ok(())
}

fn down(folder: &Path) -> Result<()> {
    if !folder.is_dir() {
        eprintln!("there is no testbed at '{}'", folder.display());
        return Ok(());
    }
    end(folder)?;
    remove(folder)
}

/// Ends the recorded processes.
fn end(folder: &Path) -> Result<()> {
    RealNode::end_recorded(folder)?;
    for record in recorded_processes(folder)? {
        record.end()?;
    }
    Ok(())
}

fn recorded_processes(folder: &Path) -> Result<Vec<RecordedProcess>> {
    let path = RealCluster::records_path(folder);
    match fs::read(&path) {
        Ok(text) => serde_json::from_slice(&text)
            .with_context(|| format!("cannot read the processes in '{}'", path.display())),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(cause) => Err(cause).with_context(|| format!("cannot read '{}'", path.display())),
    }
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
            Err(cause).with_context(|| format!("cannot remove '{}'", folder.display()))
        }
        _ => Ok(()),
    }
}

fn resident_kib(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests;
