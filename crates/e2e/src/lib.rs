//! Harness of the system tests: starts Drover's binaries as processes beside real components and
//! tests them from outside, like users and clusters. No product crate is linked here.
//!
//! The tests are in `tests/`, one file per journey; the measurements in `src/bin/bench.rs`. Start
//! reading at [`Server`], then [`journey`].

pub mod agent;
pub mod agent_image;
pub mod browser;
pub mod cli;
pub mod cloud_world;
pub mod cluster_provider;
pub mod controller_manager;
pub mod driver_world;
pub mod flood;
pub mod helm;
pub mod hostile_cluster;
pub mod http;
pub mod interactive;
pub mod journey;
pub mod kubeconfig;
pub mod kubectl;
pub mod link;
pub mod manifest;
pub mod measure;
mod objects;
pub mod programs;
pub mod provider_world;
pub mod recorder;
pub mod relay;
pub mod server;
pub mod sim;
pub mod snapshot;
pub mod socket;
pub mod wait;
pub mod web_site;
pub mod world;

pub use agent::Agent;
pub use browser::Browser;
pub use cli::Cli;
pub use cluster_provider::ClusterProvider;
pub use controller_manager::ControllerManager;
pub use driver_world::DriverWorld;
pub use hostile_cluster::HostileCluster;
pub use http::{Client, HttpResponse, Protocol};
pub use interactive::Interactive;
pub use kubeconfig::Kubeconfig;
pub use kubectl::{Kubectl, ProgramOutput};
pub use link::Link;
pub use manifest::Manifest;
pub use provider_world::ProviderWorld;
pub use recorder::Recorder;
pub use relay::Relay;
pub use server::Server;
pub use sim::Sim;
pub use socket::Socket;
pub use testbed::{Guarantee, no_second_try};
pub use wait::{eventually, poll_until};
pub use web_site::WebSite;
pub use world::SharedWorld;
