//! The key of an object within its kind.

use std::fmt;

use kube::Resource;

/// Namespace and name. The namespace of cluster-scoped objects is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub namespace: String,
    pub name: String,
}

impl Key {
    /// The key of an object in a namespace.
    pub fn namespaced(namespace: &str, name: &str) -> Self {
        Self { namespace: namespace.to_owned(), name: name.to_owned() }
    }
    /// The key of a cluster-scoped object: its namespace is empty.
    pub fn cluster_scoped(name: &str) -> Self {
        Self::namespaced("", name)
    }
    /// The key of this object. Fields that its metadata lacks are empty.
    pub fn of(object: &impl Resource) -> Self {
        let meta = object.meta();
        Self::namespaced(
            meta.namespace.as_deref().unwrap_or_default(),
            meta.name.as_deref().unwrap_or_default(),
        )
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}
