//! The rules of a kind at admission: defaults, validation, and rules that need the requester or
//! other objects.
//!
//! The server calls these in its API server; the same functions can serve an admission webhook
//! when another API server serves the management API. Order on a write: [`KindRules::prepare`],
//! [`KindRules::validate`], then [`KindRules::admit`].

use std::sync::Arc;

use api_management::kind::{Kind, ObjectRules};
use api_management::table::{Stored, definition};
use api_management::unimplemented::UnimplementedField;
use api_management::{KindScope, bindings, keys, types, unimplemented};
use api_meta::object::ObjectExt;
use api_meta::status::{Cause, Status};
use futures::future::BoxFuture;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use crate::controller::GROUP_CONTROLLERS;

mod fixed;

/// The operation of a write under review. Writes of status are not reviewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewOperation {
    Create,
    Update,
    Delete,
}

/// One write under review.
pub struct Review<'a> {
    pub operation: ReviewOperation,
    /// Name of the identity of the requester: a user id, or `system:…`.
    pub user: &'a str,
    /// Groups of the requester.
    pub groups: &'a [String],
    pub namespace: &'a str,
    /// Empty until the API server generates one.
    pub name: &'a str,
    pub dry_run: bool,
    /// The object as it is to be stored; absent on delete.
    pub object: Option<&'a Value>,
    /// The object as it is stored; absent on create.
    pub old: Option<&'a Value>,
}

/// Rules that need other objects. The write may still be refused, so they must not write anything
/// that stays in effect without it: [`crate::unique`] claims names for a limited time.
pub trait Admit: Send + Sync + 'static {
    /// Reviews one write.
    ///
    /// # Errors
    /// The refusal, as the requester receives it.
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
    /// Makes the definition of the kind.
    pub crd: Arc<dyn Fn() -> CustomResourceDefinition + Send + Sync>,
    /// Added at creation, so that no controller needs the right to add them.
    pub finalizers: &'static [&'static str],
    /// Top-level fields that do not change once they have a value.
    fixed: Arc<[String]>,
    /// The server writes the whole objects, on behalf of users.
    written_by_server: bool,
    /// Top-level fields that identities of the server may change, too.
    shared_fields: &'static [&'static str],
    default: Prepare,
    /// Fields that an object reports as unimplemented.
    unimplemented_fields: Arc<[UnimplementedField]>,
    validate: Validate,
    admit: Option<Arc<dyn Admit>>,
}

