//! Cluster drivers.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use driver_host::EgressException;

/// Commands of `drover driver`.
#[derive(Clone, Debug, Subcommand)]
pub enum DriverCommand {
    /// Check whether a driver keeps to the contract; it runs on this machine, with your rights
    Conformance(ConformanceArgs),
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
