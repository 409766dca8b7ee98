//! Every kind has what `cargo xtask kind` lists as its schema, feature and rights.

use anyhow::Result;

use super::{Complaint, Tree};
use crate::kind;

/// Complains about each kind that lacks one of them.
///
/// # Errors
/// A file cannot be read.
pub fn check(tree: &Tree) -> Result<Vec<Complaint>> {
    let problems = kind::problems(&tree.root)?.into_iter();
    Ok(problems.map(|(file, text)| Complaint { file: file.into(), line: 0, text }).collect())
}
