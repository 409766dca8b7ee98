//! What the view needs to know of one kind.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::error::ApiError;
use crate::types::action::Action;
use crate::types::context::Presentation;
use crate::types::field::{Field, FieldType, Place, StructType};
use crate::types::link::Link;
use crate::types::store::{Key, KubeResource, KubeStore, Store};

/// The annotation that says who created an object; shown as `creatorId`.
pub const CREATOR_ANNOTATION: &str = "field.cattle.io/creatorId";

/// Which verbs the type offers. Rights are another matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Methods {
    pub list: bool,
    pub get: bool,
    pub create: bool,
    pub update: bool,
    pub delete: bool,
}

impl Methods {
    pub const ALL: Self = Self { list: true, get: true, create: true, update: true, delete: true };
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

/// What `name` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// `metadata.name`.
    Object,
    /// A display name; `id` holds the object's name. The descriptor gives the `name` field.
    Display,
}

/// A resource on its way out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resource {
    pub id: String,
    /// Of the stored object. Not shown.
    pub key: Key,
    /// The type shown, where one collection holds resources of several; the descriptor's otherwise.
    pub subtype: Option<String>,
    pub fields: Map<String, Value>,
    pub links: BTreeMap<String, String>,
    /// Name → URL.
    pub actions: BTreeMap<String, String>,
}

/// Last touch on a resource before it is sent: computed fields, links, actions.
pub trait Formatter: Send + Sync + 'static {
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

/// Rules on input beyond the fields' own. Runs on create (`stored` is `None`) and update.
pub trait Validator: Send + Sync + 'static {
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

/// A mapping that fields alone cannot express. Pure; both ways must agree.
pub trait Mapper: Send + Sync + 'static {
    fn to_view(&self, stored: &Value, fields: &mut Map<String, Value>);
    fn to_stored(&self, input: &Map<String, Value>, stored: &mut Value);
}

/// Ids that are neither a name nor `namespace:name`. Pure; both ways must agree.
pub trait Ids: Send + Sync + 'static {
    /// The id of a stored object.
    fn id(&self, stored: &Value) -> String;
    /// What the store knows the object by; `None`: no object can have this id.
    fn key(&self, id: &str) -> Option<Key>;
}

/// Names of any text.
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
    pub plural: String,
    /// Path of the API version it belongs to (`/v3`).
    pub version: String,
    pub base_type: Option<String>,
    pub naming: Naming,
    pub namespaced: bool,
    /// `None`: ids are `name`, or `namespace:name` of a namespaced type.
    pub ids: Option<Arc<dyn Ids>>,
    /// The reference field whose last part names the namespace of a new object. Such types show
    /// `namespaceId` as null.
    pub parent_field: Option<String>,
    pub methods: Methods,
    pub fields: BTreeMap<String, Field>,
    pub types: Vec<StructType>,
    /// Stored places that the view never shows, see [`Descriptor::hide`].
    pub hidden: Vec<Place>,
    /// Shows `state`, `transitioning` and `transitioningMessage`.
    pub has_state: bool,
    pub actions: Vec<Action>,
    pub collection_actions: Vec<Action>,
    pub served_links: Vec<Link>,
    /// Ids that anybody may read by id, without a login.
    pub public_ids: Vec<String>,
    /// Prefix of generated names, with the dash.
    pub name_prefix: String,
    pub formatter: Option<Arc<dyn Formatter>>,
    /// See [`Descriptor::personal`]. `None`: any field may be.
    pub personal: Option<Vec<String>>,
    pub validator: Option<Arc<dyn Validator>>,
    pub mappers: Vec<Arc<dyn Mapper>>,
    pub store: Arc<dyn Store>,
    /// apiVersion and kind of new objects.
    pub object_type: Option<(String, String)>,
}

impl Descriptor {
    /// The object that an id names: `ns:name` for namespaced types, a name without `:` for others,
    /// unless the type has [`Ids`] of its own.
    ///
    /// # Errors
    /// It is no id of the type.
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

