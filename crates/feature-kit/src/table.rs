//! Makes the descriptor of a type in the REST view from its table.

use std::sync::Arc;

use api_management::table::{Row, RowLocation, TypeTable, definition};
use api_management::{GROUP, VERSION, table, types};
use futures::future::BoxFuture;
use rest_view::store::DeleteOptions;
use rest_view::{
    ApiError, Context, Descriptor, Field, FieldLocation, FieldType, Key, KubeResource, KubeStore,
    ListScope, Mapper, MayChange, Methods, Store, StructType,
};
use serde_json::{Map, Value};

/// The descriptor of the type `id`, with its own nested types. Its store is the resource that the
/// table names, accessed with the rights of the caller.
///
/// # Panics
/// When there is no table of that name, or its objects are not stored.
pub fn descriptor(id: &str) -> Descriptor {
    let table = types::table(id).unwrap_or_else(|| panic!("no table describes the type \"{id}\""));
    of_table(&table).unwrap_or_else(|| panic!("objects of the type \"{id}\" are stored nowhere"))
}

/// Like [`descriptor`]; `None` when the objects are not stored.
pub fn of_table(table: &TypeTable) -> Option<Descriptor> {
    let resource = resource_of(table)?;
    let mut descriptor = Descriptor::new(table.id, table.plural, resource.clone());
    descriptor.namespaced = table.namespaced;
    if !table.namespaced || table.namespace.is_some() {
        descriptor.fields.remove("namespaceId");
    }
    descriptor.base_type = table.base.map(str::to_owned);
    descriptor.methods = methods(table);
    descriptor.parent_field = table.parent.map(str::to_owned);
    for row in table.fields.iter().filter(|row| !row.is_hidden) {
        let field = field(row);
        if row.name == "name" && table.has_display_name() {
            descriptor = descriptor.display_name(field);
        } else {
            descriptor.insert(field);
        }
    }
    if let Some(namespace) = table.namespace {
        let prefix = match table.stored {
            table::Stored::Secret { prefix } => prefix,
            _ => "",
        };
        let store = Within { kube: KubeStore::new(resource), namespace, prefix };
        descriptor = descriptor.store(Arc::new(store)).mapper(InNamespace(namespace));
    }
    if table.has_state {
        descriptor = descriptor.with_state();
    }
    Some(descriptor.types(table.nested.iter().map(struct_type)))
}

/// The resource that stores the objects of a type; `None` when they are not stored.
pub fn resource_of(table: &TypeTable) -> Option<KubeResource> {
    match table.stored {
        table::Stored::Kind { kind, plural } => {
            let namespaced = definition::is_namespaced(table);
            Some(KubeResource::new(GROUP, VERSION, plural, kind, namespaced))
        }
        table::Stored::Kubernetes { api_version, kind, plural } => {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            Some(KubeResource::new(group, version, plural, kind, table.namespaced))
        }
        table::Stored::Secret { .. } => {
            Some(KubeResource::new("", "v1", "secrets", "Secret", true))
        }
        table::Stored::Nowhere => None,
    }
}

/// The nested types that several types use.
pub fn shared_types() -> impl Iterator<Item = StructType> {
    types::shared_types().map(|nested| struct_type(&nested))
}

/// A type whose objects are not stored, as an embedded type.
pub fn embedded(table: &TypeTable) -> StructType {
    StructType::new(table.id, table.fields.iter().map(field).collect())
}

/// A nested type as an embedded type.
pub fn struct_type(nested: &table::Nested) -> StructType {
    StructType::new(nested.id, nested.fields.iter().map(field).collect())
}

/// The verbs that the table names.
pub fn methods(table: &TypeTable) -> Methods {
    let has = |name: &str| table.methods.contains(&name);
    Methods {
        list: has("list"),
        get: has("get"),
        create: has("create"),
        update: has("update"),
        delete: has("delete"),
    }
}

/// References may name a type of another version by its path, which schemas show unchanged.
fn field_type(kind: &str) -> FieldType {
    match kind.strip_prefix("reference[").and_then(|rest| rest.strip_suffix(']')) {
        Some(to) => FieldType::reference(to),
        None => FieldType::parse(kind).unwrap_or(FieldType::Json),
    }
}

