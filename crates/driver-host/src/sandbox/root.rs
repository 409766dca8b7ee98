//! The files of a sandbox: a root in memory with libraries and certificates of the machine, which
//! cannot be changed, and a folder for temporary files.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::statvfs::{FsFlags, statvfs};
use nix::unistd::{chdir, pivot_root};

use super::{EGRESS_SOCKET, SandboxPlan};

/// For temporary files, and the home.
pub(super) const TEMPORARY: &str = "/tmp";
/// The socket of the way out, seen from the root.
pub(super) const EGRESS: &str = "run/egress.sock";
/// Options of the file system for temporary files.
const TEMPORARY_OPTIONS: &str = "size=64m,nr_inodes=4096,mode=1777";
/// Options of the root, which has small files only.
const ROOT_OPTIONS: &str = "size=1m,mode=755";
/// Libraries, for programs that are linked to them; certificate authorities; time zones. Keys of
/// the machine, such as those under `/etc/ssl/private`, are not among them.
const SHARED: [&str; 16] = [
    "/lib",
    "/lib32",
    "/lib64",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/etc/ld.so.cache",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/tls/certs",
    "/usr/local/share/ca-certificates",
    "/usr/share/ca-certificates",
    "/usr/share/pki/trust",
    "/usr/share/zoneinfo",
];
/// The authorities of [`TRUST_ENV`], inside.
const OWN_TRUST: &str = "/etc/ssl/own.pem";
/// Names a file with certificate authorities that are trusted instead of the machine's. Libraries
/// for TLS in Rust and in Go heed it.
pub(crate) const TRUST_ENV: &str = "SSL_CERT_FILE";
const DEVICES: [&str; 5] = ["full", "null", "random", "urandom", "zero"];

/// Where things are in the new root.
pub(super) struct Inside {
    pub(super) program: PathBuf,
    /// The authorities that the server trusts, if they are not the machine's.
    pub(super) trust: Option<&'static str>,
}

/// Builds the root for a plan, and goes there.
pub(super) fn enter(plan: &SandboxPlan) -> anyhow::Result<Inside> {
    let (folder, program) = (&plan.folder, &plan.program);
    // Nothing that is mounted from now on is seen outside.
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
        .context("cannot make the mounts private")?;
    let root = folder.join("root");
    fs::create_dir(&root).context("cannot make the root")?;
    memory(&root, ROOT_OPTIONS)?;
    for shared in SHARED {
        share(&root, Path::new(shared))?;
    }
    let name = program.file_name().context("the program has no file name")?;
    let inside = Path::new("/driver").join(name);
    bind(program, &root.join("driver").join(name), MsFlags::MS_RDONLY | MsFlags::MS_NOSUID)?;
    if let Some(file) = &plan.trust {
        let inside = root.join(OWN_TRUST.trim_start_matches('/'));
        bind(file, &inside, MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV)?;
    }
    bind(&folder.join(EGRESS_SOCKET), &root.join(EGRESS), MsFlags::empty())?;
    for device in DEVICES {
        let path = Path::new("dev").join(device);
        bind(&Path::new("/").join(&path), &root.join(&path), MsFlags::MS_NOSUID)?;
    }
    for (link, number) in [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")] {
        symlink(format!("/proc/self/fd{number}"), root.join("dev").join(link))?;
    }
    write_names(&root, plan.user.unwrap_or_default())?;
    for empty in ["proc", "tmp", "usr/bin"] {
        fs::create_dir_all(root.join(empty))?;
    }
    memory(&root.join("tmp"), TEMPORARY_OPTIONS)?;
    // Where parts of /proc are hidden, as in containers, the kernel does not allow another one.
    // Most programs do without.
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let _ = mount(Some("proc"), &root.join("proc"), Some("proc"), flags, None::<&str>);
    chdir(&root)?;
    pivot_root(".", ".").context("cannot change the root")?;
    // The former root is on top now.
    umount2(".", MntFlags::MNT_DETACH).context("cannot leave the former root")?;
    chdir("/")?;
    change_flags(Path::new("/"), MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV)?;
    Ok(Inside { program: inside, trust: plan.trust.as_ref().map(|_| OWN_TRUST) })
}

fn memory(path: &Path, options: &str) -> anyhow::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), path, Some("tmpfs"), flags, Some(options))
        .with_context(|| format!("cannot mount {}", path.display()))
}

/// Shows what the machine has at a path, if it has it, and lets nobody change it.
fn share(root: &Path, path: &Path) -> anyhow::Result<()> {
    let inside = root.join(path.strip_prefix("/").unwrap_or(path));
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(()) };
    if found.is_symlink() {
        make_parent(&inside)?;
        return symlink(fs::read_link(path)?, &inside)
            .with_context(|| format!("cannot link {}", inside.display()));
    }
    bind(path, &inside, MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NODEV)
}

fn make_parent(inside: &Path) -> anyhow::Result<()> {
    let parent = inside.parent().context("a path has a parent")?;
    fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))
}

fn bind(outside: &Path, inside: &Path, flags: MsFlags) -> anyhow::Result<()> {
    make_parent(inside)?;
    if outside.is_dir() {
        fs::create_dir(inside)?;
    } else {
        fs::write(inside, "")?;
    }
    let recursive = MsFlags::MS_BIND | MsFlags::MS_REC;
    mount(Some(outside), inside, None::<&str>, recursive, None::<&str>)
        .with_context(|| format!("cannot show {}", outside.display()))?;
    change_flags(inside, flags)
}

/// Adds flags to a mount.
fn change_flags(path: &Path, flags: MsFlags) -> anyhow::Result<()> {
    // In a namespace of users those that were set outside must stay.
    let stored = statvfs(path)?.flags();
    let kept = [
        (FsFlags::ST_RDONLY, MsFlags::MS_RDONLY),
        (FsFlags::ST_NOSUID, MsFlags::MS_NOSUID),
        (FsFlags::ST_NODEV, MsFlags::MS_NODEV),
        (FsFlags::ST_NOEXEC, MsFlags::MS_NOEXEC),
        (FsFlags::ST_NOATIME, MsFlags::MS_NOATIME),
        (FsFlags::ST_NODIRATIME, MsFlags::MS_NODIRATIME),
        (FsFlags::ST_RELATIME, MsFlags::MS_RELATIME),
    ];
    let kept = kept.iter().filter(|(flag, _)| stored.contains(*flag));
    let flags = kept.fold(flags, |flags, (_, flag)| flags | *flag);
    let flags = flags | MsFlags::MS_REMOUNT | MsFlags::MS_BIND;
    mount(None::<&str>, path, None::<&str>, flags, None::<&str>)
        .with_context(|| format!("cannot protect {}", path.display()))
}

/// Files by which the C library finds names. There is no name server: the proxy resolves names.
fn write_names(root: &Path, user: u32) -> anyhow::Result<()> {
    let folder = root.join("etc");
    fs::create_dir_all(&folder)?;
    for (file, text) in [
        ("passwd", format!("driver:x:{user}:{user}::{TEMPORARY}:/nonexistent\n")),
        ("group", format!("driver:x:{user}:\n")),
        ("hosts", "127.0.0.1 localhost driver\n".to_owned()),
        ("nsswitch.conf", "hosts: files\n".to_owned()),
        ("resolv.conf", String::new()),
    ] {
        let path = folder.join(file);
        fs::write(&path, text)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644))?;
    }
    Ok(())
}
