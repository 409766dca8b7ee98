//! Admission with one planted bug: each was found by an attack once, and the search must find it
//! again.

use std::collections::{BTreeMap, BTreeSet};

use api_meta::status::{Cause, Status};
use apiserver::Resource;
use apiserver::registry::admission::Plugin;
use apiserver::strategy::{Operation, Write};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use server::admission::FeatureRules;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// An update of a binding that does not change its role is not checked.
    BindingEdited,
    /// A manager of roles can change the rights that roles grant.
    RoleEdited,
    /// The names in a rule are ignored in the check whether it makes an owner of a cluster.
    NamesIgnored,
    /// A project may have any name.
    AnyProjectName,
    /// The uniqueness of a login name is not checked.
    LoginNamesTwice,
    /// Two pairs of cluster and role share one role of the management API.
    SharedRole,
    /// The project that a namespace is moved into is not checked.
    AnyProjectOfNamespace,
}

impl Bug {
    pub const ALL: [Self; 7] = [
        Self::BindingEdited,
        Self::RoleEdited,
        Self::NamesIgnored,
        Self::AnyProjectName,
        Self::LoginNamesTwice,
        Self::SharedRole,
        Self::AnyProjectOfNamespace,
    ];
}

impl Bug {
    /// Words of the search's message when it finds exactly this bug.
    pub fn words(self) -> &'static str {
        match self {
            Self::BindingEdited => "/clusterroletemplatebindings/",
            Self::RoleEdited => "PATCH /apis/management.cattle.io/v3/roletemplates/",
            Self::NamesIgnored => "resource: Cluster",
            Self::AnyProjectName => "/projects ",
            Self::LoginNamesTwice => "users of login name",
            Self::SharedRole => "resource: Cluster",
            Self::AnyProjectOfNamespace => "into project",
        }
    }
}

/// The values of the label and annotation of a role of members.
const MEMBERSHIP: &str = "drover.io/membership";
const ROLE: &str = "authz.cluster.cattle.io/clusterrole-owner";

pub struct Planted {
    inner: FeatureRules,
    bug: Bug,
    /// Role templates with a rule that allows all verbs on some names.
    narrow: Mutex<BTreeSet<String>>,
    /// TemplateRules by the name of cluster and role, joined by a dash: the first one wins.
    joined: Mutex<BTreeMap<String, (String, Value)>>,
}

impl Planted {
    pub fn new(inner: FeatureRules, bug: Bug) -> Self {
        Self { inner, bug, narrow: Mutex::default(), joined: Mutex::default() }
    }

    fn note_template(&self, name: &str, object: &Value) {
        let rules = object["rules"].as_array().into_iter().flatten();
        let names =
            |rule: &Value| rule["resourceNames"].is_array() && rule["verbs"] == json!(["*"]);
        let mut narrow = self.narrow.lock();
        if rules.into_iter().any(names) {
            narrow.insert(name.to_owned());
        } else {
            narrow.remove(name);
        }
    }

    fn spoil_role(&self, object: &mut Value) {
        let metadata = &object["metadata"];
        let cluster = metadata["labels"][MEMBERSHIP].as_str().unwrap_or_default().to_owned();
        let role = metadata["annotations"][ROLE].as_str().unwrap_or_default().to_owned();
        if cluster.is_empty() {
            return;
        }
        if self.bug == Bug::NamesIgnored && self.narrow.lock().contains(&role) {
            object["rules"][0]["verbs"] = json!(["*"]);
        }
        if self.bug == Bug::SharedRole {
            let mut joined = self.joined.lock();
            let key = format!("{cluster}-{role}");
            let own = (cluster.clone(), object["rules"].clone());
            let (first, rules) = joined.entry(key).or_insert(own);
            if *first == cluster {
                *rules = object["rules"].clone();
            } else {
                object["rules"] = rules.clone();
            }
        }
    }
}

fn is_update(write: &Write<'_>) -> bool {
    write.operation == Operation::Update
}

impl Plugin for Planted {
    fn handles(&self, resource: &Resource) -> bool {
        resource.plural == "clusterroles" || self.inner.handles(resource)
    }

    fn prepare(
        &self,
        resource: &Resource,
        write: &Write<'_>,
        object: &mut Value,
        old: Option<&Value>,
    ) {
        self.inner.prepare(resource, write, object, old);
        match resource.plural.as_str() {
            "roletemplates" => self.note_template(write.name, object),
            "clusterroles" => self.spoil_role(object),
            _ => {}
        }
    }

    fn validate(
        &self,
        resource: &Resource,
        write: &Write<'_>,
        object: &Value,
        old: Option<&Value>,
    ) -> Vec<Cause> {
        let mut causes = self.inner.validate(resource, write, object, old);
        match (self.bug, resource.plural.as_str()) {
            (Bug::AnyProjectName, "projects") => {
                causes.retain(|cause| cause.field != "metadata.name");
            }
            (Bug::BindingEdited, "clusterroletemplatebindings") if is_update(write) => {
                causes.retain(|cause| cause.field != "userPrincipalName");
            }
            _ => {}
        }
        causes
    }

    fn admit<'a>(
        &'a self,
        resource: &'a Resource,
        write: &'a Write<'a>,
        object: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let skipped = match (self.bug, resource.plural.as_str()) {
            (Bug::BindingEdited, "clusterroletemplatebindings") => is_update(write),
            (Bug::RoleEdited, "roletemplates") => is_update(write),
            (Bug::LoginNamesTwice, "users") => true,
            _ => false,
        };
        if skipped {
            return Box::pin(async { Ok(()) });
        }
        self.inner.admit(resource, write, object, old)
    }
}
