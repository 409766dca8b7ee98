//! Programs of a node that are not published as modules: Debian's packages, unpacked, not
//! installed.
//!
//! They are stored under the hash of their names, so nothing is fetched twice. `apt-get` selects
//! the versions of the Debian release on this machine.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::packages::unpack;
use super::remove_other_builds;
use crate::fingerprint;

/// A container runtime, the network plugins of pods, a shell for images, and a directory server.
const PROGRAMS: [&str; 6] =
    ["busybox-static", "containerd", "containernetworking-plugins", "nftables", "runc", "slapd"];
/// Their shared libraries, except the C library.
const LIBRARIES: [&str; 17] = [
    "libargon2-1",
    "libbsd0",
    "libedit2",
    "libgmp10",
    "libjansson4",
    "libldap-2.5-0",
    "libltdl7",
    "libmd0",
    "libmnl0",
    "libnftables1",
    "libnftnl11",
    "libodbc2",
    "libsasl2-2",
    "libseccomp2",
    "libtinfo6",
    "libwrap0",
    "libxtables12",
];
const MISSING_HINT: &str = "a node of the testbed runs on Debian's packages: this machine needs Debian 12 \
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
        remove_other_builds(&builds, &build)?;
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
    let unpacked = unpack(root, |archives| download(packages, archives)).context(MISSING_HINT)?;
    ensure!(
        unpacked == packages.len(),
        "{unpacked} of {} packages were downloaded; remove the `apt-get` cache and try again",
        packages.len()
    );
    Ok(())
}

fn download(packages: &[&str], folder: &Path) -> Result<()> {
    let mut apt = Command::new("apt-get");
    // The unprivileged user of apt-get cannot write into this folder.
    apt.current_dir(folder)
        .args(["download", "-qq", "-o", "APT::Sandbox::User=root"])
        .args(packages);
    let output = apt.output()?;
    if !output.status.success() {
        bail!("apt-get download says:\n{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}
