//! The API versions and their types. A snapshot; each change makes a new one.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::types::descriptor::Descriptor;
use crate::types::field::{Field, StructType};

/// An API version: a path with the types below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiVersion {
    /// Group in `apiVersion` objects (`management.cattle.io`).
    pub group: String,
    /// Version in `apiVersion` objects (`v3`).
    pub version: String,
    /// `/v3`. The path of a sub-context ends with the type it belongs to: `/v3/cluster`.
    pub path: String,
    /// The version holds the types *inside* one resource of this type of the parent path.
    pub parent_type: Option<String>,
    /// Readable and writable without a login.
    pub public: bool,
}

impl ApiVersion {
    /// A version at `path` that needs a login and is not inside a resource.
    pub fn new(group: &str, version: &str, path: &str) -> Self {
        let [group, version, path] = [group, version, path].map(str::to_owned);
        Self { group, version, path, parent_type: None, public: false }
    }
    /// Makes it the version with the types inside one resource of type `parent`.
    pub fn inside(mut self, parent: &str) -> Self {
        self.parent_type = Some(parent.to_owned());
        self
    }
    /// Opens the version to callers without a login.
    pub fn public(mut self) -> Self {
        self.public = true;
        self
    }
}

/// The type or embedded type that an id names.
pub(crate) enum NamedType<'a> {
    Type(&'a Descriptor),
    Struct(&'a StructType),
}

/// All versions and types.
#[derive(Clone, Default)]
pub struct Registry {
    versions: Vec<ApiVersion>,
    /// By version path and type id.
    descriptors: BTreeMap<(String, String), Arc<Descriptor>>,
    /// Embedded types by version path and id.
    types: BTreeMap<(String, String), Arc<StructType>>,
}

impl Registry {
    /// A registry with these versions and types. Types whose version is not listed cannot be
    /// reached.
    pub fn new(
        versions: impl IntoIterator<Item = ApiVersion>,
        descriptors: impl IntoIterator<Item = Descriptor>,
    ) -> Self {
        let versions = versions.into_iter().collect();
        let mut registry = Self { versions, ..Self::default() };
        for descriptor in descriptors {
            registry.insert(descriptor);
        }
        registry
    }
    /// Adds a type with its embedded types, or replaces the one of the same id.
    pub fn insert(&mut self, descriptor: Descriptor) {
        for kind in &descriptor.types {
            self.insert_type(&descriptor.version, kind.clone());
        }
        let key = (descriptor.version.clone(), descriptor.id.clone());
        self.descriptors.insert(key, Arc::new(descriptor));
    }
    /// Adds an embedded type to the version, or replaces the one of the same id.
    pub fn insert_type(&mut self, version: &str, kind: StructType) {
        self.types.insert((version.to_owned(), kind.id.clone()), Arc::new(kind));
    }
    /// Removes a type. Its embedded types remain, because other types may use them.
    pub fn remove(&mut self, version: &str, id: &str) {
        self.descriptors.remove(&(version.to_owned(), id.to_owned()));
    }
    /// All versions, in the order of registration.
    pub fn versions(&self) -> &[ApiVersion] {
        &self.versions
    }
    /// The version with exactly this path.
    pub fn version(&self, path: &str) -> Option<&ApiVersion> {
        self.versions.iter().find(|version| version.path == path)
    }
    /// The version with the types inside resources of type `parent`, below the version
    /// `parent_path`.
    pub fn version_inside(&self, parent_path: &str, parent: &str) -> Option<&ApiVersion> {
        self.versions.iter().find(|version| {
            version.parent_type.as_deref() == Some(parent)
                && version.path.strip_prefix(parent_path).is_some_and(|rest| rest.starts_with('/'))
        })
    }
    /// The type with this id or plural in the version, ignoring case.
    pub fn find(&self, version: &str, name: &str) -> Option<&Arc<Descriptor>> {
        let mut of_version = self.descriptors.iter().filter(|((path, _), _)| path == version);
        let found = of_version.find(|(_, descriptor)| {
            descriptor.id.eq_ignore_ascii_case(name) || descriptor.plural.eq_ignore_ascii_case(name)
        });
        found.map(|(_, descriptor)| descriptor)
    }
    /// The types of the version, by id.
    pub fn descriptors_of<'a>(
        &'a self,
        version: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Descriptor>> {
        self.descriptors.iter().filter(move |((path, _), _)| path == version).map(|(_, d)| d)
    }
    /// The embedded types of the version, by id.
    pub fn types_of<'a>(&'a self, version: &'a str) -> impl Iterator<Item = &'a Arc<StructType>> {
        self.types.iter().filter(move |((path, _), _)| path == version).map(|(_, kind)| kind)
    }
    /// The type or embedded type with this id in `version`; a type takes precedence.
    pub(crate) fn find_named(&self, version: &str, id: &str) -> Option<NamedType<'_>> {
        let key = (version.to_owned(), id.to_owned());
        let found = self.descriptors.get(&key).map(|descriptor| NamedType::Type(descriptor));
        found.or_else(|| self.types.get(&key).map(|kind| NamedType::Struct(kind)))
    }
    /// Adds fields to a type or an embedded type, replacing those of the same names. `false`: there
    /// is no such type.
    pub fn add_fields(
        &mut self,
        version: &str,
        id: &str,
        fields: impl IntoIterator<Item = Field>,
    ) -> bool {
        let key = (version.to_owned(), id.to_owned());
        if let Some(descriptor) = self.descriptors.get_mut(&key) {
            let descriptor = Arc::make_mut(descriptor);
            fields.into_iter().for_each(|field| descriptor.insert(field));
        } else if let Some(kind) = self.types.get_mut(&key) {
            let kind = Arc::make_mut(kind);
            for field in fields {
                kind.fields.retain(|known| known.name != field.name);
                kind.fields.push(field);
            }
        } else {
            return false;
        }
        true
    }
    /// Removes fields from a type or an embedded type.
    pub fn remove_fields(&mut self, version: &str, id: &str, names: &[&str]) {
        let key = (version.to_owned(), id.to_owned());
        if let Some(descriptor) = self.descriptors.get_mut(&key) {
            Arc::make_mut(descriptor).fields.retain(|name, _| !names.contains(&name.as_str()));
        }
        if let Some(kind) = self.types.get_mut(&key) {
            Arc::make_mut(kind).fields.retain(|field| !names.contains(&field.name.as_str()));
        }
    }
    /// Removes an embedded type.
    pub fn remove_type(&mut self, version: &str, id: &str) {
        self.types.remove(&(version.to_owned(), id.to_owned()));
    }
    /// The embedded type with this id in the version.
    pub fn struct_type(&self, version: &str, id: &str) -> Option<&StructType> {
        self.types.get(&(version.to_owned(), id.to_owned())).map(Arc::as_ref)
    }
}
