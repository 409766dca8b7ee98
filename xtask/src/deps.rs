//! `cargo xtask deps`: puts the real programs that tests run against into `target/deps/bin`.
//!
//! Each module under `testbed/` is built. A build is stored under the hash of its inputs, so
//! nothing is built twice. There is no partial result: either all programs of a module exist or
//! the command fails. The [`python`] client and the programs for [`node`] come with their
//! packages, published [`definitions`] from their modules; [`chromium`] and the programs of a node
//! ([`debian`]) are unpacked from the distribution's packages.

mod chromium;
mod debian;
mod definitions;
mod keycloak;
mod node;
mod packages;
mod python;

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::{fingerprint, process, workspace};

/// The version in the go.mod of Kubernetes 1.36.
const GO_MINOR_MIN: u32 = 26;
/// The packages with the version that components report.
const VERSION_PACKAGES: [&str; 2] =
    ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"];

/// A Go module of this repository with one program per folder of `cmd`.
struct Module {
    name: &'static str,
    /// The linker flags, from the text of its go.mod.
    linker_flags: fn(&str) -> Result<String>,
}

const MODULES: [Module; 9] = [
    Module { name: "kubernetes", linker_flags: kubernetes_flags },
    Module { name: "go-client", linker_flags: no_flags },
    Module { name: "driver", linker_flags: no_flags },
    Module { name: "clouds", linker_flags: no_flags },
    Module { name: "helm", linker_flags: no_flags },
    Module { name: "rancher", linker_flags: no_flags },
    Module { name: "pods", linker_flags: no_flags },
    Module { name: "kube-router", linker_flags: no_flags },
    Module { name: "metrics-server", linker_flags: no_flags },
];

pub fn run() -> Result<()> {
    let root = workspace::root();
    let deps = root.join("target/deps");
    let _lock = lock(&deps)?;
    for module in &MODULES {
        module.provide(&root.join("testbed").join(module.name), &deps)?;
    }
    python::provide(&root.join("testbed"), &deps)?;
    definitions::provide(&root.join("testbed"), &deps)?;
    node::provide(&root.join("testbed"), &deps)?;
    debian::provide(&deps)?;
    chromium::provide(&deps)
}

/// Keycloak, which only the long versions of tests need.
pub fn run_keycloak() -> Result<()> {
    let deps = workspace::root().join("target/deps");
    let _lock = lock(&deps)?;
    keycloak::provide(&deps)
}

/// Two concurrent builds need twice the memory and save no time.
fn lock(deps: &Path) -> Result<File> {
    fs::create_dir_all(deps.join("bin"))?;
    let lock = File::create(deps.join("lock")).context("cannot create the lock of target/deps")?;
    lock.lock().context("cannot lock target/deps")?;
    Ok(lock)
}

impl Module {
    fn provide(&self, source: &Path, deps: &Path) -> Result<()> {
        let manifest = read(&source.join("go.mod"))?;
        let flags = format!("-s -w {}", (self.linker_flags)(&manifest)?).trim_end().to_owned();
        let programs = programs(source)?;
        let builds = deps.join(self.name);
        let build = builds.join(fingerprint::of(source, &[], &flags)?);
        if !build.is_dir() {
            check_go()?;
            compile(source, &flags, &programs, &build)?;
            remove_other_builds(&builds, &build)?;
        }
        for program in &programs {
            link(deps, program, &build.join(program))?;
        }
        Ok(())
    }
}

/// Makes `bin/<name>` a link to `program`, which is also below `deps`.
fn link(deps: &Path, name: &str, program: &Path) -> Result<()> {
    let link = deps.join("bin").join(name);
    // Relative, so that a copy of target/deps works too.
    let target = Path::new("..").join(program.strip_prefix(deps)?);
    if fs::read_link(&link).is_ok_and(|current| current == target) {
        return Ok(());
    }
    // Replaced atomically: another process may be starting the program.
    let fresh = deps.join("bin").join(format!(".{name}"));
    let _ = fs::remove_file(&fresh);
    symlink(&target, &fresh)
        .and_then(|()| fs::rename(&fresh, &link))
        .with_context(|| format!("cannot link '{}'", link.display()))
}

