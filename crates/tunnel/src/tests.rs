//! The tunnel against itself, in memory and mostly on a paused clock.

mod handshake;
mod harness;
mod lifecycle;
mod streams;
mod wait;
