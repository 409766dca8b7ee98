//! The kubectl shell: a terminal in a pod of the cluster, for one person and as long as their
//! socket is open.
//!
//! | Where | What |
//! | --- | --- |
//! | [`objects`] | the pod and the Secret with the kubeconfig |
//! | [`session`] | one shell, from the request to the removal of all that it made |
//! | [`startup`] | what the person reads until the pod runs |
//! | [`terminal`] | the person's end of the socket: its frames, and how it ends |
//! | [`console`] | the pod's end: `exec` through the tunnel |
//! | [`leftovers`] | what a server that ended suddenly left is removed |
//!
//! The kubeconfig has a token of that person which is good for this cluster only and goes with the
//! shell. Its requests go through this server like those of every kubectl, so roles, audit and
//! revocation are the usual ones. The pod itself has no rights ([ADR 31]).
//!
//! [ADR 31]: ../../../docs/adr/0031-kubectl-shell.md

mod console;
pub mod leftovers;
mod objects;
mod session;
mod startup;
mod terminal;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use api_management::setting::KUBECTL_SHELL;
use api_meta::audit::AuditEvent;
use feature_kit::rbac::ours;
use feature_kit::{ControllerIdentity, ManagementContext, Settings};
use kube::Client;
use parking_lot::Mutex;
use rest_view::{ApiError, ResourceSocket, SocketHandler, SocketRequest, SocketSession};
use serde_json::Value;

use crate::connections::Connections;
use session::ShellSession;

/// Name of the socket, and of its link.
const LINK: &str = "shell";
/// Shells of one person at a time, over all clusters.
pub const SHELLS_PER_PERSON_MAX: usize = 8;
/// Shells in one cluster at a time.
pub const SHELLS_PER_CLUSTER_MAX: usize = 32;
/// Without input for this long, a shell ends.
pub const IDLE_TIME_MAX: Duration = Duration::from_mins(30);
/// A shell ends after this time, whatever happens in it.
pub const SESSION_TIME_MAX: Duration = Duration::from_hours(8);

/// What helps when the cluster forbids it.
const OLD_RIGHTS: &str = ". If the cluster was imported before there were shells, apply its import \
    manifest again: that gives the agent the right to them";

/// Shells that were opened since the start.
static OPENED: AtomicU64 = AtomicU64::new(0);

/// How many shells were opened since the start.
pub fn opened() -> u64 {
    OPENED.load(Ordering::Relaxed)
}

/// Who makes and removes the tokens of shells.
pub fn identity() -> ControllerIdentity {
    let rules = vec![ours(&["tokens"], &["create", "delete"]), ours(&["users"], &["get"])];
    ControllerIdentity::new("kubectl-shells", rules)
}

/// The socket `shell` of clusters. `client` acts as [`identity()`].
pub fn socket(
    context: &ManagementContext,
    client: Client,
    connections: Arc<Connections>,
    shells: Arc<Shells>,
) -> ResourceSocket {
    let settings = context.settings.clone();
    let shell = KubectlShell { client, settings: settings.clone(), connections, shells };
    ResourceSocket::new(LINK, &terminal::PROTOCOLS, shell).available_when(move |cluster, _| {
        cluster["spec"]["internal"] != true && settings.get(KUBECTL_SHELL) != "false"
    })
}

/// The shells that are open now, by the name of their pod.
#[derive(Default)]
pub struct Shells(Mutex<HashMap<String, ShellOwner>>);

struct ShellOwner {
    user: String,
    cluster: String,
    /// Name of the token; empty before there is one.
    token: String,
}

impl Shells {
    /// Counts a shell until the [`OpenShell`] is dropped.
    ///
    /// # Errors
    /// A limit is reached; the text is for the person.
    fn begin(self: &Arc<Self>, pod: &str, user: &str, cluster: &str) -> Result<OpenShell, String> {
        let mut open = self.0.lock();
        if open.values().filter(|shell| shell.user == user).count() >= SHELLS_PER_PERSON_MAX {
            return Err(format!("you have {SHELLS_PER_PERSON_MAX} shells; close one first"));
        }
        if open.values().filter(|shell| shell.cluster == cluster).count() >= SHELLS_PER_CLUSTER_MAX
        {
            let text = format!(
                "there are {SHELLS_PER_CLUSTER_MAX} shells in this cluster; try again later"
            );
            return Err(text);
        }
        let (user, cluster) = (user.to_owned(), cluster.to_owned());
        open.insert(pod.to_owned(), ShellOwner { user, cluster, token: String::new() });
        OPENED.fetch_add(1, Ordering::Relaxed);
        Ok(OpenShell { shells: self.clone(), pod: pod.to_owned() })
    }

    fn has_pod(&self, pod: &str) -> bool {
        self.0.lock().contains_key(pod)
    }
    fn has_token(&self, token: &str) -> bool {
        self.0.lock().values().any(|shell| shell.token == token)
    }
}

/// One entry of [`Shells`].
struct OpenShell {
    shells: Arc<Shells>,
    pod: String,
}

impl OpenShell {
    fn set_token(&self, token: &str) {
        if let Some(shell) = self.shells.0.lock().get_mut(&self.pod) {
            token.clone_into(&mut shell.token);
        }
    }
}

impl Drop for OpenShell {
    fn drop(&mut self) {
        self.shells.0.lock().remove(&self.pod);
    }
}

struct KubectlShell {
    client: Client,
    settings: Settings,
    connections: Arc<Connections>,
    shells: Arc<Shells>,
}

impl SocketHandler for KubectlShell {
    /// Whoever may see a cluster may have a shell in it: it has no right that they lack.
    fn prepare(&self, request: SocketRequest<'_>) -> Result<SocketSession, ApiError> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let id = text(&request.object["metadata"]["name"]);
        let name = match text(&request.object["spec"]["displayName"]) {
            name if name.is_empty() => id.clone(),
            name => name,
        };
        let server_url = match self.settings.server_url() {
            url if url.is_empty() => request.context.urls.base().to_owned(),
            url => url,
        };
        let caller = request.context.caller.clone();
        caller.audit.event(AuditEvent::ShellOpened);
        let session = ShellSession {
            client: self.client.clone(),
            settings: self.settings.clone(),
            connections: self.connections.clone(),
            shells: self.shells.clone(),
            caller,
            cluster: session::ShellCluster { id, name },
            server_url,
            protocol: request.protocol,
        };
        Ok(Box::new(move |io, stop| Box::pin(session.serve(io, stop))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_are_limited_by_person_and_by_cluster_and_counted_while_open() {
        let shells = Arc::<Shells>::default();
        let open: Vec<OpenShell> = (0..SHELLS_PER_PERSON_MAX)
            .map(|n| shells.begin(&format!("p{n}"), "u-1", &format!("c-{n}")).unwrap())
            .collect();
        assert!(shells.begin("more", "u-1", "c-x").is_err_and(|text| text.contains("close one")));
        assert!(shells.has_pod("p0") && !shells.has_pod("more"));
        open[0].set_token("t-1");
        assert!(shells.has_token("t-1"));
        drop(open);
        assert!(!shells.has_pod("p0") && !shells.has_token("t-1"));
        let _crowd: Vec<OpenShell> = (0..SHELLS_PER_CLUSTER_MAX)
            .map(|n| shells.begin(&format!("q{n}"), &format!("u-{n}"), "c-1").unwrap())
            .collect();
        assert!(shells.begin("r", "u-other", "c-1").is_err());
        assert!(shells.begin("r", "u-other", "c-2").is_ok());
    }
}
