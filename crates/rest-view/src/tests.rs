//! The engine over kinds of its own making: crates that hold widgets.

mod dynamic;
mod feed;
mod hostile;
mod in_process;
mod input;
mod mapping;
mod negotiation;
mod openapi;
mod query;
mod schema;
mod state;
mod sub_context;
mod verbs;
mod view;
pub(crate) mod world;
