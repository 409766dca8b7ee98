//! The agent between a server and an API server, both on loopback with TLS.

mod proxy;
mod session;
mod settings;
mod status;
mod wait;
mod world;
