//! Tokens that are stored in a Secret of type `kubernetes.io/service-account-token` and do not
//! expire.
//!
//! A Secret of this type that names an account by annotation gets `token`, `ca.crt` and
//! `namespace`. It is deleted with its account ([`desired_change`], [`reconcile_secrets`]). The
//! token is valid as long as the Secret contains it.

use std::sync::Arc;

use api_meta::object::ObjectExt;
use api_meta::status::Status;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use subtle::ConstantTimeEq as _;

use super::keys::SigningKey;
use super::{CoreObjects, groups, tracking, user_name};
use crate::attributes::{InvalidCredential, UserInfo};
use crate::registry::{DeleteOptions, ListQuery, Registry, Update, WriteOptions, WriteTarget};
use crate::stored::Stored;
use crate::strategy::Operation;

pub(super) const ISSUER: &str = "kubernetes/serviceaccount";

/// The type of such a Secret.
pub const SECRET_TYPE: &str = "kubernetes.io/service-account-token";
/// Annotation with the name of the account.
pub const ANNOTATION_NAME: &str = "kubernetes.io/service-account.name";
/// Annotation with the UID of the account, set by the server.
pub const ANNOTATION_UID: &str = "kubernetes.io/service-account.uid";

const NAMESPACE: &str = "kubernetes.io/serviceaccount/namespace";
const SECRET_NAME: &str = "kubernetes.io/serviceaccount/secret.name";
const ACCOUNT_NAME: &str = "kubernetes.io/serviceaccount/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/serviceaccount/service-account.uid";

/// The change that a Secret needs.
#[derive(Clone, Debug, PartialEq)]
pub enum SecretChange {
    None,
    /// Replace the Secret by this.
    Update(Value),
    /// Delete it: its account does not exist.
    Delete,
}

/// Compares a Secret with its account. Pure except for the signature.
///
/// `account` is the account that the annotation names, if it exists; `ca` is the PEM text that
/// clients trust.
pub fn desired_change(
    secret: &Value,
    account: Option<&Value>,
    key: &SigningKey,
    ca: &str,
) -> SecretChange {
    if secret["type"] != SECRET_TYPE || secret.is_terminating() {
        return SecretChange::None;
    }
    let Some(name) = secret.annotation(ANNOTATION_NAME).filter(|name| !name.is_empty()) else {
        return SecretChange::None;
    };
    let stated = secret.annotation(ANNOTATION_UID).unwrap_or_default();
    let Some(account) = account
        .filter(|account| account.name() == name && (stated.is_empty() || stated == account.uid()))
    else {
        return SecretChange::Delete;
    };
    let data = |field: &str| secret["data"][field].as_str().unwrap_or_default();
    let mut desired = secret.clone();
    desired["metadata"]["annotations"][ANNOTATION_UID] = json!(account.uid());
    desired["data"]["namespace"] = json!(STANDARD.encode(secret.namespace()));
    desired["data"]["ca.crt"] = json!(STANDARD.encode(ca));
    if data("token").is_empty() {
        let token = key.sign(&json!({
            "iss": ISSUER,
            "sub": user_name(secret.namespace(), name),
            NAMESPACE: secret.namespace(),
            SECRET_NAME: secret.name(),
            ACCOUNT_NAME: name,
            ACCOUNT_UID: account.uid(),
        }));
        desired["data"]["token"] = json!(STANDARD.encode(token));
    }
    if desired == *secret { SecretChange::None } else { SecretChange::Update(desired) }
}

/// The identity of a token with these claims, and the Secret that stores it.
pub(super) async fn identify(
    objects: &dyn CoreObjects,
    claims: &Value,
    token: &str,
) -> Result<(UserInfo, Value), InvalidCredential> {
    let text = |field: &str| match claims[field].as_str() {
        Some(text) if !text.is_empty() => Ok(text),
        _ => Err(InvalidCredential),
    };
    let (namespace, name) = (text(NAMESPACE)?, text(ACCOUNT_NAME)?);
    let (secret, uid) = (text(SECRET_NAME)?, text(ACCOUNT_UID)?);
    if text("sub")? != user_name(namespace, name) {
        return Err(InvalidCredential);
    }
    let secret = objects.get("secrets", namespace, secret).await.ok_or(InvalidCredential)?;
    let stored_token = secret["data"]["token"].as_str().unwrap_or_default();
    let stored_token = STANDARD.decode(stored_token).map_err(|_| InvalidCredential)?;
    let same = bool::from(stored_token.ct_eq(token.as_bytes()));
    let account = objects.get("serviceaccounts", namespace, name).await.ok_or(InvalidCredential)?;
    let is_terminating = secret.is_terminating() || account.is_terminating();
    let marked = secret.label(tracking::INVALID_SINCE).is_some_and(|since| !since.is_empty());
    if !same || is_terminating || marked || secret["type"] != SECRET_TYPE || account.uid() != uid {
        return Err(InvalidCredential);
    }
    let user = UserInfo {
        name: user_name(namespace, name),
        uid: uid.to_owned(),
        groups: groups(namespace).to_vec(),
        ..UserInfo::default()
    };
    Ok((user, secret))
}

