//! Landlock, on top of the root: even a folder of the machine that a driver got hold of stays shut,
//! and so do processes that it did not start. A kernel without Landlock restricts nothing here, and
//! one before 6.12 only paths.

use anyhow::Context as _;
use landlock::{
    ABI, Access as _, AccessFs, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, Scope,
    path_beneath_rules,
};

use crate::sandbox::root::TEMPORARY;

const DEVICES: &str = "/dev";
/// Of Linux 6.12. Later ones add nothing that the sandbox lets through.
const RULES: ABI = ABI::V6;

/// Restricts this thread and what it starts: reading in the root, writing to devices and to the
/// folder for temporary files, signals among themselves.
pub(super) fn restrict() -> anyhow::Result<()> {
    Ruleset::default()
        .handle_access(AccessFs::from_all(RULES))?
        .scope(Scope::from_all(RULES))?
        .create()?
        .add_rules(path_beneath_rules(["/"], AccessFs::from_read(RULES)))?
        .add_rules(path_beneath_rules([DEVICES], AccessFs::from_file(RULES)))?
        .add_rules(path_beneath_rules([TEMPORARY], AccessFs::from_all(RULES)))?
        .restrict_self()
        .context("cannot restrict paths")?;
    Ok(())
}
