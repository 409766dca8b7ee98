//! Objects inside clusters, through `/v3/clusters/<id>/…` and `/v3/projects/<id>/…`: reads and
//! writes of owners, members, readers and users without a role, with a cluster's own API server and
//! RBAC.

#![allow(clippy::unwrap_used)]

#[path = "downstream/cluster_types.rs"]
mod cluster_types;
#[path = "downstream/drains.rs"]
mod drains;
#[path = "downstream/nodes.rs"]
mod nodes;
#[path = "downstream/openapi.rs"]
mod openapi;
#[path = "downstream/project_secrets.rs"]
mod project_secrets;
#[path = "downstream/project_types.rs"]
mod project_types;
#[path = "downstream/users.rs"]
mod users;
#[path = "downstream/workloads.rs"]
mod workloads;
