//! `cargo xtask openapi`: regenerates the committed OpenAPI document from a server with all
//! features.

use anyhow::Result;

use crate::{deps, process, workspace};

/// With this variable, the test that compares the document with the server writes it.
const RENEW: &str = "DROVER_RENEW_OPENAPI";
const TEST: &str = "openapi::the_committed_openapi_document_is_the_one_served_and_can_be_parsed";

pub fn run() -> Result<()> {
    deps::run()?;
    let mut test = workspace::cargo();
    test.env(RENEW, "1").args(["test", "--quiet", "-p", "test-kit", "--test", "downstream"]);
    process::run(test.args(["--", "--exact", TEST]))
}
