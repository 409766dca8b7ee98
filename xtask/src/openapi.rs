//! `cargo xtask openapi`: writes the committed OpenAPI document anew, as a server with every feature answers it.

use anyhow::Result;

use crate::{deps, process, workspace};

/// The test that holds the document against the server writes it when this variable is set.
const RENEW: &str = "DROVER_RENEW_OPENAPI";
const TEST: &str = "openapi::the_committed_openapi_document_is_the_one_served_and_can_be_parsed";

pub fn run() -> Result<()> {
    deps::run()?;
    let mut test = workspace::cargo();
    test.env(RENEW, "1").args(["test", "--quiet", "-p", "test-kit", "--test", "downstream"]);
    process::succeed(test.args(["--", "--exact", TEST]))
}
