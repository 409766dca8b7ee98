//! One simulated cluster and every way to it: directly, through `kubectl proxy`, through Go's
//! reverse proxy over `remotedialer`, and through Drover.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use testbed::{Binaries, Process, Program};

use crate::link::{Link, Network};
use crate::manifest::AGENT_NAMESPACE;
use crate::server::Options;
use crate::wait::{LOOK_INTERVAL, SETTLE_TIMEOUT};
use crate::{Cli, Client, Kubeconfig, Kubectl, Server, Sim, poll_until, programs};

const CLUSTER: &str = "simulated";
const SERVICE_ACCOUNT: &str = "cattle";

/// A way to the API server, and the processes that make it.
pub(super) struct Way {
    pub(super) name: &'static str,
    pub(super) client: Client,
    /// `kubectl proxy` has none: it refuses upgrades.
    pub(super) kubectl: Option<Kubectl>,
    /// What they do, and their ids.
    pub(super) processes: Vec<(&'static str, u32)>,
}

/// Everything that runs. The ways are in the order in which they are measured.
pub(super) struct World {
    pub(super) ways: Vec<Way>,
    pub(super) direct: Client,
    // Ended in this order.
    _programs: Vec<Process>,
    _server: Server,
    _sim: Sim,
    _folder: TempDir,
}

/// The names of the ways, as rows show them.
pub(super) const DIRECT: &str = "direct";
pub(super) const KUBECTL_PROXY: &str = "kubectl proxy";
pub(super) const REMOTEDIALER: &str = "remotedialer";
pub(super) const DROVER: &str = "Drover";

impl World {
    /// With a link, the cluster and both agents are in its far network; everything else is in the
    /// near one, which the caller has entered.
    ///
    /// # Errors
    /// A part does not start.
    pub(super) fn start(link: Option<&Link>) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let agent = programs::agent()?;
        let agent = agent.to_str().context("the agent's path is no text")?;
        let flags = ["--nodes", "1", "--agent-binary", agent];
        let far = link.map(Link::far);
        let sim = far.map_or_else(|| Sim::start(&flags), |far| Sim::start_in(far, &flags))?;
        let kubeconfig = Kubeconfig::read(&sim.kubeconfig())?;
        let direct = Client::of(&kubeconfig)?;

        let proxy = kubectl_proxy(&sim.kubeconfig(), folder.path())?;
        let plain = proxy_address(&proxy)?;
        let mut ways = vec![
            Way {
                name: DIRECT,
                client: direct.clone(),
                kubectl: Some(sim.kubectl()?),
                processes: Vec::new(),
            },
            Way {
                name: KUBECTL_PROXY,
                client: Client::plain(&plain)?,
                kubectl: None,
                processes: vec![("proxy", proxy.id())],
            },
        ];

        let listen = link.map_or(Ipv4Addr::LOCALHOST, |link| link.near().address());
        let address = Some(listen.into());
        let server = Server::start_with(Options { address, ..Options::default() })?;
        let drover = drover(&server, &sim, folder.path())?;
        let target = target(&kubeconfig, &sim, &drover.client)?;
        let peer = Peer::start(&target, folder.path(), listen, far)?;
        ways.push(Way {
            name: REMOTEDIALER,
            client: peer.client,
            kubectl: Some(peer.kubectl),
            processes: vec![("server", peer.server.id()), ("agent", peer.agent.id())],
        });

        ways.push(drover);
        for way in &ways {
            poll_until(SETTLE_TIMEOUT, LOOK_INTERVAL, || responses(&way.client))
                .with_context(|| way.name)?;
        }
        Ok(Self {
            ways,
            direct,
            _programs: vec![proxy, peer.agent, peer.server],
            _server: server,
            _sim: sim,
            _folder: folder,
        })
    }
}

fn responses(client: &Client) -> Result<()> {
    let response = client.get("/api/v1/namespaces/default")?;
    ensure!(response.status == 200, "{}: {}", response.status, response.text());
    Ok(())
}

fn kubectl_proxy(kubeconfig: &Path, folder: &Path) -> Result<Process> {
    let kubectl = Kubectl::new(kubeconfig, folder)?;
    kubectl.start(&["proxy", "--port", "0"], &folder.join("proxy.log"))
}

