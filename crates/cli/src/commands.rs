//! What each command does.

pub(crate) mod cluster;
mod import;
mod kubectl;
mod login;
pub(crate) mod project;
mod remove;
pub(crate) mod role;
pub(crate) mod token;
pub(crate) mod user;

use std::process::ExitCode;

use crate::args::{CliArgs, ClusterCommand, ProjectCommand, RoleCommand, Shell};
use crate::error::{CliError, Failure};
use crate::output;

pub async fn run(args: CliArgs, program: clap::Command) -> Result<ExitCode, CliError> {
    match args {
        CliArgs::Login(args) => login::login(args).await?,
        CliArgs::Logout(server) => login::logout(server.server.as_deref()).await?,
        CliArgs::Kubectl(args) => return kubectl::run(args).await,
        CliArgs::Cluster(command) => return cluster_command(command).await,
        CliArgs::Token(command) => token::run(command).await?,
        CliArgs::User(command) => user::run(command).await?,
        CliArgs::Role(command) => match command {
            RoleCommand::Ls(args) => role::list(args).await?,
            RoleCommand::Grant { role, cluster, user, output } => {
                role::grant(&role, &cluster, &user, output).await?;
            }
            RoleCommand::Revoke { role, cluster, user, server } => {
                role::revoke(&role, &cluster, &user, server.server.as_deref()).await?;
            }
        },
        CliArgs::Project(ProjectCommand::Ls { cluster, output }) => {
            project::list(cluster.as_deref(), output).await?;
        }
        CliArgs::Completion { shell } => completion(shell, program)?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn cluster_command(command: ClusterCommand) -> Result<ExitCode, CliError> {
    match command {
        ClusterCommand::Ls(args) => cluster::list(args).await?,
        ClusterCommand::Get { cluster, output } => cluster::get(&cluster, output).await?,
        ClusterCommand::Import(args) => import::import(args).await?,
        ClusterCommand::Kubeconfig { cluster, server } => {
            cluster::kubeconfig(&cluster, server.server.as_deref()).await?;
        }
        ClusterCommand::Rm(args) => remove::remove(args).await?,
        ClusterCommand::Detach(args) => remove::detach(args).await?,
        ClusterCommand::Shell { cluster, server } => {
            return kubectl::shell(&cluster, server.server.as_deref()).await;
        }
        ClusterCommand::Create { .. } => {
            return Err(not_yet("creating clusters")
                .hint("import one that exists: drover cluster import NAME --kubeconfig FILE"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn not_yet(what: &str) -> CliError {
    CliError::new(Failure::Other, format!("{what} is not available yet"))
}

fn completion(shell: Shell, mut program: clap::Command) -> Result<(), CliError> {
    use clap_complete::Shell as Target;
    let target = match shell {
        Shell::Bash => Target::Bash,
        Shell::Zsh => Target::Zsh,
        Shell::Fish => Target::Fish,
    };
    let name = program.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(target, &mut program, name, &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
