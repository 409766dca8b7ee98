//! Tokens that live in a Secret of type `kubernetes.io/service-account-token` and do not expire.
//!
//! A Secret of this type that names an account by annotation gets `token`, `ca.crt` and
//! `namespace`; when the account goes, the Secret goes ([`wanted_change`], [`keep`]). The token
//! holds as long as the Secret has it.

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
use crate::registry::{DeleteOptions, ListQuery, Registry, Target, Update, WriteOptions};
use crate::stored::Stored;
use crate::strategy::Operation;

pub(super) const ISSUER: &str = "kubernetes/serviceaccount";

/// The type of such a Secret.
pub const SECRET_TYPE: &str = "kubernetes.io/service-account-token";
/// Names the account.
pub const ANNOTATION_NAME: &str = "kubernetes.io/service-account.name";
/// Set by the server: which account of that name.
pub const ANNOTATION_UID: &str = "kubernetes.io/service-account.uid";

const NAMESPACE: &str = "kubernetes.io/serviceaccount/namespace";
const SECRET_NAME: &str = "kubernetes.io/serviceaccount/secret.name";
const ACCOUNT_NAME: &str = "kubernetes.io/serviceaccount/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/serviceaccount/service-account.uid";

/// What is to be done with a Secret.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    None,
    /// Write the Secret so.
    Update(Value),
    /// Its account is gone.
    Delete,
}

/// Compares a Secret with its account. Pure but for the signature.
///
/// `account` is the account that the annotation names, if there is one; `ca` is the PEM text
/// clients trust.
pub fn wanted_change(
    secret: &Value,
    account: Option<&Value>,
    key: &SigningKey,
    ca: &str,
) -> Change {
    if secret["type"] != SECRET_TYPE || secret.is_terminating() {
        return Change::None;
    }
    let Some(name) = secret.annotation(ANNOTATION_NAME).filter(|name| !name.is_empty()) else {
        return Change::None;
    };
    let stated = secret.annotation(ANNOTATION_UID).unwrap_or_default();
    let Some(account) = account
        .filter(|account| account.name() == name && (stated.is_empty() || stated == account.uid()))
    else {
        return Change::Delete;
    };
    let data = |field: &str| secret["data"][field].as_str().unwrap_or_default();
    let mut wanted = secret.clone();
    wanted["metadata"]["annotations"][ANNOTATION_UID] = json!(account.uid());
    wanted["data"]["namespace"] = json!(STANDARD.encode(secret.namespace()));
    wanted["data"]["ca.crt"] = json!(STANDARD.encode(ca));
    if data("token").is_empty() {
        let token = key.sign(&json!({
            "iss": ISSUER,
            "sub": user_name(secret.namespace(), name),
            NAMESPACE: secret.namespace(),
            SECRET_NAME: secret.name(),
            ACCOUNT_NAME: name,
            ACCOUNT_UID: account.uid(),
        }));
        wanted["data"]["token"] = json!(STANDARD.encode(token));
    }
    if wanted == *secret { Change::None } else { Change::Update(wanted) }
}

/// Whose a token is that says these claims, and the Secret that holds it.
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
    let held = secret["data"]["token"].as_str().unwrap_or_default();
    let held = STANDARD.decode(held).map_err(|_| InvalidCredential)?;
    let same = bool::from(held.ct_eq(token.as_bytes()));
    let account = objects.get("serviceaccounts", namespace, name).await.ok_or(InvalidCredential)?;
    let gone = secret.is_terminating() || account.is_terminating();
    let marked = secret.label(tracking::INVALID_SINCE).is_some_and(|since| !since.is_empty());
    if !same || gone || marked || secret["type"] != SECRET_TYPE || account.uid() != uid {
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

/// Keeps these Secrets as [`wanted_change`] wants them, until the resources are served no more.
pub async fn keep(registry: Arc<Registry>, key: Arc<SigningKey>, ca: String) {
    let keeper = Keeper { registry, key, ca };
    let (Some(secrets), Some(accounts)) =
        (keeper.registry.find("", "secrets"), keeper.registry.find("", "serviceaccounts"))
    else {
        return;
    };
    let mut secrets = keeper.registry.subscribe(&secrets);
    let mut accounts = keeper.registry.subscribe(&accounts);
    loop {
        let outcome = tokio::select! {
            Some(update) = secrets.next() => keeper.secrets_changed(update).await,
            Some(update) = accounts.next() => keeper.accounts_changed(update).await,
            else => return,
        };
        if let Err(status) = outcome {
            tracing::warn!(%status, "a service account token Secret was not brought up to date");
        }
    }
}

struct Keeper {
    registry: Arc<Registry>,
    key: Arc<SigningKey>,
    ca: String,
}

impl Keeper {
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

    /// Accounts matter when they go: their Secrets go too. A Secret without an account is gone
    /// already.
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

    /// Checks all, and tells of the first that failed.
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
        let target = Target { resource: &secrets, namespace, name: secret.name() };
        let options = WriteOptions::system();
        let outcome = match wanted_change(secret, account.as_ref(), &self.key, &self.ca) {
            Change::None => return Ok(()),
            Change::Update(_) => {
                // Once more on the newest state, which another write may have changed.
                let change = |current: &Value| {
                    Ok(match wanted_change(current, account.as_ref(), &self.key, &self.ca) {
                        Change::Update(wanted) => wanted,
                        Change::None | Change::Delete => current.clone(),
                    })
                };
                let written = self.registry.modify(&target, Operation::Update, &options, &change);
                written.await.map(|_| ())
            }
            Change::Delete => {
                let this_one = DeleteOptions {
                    uid: Some(secret.uid().to_owned()),
                    ..DeleteOptions::default()
                };
                self.registry.delete(&target, &this_one, &options).await.map(|_| ())
            }
        };
        match outcome {
            // Gone meanwhile, or another of the same name: its own event follows.
            Err(status) if matches!(status.code, 404 | 409) => Ok(()),
            other => other,
        }
    }
}
