//! The agent image that `cargo xtask image` has built, as a file.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use flate2::read::GzDecoder;
use serde_json::Value;
use tar::Archive;

/// Variable with another file than `target/image/drover-agent.tar`.
pub const IMAGE_ENV: &str = "DROVER_AGENT_IMAGE_FILE";

/// The path of the image.
///
/// # Errors
/// It is missing; the message has the command that builds it.
pub fn path() -> Result<PathBuf> {
    let path = match std::env::var_os(IMAGE_ENV) {
        Some(path) => PathBuf::from(path),
        None => {
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
            root.join("target/image/drover-agent.tar")
        }
    };
    ensure!(
        path.is_file(),
        "the agent image is not at '{}'; build it with `cargo xtask image`",
        path.display()
    );
    Ok(path)
}

/// The name of the image in runtimes.
///
/// # Errors
/// The file is not an image, or is missing.
pub fn name() -> Result<String> {
    let index = json("index.json")?;
    let name = &index["manifests"][0]["annotations"]["io.containerd.image.name"];
    name.as_str().map(str::to_owned).with_context(|| format!("no name in {index}"))
}

/// The run configuration of the image.
///
/// # Errors
/// Like [`name`].
pub fn config() -> Result<Value> {
    let docker = json("manifest.json")?;
    let config = docker[0]["Config"].as_str().context("no config")?;
    json(config)
}

/// Unpacks the image's file system into `folder`.
///
/// # Errors
/// Like [`name`], or the folder cannot be written.
pub fn unpack(folder: &Path) -> Result<()> {
    let docker = json("manifest.json")?;
    let layers = docker[0]["Layers"].as_array().context("no layers")?;
    for layer in layers {
        let layer = read(layer.as_str().context("a layer without a path")?)?;
        Archive::new(GzDecoder::new(&layer[..])).unpack(folder).context("unpack the layer")?;
    }
    Ok(())
}

fn json(path: &str) -> Result<Value> {
    serde_json::from_slice(&read(path)?).with_context(|| format!("\"{path}\" in the image"))
}

fn read(file: &str) -> Result<Vec<u8>> {
    let mut archive = Archive::new(File::open(path()?)?);
    for entry in archive.entries()? {
        let mut entry = entry?;
        if entry.path()? == Path::new(file) {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes)?;
            return Ok(bytes);
        }
    }
    anyhow::bail!("the image has no \"{file}\"")
}