/// Where `kubectl proxy` says that it listens.
fn proxy_address(proxy: &Process) -> Result<String> {
    poll_until(SETTLE_TIMEOUT, LOOK_INTERVAL, || {
        let said = proxy.log_tail();
        let address = said.split("Starting to serve on ").nth(1);
        let address = address.and_then(|rest| rest.split_whitespace().next());
        address.map(str::to_owned).with_context(|| format!("it said only: {said:?}"))
    })
}

/// Configuration of `remotedialer`'s server: the API server, and headers by which it acts there
/// like Drover, a ServiceAccount that impersonates the same person.
fn target(cluster: &Kubeconfig, sim: &Sim, drover: &Client) -> Result<Value> {
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let person = drover.post(path, &json!({}))?.success()?["status"]["userInfo"].take();
    let account = ["create", "token", SERVICE_ACCOUNT, "--namespace", AGENT_NAMESPACE];
    let token = sim.kubectl()?.succeed(&account)?;
    Ok(json!({"url": cluster.server, "ca": cluster.ca_pem, "headers": {
        "Authorization": [format!("Bearer {}", token.trim())],
        "Impersonate-User": [person["username"]],
        "Impersonate-Group": person["groups"],
    }}))
}

struct Peer {
    client: Client,
    kubectl: Kubectl,
    server: Process,
    agent: Process,
}

impl Peer {
    /// The server listens on `listen`; the agent is in `far`, or in this program's network.
    fn start(
        target: &Value,
        folder: &Path,
        listen: Ipv4Addr,
        far: Option<&Network>,
    ) -> Result<Self> {
        fs::write(folder.join("target.json"), target.to_string())?;
        let program = Binaries::locate().path(Program::Remotedialer)?;
        let start = |part: &str, command: &Command| -> Result<Process> {
            let log = folder.join(format!("remotedialer-{part}.log"));
            Ok(Process::start("remotedialer", command, &log)?)
        };
        let mut command = Command::new(&program);
        command.arg("server").arg(folder).arg(listen.to_string());
        let mut server = start("server", &command)?;
        let file = folder.join("address");
        let address = poll_until(SETTLE_TIMEOUT, LOOK_INTERVAL, || {
            if let Some(status) = server.exit_status() {
                bail!("it ended ({status}): {}", server.log_tail());
            }
            fs::read_to_string(&file).context("no address yet")
        })?;
        let ca_pem = fs::read_to_string(folder.join("ca.pem"))?;
        let mut command = far.map_or_else(|| Command::new(&program), |far| far.command(&program));
        let agent = start("agent", command.arg("agent").arg(folder))?;
        let url = format!("https://{address}");
        let client = Client::new(&url, &ca_pem)?;
        let kubeconfig = folder.join("remotedialer.kubeconfig");
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {
                "server": url, "certificate-authority": folder.join("ca.pem"),
            }}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
            // It asks nobody who they are; kubectl does if it has no credential at all.
            "users": [{"name": "it", "user": {"token": "anybody"}}],
        });
        fs::write(&kubeconfig, text.to_string())?;
        Ok(Self { client, kubectl: Kubectl::new(&kubeconfig, folder)?, server, agent })
    }
}

fn drover(server: &Server, sim: &Sim, folder: &Path) -> Result<Way> {
    let cli = Cli::admin(server)?;
    let file = sim.kubeconfig();
    let file = file.to_str().context("the kubeconfig's path is no text")?;
    cli.succeed(&["cluster", "import", CLUSTER, "--kubeconfig", file])?;
    // The folder of the command ends with this function.
    let file = folder.join("drover.kubeconfig");
    fs::copy(cli.kubeconfig_file(CLUSTER)?, &file)?;
    let agent = child_of(sim.process_id())?;
    let server = server.process_id().context("the server is gone")?;
    Ok(Way {
        name: DROVER,
        client: Client::of(&Kubeconfig::read(&file)?)?,
        kubectl: Some(Kubectl::new(&file, folder)?),
        processes: vec![("server", server), ("agent", agent)],
    })
}

/// The only child of a process.
fn child_of(process: u32) -> Result<u32> {
    for entry in fs::read_dir("/proc")? {
        let Ok(child) = entry?.file_name().to_string_lossy().parse::<u32>() else { continue };
        let Ok(text) = fs::read_to_string(format!("/proc/{child}/stat")) else { continue };
        // The second field is the program's name in parentheses and may itself hold some.
        let fields = text.rsplit_once(") ").map(|(_, fields)| fields).unwrap_or_default();
        if fields.split(' ').nth(1) == Some(&process.to_string()) {
            return Ok(child);
        }
    }
    bail!("process {process} has no child")
}
