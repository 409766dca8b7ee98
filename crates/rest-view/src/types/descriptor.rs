//! What the view needs to know of one kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::error::ApiError;
use crate::types::action::Action;
use crate::types::context::Presentation;
use crate::types::field::{Field, FieldLocation, FieldType, StructType};
use crate::types::link::Link;
use crate::types::socket::ResourceSocket;
use crate::types::store::{Key, KubeResource, KubeStore, Store};

/// The annotation with the user id of the creator; shown as `creatorId`.
pub const CREATOR_ANNOTATION: &str = "field.cattle.io/creatorId";

/// The verbs that the type offers. They grant no rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Methods {
    pub list: bool,
    pub get: bool,
    pub create: bool,
    pub update: bool,
    pub delete: bool,
}

impl Methods {
    /// All verbs.
    pub const ALL: Self = Self { list: true, get: true, create: true, update: true, delete: true };
    /// List and get only.
    pub const READ: Self =
        Self { list: true, get: true, create: false, update: false, delete: false };

    pub(crate) fn collection(self) -> Vec<&'static str> {
        [(self.list, "GET"), (self.create, "POST")]
            .into_iter()
            .filter_map(|(on, method)| on.then_some(method))
            .collect()
    }
    pub(crate) fn resource(self) -> Vec<&'static str> {
        [(self.get, "GET"), (self.update, "PUT"), (self.delete, "DELETE")]
            .into_iter()
            .filter_map(|(on, method)| on.then_some(method))
            .collect()
    }
}

/// What the field `name` holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// `metadata.name`.
    Object,
    /// A display name; `id` holds the object's name. The descriptor gives the `name` field.
    Display,
}

/// A resource that is about to be sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resource {
    /// The id by which paths and references name it.
    pub id: String,
    /// Key of the stored object. Not shown.
    pub key: Key,
    /// The shown type, where one collection holds resources of several types; `None`: the type of
    /// the descriptor.
    pub subtype: Option<String>,
    /// Field name → value, as the view shows them.
    pub fields: Map<String, Value>,
    /// Link name → URL.
    pub links: BTreeMap<String, String>,
    /// Action name → URL.
    pub actions: BTreeMap<String, String>,
}

/// Completes a resource before it is sent: computed fields, links, actions.
pub trait Formatter: Send + Sync + 'static {
    /// Changes `resource`, which was mapped from `stored`. Must be pure: lists call it once per
    /// object.
    fn format(&self, context: &Presentation<'_>, stored: &Value, resource: &mut Resource);
}

impl<F> Formatter for F
where
    F: Fn(&Presentation<'_>, &Value, &mut Resource) + Send + Sync + 'static,
{
    fn format(&self, context: &Presentation<'_>, stored: &Value, resource: &mut Resource) {
        self(context, stored, resource);
    }
}

/// Rules on input beyond those of the fields. They run on create and update.
pub trait Validator: Send + Sync + 'static {
    /// Validates checked input. `stored` is the object that an update changes, `None` on create.
    ///
    /// # Errors
    /// The refusal that the client receives, usually [`ApiError::invalid_field`].
    fn validate(
        &self,
        context: &Presentation<'_>,
        input: &Map<String, Value>,
        stored: Option<&Value>,
    ) -> Result<(), ApiError>;
}

impl<F> Validator for F
where
    F: Fn(&Presentation<'_>, &Map<String, Value>, Option<&Value>) -> Result<(), ApiError>
        + Send
        + Sync
        + 'static,
{
    fn validate(
        &self,
        context: &Presentation<'_>,
        input: &Map<String, Value>,
        stored: Option<&Value>,
    ) -> Result<(), ApiError> {
        self(context, input, stored)
    }
}

/// A mapping that fields alone cannot express. Pure; the two directions must agree.
pub trait Mapper: Send + Sync + 'static {
    /// Sets the fields that the view shows for `stored`.
    fn to_view(&self, stored: &Value, fields: &mut Map<String, Value>);
    /// Writes checked input into the object: a new one, or the one that an update changes.
    fn to_stored(&self, input: &Map<String, Value>, stored: &mut Value);
}

/// Ids that are neither a name nor `namespace:name`. Pure; the two directions must agree.
pub trait Ids: Send + Sync + 'static {
    /// The id of a stored object.
    fn id(&self, stored: &Value) -> String;
    /// The key of the object with this id; `None`: no object can have this id.
    fn key(&self, id: &str) -> Option<Key>;
}

