//! `drover up`: runs a server and one simulated cluster, imported as a user would import it.
//!
//! The server runs in this process; the simulator and the commands are further processes of this
//! binary, so that everything is real, including the agent and its tunnel. Everything ends with
//! this process.

mod commands;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};
use server::{Server, ServerArgs};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use crate::DIE_WITH_PARENT;

/// Name of the simulated cluster.
const DEMO: &str = "demo";
/// Timeout of the start of the simulator.
const SIM_TIME_MAX: Duration = Duration::from_secs(20);
/// Timeout until the cluster is active.
const ACTIVE_TIME_MAX: Duration = Duration::from_secs(60);
/// Poll interval.
const POLL_EVERY: Duration = Duration::from_millis(100);

#[derive(Args, Debug)]
pub struct UpArgs {
    /// Folder for the data that stays between runs
    #[arg(long, default_value = "target/up", value_name = "DIR")]
    data_dir: PathBuf,
    /// Address and port of the server
    #[arg(long, default_value = "127.0.0.1:8443", value_name = "ADDR:PORT")]
    listen: String,
    /// URL under which agents and users reach the server; its certificate includes the name.
    /// Required, with --listen, for access from other machines
    #[arg(long, value_name = "URL")]
    server_url: Option<String>,
    /// Delete the data of earlier runs
    #[arg(long)]
    reset: bool,
    /// End with success as soon as the simulated cluster is active
    #[arg(long)]
    check: bool,
    /// Nodes of the simulated cluster
    #[arg(long, default_value_t = 3)]
    nodes: u32,
}

/// The state that is stored beside the server's own data.
#[derive(Serialize, Deserialize)]
struct DemoState {
    password: String,
    /// The agent's configuration contains the server's port.
    listen: SocketAddr,
    /// Address of the simulated cluster, which its kubeconfigs contain.
    sim_listen: Option<SocketAddr>,
}

pub async fn run(args: UpArgs, shutdown: CancellationToken) -> anyhow::Result<()> {
    if args.reset && args.data_dir.exists() {
        ensure!(
            args.data_dir.join("up.json").exists(),
            "\"{}\" is not a folder of drover up, so it is not deleted",
            args.data_dir.display()
        );
        std::fs::remove_dir_all(&args.data_dir)
            .with_context(|| format!("cannot delete \"{}\"", args.data_dir.display()))?;
    }
    std::fs::create_dir_all(&args.data_dir)
        .with_context(|| format!("cannot create the folder \"{}\"", args.data_dir.display()))?;
    let folder = args.data_dir.canonicalize()?;
    tokio::select! {
        result = demonstrate(&args, &folder, &shutdown) => result,
        () = shutdown.cancelled() => Ok(()),
    }
}

async fn demonstrate(
    args: &UpArgs,
    folder: &Path,
    shutdown: &CancellationToken,
) -> anyhow::Result<()> {
    let state = DemoState::read(folder)?;
    let password = match &state {
        Some(state) => state.password.clone(),
        None => identity::password::generate_password().expose().to_owned(),
    };
    let listen = match &state {
        // A port that the system chose stays the same, because the agent's configuration contains
        // it.
        Some(state) if args.listen.ends_with(":0") => state.listen.to_string(),
        _ => args.listen.clone(),
    };
    let settings = ServerArgs {
        data_dir: Some(folder.join("server")),
        listen: Some(listen),
        server_url: args.server_url.clone(),
        bootstrap_password: Some(password.clone()),
        agent_image: Some(AGENT_IMAGE.to_owned()),
        ..ServerArgs::default()
    };
    let server = Server::start(settings.resolve()?).await?;
    eprintln!("server    {}", server.url);
    let mut state = DemoState {
        password,
        listen: server.address,
        sim_listen: state.and_then(|state| state.sim_listen),
    };
    state.write(folder)?;

    let mut sim = start_sim(args, folder, state.sim_listen)?;
    let kubeconfig = folder.join("sim/admin.kubeconfig");
    state.sim_listen = Some(sim_address(folder, &mut sim).await?);
    state.write(folder)?;
    eprintln!("simulator {} nodes", args.nodes);

    let home = folder.join("home");
    std::fs::create_dir_all(&home)?;
    let ca = folder.join("server/ca.pem");
    let ca = ca.to_str().context("the data folder's path is not UTF-8")?;
    let login = ["login", &server.url, "--username", "admin", "--ca-file", ca];
    drover(&home, &login, Some(&state.password)).await?;
    let known = drover(&home, &["cluster", "get", DEMO, "-o", "json"], None).await;
    if known.is_err() {
        let kubeconfig = kubeconfig.to_str().context("the data folder's path is not UTF-8")?;
        let import = ["cluster", "import", DEMO, "--kubeconfig", kubeconfig];
        drover(&home, &import, None).await?;
    }
    wait_active(&home, &mut sim).await?;
    eprintln!("cluster   {DEMO} is active");
    if !args.check {
        let logged_in = commands::log_in(&server.url, ca, &state.password).await;
        print_login(&server.url, &state.password, &logged_in);
        warn_of_address(&server.url);
        tokio::select! {
            () = shutdown.cancelled() => {}
            ended = sim.wait() => bail!("the simulator ended: {}", ended?),
        }
    }
    sim.start_kill()?;
    sim.wait().await?;
    server.stop().await;
    Ok(())
}

