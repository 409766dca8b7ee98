//! The only owner of connections to downstream clusters, and the authentication proxy over them.
//!
//! [`ClusterAccess`] holds, per cluster, the [`Endpoint`] of its API server and the route to it:
//! through the agent's tunnel or directly. It pools connections, adds the cluster's credential, and
//! builds `kube` clients for controllers. [`proxy`] serves users: it forwards their requests with
//! the identity that the server resolved. Credentials are never returned. The responses that this
//! server reads itself are bounded ([`conduct`]).
//!
//! The crate decides no rights and knows no kind: the caller supplies both.

pub mod access;
pub mod body;
mod client;
pub mod conduct;
mod cuttable;
pub mod dialer;
pub mod endpoint;
pub mod error;
pub mod limits;
mod pool;
pub mod proxy;
mod reading;
mod tls;

#[cfg(test)]
mod tests;

pub use access::{ClusterAccess, Reachability};
pub use body::{Body, BoxError};
pub use dialer::{Dialer, Routes};
pub use endpoint::{BearerToken, Endpoint, EndpointError, Route};
pub use error::AccessError;
pub use proxy::{AccessResolver, DownstreamIdentity, Impersonation, Proxy, ProxyCaller, Resolved};
pub use tunnel::{Address, ClusterId};
