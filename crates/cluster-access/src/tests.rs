//! Against a recording downstream: a real TLS server that records its requests.

mod connections;
mod downstream;
mod forwarding;
mod front;
mod identity;
mod wait;
