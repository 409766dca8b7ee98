//! Runs each command.

mod access;
mod apply;
mod audit;
mod auth_provider;
pub(crate) mod cluster;
pub(crate) mod context;
mod credential;
pub(crate) mod driver;
pub mod driver_options;
mod get;
mod group;
mod import;
mod inspect;
pub(crate) mod kubeconfig;
pub(crate) mod kubectl;
mod listing;
mod login;
pub(crate) mod namespace;
pub(crate) mod node;
mod password;
mod pod_security;
pub(crate) mod project;
mod provisioning;
mod ps;
mod remove;
pub(crate) mod role;
pub(crate) mod scope;
mod search;
mod settings;
pub(crate) mod token;
pub(crate) mod user;
mod version;
pub(crate) mod wait;
mod whoami;

use std::process::ExitCode;

use crate::args::{CliArgs, ClusterCommand};
use crate::completion;
use crate::error::CliError;
use crate::output;

/// The name by which users call this program.
const PROGRAM: &str = "drover";

/// Runs one command, and returns the exit code: that of the program for commands that run one.
///
/// # Errors
/// The command fails.
pub async fn run(args: CliArgs) -> Result<ExitCode, CliError> {
    match args {
        CliArgs::Login(args) => login::login(args).await?,
        CliArgs::Logout(server) => login::logout(server.name()).await?,
        CliArgs::Context(command) => context::run(command).await?,
        CliArgs::Cluster(command) => return cluster_command(command).await,
        CliArgs::Driver(command) => return driver::run(command).await,
        CliArgs::Whoami(args) => whoami::run(args).await?,
        CliArgs::Version(args) => version::run(args).await?,
        CliArgs::Kubectl(args) => return kubectl::run(None, args).await,
        CliArgs::Logs(args) => return kubectl::run(Some("logs"), args).await,
        CliArgs::Exec(args) => return kubectl::run(Some("exec"), args).await,
        CliArgs::Events(args) => return kubectl::run(Some("events"), args).await,
        CliArgs::Ps(args) => ps::run(args).await?,
        CliArgs::Get(args) => get::run(args).await?,
        CliArgs::Search(args) => search::run(args).await?,
        CliArgs::Project(command) => project::run(command).await?,
        CliArgs::Namespace(command) => namespace::run(command).await?,
        CliArgs::Node(command) => node::run(command).await?,
        CliArgs::User(command) => user::run(command).await?,
        CliArgs::Role(command) => role::run(command).await?,
        CliArgs::AuthProvider(command) => auth_provider::run(command).await?,
        CliArgs::Group(command) => group::run(command).await?,
        CliArgs::Token(command) => token::run(command).await?,
        CliArgs::Settings(command) => settings::run(command).await?,
        CliArgs::Access(command) => access::run(command).await?,
        CliArgs::Audit(args) => audit::run(args).await?,
        CliArgs::Inspect(args) => inspect::run(args).await?,
        CliArgs::Apply(args) => apply::run(args).await?,
        CliArgs::Wait(args) => wait::run(args).await?,
        CliArgs::Credential(args) => credential::run(args).await?,
        CliArgs::Completion { shell } => output::write(&completion::script(shell, PROGRAM)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn cluster_command(command: ClusterCommand) -> Result<ExitCode, CliError> {
    match command {
        ClusterCommand::Ls(args) => cluster::list(args).await?,
        ClusterCommand::Get { cluster, output } => cluster::get(&cluster, output).await?,
        ClusterCommand::Import(args) => import::import(args).await?,
        ClusterCommand::Create(args) if args.driver.is_some() => provisioning::create(args).await?,
        ClusterCommand::Create(args) => cluster::create(args).await?,
        ClusterCommand::Update(args) => provisioning::update(args).await?,
        ClusterCommand::Logs { cluster, follow, server } => {
            provisioning::logs(&cluster, follow, server.name()).await?;
        }
        ClusterCommand::Pause { cluster, server } => {
            provisioning::pause(&cluster, true, server.name()).await?;
        }
        ClusterCommand::Resume { cluster, server } => {
            provisioning::pause(&cluster, false, server.name()).await?;
        }
        ClusterCommand::Kubeconfig(args) => kubeconfig::run(args).await?,
        ClusterCommand::Rm(args) => remove::remove(args).await?,
        ClusterCommand::Detach(args) => remove::detach(args).await?,
        ClusterCommand::Isolation { cluster: name, state, server } => {
            cluster::isolation(&name, state, server.name()).await?;
        }
        ClusterCommand::PodSecurity { cluster: name, change, server } => {
            pod_security::of_cluster(&name, &change, server.name()).await?;
        }
        ClusterCommand::Shell { cluster, server } => {
            return kubectl::shell(&cluster, server.name()).await;
        }
    }
    Ok(ExitCode::SUCCESS)
}
