//! The rules of a kind at admission: defaults, validation, what needs the asker or other objects.
//!
//! The server hooks these into its API server; the same functions can stand behind an admission
//! webhook when the management API is somebody else's. Order on a write: [`KindRules::prepare`],
//! [`KindRules::validate`], then [`KindRules::admit`].

use std::sync::Arc;

use api_management::kept::KeptField;
use api_management::kind::{Kind, Rules};
use api_management::table::{Stored, Table, definition};
use api_management::{Scope, bindings, kept, keys, types};
use api_meta::object::ObjectExt;
use api_meta::status::{Cause, Status};
use futures::future::BoxFuture;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use crate::controller::GROUP_CONTROLLERS;

mod fixed;

/// Which write is reviewed. Writes of status are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
}

/// One write under review.
pub struct Review<'a> {
    pub operation: Operation,
    /// Name of the asker's identity: a user id, or `system:…`.
    pub user: &'a str,
    pub groups: &'a [String],
    pub namespace: &'a str,
    /// Empty while the API server has yet to make one up.
    pub name: &'a str,
    pub dry_run: bool,
    /// The object as it is to be stored; absent on delete.
    pub object: Option<&'a Value>,
    /// The object as it is stored; absent on create.
    pub old: Option<&'a Value>,
}

/// Rules that need other objects. The write may still be refused, so they must not write anything that stays in
/// force without it: [`crate::unique`] claims names for a time.
pub trait Admit: Send + Sync + 'static {
    /// # Errors
    /// The refusal, as the asker will read it.
    fn admit<'a>(&'a self, review: &'a Review<'a>) -> BoxFuture<'a, Result<(), Status>>;
}

type Prepare = fn(&mut Value);
type Validate = fn(&Value, Option<&Value>) -> Vec<Cause>;

/// All rules of one kind.
#[derive(Clone)]
pub struct KindRules {
    pub group: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub namespaced: bool,
    pub crd: Arc<dyn Fn() -> CustomResourceDefinition + Send + Sync>,
    /// Put on at creation, so that no controller needs the right to.
    pub finalizers: &'static [&'static str],
    /// Top-level fields that do not change once they have a value.
    fixed: Arc<[String]>,
    /// The server writes the objects whole, for people.
    written_by_server: bool,
    /// Top-level fields that identities of the server may change, too.
    shared_fields: &'static [&'static str],
    default: Prepare,
    /// Fields that an object says are only kept.
    kept_fields: Arc<[KeptField]>,
    validate: Validate,
    admit: Option<Arc<dyn Admit>>,
}

