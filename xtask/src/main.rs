//! All automation of the project: `cargo xtask <command>`.
//!
//! One module per command, each with a `run`. CI files have no logic of their own: they call `cargo
//! xtask ci`. `workspace` has the folders, `process` runs other programs.

mod bench;
mod check;
mod ci;
mod contract;
mod deny;
mod deps;
mod dist;
mod fingerprint;
mod flaky;
mod fuzz;
mod image;
mod kind;
mod openapi;
mod process;
mod soak;
mod test;
mod testbed_command;
mod tidy;
mod ui;
mod up;
mod workspace;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// All automation of the project.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: XtaskCommand,
}

#[derive(Subcommand)]
enum XtaskCommand {
    /// Build Drover and run it in the foreground: a server with one simulated cluster.
    Up {
        /// Build optimised, as for production.
        #[arg(long)]
        release: bool,
        /// Passed on to `drover up`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Fetch the real programs that tests run against into target/deps.
    Deps,
    /// Build the agent image as a file, without a registry or a container engine.
    Image(image::Arguments),
    /// Build the files of a release: static program, images, bill of materials, checksums.
    Dist(dist::Arguments),
    /// Format, clippy, tidy, licences and bans; types and lints of the web interface.
    Check,
    /// Run every test suite within its budget.
    Test(test::Arguments),
    /// Run the suites that have a long version.
    Soak(soak::Arguments),
    /// Check and test, as CI does.
    Ci,
    /// Check rules that compilers do not: floors, condition writers, module heads, test habits,
    /// words.
    Tidy,
    /// List the places of a kind, from its schema to the interface; fail if a necessary one is
    /// missing.
    Kind {
        /// As in `project` or `ClusterRegistrationToken`; all kinds if omitted.
        kind: Option<String>,
    },
    /// Regenerate the code of the contract of cluster drivers.
    Contract,
    /// Regenerate docs/reference/openapi.yaml.
    Openapi,
    /// Run the benchmarks, in a release build.
    Bench {
        /// Passed on to the benchmark program.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Start and stop real clusters that stay after the command.
    #[command(subcommand)]
    Testbed(testbed_command::TestbedCommand),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        XtaskCommand::Up { release, arguments } => up::run(release, &arguments),
        XtaskCommand::Deps => deps::run(),
        XtaskCommand::Image(arguments) => image::run(&arguments),
        XtaskCommand::Dist(arguments) => dist::run(&arguments),
        XtaskCommand::Check => check::run(),
        XtaskCommand::Test(arguments) => test::run(&arguments),
        XtaskCommand::Soak(arguments) => soak::run(&arguments),
        XtaskCommand::Ci => ci::run(),
        XtaskCommand::Tidy => tidy::run(),
        XtaskCommand::Kind { kind } => kind::run(kind.as_deref()),
        XtaskCommand::Contract => contract::run(),
        XtaskCommand::Openapi => openapi::run(),
        XtaskCommand::Bench { arguments } => bench::run(&arguments),
        XtaskCommand::Testbed(command) => testbed_command::run(&command),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
