//! The nodes on this machine: one file for each, so that leftovers of a killed test can be found.
//!
//! A node has a number, which determines its addresses, its interface on this machine, and its
//! control groups.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use super::cgroups;
use crate::{Error, RecordedProcess};

/// Most nodes on one machine, by the third byte of their addresses.
const NODES_MAX: u8 = 254;
/// Folder that is cleared when the machine starts, like the nodes.
const FOLDER: &str = "/run/drover-testbed";

/// The registered data of a node. The node has ended when its holder has.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct NodeEntry {
    /// The process that holds its network.
    pub(super) holder: RecordedProcess,
    pub(super) folder: PathBuf,
    /// The folder is temporary, so the next node must remove it.
    pub(super) is_temporary: bool,
}

/// The locked registry.
pub(super) struct Registry {
    _lock: File,
}

impl Registry {
    /// Waits for the lock, and removes leftovers of nodes whose holder has ended.
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

    pub(super) fn enter(&self, number: u8, entry: &NodeEntry) -> Result<(), Error> {
        let path = path(number);
        fs::write(&path, serde_json::json!(entry).to_string()).map_err(Error::file("write", path))
    }

    fn sweep(&self) -> Result<(), Error> {
        for number in 1..=NODES_MAX {
            let Ok(text) = fs::read(path(number)) else { continue };
            // An unreadable file was truncated while it was written; there is nothing else to
            // remove then.
            let entry: Option<NodeEntry> = serde_json::from_slice(&text).ok();
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

/// Removes interface and control groups of a node whose processes have ended, and releases its
/// number.
pub(super) fn leave(number: u8) -> Result<(), Error> {
    // The kernel removes it too, but later.
    let _ = Command::new("ip").args(["link", "delete", &name(number)]).output();
    cgroups::remove(&name(number))?;
    let path = path(number);
    fs::remove_file(&path).map_err(Error::file("remove", path))
}

/// Name of a node's interface on this machine and of its control groups.
pub(super) fn name(number: u8) -> String {
    format!("drover-n{number}")
}

fn path(number: u8) -> PathBuf {
    Path::new(FOLDER).join(format!("{number}.json"))
}