/// Names that may be any text.
struct AnyText;

impl Ids for AnyText {
    fn id(&self, stored: &Value) -> String {
        Key::of(stored).name
    }
    fn key(&self, id: &str) -> Option<Key> {
        Some(Key { name: id.to_owned(), ..Key::default() })
    }
}

/// One kind in the view. Built with [`Descriptor::new`] and the builder methods.
#[derive(Clone)]
pub struct Descriptor {
    /// Type id, lower camel case singular.
    pub id: String,
    /// Plural in camel case, as paths of resources spell it.
    pub plural: String,
    /// Path of its API version (`/v3`).
    pub version: String,
    /// `baseType` of its resources, if it differs from the id.
    pub base_type: Option<String>,
    /// What the field `name` holds.
    pub naming: Naming,
    /// Whether the stored objects have a namespace.
    pub namespaced: bool,
    /// `None`: ids are `name`, or `namespace:name` of a namespaced type.
    pub ids: Option<Arc<dyn Ids>>,
    /// The reference field whose last part names the namespace of a new object. Such types show
    /// `namespaceId` as null.
    pub parent_field: Option<String>,
    /// The verbs that the type offers.
    pub methods: Methods,
    /// Fields by name.
    pub fields: BTreeMap<String, Field>,
    /// Embedded types that the descriptor brings into its version.
    pub types: Vec<StructType>,
    /// Stored locations that the view never shows, see [`Descriptor::hide`].
    pub hidden: Vec<FieldLocation>,
    /// Shows `state`, `transitioning` and `transitioningMessage`.
    pub has_state: bool,
    /// Actions on one resource.
    pub actions: Vec<Action>,
    /// Actions on the collection.
    pub collection_actions: Vec<Action>,
    /// Links that the type serves itself, see [`Link`].
    pub served_links: Vec<Link>,
    /// WebSockets of each resource, see [`ResourceSocket`].
    pub sockets: Vec<ResourceSocket>,
    /// Ids that can be read without a login.
    pub public_ids: Vec<String>,
    /// Prefix of generated names, with the dash.
    pub name_prefix: String,
    /// Completes each resource, see [`Formatter`].
    pub formatter: Option<Arc<dyn Formatter>>,
    /// Fields that depend on the caller or the request, see [`Descriptor::personal`]. `None`: any
    /// field may.
    pub personal: Option<Vec<String>>,
    /// Validates input, see [`Validator`].
    pub validator: Option<Arc<dyn Validator>>,
    /// Mappings that run after the fields, in this order.
    pub mappers: Vec<Arc<dyn Mapper>>,
    /// Reads and writes the objects.
    pub store: Arc<dyn Store>,
    /// apiVersion and kind of new objects.
    pub object_type: Option<(String, String)>,
}

impl Descriptor {
    /// The key of the object with this id: `ns:name` for namespaced types, a name without `:` for
    /// others, unless the type has [`Ids`] of its own.
    ///
    /// # Errors
    /// 404 when the text is no id of the type.
    pub(crate) fn key_of(&self, id: &str) -> Result<Key, ApiError> {
        if let Some(ids) = &self.ids {
            return ids.key(id).ok_or_else(ApiError::no_such_id);
        }
        let is_segment = |text: &str| {
            !text.is_empty() && text != "." && text != ".." && !text.contains(['/', '%', ':'])
        };
        let (namespace, name) = match (self.namespaced, id.split_once(':')) {
            (true, Some((namespace, name))) if is_segment(namespace) => (namespace, name),
            (false, None) => ("", id),
            _ => return Err(ApiError::no_such_id()),
        };
        if !is_segment(name) {
            return Err(ApiError::no_such_id());
        }
        Ok(Key { namespace: namespace.to_owned(), name: name.to_owned() })
    }

    /// A type over a Kubernetes resource, in version `/v3`, all methods, standard fields only.
    pub fn new(id: &str, plural: &str, resource: KubeResource) -> Self {
        let object_type = Some((resource.api_version(), resource.kind.clone()));
        let namespaced = resource.namespaced;
        let mut descriptor = Self::with_store(id, plural, Arc::new(KubeStore::new(resource)));
        descriptor.object_type = object_type;
        descriptor.namespaced = namespaced;
        if namespaced {
            let field = Field::reference("namespaceId", "namespace").create().required();
            descriptor.insert(field.at("metadata.namespace"));
        }
        descriptor
    }

