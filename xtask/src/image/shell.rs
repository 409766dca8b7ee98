//! The image of kubectl shells: kubectl, helm, and busybox for the shell and some 270 small
//! programs. They are static, and come from what `cargo xtask deps` builds and unpacks.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use testbed::{Binaries, Program};

use super::ImageProgram;
use super::layer::{self, Layer};
use super::timeless::TimelessTar;

pub(crate) const SHELL: ImageProgram = ImageProgram {
    package: "xtask",
    binary: "drover-shell",
    description: "A shell with kubectl and helm, for one user in a Kubernetes cluster.",
    licenses: "Apache-2.0 AND GPL-2.0-only",
    arguments: &[],
    port: None,
    data: None,
};

const BUSYBOX: &str = "bin/busybox";
/// What interactive shells read first; the server sets `ENV` to it.
const PROFILE_PATH: &str = "etc/drover-shell/profile";
const PROFILE: &[u8] = br#"alias k=kubectl
PS1='\[\e[36m\]${DROVER_CLUSTER:-shell}\[\e[0m\] \$ '
echo 'kubectl (k) and helm act as you in this cluster. The shell ends after 30 minutes without input,'
echo 'and everything in it is deleted.'
"#;
const ENTRY: &[u8] = b"#!/bin/sh\nexec /bin/sh \"$@\"\n";
/// A name for the image's user, so that prompts and programs find one.
const USERS: &[u8] = b"root:x:0:0:root:/:/bin/sh\nshell:x:65532:65532:shell:/home/shell:/bin/sh\n";
const GROUPS: &[u8] = b"root:x:0:\nshell:x:65532:\n";

pub(super) fn layer(time: Timestamp) -> Result<Layer> {
    let binaries = Binaries::locate();
    let read = |program: Program| -> Result<Vec<u8>> {
        let path = binaries.path(program)?;
        fs::read(&path).with_context(|| format!("cannot read '{}'", path.display()))
    };
    let mut tar = TimelessTar::new(time);
    for folder in ["bin/", "etc/drover-shell/", "home/", "home/shell/", "tmp/"] {
        tar.folder(folder)?;
    }
    tar.file("bin/kubectl", 0o555, &read(Program::Kubectl)?)?;
    tar.file("bin/helm", 0o555, &read(Program::Helm)?)?;
    tar.file(BUSYBOX, 0o555, &read(Program::Busybox)?)?;
    for name in applets(&binaries)? {
        tar.link(&format!("bin/{name}"), "busybox")?;
    }
    tar.file(SHELL.binary, 0o555, ENTRY)?;
    tar.file(PROFILE_PATH, 0o444, PROFILE)?;
    tar.file("etc/passwd", 0o444, USERS)?;
    tar.file("etc/group", 0o444, GROUPS)?;
    layer::finish(tar)
}

/// The names under which busybox is another program.
fn applets(binaries: &Binaries) -> Result<Vec<String>> {
    let output = Command::new(binaries.path(Program::Busybox)?).arg("--list").output();
    let output = output.context("cannot run busybox")?;
    ensure!(output.status.success(), "busybox does not list its programs");
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().filter(|name| *name != "busybox").map(str::to_owned).collect())
}
