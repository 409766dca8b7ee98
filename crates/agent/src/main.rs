//! The slim agent: the binary of the agent image.

use std::process::ExitCode;

use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Connects this Kubernetes cluster to a Drover server.
#[derive(Parser)]
#[command(name = "drover-agent", version)]
struct Arguments {
    #[command(flatten)]
    agent: agent::AgentArgs,
}

fn main() -> ExitCode {
    agent::main(Arguments::parse().agent)
}