    /// A type whose objects come from `store`. The objects have the structure of Kubernetes objects
    /// (`metadata`, `spec`, `status`).
    pub fn with_store(id: &str, plural: &str, store: Arc<dyn Store>) -> Self {
        let mut descriptor = Self {
            id: id.to_owned(),
            plural: plural.to_owned(),
            version: "/v3".to_owned(),
            base_type: None,
            naming: Naming::Object,
            namespaced: false,
            ids: None,
            parent_field: None,
            methods: Methods::ALL,
            fields: BTreeMap::new(),
            types: Vec::new(),
            hidden: Vec::new(),
            has_state: false,
            actions: Vec::new(),
            collection_actions: Vec::new(),
            served_links: Vec::new(),
            sockets: Vec::new(),
            public_ids: Vec::new(),
            name_prefix: name_prefix(id),
            formatter: None,
            personal: Some(Vec::new()),
            validator: None,
            mappers: Vec::new(),
            store,
            object_type: None,
        };
        descriptor.insert(Field::date("created").at("metadata.creationTimestamp"));
        descriptor.insert(Field::date("removed").at("metadata.deletionTimestamp"));
        descriptor.insert(Field::string("uuid").at("metadata.uid"));
        descriptor.insert(Field::reference("creatorId", "user").annotation(CREATOR_ANNOTATION));
        for name in ["labels", "annotations"] {
            let field = Field::map(name, FieldType::String).create_update();
            descriptor.insert(field.at(&format!("metadata.{name}")));
        }
        let name = Field::new("name", FieldType::DnsLabel).create();
        descriptor.insert(name.at("metadata.name"));
        descriptor
    }

