//! What a node needs and nobody publishes as a module: Debian's packages, unpacked, not installed.
//!
//! They are kept under the hash of their names, so nothing is fetched twice. `apt-get` chooses the
//! versions, those of the Debian release this machine runs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::forget_others;
use super::packages::unpack;
use crate::fingerprint;

/// A container runtime, what pods are plugged together with, and a shell to put into images.
const PROGRAMS: [&str; 5] =
    ["busybox-static", "containerd", "containernetworking-plugins", "nftables", "runc"];
/// What those are linked against, beyond the C library.
const LIBRARIES: [&str; 11] = [
    "libbsd0",
    "libedit2",
    "libgmp10",
    "libjansson4",
    "libmd0",
    "libmnl0",
    "libnftables1",
    "libnftnl11",
    "libseccomp2",
    "libtinfo6",
    "libxtables12",
];
const NEEDED: &str = "a node of the testbed runs on Debian's packages: this machine needs Debian 12 \
    or newer with `apt-get` and `dpkg-deb`, and a reachable mirror";

/// Makes `target/deps/packages` the root of a file system with all packages in it.
pub fn provide(deps: &Path) -> Result<()> {
    let packages: Vec<&str> = PROGRAMS.iter().chain(&LIBRARIES).copied().collect();
    let builds = deps.join("debian");
    let key = fingerprint::of_text(&packages.join(" "));
    let build = builds.join(&key);
    if !build.is_dir() {
        let unfinished = build.with_extension("unfinished");
        let _ = fs::remove_dir_all(&unfinished);
        fs::create_dir_all(&unfinished)?;
        fetch(&packages, &unfinished)?;
        fs::rename(&unfinished, &build).context("cannot put the unpacked packages in place")?;
        forget_others(&builds, &build)?;
    }
    let link = deps.join("packages");
    let target = Path::new("debian").join(key);
    if fs::read_link(&link).is_ok_and(|current| current == target) {
        return Ok(());
    }
    let fresh = deps.join(".packages");
    let _ = fs::remove_file(&fresh);
    symlink(&target, &fresh)
        .and_then(|()| fs::rename(&fresh, &link))
        .with_context(|| format!("cannot link '{}'", link.display()))
}

fn fetch(packages: &[&str], root: &Path) -> Result<()> {
    eprintln!("fetching {} packages of Debian (once)", packages.len());
    let unpacked = unpack(root, |archives| download(packages, archives)).context(NEEDED)?;
    ensure!(
        unpacked == packages.len(),
        "{unpacked} of {} packages came; remove the `apt-get` cache and try again",
        packages.len()
    );
    Ok(())
}

fn download(packages: &[&str], into: &Path) -> Result<()> {
    let mut apt = Command::new("apt-get");
    // Its own unprivileged user could not write into our folder.
    apt.current_dir(into).args(["download", "-qq", "-o", "APT::Sandbox::User=root"]).args(packages);
    let output = apt.output()?;
    if !output.status.success() {
        bail!("apt-get download says:\n{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