impl KindRules {
    /// The rules of a kind with a struct.
    pub fn of<K: ObjectRules>() -> Self {
        Self {
            group: api_management::GROUP,
            kind: K::KIND,
            plural: K::PLURAL,
            namespaced: K::SCOPE == KindScope::Namespaced,
            crd: Arc::new(<K as Kind>::crd as fn() -> CustomResourceDefinition),
            finalizers: &[],
            fixed: bindings::fixed_fields(K::KIND).into(),
            written_by_server: false,
            shared_fields: &[],
            default: K::fill_defaults,
            unimplemented_fields: unimplemented::fields(K::KIND).into(),
            validate: validate::<K>,
            admit: None,
        }
    }
    /// The rules of a kind that only tables describe. The schema defines what the fields may
    /// contain.
    ///
    /// # Panics
    /// When no table stores its objects in this kind.
    pub fn of_tables(kind: &str) -> Self {
        let tables = types::tables_of_kind(kind);
        let stored = tables.iter().find_map(|table| match table.stored {
            Stored::Kind { kind, plural } => Some((kind, plural, definition::is_namespaced(table))),
            _ => None,
        });
        let (kind, plural, namespaced) =
            stored.unwrap_or_else(|| panic!("no table describes the kind \"{kind}\""));
        let is_unimplemented = tables.iter().any(|table| table.is_unimplemented);
        let default: Prepare = if is_unimplemented { unimplemented::mark } else { |_| {} };
        Self {
            group: api_management::GROUP,
            kind,
            plural,
            namespaced,
            finalizers: &[],
            fixed: bindings::fixed_fields(kind).into(),
            written_by_server: false,
            shared_fields: &[],
            default,
            // Either the whole object is unimplemented, or nothing of it.
            unimplemented_fields: Arc::new([]),
            validate: |_, _| Vec::new(),
            admit: None,
            crd: Arc::new(move || {
                let tables = types::tables_of_kind(kind);
                definition::crd(&tables).expect("its tables existed before")
            }),
        }
    }
    /// Adds these finalizers to new objects.
    pub fn finalizers(mut self, finalizers: &'static [&'static str]) -> Self {
        self.finalizers = finalizers;
        self
    }
    /// Lets identities of the server change the whole objects: users reach them only through the
    /// server.
    pub fn written_by_server(mut self) -> Self {
        self.written_by_server = true;
        self
    }
    /// Lets identities of the server change these top-level fields, beside status and finalizers.
    pub fn shared_fields(mut self, fields: &'static [&'static str]) -> Self {
        self.shared_fields = fields;
        self
    }
    /// Adds rules that need the requester or other objects.
    pub fn admit_with(mut self, admit: Arc<dyn Admit>) -> Self {
        self.admit = Some(admit);
        self
    }

    /// Fills in defaults, records the creator of a new object, and adds the finalizers of the kind.
    /// Idempotent. `user` is the requester.
    pub fn prepare(
        &self,
        operation: ReviewOperation,
        user: &str,
        object: &mut Value,
        old: Option<&Value>,
    ) {
        (self.default)(object);
        if !self.unimplemented_fields.is_empty() {
            unimplemented::mark_fields(object, &self.unimplemented_fields);
        }
        if operation == ReviewOperation::Create {
            for finalizer in self.finalizers {
                add_finalizer(object, finalizer);
            }
        }
        let creator = match old {
            // The creator is recorded once: the creator of a cluster owns it.
            Some(old) => match old.annotation(keys::CREATOR_ID) {
                Some(creator) => Some(creator.to_owned()),
                None => {
                    remove_annotation(object, keys::CREATOR_ID);
                    None
                }
            },
            None if is_user(user) => Some(user.to_owned()),
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
        causes.extend(old.iter().flat_map(|old| fixed::refuse_changed(&self.fixed, object, old)));
        causes
    }

    /// Checks the rules that need the requester or other objects.
    ///
    /// # Errors
    /// The refusal, as the requester receives it.
    pub async fn admit(&self, review: &Review<'_>) -> Result<(), Status> {
        self.refuse_filling_fixed_fields(review)?;
        self.refuse_spec_changes_by_controllers(review)?;
        match &self.admit {
            Some(admit) => admit.admit(review).await,
            None => Ok(()),
        }
    }

    /// Only the server fills in the fields that a binding left open: it knows which user is meant.
    fn refuse_filling_fixed_fields(&self, review: &Review<'_>) -> Result<(), Status> {
        let (Some(object), Some(old)) = (review.object, review.old) else { return Ok(()) };
        if review.groups.iter().any(|group| group == GROUP_CONTROLLERS) {
            return Ok(());
        }
        let causes = fixed::refuse_filled(&self.fixed, object, old);
        if causes.is_empty() {
            return Ok(());
        }
        Err(Status::invalid(self.group, self.kind, review.name, causes))
    }

    /// Controllers may remove finalizers from an object of Drover, fill in what a binding left
    /// open, and change shared fields. The spec is for users to write.
    fn refuse_spec_changes_by_controllers(&self, review: &Review<'_>) -> Result<(), Status> {
        let controller =
            !self.written_by_server && review.groups.iter().any(|group| group == GROUP_CONTROLLERS);
        let (true, ReviewOperation::Update) = (controller, review.operation) else { return Ok(()) };
        let (Some(object), Some(old)) = (review.object, review.old) else { return Ok(()) };
        let shared = self.shared_fields.iter().copied();
        let open: Vec<&str> = fixed::open_fields(&self.fixed, old).chain(shared).collect();
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

/// The object without what the API server or a controller may change: `open` are fields that it may
/// fill in.
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

/// Whether the identity is a user of Drover rather than a part of a system.
fn is_user(user: &str) -> bool {
    !user.is_empty() && !user.contains(':')
}

fn validate<K: ObjectRules>(object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let new = match serde_json::from_value::<K>(object.clone()) {
        Ok(new) => new,
        Err(error) => return vec![Cause::new("FieldValueTypeInvalid", "", error.to_string())],
    };
    // What is stored was decodable once; if it no longer is, only the new object is validated.
    let old = old.and_then(|old| serde_json::from_value::<K>(old.clone()).ok());
    new.validate(old.as_ref())
}