/// The only image that the simulator executes.
const AGENT_IMAGE: &str = sim::AGENT_IMAGE;

/// Prints the login and the next commands. `logged_in`: whether commands use the login by default,
/// or why there is none.
fn print_login(url: &str, password: &str, logged_in: &anyhow::Result<bool>) {
    println!("\n  {url}\n  user      admin\n  password  {password}\n");
    match logged_in {
        Ok(is_current) => {
            println!("The commands are logged in. Next, in another terminal:\n");
            println!("{}", commands::next_commands(*is_current));
        }
        Err(error) => {
            println!("The commands could not be logged in: {error:#}");
            println!("Log them in by: drover login {url} --username admin\n");
        }
    }
    println!("Ctrl-C stops everything.");
}

/// Warns that clusters on other machines cannot be imported: their agents could not reach the
/// server.
fn warn_of_address(url: &str) {
    if !url.starts_with("https://localhost:") {
        return;
    }
    let port = url.rsplit(':').next().unwrap_or_default();
    println!(
        "\nOnly this machine reaches {url}, the setting \"server-url\". To import clusters of \
         others, start again with\n  --listen 0.0.0.0:{port} --server-url https://NAME:{port}\n\
         or, behind a proxy with a certificate for NAME, run\n  drover settings set server-url \
         https://NAME:{port}"
    );
}

fn start_sim(args: &UpArgs, folder: &Path, listen: Option<SocketAddr>) -> anyhow::Result<Child> {
    let listen = listen.map_or_else(|| "127.0.0.1:0".to_owned(), |listen| listen.to_string());
    let _ = std::fs::remove_file(folder.join("sim/server.json"));
    let log = std::fs::File::create(folder.join("sim.log"))?;
    own_command()?
        .args(["sim", "--listen", &listen, "--nodes", &args.nodes.to_string(), "--data-dir"])
        .arg(folder.join("sim"))
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .context("cannot start the simulator")
}

/// Waits until the simulator has written its address.
async fn sim_address(folder: &Path, sim: &mut Child) -> anyhow::Result<SocketAddr> {
    let wait = async {
        loop {
            if let Some(ended) = sim.try_wait()? {
                let log = std::fs::read_to_string(folder.join("sim.log")).unwrap_or_default();
                bail!("the simulator ended ({ended}): {}", log.trim());
            }
            let text = std::fs::read_to_string(folder.join("sim/server.json")).unwrap_or_default();
            if let Ok(value) = serde_json::from_str::<serde_json::Value>(&text) {
                let url = value["url"].as_str().unwrap_or_default();
                let address = url.trim_start_matches("https://").replace("localhost", "127.0.0.1");
                return address.parse().with_context(|| format!("unexpected URL \"{url}\""));
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
    };
    tokio::time::timeout(SIM_TIME_MAX, wait).await.context("the simulator did not come up")?
}

/// Runs this binary as a user would.
async fn drover(home: &Path, args: &[&str], password: Option<&str>) -> anyhow::Result<String> {
    let mut command = own_command()?;
    command.args(args).env("HOME", home).stdin(Stdio::null()).kill_on_drop(true);
    // The user's variables are for other servers.
    for variable in ["DROVER_SERVER", "DROVER_TOKEN", "DROVER_CLUSTER"] {
        command.env_remove(variable);
    }
    if let Some(password) = password {
        command.env("DROVER_PASSWORD", password);
    }
    let output = command.output().await.context("cannot start a command")?;
    ensure!(
        output.status.success(),
        "drover {} failed: {}",
        args.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

async fn wait_active(home: &Path, sim: &mut Child) -> anyhow::Result<()> {
    let mut last = String::new();
    let wait = async {
        loop {
            if let Some(ended) = sim.try_wait()? {
                bail!("the simulator ended ({ended}); see sim.log in the data folder");
            }
            let text = drover(home, &["cluster", "get", DEMO, "-o", "json"], None).await?;
            let cluster: serde_json::Value = serde_json::from_str(&text)?;
            if cluster["state"] == "active" {
                return Ok(());
            }
            last = format!("{} {}", cluster["state"], cluster["transitioningMessage"]);
            tokio::time::sleep(POLL_EVERY).await;
        }
    };
    let waited = tokio::time::timeout(ACTIVE_TIME_MAX, wait).await;
    waited.unwrap_or_else(|_| bail!("cluster \"{DEMO}\" did not become active: {last}"))
}

/// A command that runs this program again and ends with this process.
fn own_command() -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
    command.env(DIE_WITH_PARENT, "1");
    Ok(command)
}

impl DemoState {
    fn read(folder: &Path) -> anyhow::Result<Option<Self>> {
        match std::fs::read_to_string(folder.join("up.json")) {
            Ok(text) => Ok(Some(serde_json::from_str(&text).with_context(|| {
                format!(
                    "\"{}\" cannot be read; start again with --reset",
                    folder.join("up.json").display()
                )
            })?)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string(self)?;
        pki::files::write_private(&folder.join("up.json"), text.as_bytes())?;
        Ok(())
    }
}