fn compile(source: &Path, flags: &str, programs: &[String], build: &Path) -> Result<()> {
    let unfinished = build.with_extension("unfinished");
    fs::create_dir_all(&unfinished)?;
    let folder = source.file_name().unwrap_or_default().to_string_lossy();
    eprintln!("building testbed/{folder} from published modules (once; some minutes)");
    for program in programs {
        let start = Instant::now();
        let mut go = Command::new("go");
        go.current_dir(source)
            .env("CGO_ENABLED", "0")
            .env("GOTOOLCHAIN", "local")
            .args(["build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o"])
            .arg(unfinished.join(program))
            .arg(format!("./cmd/{program}"));
        process::run(&mut go).context("the module proxy may be unreachable")?;
        eprintln!("  {program}: {}", process::duration_text(start.elapsed()));
    }
    fs::rename(&unfinished, build).context("cannot put the finished build in place")
}

/// Removes all other builds of the module; each has hundreds of megabytes.
fn remove_other_builds(builds: &Path, build: &Path) -> Result<()> {
    for entry in fs::read_dir(builds)? {
        let path = entry?.path();
        if path != build {
            fs::remove_dir_all(&path)
                .with_context(|| format!("cannot remove '{}'", path.display()))?;
        }
    }
    Ok(())
}

fn programs(source: &Path) -> Result<Vec<String>> {
    let commands = source.join("cmd");
    let mut names: Vec<String> = fs::read_dir(&commands)
        .with_context(|| format!("cannot list '{}'", commands.display()))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}

fn check_go() -> Result<()> {
    let needed = format!(
        "Go 1.{GO_MINOR_MIN} or newer must be in the PATH: tests run against a real Kubernetes, \
         built from its published modules"
    );
    let mut go = Command::new("go");
    go.args(["env", "GOVERSION"]).env("GOTOOLCHAIN", "local");
    let output = go.output().with_context(|| needed.clone())?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match minor(&version) {
        Some(minor) if minor >= GO_MINOR_MIN => Ok(()),
        _ => bail!("{needed}; the installed one reports '{version}'"),
    }
}

/// The 26 of `go1.26.8`.
fn minor(version: &str) -> Option<u32> {
    let rest = version.strip_prefix("go1.")?;
    rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

#[expect(clippy::unnecessary_wraps, reason = "the type of every module's flags")]
fn no_flags(_manifest: &str) -> Result<String> {
    Ok(String::new())
}

fn kubernetes_flags(manifest: &str) -> Result<String> {
    let version = required_version(manifest, "k8s.io/kubernetes")
        .context("testbed/kubernetes/go.mod does not require k8s.io/kubernetes")?;
    let mut numbers = version.trim_start_matches('v').split('.');
    let (Some(major), Some(minor)) = (numbers.next(), numbers.next()) else {
        bail!("'{version}' in testbed/kubernetes/go.mod is not a version");
    };
    let mut flags = Vec::new();
    for package in VERSION_PACKAGES {
        for (name, value) in [
            ("gitVersion", version),
            ("gitMajor", major),
            ("gitMinor", minor),
            ("gitTreeState", "archive"),
        ] {
            flags.push(format!("-X {package}.{name}={value}"));
        }
    }
    Ok(flags.join(" "))
}

/// The version at which a go.mod requires `module`.
fn required_version<'a>(manifest: &'a str, module: &str) -> Option<&'a str> {
    manifest.lines().find_map(|line| {
        let mut words = line.trim().trim_start_matches("require ").split_whitespace();
        (words.next() == Some(module)).then(|| words.next())?
    })
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read '{}'", path.display()))
}

#[cfg(test)]
mod tests;