/// Reconciles these Secrets to [`desired_change`]. Returns when the resources are no longer served.
pub async fn reconcile_secrets(registry: Arc<Registry>, key: Arc<SigningKey>, ca: String) {
    let controller = TokenSecretController { registry, key, ca };
    let (Some(secrets), Some(accounts)) =
        (controller.registry.find("", "secrets"), controller.registry.find("", "serviceaccounts"))
    else {
        return;
    };
    let mut secrets = controller.registry.subscribe(&secrets);
    let mut accounts = controller.registry.subscribe(&accounts);
    loop {
        let outcome = tokio::select! {
            Some(update) = secrets.next() => controller.secrets_changed(update).await,
            Some(update) = accounts.next() => controller.accounts_changed(update).await,
            else => return,
        };
        if let Err(status) = outcome {
            tracing::warn!(%status, "cannot reconcile a service account token Secret; retrying at its next change");
        }
    }
}

struct TokenSecretController {
    registry: Arc<Registry>,
    key: Arc<SigningKey>,
    ca: String,
}

impl TokenSecretController {
    async fn secrets_changed(&self, update: Update) -> Result<(), Status> {
        let changed = match update {
            Update::Reset(objects) => objects,
            Update::Events(events) => {
                let present = events.iter().filter(|event| !event.deleted);
                present.map(|event| event.current.clone()).collect()
            }
        };
        self.check_all(&changed).await
    }

    /// Only deletions of accounts matter: their Secrets are deleted too. A Secret without an
    /// account was deleted before.
    async fn accounts_changed(&self, update: Update) -> Result<(), Status> {
        let Update::Events(events) = update else { return Ok(()) };
        let Some(secrets) = self.registry.find("", "secrets") else { return Ok(()) };
        for event in events.iter().filter(|event| event.deleted) {
            let query = ListQuery::all(&event.current.namespace);
            let list = self.registry.list(&secrets, &query).await?;
            self.check_all(&list.items).await?;
        }
        Ok(())
    }

    /// Checks all Secrets, and returns the first error.
    async fn check_all(&self, secrets: &[Arc<Stored>]) -> Result<(), Status> {
        let mut first = Ok(());
        for secret in secrets {
            let outcome = self.check(&secret.value()).await;
            first = first.and(outcome);
        }
        first
    }

    async fn check(&self, secret: &Value) -> Result<(), Status> {
        let Some(name) = secret.annotation(ANNOTATION_NAME) else { return Ok(()) };
        let Some(secrets) = self.registry.find("", "secrets") else { return Ok(()) };
        let namespace = secret.namespace();
        let account = CoreObjects::get(&self.registry, "serviceaccounts", namespace, name).await;
        let target = WriteTarget { resource: &secrets, namespace, name: secret.name() };
        let options = WriteOptions::system();
        let outcome = match desired_change(secret, account.as_ref(), &self.key, &self.ca) {
            SecretChange::None => return Ok(()),
            SecretChange::Update(_) => {
                // Computed again from the newest state, which another write may have changed.
                let change = |current: &Value| {
                    Ok(match desired_change(current, account.as_ref(), &self.key, &self.ca) {
                        SecretChange::Update(desired) => desired,
                        SecretChange::None | SecretChange::Delete => current.clone(),
                    })
                };
                let written = self.registry.modify(&target, Operation::Update, &options, &change);
                written.await.map(|_| ())
            }
            SecretChange::Delete => {
                let this_one = DeleteOptions {
                    uid: Some(secret.uid().to_owned()),
                    ..DeleteOptions::default()
                };
                self.registry.delete(&target, &this_one, &options).await.map(|_| ())
            }
        };
        match outcome {
            // Deleted meanwhile, or replaced by another of the same name: its own event follows.
            Err(status) if matches!(status.code, 404 | 409) => Ok(()),
            other => other,
        }
    }
}
