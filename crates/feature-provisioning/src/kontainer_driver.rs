//! Cluster drivers as objects: programs from a URL that make clusters at a provider.
//!
//! | Where | What |
//! | --- | --- |
//! | [`controller`] | fetches a driver, starts it once for its options, makes types of them |
//! | [`download`] | what a URL gives, within limits |
//! | [`program`] | whether that is a driver for this machine, or an archive with one |
//! | [`files`] | where drivers are in the data folder, and how they are started |
//! | [`schema`] | the types that a driver's options become |
//! | [`built_in`] | those that are part of Drover |
//! | [`admission`] | URLs are unique; drivers that clusters need stay |
//! | [`view`] | the type `kontainerDriver` under `/v3` |

pub mod admission;
pub mod built_in;
pub mod controller;
pub mod download;
pub mod files;
pub mod program;
pub mod schema;
pub mod view;
