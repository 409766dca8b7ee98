//! The same requests to a real kube-apiserver and to this server, whose responses must be equal.

#![allow(clippy::unwrap_used)]

#[path = "upstream/autoscalers.rs"]
mod autoscalers;
#[path = "upstream/bodies.rs"]
mod bodies;
#[path = "upstream/definitions.rs"]
mod definitions;
#[path = "upstream/health.rs"]
mod health;
#[path = "upstream/ingresses.rs"]
mod ingresses;
#[path = "upstream/jobs.rs"]
mod jobs;
#[path = "upstream/json_patches.rs"]
mod json_patches;
#[path = "upstream/lists.rs"]
mod lists;
#[path = "upstream/namespaces.rs"]
mod namespaces;
#[path = "upstream/nesting.rs"]
mod nesting;
#[path = "upstream/owners.rs"]
mod owners;
#[path = "upstream/pods.rs"]
mod pods;
#[path = "upstream/selectors.rs"]
mod selectors;
#[path = "upstream/services.rs"]
mod services;
#[path = "upstream/side.rs"]
mod side;
#[path = "upstream/sockets.rs"]
mod sockets;
#[path = "upstream/specs.rs"]
mod specs;
#[path = "upstream/statuses.rs"]
mod statuses;
#[path = "upstream/tally.rs"]
mod tally;
#[path = "wait/wait.rs"]
mod wait;
#[path = "upstream/world.rs"]
mod world;
