//! Definitions of custom resources that operators publish with their modules, fetched below
//! target/deps.
//!
//! `testbed/definitions/go.mod` names modules, versions and folders; its go.sum pins their
//! contents. Nothing is built, and dependencies of the modules are not fetched.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::{check_go, read, remove_other_builds};
use crate::{fingerprint, process};

const NAME: &str = "definitions";
/// The name by which the current build is found.
const LINK: &str = "current";

/// A line of the go.mod.
#[derive(Debug, PartialEq, Eq)]
struct PublishedModule<'a> {
    module: &'a str,
    version: &'a str,
    folders: Vec<&'a str>,
}

/// The output of `go mod download -json` for one module.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Downloaded {
    path: String,
    dir: Option<PathBuf>,
    error: Option<String>,
}

/// Makes `target/deps/definitions/current` a folder with one folder of YAML files for each module.
pub fn provide(testbed: &Path, deps: &Path) -> Result<()> {
    let source = testbed.join(NAME);
    let builds = deps.join(NAME);
    let key = fingerprint::of(&source, &[], "")?;
    let build = builds.join(&key);
    if !build.is_dir() {
        check_go()?;
        fetch(&source, &build)?;
        remove_other_builds(&builds, &build)?;
    }
    let link = builds.join(LINK);
    if fs::read_link(&link).is_ok_and(|current| current == Path::new(&key)) {
        return Ok(());
    }
    let _ = fs::remove_file(&link);
    symlink(&key, &link).with_context(|| format!("cannot link '{}'", link.display()))
}

fn fetch(source: &Path, build: &Path) -> Result<()> {
    let start = Instant::now();
    let unfinished = build.with_extension("unfinished");
    let _ = fs::remove_dir_all(&unfinished);
    fs::create_dir_all(&unfinished)?;
    eprintln!("fetching published definitions of custom resources (once; 60 MB)");
    // go may write to both files; those of the repository must not change.
    for file in ["go.mod", "go.sum"] {
        fs::copy(source.join(file), unfinished.join(file))?;
    }
    let manifest = read(&source.join("go.mod"))?;
    let modules = published_modules(&manifest);
    let folders = download(&modules, &unfinished)?;
    ensure!(
        fs::read(source.join("go.sum"))? == fs::read(unfinished.join("go.sum"))?,
        "testbed/definitions/go.sum lacks a module of its go.mod; with the go.sum of '{}' in its \
         place, the downloaded versions are pinned",
        unfinished.display()
    );
    for module in &modules {
        let found = folders.iter().find(|downloaded| downloaded.path == module.module);
        let from = found.and_then(|downloaded| downloaded.dir.as_deref());
        let from = from.with_context(|| format!("'{}' was not downloaded", module.module))?;
        module.copy(from, &unfinished.join(module.module.replace('/', "_")))?;
    }
    fs::rename(&unfinished, build).context("cannot put the finished folder in place")?;
    eprintln!("  {NAME}: {}", process::duration_text(start.elapsed()));
    Ok(())
}

fn download(modules: &[PublishedModule<'_>], folder: &Path) -> Result<Vec<Downloaded>> {
    let mut go = Command::new("go");
    go.current_dir(folder)
        .env("GOTOOLCHAIN", "local")
        .env("GOFLAGS", "-mod=mod")
        .args(["mod", "download", "-json"])
        .args(modules.iter().map(|module| format!("{}@{}", module.module, module.version)));
    let line = process::command_line(&go);
    let output = go.output().with_context(|| format!("cannot run `{line}`"))?;
    let downloaded: Result<Vec<Downloaded>, _> =
        serde_json::Deserializer::from_slice(&output.stdout).into_iter().collect();
    let downloaded = downloaded.with_context(|| format!("`{line}` did not print JSON"))?;
    for module in &downloaded {
        if let Some(error) = &module.error {
            bail!("'{}' cannot be downloaded: {error}", module.path);
        }
    }
    if !output.status.success() {
        bail!("`{line}` says:\n{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(downloaded)
}

impl PublishedModule<'_> {
    fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        fs::create_dir_all(to)?;
        let mut copied = 0;
        for folder in &self.folders {
            let folder = from.join(folder);
            let entries = fs::read_dir(&folder)
                .with_context(|| format!("'{}' lacks '{}'", self.module, folder.display()))?;
            for entry in entries {
                let path = entry?.path();
                if path.extension().is_some_and(|ending| ending == "yaml") {
                    fs::copy(&path, to.join(path.file_name().unwrap_or_default()))?;
                    copied += 1;
                }
            }
        }
        ensure!(copied > 0, "'{}' has no YAML in its folders", self.module);
        Ok(())
    }
}

/// The modules of `manifest`, with the folders of their definitions from the comments.
fn published_modules(manifest: &str) -> Vec<PublishedModule<'_>> {
    let lines = manifest.lines().filter_map(|line| line.split_once(" // "));
    let modules = lines.filter_map(|(required, folders)| {
        let (module, version) = required.trim().split_once(' ')?;
        Some(PublishedModule { module, version, folders: folders.split(' ').collect() })
    });
    modules.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_read_from_the_comments_after_versions() {
        let manifest = "// Some modules.\nmodule m\n\nrequire (\n\ta.io/x v1.0.0 // b c/d\n)\n";
        let expected =
            PublishedModule { module: "a.io/x", version: "v1.0.0", folders: vec!["b", "c/d"] };
        assert_eq!(published_modules(manifest), [expected]);
    }
}
