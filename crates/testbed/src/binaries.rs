//! Paths of the programs that `cargo xtask deps` builds, and of the packages that it unpacks.

use std::path::{Path, PathBuf};

use crate::Error;

/// Variable with another folder than `target/deps` of the workspace; the programs are in its `bin`.
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
    /// The implementation of Services on a node.
    KubeProxy,
    /// The controller that enforces NetworkPolicies on a node.
    KubeRouter,
    /// The server of `metrics.k8s.io`.
    MetricsServer,
    /// The command line.
    Kubectl,
    /// The package manager.
    Helm,
    /// The test program with typed Go clients.
    GoClient,
    /// The tunnel that Rancher uses, for measurements.
    Remotedialer,
    /// The test program with the Python client.
    PythonClient,
    /// The test program with the Python client of the management API.
    RancherClient,
    /// A cluster driver in Go.
    GoDriver,
    /// The test program with a Go client of cluster drivers.
    DriverClient,
    /// A cluster driver in Go that fails as its options say.
    FaultyDriver,
    /// A cluster driver that tries to get out of its sandbox.
    HostileDriver,
    /// Stand-ins of the clouds that have drivers.
    CloudStandIn,
    /// A process that holds namespaces.
    Pause,
    /// The container runtime.
    Containerd,
    /// The command line of containerd.
    Ctr,
    /// Starts containers.
    Runc,
    /// A shell and the usual small programs in one static file.
    Busybox,
    /// The server of OpenLDAP.
    Slapd,
    /// A provider of OpenID Connect.
    OidcProvider,
    /// A stand-in for GitHub.
    GithubStandIn,
    /// A stand-in for Google's login and directory.
    GoogleStandIn,
    /// A stand-in for Microsoft's login and Graph.
    MicrosoftStandIn,
}

impl Program {
    /// The programs of a control plane, in the order in which they start.
    pub const CONTROL_PLANE: [Self; 4] =
        [Self::Etcd, Self::KubeApiserver, Self::KubeControllerManager, Self::KubeScheduler];

    /// The file name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::KubeScheduler => "kube-scheduler",
            Self::Kubelet => "kubelet",
            Self::KubeProxy => "kube-proxy",
            Self::KubeRouter => "kube-router",
            Self::MetricsServer => "metrics-server",
            Self::Kubectl => "kubectl",
            Self::Helm => "helm",
            Self::GoClient => "go-client",
            Self::Remotedialer => "remotedialer",
            Self::PythonClient => "python-client",
            Self::RancherClient => "rancher-client",
            Self::GoDriver => "kontainer-engine-driver-go",
            Self::DriverClient => "driver-client",
            Self::FaultyDriver => "kontainer-engine-driver-faulty",
            Self::HostileDriver => "hostile-driver",
            Self::CloudStandIn => "cloud-stand-in",
            Self::Pause => "pause",
            Self::Containerd => "containerd",
            Self::Ctr => "ctr",
            Self::Runc => "runc",
            Self::Busybox => "busybox",
            Self::Slapd => "slapd",
            Self::OidcProvider => "oidc-provider",
            Self::GithubStandIn => "github-stand-in",
            Self::GoogleStandIn => "google-stand-in",
            Self::MicrosoftStandIn => "microsoft-stand-in",
        }
    }

    /// The folder inside the packages; `None` for built programs.
    const fn package_folder(self) -> Option<&'static str> {
        match self {
            Self::Containerd | Self::Ctr => Some("usr/bin"),
            Self::Runc | Self::Slapd => Some("usr/sbin"),
            Self::Busybox => Some("bin"),
            _ => None,
        }
    }
}

/// The folders with the programs.
#[derive(Clone, Debug)]
pub struct Binaries {
    folder: PathBuf,
    packages: PathBuf,
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

    /// Built programs of `folder`, and the packages unpacked beside it in `packages`.
    #[must_use]
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        let folder = folder.canonicalize().unwrap_or(folder);
        let packages = folder.with_file_name("packages");
        Self { packages: packages.canonicalize().unwrap_or(packages), folder }
    }

    /// The folder of the built programs, for `PATH`.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The root of the file system of the unpacked packages.
    #[must_use]
    pub fn packages(&self) -> &Path {
        &self.packages
    }

    /// The root of the file system of the packages of Samba, a domain controller of Active
    /// Directory. Its tools look for their files below `/usr`.
    ///
    /// # Errors
    /// [`Error::MissingProgram`] with the command that unpacks them.
    pub fn samba(&self) -> Result<PathBuf, Error> {
        let path = self.folder.with_file_name("samba");
        match path.canonicalize() {
            Ok(path) => Ok(path),
            Err(_) => Err(Error::MissingProgram { program: "samba", path }),
        }
    }

    /// The folder of Keycloak's distribution.
    ///
    /// # Errors
    /// [`Error::MissingProgram`]: `cargo xtask soak e2e` fetches it.
    pub fn keycloak(&self) -> Result<PathBuf, Error> {
        let path = self.folder.with_file_name("keycloak");
        let mut versions = path.read_dir().into_iter().flatten().flatten();
        match versions.next() {
            Some(version) => Ok(version.path()),
            None => Err(Error::MissingProgram { program: "keycloak", path }),
        }
    }

    /// The folder with one folder of YAML files for each module that publishes definitions of
    /// custom resources.
    ///
    /// # Errors
    /// [`Error::MissingProgram`] with the command that downloads them.
    pub fn definitions(&self) -> Result<PathBuf, Error> {
        let path = self.folder.with_file_name("definitions").join("current");
        if path.is_dir() {
            Ok(path)
        } else {
            Err(Error::MissingProgram { program: "definitions", path })
        }
    }

    /// Path of `program`.
    ///
    /// # Errors
    /// [`Error::MissingProgram`] with the command that builds it.
    pub fn path(&self, program: Program) -> Result<PathBuf, Error> {
        let folder = match program.package_folder() {
            Some(folder) => self.packages.join(folder),
            None => self.folder.clone(),
        };
        let path = folder.join(program.name());
        if path.is_file() {
            Ok(path)
        } else {
            Err(Error::MissingProgram { program: program.name(), path })
        }
    }
}
