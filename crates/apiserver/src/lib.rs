//! A Kubernetes-compatible API server as a library. It knows no Drover kind.
//!
//! The path of a request: [`server`] → [`request`] (path to verb and resource) → [`authentication`]
//! → [`impersonation`] → [`flow_control`] (a seat) → [`authorization`] → [`handlers`] → the
//! [`strategy`] of the resource → storage. Reads are served from the watch [`cache`] as encoded
//! bytes. The [`catalog`] holds the served resources; [`resource`] describes one. Requests are
//! reported to [`metrics`] and [`audit`].

pub mod admission;
pub mod aggregation;
pub mod attributes;
pub mod audit;
pub mod authentication;
pub mod authorization;
pub mod body;
pub mod built_in_plugins;
pub mod cache;
pub mod catalog;
pub mod connect;
pub mod discovery;
pub mod documents;
pub mod fields;
pub mod flow_control;
mod handlers;
pub mod health;
pub mod impersonation;
pub mod kind;
pub mod metrics;
pub mod openapi;
pub mod quota;
pub mod registry;
pub mod rejections;
pub mod request;
pub mod resource;
pub mod retry;
pub mod schemas;
pub mod serve;
pub mod server;
pub mod service_accounts;
pub mod stored;
pub mod strategy;
pub mod tasks;
pub mod warnings;
pub mod webhook;

pub use attributes::{Attributes, Authenticator, Authorizer, Decision, UserInfo};
pub use catalog::Catalog;
pub use registry::Registry;
pub use resource::Resource;
pub use server::ApiServer;