    /// A type whose objects come from elsewhere. The store's objects have the Kubernetes form.
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

    /// Belongs to another API version.
    pub fn version(mut self, path: &str) -> Self {
        self.version = path.to_owned();
        self
    }
    /// `name` is a display name, stored at `path` or as `name` says.
    pub fn display_name(mut self, name: Field) -> Self {
        self.naming = Naming::Display;
        self.insert(Field::new("id", FieldType::DnsLabel).at("metadata.name"));
        self.insert(name);
        self
    }
    /// New objects go to the namespace named by the last part (after `:`) of this field.
    pub fn in_namespace_of(mut self, field: &str) -> Self {
        self.parent_field = Some(field.to_owned());
        self
    }
    pub fn methods(mut self, methods: Methods) -> Self {
        self.methods = methods;
        self
    }
    /// Fields stored under `spec`.
    pub fn spec(self, fields: impl IntoIterator<Item = Field>) -> Self {
        self.placed("spec.", fields)
    }
    /// Fields of `status`, which nobody writes here.
    pub fn status(mut self, fields: impl IntoIterator<Item = Field>) -> Self {
        for mut field in fields {
            (field.create, field.update) = (false, false);
            self = self.placed("status.", [field]);
        }
        self
    }
    /// Fields stored at the top level, or where each says.
    pub fn root(self, fields: impl IntoIterator<Item = Field>) -> Self {
        self.placed("", fields)
    }
    fn placed(mut self, prefix: &str, fields: impl IntoIterator<Item = Field>) -> Self {
        for mut field in fields {
            if field.place.is_none() {
                field.place = Some(Place::path(&format!("{prefix}{}", field.name)));
            }
            self.insert(field);
        }
        self
    }
    /// Keeps stored places (dotted paths) out of the view; for [`Descriptor::derive_fields`].
    pub fn hide(mut self, paths: &[&str]) -> Self {
        self.hidden.extend(paths.iter().map(|path| Place::path(path)));
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
    pub fn action(mut self, action: Action) -> Self {
        self.actions.push(action);
        self
    }
    pub fn collection_action(mut self, action: Action) -> Self {
        self.collection_actions.push(action);
        self
    }
    pub fn link(mut self, link: Link) -> Self {
        self.served_links.push(link);
        self
    }
    pub fn public_ids(mut self, ids: &[&str]) -> Self {
        self.public_ids = ids.iter().map(|&id| id.to_owned()).collect();
        self
    }
    /// Ids are what the store says, with `/` and `:` in them, and are given to it as they come. For
    /// a store that makes no path of them.
    pub fn any_id(self) -> Self {
        self.ids(AnyText)
    }
    /// An index does not serve lists of the type, unless [`Descriptor::personal`] follows.
    pub fn formatter(mut self, formatter: impl Formatter) -> Self {
        self.formatter = Some(Arc::new(formatter));
        self.personal = None;
        self
    }
    /// The only fields for which the formatter asks who the caller is, where links begin, or what
    /// other types there are. It leaves the id as it is, and asks for the time only through
    /// [`crate::state::summarise`]. Then an index may serve what is filtered and sorted by others.
    pub fn personal(mut self, fields: &[&str]) -> Self {
        self.personal = Some(fields.iter().map(|&name| name.to_owned()).collect());
        self
    }
    pub fn validator(mut self, validator: impl Validator) -> Self {
        self.validator = Some(Arc::new(validator));
        self
    }
    pub fn mapper(mut self, mapper: impl Mapper) -> Self {
        self.mappers.push(Arc::new(mapper));
        self
    }
    pub fn ids(mut self, ids: impl Ids) -> Self {
        self.ids = Some(Arc::new(ids));
        self
    }
    /// Replaces the store that the resource would have.
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = store;
        self
    }
    /// Adds a field, or replaces the one of that name.
    pub fn insert(&mut self, field: Field) {
        self.fields.insert(field.name.clone(), field);
    }

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
