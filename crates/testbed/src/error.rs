//! Errors of starting, using and ending a cluster.

use std::path::PathBuf;
use std::time::Duration;

/// Why a real cluster could not be started, used or ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program has not been built. Build it; no test continues without it.
    #[error("'{program}' is not at '{}'; build it with `cargo xtask deps`", path.display())]
    MissingProgram {
        /// The program's file name.
        program: &'static str,
        /// The expected path.
        path: PathBuf,
    },
    /// A file or folder of the cluster could not be written or read.
    #[error("cannot {action} '{}'", path.display())]
    File {
        /// What was attempted, as a verb.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A certificate could not be made.
    #[error("cannot issue the certificate for '{subject}'")]
    Certificate {
        /// Common name of the certificate.
        subject: String,
        /// The cause.
        #[source]
        source: rcgen::Error,
    },
    /// The TLS client that probes the API server could not be set up.
    #[error("cannot set up TLS towards the API server")]
    Tls(#[source] rustls::Error),
    /// No loopback port is free.
    #[error("cannot find a free loopback port")]
    Port(#[source] std::io::Error),
    /// A process could not be started at all.
    #[error("cannot start '{program}' (its parent-death signal is set by setpriv of util-linux)")]
    Spawn {
        /// Name of the process.
        program: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A component ended while the cluster was starting.
    #[error(
        "'{component}' ended while the cluster started ({status}); last lines of its log:\n{log}"
    )]
    Exited {
        /// Which component.
        component: String,
        /// How it ended.
        status: String,
        /// The end of its log.
        log: String,
    },
    /// A component did not become ready in time.
    #[error(
        "'{component}' was not ready after {waited:?} (last answer: {last}); \
         last lines of its log:\n{log}"
    )]
    NotReady {
        /// Which component.
        component: String,
        /// The time that was waited.
        waited: Duration,
        /// The result of the last probe.
        last: String,
        /// The end of its log.
        log: String,
    },
    /// This machine or user cannot run a node.
    #[error("a node needs {needed}")]
    NodeNeeds {
        /// What is missing, and how to get it.
        needed: String,
    },
    /// A system command that sets up a node, or runs on it, failed.
    #[error("`{command}` failed ({outcome})")]
    Command {
        /// The command line.
        command: String,
        /// Its exit status and output.
        outcome: String,
    },
    /// A leftover of a node still exists after its processes were killed.
    #[error("'{}' cannot be removed: {last}", path.display())]
    WouldNotGo {
        /// A control group.
        path: PathBuf,
        /// Why the last attempt failed.
        last: String,
    },
    /// A recorded process did not end.
    #[error("process {pid} ('{name}') still runs {waited:?} after SIGKILL")]
    WouldNotEnd {
        /// Name of the process.
        name: String,
        /// Its id.
        pid: i32,
        /// The time that was waited.
        waited: Duration,
    },
}

impl Error {
    /// For `map_err` around file operations.
    pub(crate) fn file(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }
}
