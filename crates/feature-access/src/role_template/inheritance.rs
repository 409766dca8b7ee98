//! Which role templates a role comes with.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

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

/// `role` and all that it inherits, each with the shortest path to it from `role`, both included.
/// Cycles end. Pure.
///
/// - `inherited_by`: as for [`closure`].
pub fn paths<I>(role: &str, inherited_by: impl Fn(&str) -> I) -> BTreeMap<String, Vec<String>>
where
    I: IntoIterator<Item = String>,
{
    let mut paths = BTreeMap::from([(role.to_owned(), vec![role.to_owned()])]);
    let mut open = VecDeque::from([role.to_owned()]);
    while let Some(from) = open.pop_front() {
        let path = paths.get(&from).cloned().unwrap_or_default();
        for to in inherited_by(&from) {
            if !paths.contains_key(&to) {
                let longer = path.iter().cloned().chain([to.clone()]).collect();
                paths.insert(to.clone(), longer);
                open.push_back(to);
            }
        }
    }
    paths
}
