//! Which role templates a role comes with.

use std::collections::BTreeSet;

/// `roles`, and all that they inherit, directly or not. Cycles end. Pure.
///
/// - `inherited_by`: the role templates that one names; none for one that does not exist.
pub fn closure<I>(
    roles: impl IntoIterator<Item = String>,
    inherited_by: impl Fn(&str) -> I,
) -> BTreeSet<String>
where
    I: IntoIterator<Item = String>,
{
    let mut closure = BTreeSet::new();
    let mut open: Vec<String> = roles.into_iter().collect();
    while let Some(role) = open.pop() {
        if !closure.contains(&role) {
            open.extend(inherited_by(&role));
            closure.insert(role);
        }
    }
    closure
}