impl KindRules {
    pub fn of<K: Rules>() -> Self {
        Self {
            group: api_management::GROUP,
            kind: K::KIND,
            plural: K::PLURAL,
            namespaced: K::SCOPE == Scope::Namespaced,
            crd: Arc::new(<K as Kind>::crd as fn() -> CustomResourceDefinition),
            finalizers: &[],
            fixed: bindings::fixed_fields(K::KIND).into(),
            written_by_server: false,
            shared_fields: &[],
            default: K::fill_defaults,
            kept_fields: kept::fields(K::KIND).into(),
            validate: validate::<K>,
            admit: None,
        }
    }
    /// Of a kind that only tables describe. `tables`: all that store their objects in it.
    ///
    /// What its fields may hold says its schema. `None`: no kind stores them.
    pub fn of_tables(tables: &[Table]) -> Option<Self> {
        let first = tables.first()?;
        let Stored::Kind { kind, plural } = first.stored else { return None };
        let is_kept = tables.iter().any(|table| table.kept);
        let default: Prepare = if is_kept { kept::mark } else { |_| {} };
        Some(Self {
            group: api_management::GROUP,
            kind,
            plural,
            namespaced: definition::is_namespaced(first),
            finalizers: &[],
            fixed: bindings::fixed_fields(kind).into(),
            written_by_server: false,
            shared_fields: &[],
            default,
            // The whole object is, or nothing of it.
            kept_fields: Arc::new([]),
            validate: |_, _| Vec::new(),
            admit: None,
            crd: Arc::new(move || {
                let tables = types::tables_of_kind(kind);
                definition::crd(&tables).expect("its tables were there before")
            }),
        })
    }
    pub fn finalizers(mut self, finalizers: &'static [&'static str]) -> Self {
        self.finalizers = finalizers;
        self
    }
    /// Identities of the server may change the objects whole: people reach them only through it.
    pub fn written_by_server(mut self) -> Self {
        self.written_by_server = true;
        self
    }
    /// Identities of the server may change these top-level fields, and still nothing else but status and finalizers.
    pub fn shared_fields(mut self, fields: &'static [&'static str]) -> Self {
        self.shared_fields = fields;
        self
    }
    pub fn admit_with(mut self, admit: Arc<dyn Admit>) -> Self {
        self.admit = Some(admit);
        self
    }

    /// Fills in defaults, says who created a new object, and puts the kind's finalizers on it.
    /// Idempotent. `user` is the asker.
    pub fn prepare(
        &self,
        operation: Operation,
        user: &str,
        object: &mut Value,
        old: Option<&Value>,
    ) {
        (self.default)(object);
        if !self.kept_fields.is_empty() {
            kept::mark_fields(object, &self.kept_fields);
        }
        if operation == Operation::Create {
            for finalizer in self.finalizers {
                add_finalizer(object, finalizer);
            }
        }
        let creator = match old {
            // Who made an object is said once: the maker of a cluster owns it.
            Some(old) => match old.annotation(keys::CREATOR_ID) {
                Some(creator) => Some(creator.to_owned()),
                None => {
                    remove_annotation(object, keys::CREATOR_ID);
                    None
                }
            },
            None if is_person(user) => Some(user.to_owned()),
            None => object.annotation(keys::CREATOR_ID).map(str::to_owned),
        };
        if let Some(creator) = creator {
            let annotations = object.meta_mut().entry("annotations").or_insert_with(|| json!({}));
            if let Some(map) = annotations.as_object_mut() {
                map.insert(keys::CREATOR_ID.to_owned(), creator.into());
            }
        }
    }

    /// Every violation of the kind's own rules. Pure.
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        let mut causes = (self.validate)(object, old);
        causes.extend(old.iter().flat_map(|old| fixed::changed(&self.fixed, object, old)));
        causes
    }

    /// Rules that need the asker or other objects.
    ///
    /// # Errors
    /// The refusal, as the asker will read it.
    pub async fn admit(&self, review: &Review<'_>) -> Result<(), Status> {
        self.refuse_filling_fixed_fields(review)?;
        self.keep_controllers_off_spec(review)?;
        match &self.admit {
            Some(admit) => admit.admit(review).await,
            None => Ok(()),
        }
    }

    /// What a binding left open only the server fills in, which knows who is meant.
    fn refuse_filling_fixed_fields(&self, review: &Review<'_>) -> Result<(), Status> {
        let (Some(object), Some(old)) = (review.object, review.old) else { return Ok(()) };
        if review.groups.iter().any(|group| group == GROUP_CONTROLLERS) {
            return Ok(());
        }
        let causes = fixed::filled(&self.fixed, object, old);
        if causes.is_empty() {
            return Ok(());
        }
        Err(Status::invalid(self.group, self.kind, review.name, causes))
    }

    /// Controllers may take finalizers off an object of ours, fill in what a binding left open, change shared fields, and
    /// nothing else of it: the spec is the users' to write.
    fn keep_controllers_off_spec(&self, review: &Review<'_>) -> Result<(), Status> {
        let controller =
            !self.written_by_server && review.groups.iter().any(|group| group == GROUP_CONTROLLERS);
        let (true, Operation::Update) = (controller, review.operation) else { return Ok(()) };
        let (Some(object), Some(old)) = (review.object, review.old) else { return Ok(()) };
        let shared = self.shared_fields.iter().copied();
        let open: Vec<&str> = fixed::open(&self.fixed, old).chain(shared).collect();
        if without_lifecycle(object, &open) == without_lifecycle(old, &open) {
            return Ok(());
        }
        let message = format!(
            "\"{}\" is a controller and may change only the status and finalizers of this kind",
            review.user
        );
        Err(Status::forbidden(self.group, self.plural, review.name, &message))
    }
}

/// The object without what the API server or a controller may change: `open` are fields that it may fill in.
fn without_lifecycle(object: &Value, open: &[&str]) -> Value {
    let mut object = object.clone();
    for field in ["finalizers", "resourceVersion", "managedFields", "generation"] {
        object.remove_meta(field);
    }
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
        for field in open {
            map.remove(*field);
        }
    }
    object
}

fn remove_annotation(object: &mut Value, key: &str) {
    let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    if let Some(annotations) = annotations {
        annotations.remove(key);
    }
}

fn add_finalizer(object: &mut Value, finalizer: &str) {
    let finalizers = object.meta_mut().entry("finalizers").or_insert_with(|| json!([]));
    if let Some(list) = finalizers.as_array_mut()
        && !list.iter().any(|present| present == finalizer)
    {
        list.push(finalizer.into());
    }
}

/// Whether the identity is a user of ours rather than a part of some system.
fn is_person(user: &str) -> bool {
    !user.is_empty() && !user.contains(':')
}

fn validate<K: Rules>(object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let new = match serde_json::from_value::<K>(object.clone()) {
        Ok(new) => new,
        Err(error) => return vec![Cause::new("FieldValueTypeInvalid", "", error.to_string())],
    };
    // What is stored was decodable once; if it no longer is, only the new object can be judged.
    let old = old.and_then(|old| serde_json::from_value::<K>(old.clone()).ok());
    new.validate(old.as_ref())
}