    /// Moves the type to the API version with this path.
    pub fn version(mut self, path: &str) -> Self {
        self.version = path.to_owned();
        self
    }
    /// `name` is a display name, stored where `name` says; the object name is shown as `id`.
    pub fn display_name(mut self, name: Field) -> Self {
        self.naming = Naming::Display;
        self.insert(Field::new("id", FieldType::DnsLabel).at("metadata.name"));
        self.insert(name);
        self
    }
    /// New objects are created in the namespace that the last part (after `:`) of this field names.
    pub fn in_namespace_of(mut self, field: &str) -> Self {
        self.parent_field = Some(field.to_owned());
        self
    }
    /// Replaces the offered verbs, which are [`Methods::ALL`] at first.
    pub fn methods(mut self, methods: Methods) -> Self {
        self.methods = methods;
        self
    }
    /// Fields stored under `spec`.
    pub fn spec(self, fields: impl IntoIterator<Item = Field>) -> Self {
        self.with_fields_below("spec.", fields)
    }
    /// Fields of `status`. Clients cannot write them.
    pub fn status(mut self, fields: impl IntoIterator<Item = Field>) -> Self {
        for mut field in fields {
            (field.create, field.update) = (false, false);
            self = self.with_fields_below("status.", [field]);
        }
        self
    }
    /// Fields stored at the top level, or at the location that each gives.
    pub fn root(self, fields: impl IntoIterator<Item = Field>) -> Self {
        self.with_fields_below("", fields)
    }
    fn with_fields_below(mut self, prefix: &str, fields: impl IntoIterator<Item = Field>) -> Self {
        for mut field in fields {
            if field.location.is_none() {
                field.location = Some(FieldLocation::path(&format!("{prefix}{}", field.name)));
            }
            self.insert(field);
        }
        self
    }
    /// Leaves stored locations (dotted paths) out of the view; for [`Descriptor::derive_fields`].
    pub fn hide(mut self, paths: &[&str]) -> Self {
        self.hidden.extend(paths.iter().map(|path| FieldLocation::path(path)));
        self
    }
    /// Adds the fields that the CRD's schema has and no field given so far shows.
    ///
    /// `schema` is the `openAPIV3Schema` of the served version. Properties of `spec` and of the top
    /// level become writable fields, those of `status` read-only ones; nested objects become
    /// embedded types named after the type and the field.
    pub fn derive_fields(mut self, schema: &Value) -> Self {
        let derived = crate::types::crd::derive(&self, schema);
        for field in derived.fields {
            self.insert(field);
        }
        self.types.extend(derived.types);
        self
    }
    /// Adds embedded types.
    pub fn types(mut self, types: impl IntoIterator<Item = StructType>) -> Self {
        self.types.extend(types);
        self
    }
    /// Shows a state computed from the conditions, see [`crate::state`]. A kind with rules of its
    /// own overwrites the three fields in its formatter.
    pub fn with_state(mut self) -> Self {
        self.has_state = true;
        for name in ["state", "transitioningMessage"] {
            self.insert(Field::string(name).computed());
        }
        self.insert(Field::options("transitioning", &["yes", "no", "error"]).computed());
        self
    }
    /// Adds an action on one resource.
    pub fn action(mut self, action: Action) -> Self {
        self.actions.push(action);
        self
    }
    /// Adds an action on the collection.
    pub fn collection_action(mut self, action: Action) -> Self {
        self.collection_actions.push(action);
        self
    }
    /// Adds a link that the type serves itself.
    pub fn link(mut self, link: Link) -> Self {
        self.served_links.push(link);
        self
    }
    /// Adds a WebSocket to each resource.
    pub fn socket(mut self, socket: ResourceSocket) -> Self {
        self.sockets.push(socket);
        self
    }
    /// Opens these ids to reads without a login.
    pub fn public_ids(mut self, ids: &[&str]) -> Self {
        self.public_ids = ids.iter().map(|&id| id.to_owned()).collect();
        self
    }
    /// Ids are the object names of the store, which may contain `/` and `:`, and are passed to it
    /// unchanged. Only for a store that does not build paths from them.
    pub fn any_id(self) -> Self {
        self.ids(AnyText)
    }
    /// Sets the formatter. An index then does not serve lists of the type, unless
    /// [`Descriptor::personal`] follows.
    pub fn formatter(mut self, formatter: impl Formatter) -> Self {
        self.formatter = Some(Arc::new(formatter));
        self.personal = None;
        self
    }
    /// Declares the only fields for which the formatter uses the caller, the URLs or the registry.
    /// The formatter must leave the id unchanged, and may use the time only through
    /// [`crate::state::summarise`]. Then an index may serve lists that are filtered and sorted by
    /// other fields.
    pub fn personal(mut self, fields: &[&str]) -> Self {
        self.personal = Some(fields.iter().map(|&name| name.to_owned()).collect());
        self
    }
    /// Sets the validator.
    pub fn validator(mut self, validator: impl Validator) -> Self {
        self.validator = Some(Arc::new(validator));
        self
    }
    /// Adds a mapping that runs after those added before.
    pub fn mapper(mut self, mapper: impl Mapper) -> Self {
        self.mappers.push(Arc::new(mapper));
        self
    }
    /// Replaces how ids and keys are converted.
    pub fn ids(mut self, ids: impl Ids) -> Self {
        self.ids = Some(Arc::new(ids));
        self
    }
    /// Replaces the store.
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = store;
        self
    }
    /// Adds a field, or replaces the one of the same name.
    pub fn insert(&mut self, field: Field) {
        self.fields.insert(field.name.clone(), field);
    }

    /// `baseType` of its resources: the id, unless it was set.
    pub fn base_type(&self) -> &str {
        self.base_type.as_deref().unwrap_or(&self.id)
    }
    /// The names of fields that refer to resources of type `id`.
    pub fn references_to<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields.values().filter_map(move |field| match &field.kind {
            FieldType::Reference(to) if to == id => Some(field.name.as_str()),
            _ => None,
        })
    }
    /// Fields that a filter, and therefore a sort, may name.
    pub(crate) fn filterable(&self) -> impl Iterator<Item = &Field> {
        self.fields
            .values()
            .filter(|field| !field.is_secret() && !field.kind.modifiers().is_empty())
    }
}

/// First letter of the type id and its upper-case letters, lower-cased, and a dash.
fn name_prefix(id: &str) -> String {
    let letters = id.chars().enumerate().filter(|(at, c)| *at == 0 || c.is_ascii_uppercase());
    let mut prefix: String = letters.map(|(_, c)| c.to_ascii_lowercase()).collect();
    prefix.push('-');
    prefix
}
