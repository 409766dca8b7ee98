//! Calls to webhooks: where a `clientConfig` points, and one POST of JSON over TLS.
//!
//! Admission ([`crate::admission::webhooks`]) and conversion of custom resources
//! ([`crate::strategy::conversion`]) define requests and interpret responses. The texts of errors
//! are those of Kubernetes where clients see them often.

mod call;
mod client_config;
mod connect;

pub(crate) use call::reason;
pub use call::{CallError, RESPONSE_SIZE_MAX, WebhookClient};
pub use client_config::{ClientConfig, WebhookLocation, validate};
pub(crate) use connect::{Connector, Trust};
