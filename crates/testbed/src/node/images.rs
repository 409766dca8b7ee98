//! The images on a node, through the command line of containerd.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use super::{READY_INTERVAL, READY_TIMEOUT, RealNode, settings};
use crate::command::run;
use crate::{Error, Program, image, poll_until};

/// The containerd namespace of the kubelet.
const IMAGES_NAMESPACE: &str = "k8s.io";
/// Label that containerd sets on an image once pods can use it.
const USABLE: &str = "io.cri-containerd.image=managed";

impl RealNode {
    /// Imports the image in `archive`, an OCI or Docker archive, so that pods with
    /// `imagePullPolicy: Never` can use it. Returns the names of the image.
    ///
    /// # Errors
    /// [`Error::File`], or [`Error::Command`] with the message of containerd.
    pub fn import(&self, archive: &Path) -> Result<Vec<String>, Error> {
        let file = File::open(archive).map_err(Error::file("read", archive))?;
        let said = run(self.on_node(&self.ctr(&["images", "import", "-"])?)?.stdin(file))?;
        // "unpacking NAME (DIGEST)...done"
        let unpacked = said.lines().filter_map(|line| line.strip_prefix("unpacking "));
        let names: Vec<String> =
            unpacked.filter_map(|line| Some(line.split_once(" (")?.0.to_owned())).collect();
        // containerd imports first and makes the image visible to the kubelet a moment later.
        poll_until(READY_TIMEOUT, READY_INTERVAL, || {
            let listed = run(&mut self.on_node(&self.ctr(&["images", "list"])?)?)?;
            let is_usable = |name: &String| {
                let mut lines = listed.lines();
                lines.any(|line| line.starts_with(&format!("{name} ")) && line.contains(USABLE))
            };
            if names.iter().all(is_usable) {
                return Ok(());
            }
            let outcome = format!("imported {names:?}, but sees only:\n{listed}");
            Err(Error::Command { command: "ctr images import".to_owned(), outcome })
        })?;
        Ok(names)
    }

    /// Removes an image, by one of the names that [`RealNode::import`] returned. Running containers
    /// continue.
    ///
    /// # Errors
    /// [`Error::Command`] with the message of containerd.
    pub fn remove_image(&self, name: &str) -> Result<(), Error> {
        run(&mut self.on_node(&self.ctr(&["images", "remove", "--sync", name])?)?).map(drop)
    }

    pub(super) fn import_own(&self) -> Result<(), Error> {
        let archive = self.parts.folder.join("image.tar");
        let binaries = self.cluster.binaries();
        for write in [image::write_pause, image::write_toolbox] {
            write(binaries, &archive)?;
            self.import(&archive)?;
        }
        fs::remove_file(&archive).map_err(Error::file("remove", archive))
    }

    /// The command line of the container runtime, to be run on the node.
    pub(super) fn ctr(&self, arguments: &[&str]) -> Result<Command, Error> {
        let mut command = self.program(Program::Ctr)?;
        command.args(["--address", settings::CONTAINERD_SOCKET, "--namespace", IMAGES_NAMESPACE]);
        command.args(arguments);
        Ok(command)
    }

    /// `command` in all namespaces of the node.
    fn on_node(&self, command: &Command) -> Result<Command, Error> {
        match &self.machine {
            Some(machine) => Ok(machine.command(command)),
            None => Err(Error::NodeNeeds { needed: "to be switched on".to_owned() }),
        }
    }
}
