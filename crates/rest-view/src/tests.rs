//! The engine over kinds of its own making: crates that hold widgets.

mod feed;
mod in_process;
mod mapping;
mod query;
mod schema;
mod state;
mod view;
mod world;
