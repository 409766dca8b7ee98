//! Builds the engines, lists the features, runs. No logic of its own.
//!
//! Start at [`run`], which shows the order in which the server comes up; [`router`] is where each
//! request goes; [`features`] is what the product does.

pub mod admission;
mod audit_view;
mod authentication;
mod bodies;
pub mod certificate;
mod clients;
pub mod credentials;
pub mod definitions;
mod denied;
mod door;
pub mod encryption;
mod features;
mod files;
mod guide_pages;
pub mod journal;
mod peer;
mod priority;
mod root_page;
mod router;
pub mod run;
mod security_headers;
pub mod settings;
pub mod store;
mod ui;

pub use run::{Server, run};
pub use settings::{ServerArgs, ServerSettings};
