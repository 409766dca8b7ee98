//! Which nodes this machine has: a file each, so that what a killed test leaves can be found.
//!
//! A node has a number. Its addresses, its interface here and its control groups are named by it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use super::cgroups;
use crate::{Error, RecordedProcess};

/// Nodes at once on one machine, by the third byte of their addresses.
const NODES_MAX: u8 = 254;
/// Cleared when the machine starts, as the nodes are.
const FOLDER: &str = "/run/drover-testbed";

/// A node as others see it. It is gone when its holder is.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Entry {
    /// The process that holds its network.
    pub(super) holder: RecordedProcess,
    pub(super) folder: PathBuf,
    /// Nobody else removes the folder.
    pub(super) is_temporary: bool,
}

/// The registry while nobody else changes it.
pub(super) struct Registry {
    _lock: File,
}

impl Registry {
    /// Waits until it is free, and removes what nodes without a holder have left.
    pub(super) fn open() -> Result<Self, Error> {
        fs::create_dir_all(FOLDER).map_err(Error::file("create", FOLDER))?;
        let path = Path::new(FOLDER).join("lock");
        let lock = File::create(&path).map_err(Error::file("create", &path))?;
        lock.lock().map_err(Error::file("lock", &path))?;
        let registry = Self { _lock: lock };
        registry.sweep()?;
        Ok(registry)
    }

    pub(super) fn free_number(&self) -> Result<u8, Error> {
        (1..=NODES_MAX).find(|&number| !path(number).exists()).ok_or_else(|| {
            let needed = format!("a free number; {NODES_MAX} nodes are running here");
            Error::NodeNeeds { needed }
        })
    }

    pub(super) fn enter(&self, number: u8, entry: &Entry) -> Result<(), Error> {
        let path = path(number);
        fs::write(&path, serde_json::json!(entry).to_string()).map_err(Error::file("write", path))
    }

    fn sweep(&self) -> Result<(), Error> {
        for number in 1..=NODES_MAX {
            let Ok(text) = fs::read(path(number)) else { continue };
            // What cannot be read was cut off when it was written, before there was more to remove.
            let entry: Option<Entry> = serde_json::from_slice(&text).ok();
            if entry.as_ref().is_some_and(|entry| entry.holder.is_running()) {
                continue;
            }
            leave(number)?;
            if let Some(entry) = entry.filter(|entry| entry.is_temporary) {
                match fs::remove_dir_all(&entry.folder) {
                    Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
                        return Err(Error::file("remove", entry.folder)(cause));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

/// Removes interface and control groups of a node whose processes are ended, and gives its number
/// back.
pub(super) fn leave(number: u8) -> Result<(), Error> {
    // The kernel removes it too, but takes its time.
    let _ = Command::new("ip").args(["link", "delete", &name(number)]).output();
    cgroups::remove(&name(number))?;
    let path = path(number);
    fs::remove_file(&path).map_err(Error::file("remove", path))
}

/// Name of a node's interface here and of its control groups.
pub(super) fn name(number: u8) -> String {
    format!("drover-n{number}")
}

fn path(number: u8) -> PathBuf {
    Path::new(FOLDER).join(format!("{number}.json"))
}
