//! Where the programs are that `cargo xtask deps` builds.

use std::path::{Path, PathBuf};

use crate::Error;

/// Names another folder than `target/deps` of the workspace; the programs are in its `bin`.
pub const DEPS_ENV: &str = "DROVER_DEPS";

/// A program of the testbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Program {
    /// The etcd server.
    Etcd,
    /// The Kubernetes API server.
    KubeApiserver,
    /// The built-in controllers.
    KubeControllerManager,
    /// The scheduler.
    KubeScheduler,
    /// The node agent.
    Kubelet,
    /// The command line.
    Kubectl,
}

impl Program {
    /// Every program, in the order in which a cluster needs them.
    pub const ALL: [Self; 6] = [
        Self::Etcd,
        Self::KubeApiserver,
        Self::KubeControllerManager,
        Self::KubeScheduler,
        Self::Kubelet,
        Self::Kubectl,
    ];

    /// The file name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::KubeScheduler => "kube-scheduler",
            Self::Kubelet => "kubelet",
            Self::Kubectl => "kubectl",
        }
    }
}

/// The folder with the programs.
#[derive(Clone, Debug)]
pub struct Binaries {
    folder: PathBuf,
}

impl Binaries {
    /// `$DROVER_DEPS/bin` when that variable is set, else `target/deps/bin` of this workspace.
    #[must_use]
    pub fn locate() -> Self {
        let deps = match std::env::var_os(DEPS_ENV) {
            Some(folder) => PathBuf::from(folder),
            None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/deps"),
        };
        Self::in_folder(deps.join("bin"))
    }

    /// Programs of `folder`.
    #[must_use]
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        Self { folder: folder.canonicalize().unwrap_or(folder) }
    }

    /// The folder itself, for `PATH`.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Path of `program`.
    ///
    /// # Errors
    /// [`Error::MissingProgram`] with the command that builds it.
    pub fn path(&self, program: Program) -> Result<PathBuf, Error> {
        let path = self.folder.join(program.name());
        if path.is_file() {
            Ok(path)
        } else {
            Err(Error::MissingProgram { program: program.name(), path })
        }
    }
}
