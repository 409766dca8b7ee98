//! A write as admission sees it: the operation, the object, the user, the options.

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use serde_json::{Value, json};

use crate::attributes::UserInfo;
use crate::registry::{DeleteOptions, FieldValidation, Propagation, WriteOptions, WriteTarget};
use crate::resource::Resource;
use crate::strategy;

/// One write in admission. `object` and `oldObject` are passed separately.
#[derive(Clone, Copy)]
pub struct AdmissionRequest<'a> {
    /// In the version of the request.
    pub resource: &'a Resource,
    /// Empty for the resource itself.
    pub subresource: &'a str,
    pub operation: AdmissionOperation,
    /// Empty for cluster-scoped resources, except for namespaces: then their name.
    pub namespace: &'a str,
    /// Empty while a create has no name yet.
    pub name: &'a str,
    /// The user, dry run, and where warnings and annotations go.
    pub options: &'a WriteOptions,
    /// Set for deletes only.
    pub delete: Option<&'a DeleteOptions>,
}

/// The operation, as rules of admission name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionOperation {
    Create,
    Update,
    Delete,
}

impl AdmissionOperation {
    /// The text in rules and reviews.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

impl<'a> AdmissionRequest<'a> {
    /// The admission request of a write; the operation determines the subresource.
    pub fn new(
        target: &WriteTarget<'a>,
        operation: strategy::Operation,
        options: &'a WriteOptions,
    ) -> Self {
        let (operation, subresource) = match operation {
            strategy::Operation::Create => (AdmissionOperation::Create, ""),
            strategy::Operation::Update => (AdmissionOperation::Update, ""),
            strategy::Operation::UpdateStatus => (AdmissionOperation::Update, "status"),
            strategy::Operation::Finalize => (AdmissionOperation::Update, "finalize"),
            strategy::Operation::Part(part) => (AdmissionOperation::Update, part),
            strategy::Operation::Delete => (AdmissionOperation::Delete, ""),
        };
        let resource = target.resource;
        let is_namespace = resource.group.is_empty() && resource.plural == "namespaces";
        let namespace = match (resource.namespaced, is_namespace) {
            (true, _) => target.namespace,
            (false, true) => target.name,
            (false, false) => "",
        };
        let name = target.name;
        Self { resource, subresource, operation, namespace, name, options, delete: None }
    }

    /// Whether the object is a Namespace.
    pub fn is_namespace(&self) -> bool {
        self.resource.group.is_empty() && self.resource.plural == "namespaces"
    }

    /// Group, version and kind of the object.
    pub fn kind(&self) -> (String, String, String) {
        let subresource = self.resource.subresource(self.subresource);
        let (api_version, kind) = self.resource.body_kind(subresource);
        let (group, version) = api_meta::object::group_version(&api_version);
        (group.to_owned(), version.to_owned(), kind.to_owned())
    }

    /// The `request` of an AdmissionReview without its UID and the objects, where the write is
    /// matched as one of `seen`. Expressions see the same.
    pub fn attributes(&self, seen: &Resource) -> Value {
        let own = self.kind();
        // A subresource with its own kind has the same kind in all versions.
        let shared = own.0 != self.resource.group;
        let kind = match shared {
            true => own.clone(),
            false => (seen.group.clone(), seen.version.clone(), seen.kind.clone()),
        };
        let kind_json = |(group, version, kind): &(String, String, String)| json!({"group": group, "version": version, "kind": kind});
        let gvr = |resource: &Resource| {
            let Resource { group, version, plural, .. } = resource;
            json!({"group": group, "version": version, "resource": plural})
        };
        let mut json = json!({
            "kind": kind_json(&kind),
            "resource": gvr(seen),
            "requestKind": kind_json(&own),
            "requestResource": gvr(self.resource),
            "operation": self.operation.as_str(),
            "userInfo": user_info(&self.options.user),
            "dryRun": self.options.dry_run,
            "options": self.options_object(),
        });
        let texts = [
            ("subResource", self.subresource),
            ("requestSubResource", self.subresource),
            ("name", self.name),
            ("namespace", self.namespace),
        ];
        for (field, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            json[field] = text.into();
        }
        json
    }

    /// A rejection of the write by admission: 403 with this text.
    pub fn forbidden(&self, object: Option<&Value>, text: &str) -> Status {
        let own = |object: &Value| match (object.name(), object.meta_str("generateName")) {
            ("", "") => None,
            ("", generated) => Some(generated.to_owned()),
            (name, _) => Some(name.to_owned()),
        };
        let name = match self.name {
            "" => object.and_then(own).unwrap_or_else(|| "Unknown".to_owned()),
            name => name.to_owned(),
        };
        Status::forbidden(&self.resource.group, &self.resource.plural, &name, text)
    }

    /// The options of the write, as `CreateOptions`, `UpdateOptions` or `DeleteOptions`.
    pub fn options_object(&self) -> Value {
        let kind = match self.operation {
            AdmissionOperation::Create => "CreateOptions",
            AdmissionOperation::Update => "UpdateOptions",
            AdmissionOperation::Delete => "DeleteOptions",
        };
        let mut options = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
        if self.options.dry_run {
            options["dryRun"] = json!(["All"]);
        }
        if self.options.field_validation == FieldValidation::Strict {
            options["fieldValidation"] = "Strict".into();
        }
        let Some(delete) = self.delete else { return options };
        if let Some(seconds) = delete.grace_seconds {
            options["gracePeriodSeconds"] = seconds.into();
        }
        if let Some(propagation) = delete.propagation {
            options["propagationPolicy"] = match propagation {
                Propagation::Background => "Background",
                Propagation::Foreground => "Foreground",
                Propagation::Orphan => "Orphan",
            }
            .into();
        }
        if let Some(uid) = &delete.uid {
            options["preconditions"]["uid"] = uid.as_str().into();
        }
        if let Some(version) = &delete.resource_version {
            options["preconditions"]["resourceVersion"] = version.as_str().into();
        }
        options
    }
}

fn user_info(user: &UserInfo) -> Value {
    let mut json = json!({});
    for (field, text) in [("username", &user.name), ("uid", &user.uid)] {
        if !text.is_empty() {
            json[field] = text.as_str().into();
        }
    }
    if !user.groups.is_empty() {
        json["groups"] = json!(user.groups);
    }
    if !user.extra.is_empty() {
        json["extra"] = json!(user.extra);
    }
    json
}
