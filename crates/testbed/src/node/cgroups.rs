//! The control groups of a node: one folder in each hierarchy, cgroup v1 and v2 alike.
//!
//! All processes of a node are in them, so they can be found even when nothing else is known.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{Error, poll_until};

/// A killed process leaves its group when the kernel has cleaned it up.
const EMPTY_TIMEOUT: Duration = Duration::from_secs(20);
const EMPTY_INTERVAL: Duration = Duration::from_millis(10);
/// The group of processes of the node itself, which belong to no pod.
const SYSTEM: &str = "system";
const MEMBERS_FILE: &str = "cgroup.procs";
/// The controllers that the kubelet delegates to pods, on v2.
const CONTROLLERS: [&str; 5] = ["cpu", "cpuset", "io", "memory", "pids"];

/// Creates the groups. Returns the file that processes of the node itself join by writing `0`.
pub(super) fn create(name: &str) -> Result<PathBuf, Error> {
    let hierarchies = hierarchies()?;
    for hierarchy in &hierarchies {
        if hierarchies.len() == 1 {
            // Fails for controllers that the parent does not have; the kubelet reports missing
            // ones.
            for controller in CONTROLLERS {
                let _ =
                    fs::write(hierarchy.join("cgroup.subtree_control"), format!("+{controller}"));
            }
        }
        let group = hierarchy.join(name);
        fs::create_dir_all(&group).map_err(Error::file("create", &group))?;
        // Version 1 does not inherit these.
        for file in ["cpuset.cpus", "cpuset.mems"] {
            if let Ok(value) = fs::read(hierarchy.join(file)) {
                fs::write(group.join(file), value)
                    .map_err(Error::file("write", group.join(file)))?;
            }
        }
    }
    // One hierarchy is enough to group processes; measurements use memory.
    let accounts = |hierarchy: &&PathBuf| hierarchy.join("memory.stat").exists();
    let hierarchy = hierarchies.iter().find(accounts).or(hierarchies.first());
    let Some(hierarchy) = hierarchy else {
        let needed = "control groups, mounted below /sys/fs/cgroup".to_owned();
        return Err(Error::NodeNeeds { needed });
    };
    let system = hierarchy.join(name).join(SYSTEM);
    fs::create_dir_all(&system).map_err(Error::file("create", &system))?;
    Ok(system.join(MEMBERS_FILE))
}

/// Kills the remaining processes in the groups and removes the groups. Missing groups are no error.
pub(super) fn remove(name: &str) -> Result<(), Error> {
    for hierarchy in hierarchies()? {
        let group = hierarchy.join(name);
        poll_until(EMPTY_TIMEOUT, EMPTY_INTERVAL, || remove_tree(&group))
            .map_err(|cause| Error::WouldNotGo { path: group.clone(), last: cause.to_string() })?;
    }
    Ok(())
}

fn remove_tree(group: &Path) -> std::io::Result<()> {
    let entries = match fs::read_dir(group) {
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        }
    }
    for member in fs::read_to_string(group.join(MEMBERS_FILE))?.lines() {
        if let Ok(process) = member.parse() {
            // It may end by itself meanwhile.
            let _ = kill(Pid::from_raw(process), Signal::SIGKILL);
        }
    }
    fs::remove_dir(group)
}

/// The mount point of each hierarchy: one with cgroup v2, a dozen with v1.
fn hierarchies() -> Result<Vec<PathBuf>, Error> {
    const MOUNTS: &str = "/proc/self/mounts";
    let mounts = fs::read_to_string(MOUNTS).map_err(Error::file("read", MOUNTS))?;
    let mut found = Vec::new();
    for line in mounts.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        if let [_, location, "cgroup" | "cgroup2", ..] = fields[..] {
            found.push(PathBuf::from(location));
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}
