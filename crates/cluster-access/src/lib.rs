//! The only owner of connections to downstream clusters, and the authentication proxy over them.
//!
//! [`ClusterAccess`] knows, per cluster, the [`Endpoint`] of its API server and how to get there:
//! through the agent's tunnel or directly. It keeps connections, puts in the cluster's credential,
//! and hands out `kube` clients for controllers. [`proxy`] serves people: it forwards their
//! requests with the identity that we resolved. Credentials go in here and never come out. What clusters send is
//! bounded where this server reads it ([`conduct`]).
//!
//! It does not decide who may do what, and knows no kind of object: both come from the caller.

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
pub use proxy::{AccessResolver, Caller, Identity, Impersonation, Proxy, Resolved};
pub use tunnel::{Address, ClusterId};