/// One field, with its location in stored objects.
pub fn field(row: &Row) -> Field {
    let mut field = Field::new(row.name, field_type(row.kind));
    let access = row.access;
    (field.create, field.update) = (access.create, access.update);
    (field.required, field.nullable) = (access.required, access.nullable);
    field.write_only = access.write_only;
    // Most URLs contain no credential, and an index can sort by them.
    field.apart = matches!(row.mark, Some(table::Mark::Credential | table::Mark::Password));
    (field.exists, field.holds) = (row.exists, row.holds);
    field.default = row.default.clone();
    field.options = row.options.iter().map(|&option| option.to_owned()).collect();
    (field.min, field.max) = (row.min, row.max);
    (field.min_length, field.max_length) = (row.min_length, row.max_length);
    field.location = Some(match &row.location {
        RowLocation::Path(path) => FieldLocation::path(path),
        RowLocation::Annotation(key) => FieldLocation::Annotation((*key).to_owned()),
        RowLocation::AnnotationJson(key) => FieldLocation::AnnotationJson((*key).to_owned()),
        RowLocation::NotStored => FieldLocation::Computed,
    });
    field
}

/// Puts new objects into the one namespace of their type.
struct InNamespace(&'static str);

impl Mapper for InNamespace {
    fn to_view(&self, _: &Value, _: &mut Map<String, Value>) {}

    fn to_stored(&self, _: &Map<String, Value>, stored: &mut Value) {
        stored["metadata"]["namespace"] = self.0.into();
    }
}

/// Objects of one namespace, which ids need not name.
struct Within {
    kube: KubeStore,
    namespace: &'static str,
    /// Prefix of the names of the objects of the type.
    prefix: &'static str,
}

impl Within {
    /// The object in the namespace; an object that the key names in another namespace does not
    /// exist.
    fn key(&self, key: &Key) -> Result<Key, ApiError> {
        let elsewhere = !key.namespace.is_empty() && key.namespace != self.namespace;
        if elsewhere || !key.name.starts_with(self.prefix) {
            return Err(ApiError::no_such_id());
        }
        Ok(Key { namespace: self.namespace.to_owned(), name: key.name.clone() })
    }
    fn scope(&self) -> ListScope {
        ListScope { namespace: Some(self.namespace.to_owned()) }
    }
}

impl Store for Within {
    fn list<'a>(
        &'a self,
        context: &'a Context<'a>,
        _: &'a ListScope,
    ) -> BoxFuture<'a, Result<Vec<Value>, ApiError>> {
        Box::pin(async move {
            let mut objects = self.kube.list(context, &self.scope()).await?;
            objects.retain(|object| self.is_listed(object));
            Ok(objects)
        })
    }
    fn get<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(async move { self.kube.get(context, &self.key(key)?).await })
    }
    fn create<'a>(
        &'a self,
        context: &'a Context<'a>,
        object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        self.kube.create(context, object)
    }
    fn replace<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
        object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(async move { self.kube.replace(context, &self.key(key)?, object).await })
    }
    fn delete<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
        options: &'a DeleteOptions,
    ) -> BoxFuture<'a, Result<Option<Value>, ApiError>> {
        Box::pin(async move { self.kube.delete(context, &self.key(key)?, options).await })
    }
    fn is_listed(&self, stored: &Value) -> bool {
        stored["metadata"]["name"].as_str().is_some_and(|name| name.starts_with(self.prefix))
    }
    /// No journal follows Secrets.
    fn indexed_resource(&self) -> Option<&KubeResource> {
        self.kube.indexed_resource().filter(|resource| !resource.group.is_empty())
    }
    fn can_see_all<'a>(
        &'a self,
        context: &'a Context<'a>,
    ) -> BoxFuture<'a, Result<bool, ApiError>> {
        self.kube.can_see_all(context)
    }
    fn may_change<'a>(
        &'a self,
        context: &'a Context<'a>,
        keys: &'a [Key],
    ) -> BoxFuture<'a, Result<Vec<MayChange>, ApiError>> {
        self.kube.may_change(context, keys)
    }
}
