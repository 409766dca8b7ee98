//! Programs of a node, and directory servers, that are not published as modules: Debian's
//! packages, unpacked, not installed.
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

/// Packages that are unpacked into the root of one file system.
struct Root {
    /// The link to it in `target/deps`, and the folder there that it is in.
    link: &'static str,
    builds: &'static str,
    /// Programs, and their shared libraries except the C library.
    packages: &'static [&'static str],
    /// Links that an installation would make: name, and target in the same folder.
    links: &'static [(&'static str, &'static str)],
}

/// A container runtime, the network plugins of pods and what enforces their policies, a shell for
/// images, and a directory server.
const NODE: Root = Root {
    link: "packages",
    builds: "debian",
    packages: &[
        "busybox-static",
        "containerd",
        "containernetworking-plugins",
        "ipset",
        "iptables",
        "nftables",
        "runc",
        "slapd",
        // Libraries.
        "libargon2-1",
        "libbsd0",
        "libedit2",
        "libgmp10",
        "libip4tc2",
        "libip6tc2",
        "libipset13",
        "libjansson4",
        "libldap-2.5-0",
        "libltdl7",
        "libmd0",
        "libmnl0",
        "libnetfilter-conntrack3",
        "libnfnetlink0",
        "libnftables1",
        "libnftnl11",
        "libodbc2",
        "libsasl2-2",
        "libseccomp2",
        "libtinfo6",
        "libwrap0",
        "libxtables12",
    ],
    links: &[
        ("usr/sbin/iptables", "xtables-nft-multi"),
        ("usr/sbin/iptables-restore", "xtables-nft-multi"),
        ("usr/sbin/iptables-save", "xtables-nft-multi"),
    ],
};

/// A domain controller of Active Directory. Apart, because its tools look for their files below
/// `/usr`, so tests mount it over that.
const SAMBA: Root = Root {
    link: "samba",
    builds: "debian-samba",
    packages: &[
        "python3-samba",
        "samba",
        "samba-ad-dc",
        "samba-ad-provision",
        "samba-common",
        "samba-common-bin",
        "samba-dsdb-modules",
        "samba-vfs-modules",
        "tdb-tools",
        "winbind",
        // Python, and what the tools need of it.
        "libpython3-stdlib",
        "libpython3.11",
        "libpython3.11-minimal",
        "libpython3.11-stdlib",
        "python3",
        "python3-dnspython",
        "python3-ldb",
        "python3-minimal",
        "python3-talloc",
        "python3-tdb",
        "python3.11",
        "python3.11-minimal",
        // Libraries.
        "libassuan0",
        "libavahi-client3",
        "libavahi-common3",
        "libbsd0",
        "libdbus-1-3",
        "libexpat1",
        "libffi8",
        "libgmp10",
        "libgnutls30",
        "libgpgme11",
        "libhogweed6",
        "libicu72",
        "libidn2-0",
        "libjansson4",
        "libldap-2.5-0",
        "libldb2",
        "liblmdb0",
        "libmd0",
        "libnettle8",
        "libp11-kit0",
        "libpopt0",
        "libsasl2-2",
        "libtalloc2",
        "libtasn1-6",
        "libtdb1",
        "libtevent0",
        "libtirpc3",
        "libunistring2",
        "liburing2",
        "libwbclient0",
        "samba-libs",
    ],
    links: &[],
};

const MISSING_HINT: &str = "the testbed runs on Debian's packages: this machine needs Debian 12 \
    or newer with `apt-get` and `dpkg-deb`, and a reachable mirror";

/// Makes `target/deps/packages` and `target/deps/samba` the roots of file systems with all their
/// packages.
pub fn provide(deps: &Path) -> Result<()> {
    provide_root(deps, &NODE)?;
    provide_root(deps, &SAMBA)
}

fn provide_root(deps: &Path, root: &Root) -> Result<()> {
    let builds = deps.join(root.builds);
    let key = fingerprint::of_text(&root.packages.join(" "));
    let build = builds.join(&key);
    if !build.is_dir() {
        let unfinished = build.with_extension("unfinished");
        let _ = fs::remove_dir_all(&unfinished);
        fs::create_dir_all(&unfinished)?;
        fetch(root.packages, &unfinished)?;
        for (name, program) in root.links {
            symlink(program, unfinished.join(name))
                .with_context(|| format!("cannot link {name} in the unpacked packages"))?;
        }
        fs::rename(&unfinished, &build).context("cannot put the unpacked packages in place")?;
        remove_other_builds(&builds, &build)?;
    }
    let link = deps.join(root.link);
    let target = Path::new(root.builds).join(key);
    if fs::read_link(&link).is_ok_and(|current| current == target) {
        return Ok(());
    }
    let fresh = deps.join(format!(".{}", root.link));
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
