//! The one binary: server, agent, simulator, demonstration, and the commands for users.

mod up;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory, Parser};
use driver_host::sandbox::{self, SandboxStage};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

/// mimalloc returns freed memory to the system; the default allocator of glibc does not in
/// long-running servers.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// If set, the process ends with its parent, even if that is killed.
const DIE_WITH_PARENT: &str = "DROVER_DIE_WITH_PARENT";
/// Idle timeout of a thread for blocking work.
const BLOCKING_THREAD_IDLE_MAX: Duration = Duration::from_secs(2);
/// Exit code of an invalid command line or invalid settings.
const EXIT_USAGE: u8 = 2;

/// Every Kubernetes cluster you have, from one binary
#[derive(Parser)]
#[command(
    name = "drover",
    version,
    propagate_version = true,
    after_help = "The guide is at /docs/ of every server, such as https://localhost:8443/docs/"
)]
struct Drover {
    #[command(subcommand)]
    command: DroverCommand,
}

#[derive(clap::Subcommand)]
enum DroverCommand {
    /// Run the management server
    Server(server::ServerArgs),
    /// Move between storages
    Storage(server::store::StorageArgs),
    /// Run the agent of a cluster or a node
    Agent(agent::AgentArgs),
    /// Run simulated clusters
    Sim(sim::SimArgs),
    /// Serve a cluster driver that is part of this program, as a process of its own
    #[command(hide = true)]
    DriverProcess {
        /// Which
        #[arg(value_parser = drivers::NAMES)]
        name: String,
        /// Port of 127.0.0.1
        port: u16,
    },
    /// Prepare the sandbox of a cluster driver and start the driver in it
    #[command(hide = true)]
    DriverSandbox {
        /// Which of the two processes this is
        #[arg(value_parser = SandboxStage::NAMES)]
        stage: String,
        /// What runs in it, in JSON
        plan: String,
    },
    /// Run a server with a simulated cluster, to try things out
    Up(up::UpArgs),
    #[command(flatten)]
    Cli(Box<cli::CliArgs>),
}

fn main() -> ExitCode {
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .expect("nothing installed a TLS provider before main");
    cli::complete_line(Drover::command);
    let mut program = Drover::command();
    program.build();
    let line = cli::args::driver_flags::separate(std::env::args_os(), &program);
    let command = Drover::parse_from(line).command;
    if !matches!(command, DroverCommand::Cli(_)) {
        // Huge pages round every retained allocation up to 2 MiB. If they cannot be disabled, the
        // process runs with them.
        let _ = nix::sys::prctl::set_thp_disable(true);
    }
    if let Err(error) = die_with_parent() {
        eprintln!("error: {error:#}");
        return ExitCode::FAILURE;
    }
    let result = match command {
        DroverCommand::Server(args) => run_server(args),
        DroverCommand::Storage(args) => {
            log("info");
            runtime().block_on(server::store::run(args))
        }
        DroverCommand::Agent(args) => return agent::main(args),
        DroverCommand::Sim(args) => {
            log("info");
            runtime().block_on(sim::run(args, shutdown_signal()))
        }
        DroverCommand::DriverProcess { name, port } => {
            log("info");
            return drivers::run(&name, port).unwrap_or(ExitCode::FAILURE);
        }
        DroverCommand::DriverSandbox { stage, plan } => {
            let stage = SandboxStage::of(&stage).expect("the command line allows the stages only");
            return sandbox::run(stage, &plan);
        }
        DroverCommand::Up(args) => {
            log("warn");
            runtime().block_on(up::run(args, shutdown_signal()))
        }
        DroverCommand::Cli(args) => {
            // The commands report failures and hints themselves.
            log("warn,kube_client=off");
            return runtime().block_on(cli::run(*args));
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            let usage = error.is::<server::settings::SettingsError>();
            if usage { ExitCode::from(EXIT_USAGE) } else { ExitCode::FAILURE }
        }
    }
}

fn run_server(args: server::ServerArgs) -> anyhow::Result<()> {
    let show = args.show_settings;
    let settings = args.resolve()?;
    if show {
        println!("{}", serde_json::to_string_pretty(&settings)?);
        return Ok(());
    }
    log("info");
    runtime().block_on(async { server::run(settings, shutdown_signal()).await })
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        // An idle thread retains the memory of its last password hash.
        .thread_keep_alive(BLOCKING_THREAD_IDLE_MAX)
        .build()
        .expect("the system gives threads and an event queue")
}

/// Log lines go to standard error, with colours where that is a terminal; `DROVER_LOG` chooses
/// which.
fn log(default: &str) {
    // Watchers report failures that last long themselves.
    let default = || EnvFilter::new(format!("{default},kube_runtime=error"));
    let filter = EnvFilter::try_from_env("DROVER_LOG").unwrap_or_else(|_| default());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
}

/// Returns a token that Ctrl-C or SIGTERM cancels. Must be called inside the runtime or before it
/// blocks.
fn shutdown_signal() -> CancellationToken {
    let token = CancellationToken::new();
    let fired = token.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("the system gives an event queue");
        runtime.block_on(async {
            use tokio::signal::unix::{SignalKind, signal};
            let mut terminate = signal(SignalKind::terminate()).expect("a handler can be set");
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
        });
        fired.cancel();
    });
    token
}

fn die_with_parent() -> anyhow::Result<()> {
    if std::env::var_os(DIE_WITH_PARENT).is_none() {
        return Ok(());
    }
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
    // The parent may have ended before the line above.
    anyhow::ensure!(nix::unistd::getppid().as_raw() != 1, "the parent process has ended");
    Ok(())
}
