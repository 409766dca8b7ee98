//! What each command does.

mod apply;
pub(crate) mod cluster;
pub(crate) mod context;
mod credential;
mod import;
mod inspect;
mod kubectl;
mod login;
mod namespace;
mod place;
pub(crate) mod project;
mod ps;
mod remove;
pub(crate) mod role;
mod settings;
pub(crate) mod token;
pub(crate) mod user;
pub(crate) mod wait;

use std::process::ExitCode;

use crate::args::{CliArgs, ClusterCommand, Shell};
use crate::error::CliError;
use crate::output;

pub async fn run(args: CliArgs, program: clap::Command) -> Result<ExitCode, CliError> {
    match args {
        CliArgs::Login(args) => login::login(args).await?,
        CliArgs::Logout(server) => login::logout(server.name()).await?,
        CliArgs::Context(command) => context::run(command).await?,
        CliArgs::Cluster(command) => return cluster_command(command).await,
        CliArgs::Kubectl(args) => return kubectl::run(args).await,
        CliArgs::Ps(args) => ps::run(args).await?,
        CliArgs::Project(command) => project::run(command).await?,
        CliArgs::Namespace(command) => namespace::run(command).await?,
        CliArgs::User(command) => user::run(command).await?,
        CliArgs::Role(command) => role::run(command).await?,
        CliArgs::Token(command) => token::run(command).await?,
        CliArgs::Settings(command) => settings::run(command).await?,
        CliArgs::Inspect(args) => inspect::run(args).await?,
        CliArgs::Apply(args) => apply::run(args).await?,
        CliArgs::Wait(args) => wait::run(args).await?,
        CliArgs::Credential(args) => credential::run(args).await?,
        CliArgs::Completion { shell } => completion(shell, program)?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn cluster_command(command: ClusterCommand) -> Result<ExitCode, CliError> {
    match command {
        ClusterCommand::Ls(args) => cluster::list(args).await?,
        ClusterCommand::Get { cluster, output } => cluster::get(&cluster, output).await?,
        ClusterCommand::Import(args) => import::import(args).await?,
        ClusterCommand::Create(args) => cluster::create(args).await?,
        ClusterCommand::Kubeconfig(args) => cluster::kubeconfig(args).await?,
        ClusterCommand::Rm(args) => remove::remove(args).await?,
        ClusterCommand::Detach(args) => remove::detach(args).await?,
        ClusterCommand::Shell { cluster, server } => {
            return kubectl::shell(&cluster, server.name()).await;
        }
    }
    Ok(ExitCode::SUCCESS)
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
    output::write(&String::from_utf8_lossy(&script))
}
