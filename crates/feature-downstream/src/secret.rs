//! Secrets of one namespace, and of a whole project. `namespacedSecret` and `secret` show all of
//! them as they are; the other types are the Secrets of one kind each, with their content in fields
//! of its own.
//!
//! Those of a project are in its namespace of the management API ([`project_wide`]); a controller
//! of the feature of projects copies them into the project's namespaces.
//!
//! The types of one kind accept passwords, keys and tokens and never show them, also not in the
//! reply to a create.

mod certificate;
mod content;
pub mod project_wide;

use futures::future::BoxFuture;
use rest_view::store::DeleteOptions;
use rest_view::{ApiError, Context, Key, ListScope, Mapper, Store};
use serde_json::{Map, Value};

pub use certificate::Certificate;
pub use content::{BasicAuth, DockerCredential, ServiceAccountToken, SshAuth};
pub use project_wide::ProjectSecrets;

/// The type of the view that shows Secrets of all kinds; with the prefix `namespaced`, of one
/// namespace.
pub const ANY: &str = "secret";
/// Field `kind` of the view, and type of the Secret.
const KINDS: [(&str, &str); 5] = [
    ("serviceAccountToken", "kubernetes.io/service-account-token"),
    ("dockerCredential", "kubernetes.io/dockerconfigjson"),
    ("basicAuth", "kubernetes.io/basic-auth"),
    ("sshAuth", "kubernetes.io/ssh-auth"),
    ("certificate", "kubernetes.io/tls"),
];

/// The type of the Secrets that are all of this kind.
pub fn type_of(kind: &str) -> Option<&'static str> {
    KINDS.iter().find(|(known, _)| *known == kind).map(|(_, kind)| *kind)
}

/// Maps the type of a Secret to the words of the view.
pub struct SecretKind;

impl Mapper for SecretKind {
    fn to_view(&self, stored: &Value, fields: &mut Map<String, Value>) {
        let known = KINDS.iter().find(|(_, kind)| stored["type"] == *kind);
        if let Some((shown, _)) = known {
            fields.insert("kind".to_owned(), (*shown).into());
        }
    }
    fn to_stored(&self, input: &Map<String, Value>, stored: &mut Value) {
        if let Some(kind) = input.get("kind").and_then(Value::as_str).and_then(type_of) {
            stored["type"] = kind.into();
        }
    }
}

/// The Secrets of one kind in a store.
pub struct OfKind<S> {
    secrets: S,
    kind: &'static str,
}

impl<S: Store> OfKind<S> {
    /// The Secrets of `secrets` whose type is `kind`.
    pub fn new(secrets: S, kind: &'static str) -> Self {
        Self { secrets, kind }
    }
    async fn find(&self, context: &Context<'_>, key: &Key) -> Result<Value, ApiError> {
        let found = self.secrets.get(context, key).await?;
        if found["type"] == self.kind { Ok(found) } else { Err(ApiError::no_such_id()) }
    }
}

impl<S: Store> Store for OfKind<S> {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&self.secrets)
    }
    fn list<'a>(
        &'a self,
        context: &'a Context<'a>,
        scope: &'a ListScope,
    ) -> BoxFuture<'a, Result<Vec<Value>, ApiError>> {
        Box::pin(async move {
            let mut found = self.secrets.list(context, scope).await?;
            found.retain(|secret| secret["type"] == self.kind);
            Ok(found)
        })
    }
    fn get<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(self.find(context, key))
    }
    fn create<'a>(
        &'a self,
        context: &'a Context<'a>,
        mut object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        object["type"] = self.kind.into();
        self.secrets.create(context, object)
    }
    fn replace<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
        object: Value,
    ) -> BoxFuture<'a, Result<Value, ApiError>> {
        Box::pin(async move {
            self.find(context, key).await?;
            self.secrets.replace(context, key, object).await
        })
    }
    fn delete<'a>(
        &'a self,
        context: &'a Context<'a>,
        key: &'a Key,
        options: &'a DeleteOptions,
    ) -> BoxFuture<'a, Result<Option<Value>, ApiError>> {
        Box::pin(async move {
            self.find(context, key).await?;
            self.secrets.delete(context, key, options).await
        })
    }
}
