//! Against a recording downstream: a real TLS server that notes what reaches it.

mod connections;
mod downstream;
mod forwarding;
mod front;
mod identity;
mod wait;
