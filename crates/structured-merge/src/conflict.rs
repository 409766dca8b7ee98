//! Fields of other managers that an apply configuration would change.

use std::fmt;

use api_meta::go_text::quoted;

use crate::element::Path;

/// A field that another manager owns and that the apply configuration sets to another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The identity of the manager that owns the field.
    pub manager: String,
    pub path: Path,
}

/// All conflicts of an apply configuration, grouped by manager. Within a manager they are in the
/// order of [`crate::FieldSet::paths`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts(pub Vec<Conflict>);

impl std::error::Error for Conflicts {}

/// Grouped by manager. A manager is shown by its identity.
impl fmt::Display for Conflicts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [Conflict { manager, path }] = self.0.as_slice() {
            return write!(out, "conflict with {}: {path}", quoted(manager));
        }
        for (at, group) in self.0.chunk_by(|left, right| left.manager == right.manager).enumerate()
        {
            let separator = if at == 0 { "" } else { "\n" };
            write!(out, "{separator}conflicts with {}:", quoted(&group[0].manager))?;
            group.iter().try_for_each(|conflict| write!(out, "\n- {}", conflict.path))?;
        }
        Ok(())
    }
}
