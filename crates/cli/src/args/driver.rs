//! Cluster drivers.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueHint};
use driver_host::EgressException;

use super::{ListArgs, OutputArgs, ServerArgs, WaitArgs};
use crate::completion;

/// Commands of `drover driver`.
#[derive(Clone, Debug, Subcommand)]
pub enum DriverCommand {
    /// List the drivers of the server
    Ls(ListArgs),
    /// Add a driver by the URL of its program, or of an archive with it
    Add(DriverAddArgs),
    /// Change a driver: another version of its program, its checksum, its name
    Update(DriverUpdateArgs),
    /// List the options of clusters that a driver makes
    Options {
        /// Name or id
        #[arg(value_name = "DRIVER", add = completion::drivers())]
        driver: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Use a driver: its options become types of the API
    Activate {
        /// Name or id
        #[arg(value_name = "DRIVER", add = completion::drivers())]
        driver: String,
        #[command(flatten)]
        wait: WaitArgs,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Stop using drivers; they stay on the server
    Deactivate {
        /// Names or ids
        #[arg(required = true, value_name = "DRIVER", add = completion::drivers())]
        drivers: Vec<String>,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Remove drivers that no cluster needs
    Rm {
        /// Names or ids
        #[arg(required = true, value_name = "DRIVER", add = completion::drivers())]
        drivers: Vec<String>,
        #[command(flatten)]
        server: ServerArgs,
    },
    /// Check whether a driver keeps to the contract; it runs on this machine, with your rights
    Conformance(ConformanceArgs),
}

/// Flags of `drover driver add`.
#[derive(Args, Clone, Debug)]
pub struct DriverAddArgs {
    /// URL of the program, or of an archive (.tar, .tar.gz, .zip) with it
    #[arg(value_name = "URL", value_hint = ValueHint::Url)]
    pub url: String,
    #[command(flatten)]
    pub fields: DriverFields,
    /// Do not use it yet
    #[arg(long)]
    pub inactive: bool,
    #[command(flatten)]
    pub wait: WaitArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Flags of `drover driver update`: at least one of what can change.
#[derive(Args, Clone, Debug)]
#[command(group = ArgGroup::new("change").required(true).multiple(true)
    .args(["url", "name", "checksum", "ui_url", "domains"]))]
pub struct DriverUpdateArgs {
    /// Name or id
    #[arg(value_name = "DRIVER", add = completion::drivers())]
    pub driver: String,
    /// URL of another version. Without --checksum what comes first is used; the former checksum
    /// does not stay
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub url: Option<String>,
    #[command(flatten)]
    pub fields: DriverFields,
    #[command(flatten)]
    pub wait: WaitArgs,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// What can be said of a driver beside its URL.
#[derive(Args, Clone, Debug)]
pub struct DriverFields {
    /// Name [default: the one in the name of the file]
    #[arg(long)]
    pub name: Option<String>,
    /// SHA-256 or SHA-512 of what the URL gives; without it what comes first is used, and no other
    /// under this URL
    #[arg(long, value_name = "HEX")]
    pub checksum: Option<String>,
    /// URL of a component for other web interfaces
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub ui_url: Option<String>,
    /// Host that this component calls. May be repeated
    #[arg(long = "domain", value_name = "HOST")]
    pub domains: Vec<String>,
}

/// Flags of `drover driver conformance`.
#[derive(Args, Clone, Debug)]
pub struct ConformanceArgs {
    /// Executable file of the driver, or the name of one that is part of this program
    #[arg(value_name = "FILE", value_hint = ValueHint::ExecutablePath)]
    pub driver: PathBuf,
    /// Make a cluster with this option, change it, and remove it. May be repeated; @FILE is the
    /// text of a file
    #[arg(long = "option", short = 'o', value_name = "NAME=VALUE")]
    pub options: Vec<String>,
    /// Make a cluster, also without options
    #[arg(long)]
    pub create: bool,
    /// Variables of the environment that the driver gets
    #[arg(long = "env", value_name = "NAME=VALUE")]
    pub environment: Vec<String>,
    /// Run the driver in a sandbox, as a server does
    #[arg(long)]
    pub confined: bool,
    /// Host and ports that a confined driver reaches although they are of this machine, such as
    /// 127.0.0.1:9000. May be repeated
    #[arg(long = "may-reach", value_name = "HOST:PORT", requires = "confined")]
    pub may_reach: Vec<EgressException>,
    /// Show what the driver wrote to its log
    #[arg(long)]
    pub log: bool,
}
