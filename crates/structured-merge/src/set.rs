//! Sets of paths, stored as a tree.

use std::collections::BTreeMap;

use crate::element::{Path, PathElement};
use crate::schema::{Schema, TypeId};

/// A set of paths. A path in the set does not imply its ancestors or descendants: owning
/// `.metadata.labels` itself and owning `.metadata.labels.a` are two things.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// Invariant: every node is a member or has a non-empty set below it.
    pub(crate) nodes: BTreeMap<PathElement, SetNode>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SetNode {
    /// Whether the path that ends here is in the set.
    pub member: bool,
    pub below: FieldSet,
}

impl SetNode {
    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl FromIterator<Path> for FieldSet {
    fn from_iter<I: IntoIterator<Item = Path>>(paths: I) -> Self {
        let mut set = Self::default();
        for path in paths {
            set.insert(&path.0);
        }
        set
    }
}

impl FieldSet {
    /// A set without paths.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a path. Ignores the empty path, which cannot be a member.
    pub fn insert(&mut self, path: &[PathElement]) {
        let [first, rest @ ..] = path else { return };
        let node = self.nodes.entry(first.clone()).or_default();
        if rest.is_empty() {
            node.member = true;
        } else {
            node.below.insert(rest);
        }
    }

    /// Whether exactly this path is in the set. Ancestors and descendants do not count.
    pub fn contains(&self, path: &[PathElement]) -> bool {
        let [first, rest @ ..] = path else { return false };
        let Some(node) = self.nodes.get(first) else { return false };
        if rest.is_empty() { node.member } else { node.below.contains(rest) }
    }

    /// Whether no path is in the set.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The number of paths.
    pub fn len(&self) -> usize {
        self.nodes.values().map(|node| usize::from(node.member) + node.below.len()).sum()
    }

    /// The set below a path element; `None` when nothing is below it.
    pub(crate) fn below(&self, element: &PathElement) -> Option<&Self> {
        self.nodes.get(element).map(|node| &node.below).filter(|set| !set.is_empty())
    }

    pub(crate) fn is_member(&self, element: &PathElement) -> bool {
        self.nodes.get(element).is_some_and(|node| node.member)
    }

    /// The paths that are in this set, in `other` or in both.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut out = self.clone();
        for (element, node) in &other.nodes {
            let own_node = out.nodes.entry(element.clone()).or_default();
            own_node.member |= node.member;
            if own_node.below.is_empty() {
                own_node.below = node.below.clone();
            } else if !node.below.is_empty() {
                own_node.below = own_node.below.union(&node.below);
            }
        }
        out
    }

    /// The paths that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.filter_nodes(|element, node| {
            let other_node = other.nodes.get(element)?;
            let below = node.below.intersection(&other_node.below);
            Some(SetNode { member: node.member && other_node.member, below })
        })
    }

    /// The paths of this set that are not in `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.filter_nodes(|element, node| {
            let Some(other_node) = other.nodes.get(element) else { return Some(node.clone()) };
            let below = node.below.difference(&other_node.below);
            Some(SetNode { member: node.member && !other_node.member, below })
        })
    }

    /// Like [`FieldSet::difference`], but also removes all paths below a path of `other`.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        self.filter_nodes(|element, node| {
            let Some(other_node) = other.nodes.get(element) else { return Some(node.clone()) };
            if other_node.member {
                return None;
            }
            let below = node.below.recursive_difference(&other_node.below);
            Some(SetNode { member: node.member, below })
        })
    }

    fn filter_nodes(&self, choose: impl Fn(&PathElement, &SetNode) -> Option<SetNode>) -> Self {
        let nodes = self.nodes.iter().filter_map(|(element, node)| {
            let chosen = choose(element, node).filter(|node| !node.is_empty())?;
            Some((element.clone(), chosen))
        });
        Self { nodes: nodes.collect() }
    }

    /// Adds every field that the schema names and that has a path below it. So a struct is removed
    /// when all of its remaining parts are.
    #[must_use]
    pub(crate) fn with_named_fields(&self, schema: &Schema, of: Option<TypeId>) -> Self {
        let atom = of.map(|of| schema.atom(of));
        let map = atom.and_then(|atom| atom.map.as_ref());
        let list = atom.and_then(|atom| atom.list.as_ref());
        let nodes = self.nodes.iter().map(|(element, node)| {
            let (named, of) = match (element, map, list) {
                (PathElement::Field(name), Some(map), _) => {
                    (map.fields.contains_key(name), map.field_type(name))
                }
                (PathElement::Key(_), _, Some(list)) => (false, Some(list.items)),
                _ => (false, None),
            };
            let member = node.member || named && !node.below.is_empty();
            (element.clone(), SetNode { member, below: node.below.with_named_fields(schema, of) })
        });
        Self { nodes: nodes.collect() }
    }

    /// All paths. The paths that end at a level come before those that continue below it.
    pub fn paths(&self) -> Vec<Path> {
        let mut out = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut out);
        out
    }

    fn collect_paths(&self, prefix: &mut Vec<PathElement>, out: &mut Vec<Path>) {
        for (element, _) in self.nodes.iter().filter(|(_, node)| node.member) {
            let mut path = prefix.clone();
            path.push(element.clone());
            out.push(Path(path));
        }
        for (element, node) in &self.nodes {
            prefix.push(element.clone());
            node.below.collect_paths(prefix, out);
            prefix.pop();
        }
    }
}
