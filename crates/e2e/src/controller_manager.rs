//! A real kube-controller-manager with all its default controllers for a simulated cluster, and the
//! errors in its log.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use testbed::{Binaries, Process, Program};

use crate::{Sim, poll_until};

const LEASE: [&str; 6] = ["get", "lease", "-n", "kube-system", "kube-controller-manager", "-o"];

/// Time between two checks whether it still runs.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// A running kube-controller-manager. Dropping the value kills it.
#[derive(Debug)]
pub struct ControllerManager {
    process: Process,
    _folder: TempDir,
}

/// One error line of its log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Complaint {
    /// The source file that logged it, which names the controller: `job_controller.go`.
    pub source: String,
    pub text: String,
}

impl ControllerManager {
    /// Starts it on the first cluster of `sim`, whose own controllers must be off, and waits until
    /// it holds its lease.
    ///
    /// # Errors
    /// It has not been built, ends, or does not get its lease in time.
    pub fn start(sim: &Sim) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let data = sim.data_dir();
        let (signer, signer_key) = signing_authority(folder.path())?;
        let mut command = Command::new(Binaries::locate().path(Program::KubeControllerManager)?);
        command
            .arg("--kubeconfig")
            .arg(sim.kubeconfig())
            .arg("--service-account-private-key-file")
            .arg(data.join("clusters/0/service-account-key.pem"))
            .arg("--root-ca-file")
            .arg(data.join("ca.pem"))
            .args(["--leader-elect=true", "--secure-port=0", "--bind-address=127.0.0.1"])
            .args(["--kube-api-qps=200", "--kube-api-burst=400"])
            // Each controller has only the rights of Kubernetes' bootstrap roles.
            .arg("--use-service-account-credentials=true")
            .arg("--cluster-signing-cert-file")
            .arg(&signer)
            .arg("--cluster-signing-key-file")
            .arg(&signer_key)
            .current_dir(folder.path());
        let log = folder.path().join("log");
        let mut process = Process::start("kube-controller-manager", &command, &log)?;
        let kubectl = sim.kubectl()?;
        let led = poll_until(crate::wait::SETTLE_TIMEOUT, crate::wait::LOOK_INTERVAL, || {
            if let Some(status) = process.exit_status() {
                return Ok(Some(status));
            }
            let mut arguments = LEASE.to_vec();
            arguments.push("jsonpath={.spec.holderIdentity}");
            let holder = kubectl.succeed(&arguments)?;
            ensure!(!holder.is_empty(), "nobody holds the lease");
            Ok(None)
        });
        match led {
            Ok(None) => Ok(Self { process, _folder: folder }),
            Ok(Some(status)) => anyhow::bail!("it ended ({status}):\n{}", process.log_tail()),
            Err(last) => Err(last.context(process.log_tail())),
        }
    }

    /// The time of its last lease renewal.
    ///
    /// # Errors
    /// The lease cannot be read.
    pub fn renewed(sim: &Sim) -> Result<String> {
        let mut arguments = LEASE.to_vec();
        arguments.push("jsonpath={.spec.renewTime}");
        sim.kubectl()?.succeed(&arguments)
    }

    /// # Errors
    /// It has ended; the message has the end of its log.
    pub fn still_runs(&mut self) -> Result<()> {
        match self.process.exit_status() {
            None => Ok(()),
            Some(status) => anyhow::bail!("it ended ({status}):\n{}", self.process.log_tail()),
        }
    }

    /// Waits until that time.
    ///
    /// # Errors
    /// It ends before.
    pub fn watch_until(&mut self, then: Instant) -> Result<()> {
        let left = then.saturating_duration_since(Instant::now());
        let ended = poll_until(left, LOOK_INTERVAL, || {
            let status = self.process.exit_status();
            status.context("it still runs")
        });
        match ended {
            Err(_) => self.still_runs(),
            Ok(status) => anyhow::bail!("it ended ({status}):\n{}", self.process.log_tail()),
        }
    }

    /// Every logged error so far, with its count.
    ///
    /// # Errors
    /// Its log cannot be read.
    pub fn complaints(&self) -> Result<BTreeMap<Complaint, usize>> {
        let log = std::fs::read_to_string(self.process.log()).context("its log")?;
        let mut counted = BTreeMap::new();
        for complaint in log.lines().filter_map(complaint) {
            *counted.entry(complaint).or_default() += 1;
        }
        Ok(counted)
    }
}

/// The files of an authority that signs the certificate requests of the cluster's nodes and
/// clients.
fn signing_authority(folder: &Path) -> Result<(PathBuf, PathBuf)> {
    let key = rcgen::KeyPair::generate()?;
    let mut authority = rcgen::CertificateParams::default();
    authority.distinguished_name.push(rcgen::DnType::CommonName, "cluster-signer");
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let files = (folder.join("signer.pem"), folder.join("signer-key.pem"));
    std::fs::write(&files.0, authority.self_signed(&key)?.pem())?;
    std::fs::write(&files.1, key.serialize_pem())?;
    Ok(files)
}

/// `E1122 03:56:49.953993    8349 options.go:205] The manifest file is empty, ignoring.`
fn complaint(line: &str) -> Option<Complaint> {
    let (head, text) = line.split_once("] ")?;
    let is_error = head.starts_with(['E', 'F']) && head.as_bytes().get(1)?.is_ascii_digit();
    let source = head.split_whitespace().last()?.split(':').next()?;
    is_error.then(|| Complaint { source: source.to_owned(), text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::{Complaint, complaint};

    #[test]
    fn only_errors_are_complaints() {
        let line = "E1122 03:56:49.953993    8349 options.go:205] The file is empty, ignoring.";
        let (source, text) = ("options.go".to_owned(), "The file is empty, ignoring.".to_owned());
        assert_eq!(complaint(line), Some(Complaint { source, text }));
        assert_eq!(complaint("I1122 03:56:49.953993    8349 options.go:205] fine"), None);
        assert_eq!(complaint("Error: no klog line] here"), None);
    }
}
