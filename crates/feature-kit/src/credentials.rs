//! Where the credentials of objects are stored: in one Secret per object, in a namespace that only
//! administrators can read.
//!
//! Admission extracts each value from an object ([`api_management::credentials`] defines which) and
//! stores it here before the object, which contains a reference. A lock protects the Secret of an
//! object from the moment a value is stored until the write of the object has ended. Then values
//! without a reference are removed: those that were replaced, those of a write that failed, and all
//! of them when the object was deleted. Values that a crash leaves are removed at the next start.
//!
//! The Secrets are not in the namespaces of their objects: users with rights on Secrets in a
//! project's namespace would read them, and they would be copied into clusters. So no owner
//! reference can name their objects.
//!
//! [`revealing`] shows values in the REST view to users who may update the object.

pub mod revealing;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use api_management::credentials::{self, Values};
use api_management::{GROUP, VERSION, keys};
use api_meta::object::ObjectExt;
use api_meta::status::Status;
use controller::error::is_code;
use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use parking_lot::Mutex;
use rest_view::{Key, KubeResource};
use serde_json::{Value, json};
use tokio::sync::{OwnedMutexGuard, mpsc};
use tokio_util::sync::CancellationToken;

use crate::rbac::{ours, rule};
use crate::{ControllerIdentity, ManagementSpec, Seed};

/// Objects whose Secrets wait for cleanup. Further ones are cleaned up at the next start.
const QUEUE_MAX: usize = 10_000;
/// Pause after a failed cleanup.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// At a start the rights of the identity take effect a moment after they are written.
const RIGHTS_ATTEMPTS_MAX: usize = 50;
const RIGHTS_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Characters of the id of a value.
const ID_LENGTH: usize = 16;
/// Secrets that the cleanup reads in one request.
const PAGE: u32 = 500;
/// Prefix of the names of the Secrets; the uid of the object follows.
const NAME_PREFIX: &str = "credentials-";
/// Annotation of a Secret: its object, as `plural/namespace/name`.
const OWNER: &str = "drover.io/credentials-of";
/// Type of the Secrets.
const SECRET_TYPE: &str = "drover.io/credentials";

/// The identity that reads objects and writes their Secrets.
pub fn identity() -> ControllerIdentity {
    let verbs = ["get", "list", "create", "patch", "delete"];
    ControllerIdentity::new("credentials", vec![ours(&["*"], &["get"])])
        .within(keys::CREDENTIALS_NS, rule("", &["secrets"], &verbs))
}

/// The namespace of the Secrets, which must exist from the start.
pub fn seed() -> Seed {
    Seed::system_namespace(keys::CREDENTIALS_NS)
}

/// The controller that removes credentials without a reference.
pub fn cleanup() -> ManagementSpec {
    ManagementSpec::new(identity(), |context, _| async move {
        context.credentials.run(&context.scope.stop).await;
    })
}

/// The object that a Secret belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Owner {
    plural: String,
    key: Key,
    uid: String,
}

impl Owner {
    fn of(plural: &str, object: &Value) -> Self {
        let key = Key { namespace: object.namespace().to_owned(), name: object.name().to_owned() };
        Self { plural: plural.to_owned(), key, uid: object.uid().to_owned() }
    }

    fn of_secret(metadata: &ObjectMeta) -> Option<Self> {
        let uid = metadata.name.as_deref()?.strip_prefix(NAME_PREFIX)?;
        let mut parts = metadata.annotations.as_ref()?.get(OWNER)?.splitn(3, '/');
        let (plural, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
        let key = Key { namespace: namespace.to_owned(), name: name.to_owned() };
        Some(Self { plural: plural.to_owned(), key, uid: uid.to_owned() })
    }

    fn secret(&self) -> String {
        secret_name(&self.uid)
    }

    fn path(&self) -> String {
        let namespaced = !self.key.namespace.is_empty();
        KubeResource::new(GROUP, VERSION, &self.plural, "", namespaced).object_path(&self.key)
    }

    fn annotation(&self) -> String {
        format!("{}/{}/{}", self.plural, self.key.namespace, self.key.name)
    }
}

fn secret_name(uid: &str) -> String {
    format!("{NAME_PREFIX}{uid}")
}

/// See the module.
pub struct CredentialStore {
    client: Client,
    secrets: Api<Secret>,
    /// By uid of the object.
    locks: Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>,
    queue: mpsc::Sender<Owner>,
    queued: tokio::sync::Mutex<mpsc::Receiver<Owner>>,
}

/// Excludes other writers from the Secret of an object until the write of the object has ended,
/// then queues the Secret for cleanup.
pub struct CredentialLock {
    owner: Owner,
    queue: mpsc::Sender<Owner>,
    _lock: OwnedMutexGuard<()>,
}

impl Drop for CredentialLock {
    fn drop(&mut self) {
        if self.queue.try_send(self.owner.clone()).is_err() {
            tracing::warn!(owner = self.owner.annotation(), "cleaned up at the next start");
        }
    }
}

impl CredentialStore {
    /// A store whose `client` acts as [`identity`].
    pub fn new(client: Client) -> Arc<Self> {
        let (queue, queued) = mpsc::channel(QUEUE_MAX);
        let secrets = Api::namespaced(client.clone(), keys::CREDENTIALS_NS);
        let queued = tokio::sync::Mutex::new(queued);
        Arc::new(Self { client, secrets, locks: Mutex::default(), queue, queued })
    }

    /// Replaces the credentials of the object with references; see
    /// [`take_out`](credentials::take_out). `old`: the stored object. Writes nothing.
    ///
    /// # Errors
    /// 422 for a reference that the stored object does not have; 503 when the Secret of the object
    /// cannot be read.
    pub async fn take_out(
        &self,
        kind: &str,
        object: &mut Value,
        old: Option<&Value>,
        extracted: &mut Values,
    ) -> Result<(), Status> {
        if !credentials::concerns(kind) {
            return Ok(());
        }
        let stored = match old {
            Some(old) if credentials::has_plain(kind, object) => self.values(old.uid()).await?,
            _ => Values::new(),
        };
        let mut new_id = || identity::random_text(ID_LENGTH);
        let done = credentials::take_out(kind, object, old, &stored, extracted, &mut new_id);
        done.map_err(|causes| Status::invalid(GROUP, kind, object.name(), causes))
    }

    /// Stores the new credentials of an object, which is written next. Drop the result when that
    /// write has ended.
    ///
    /// # Errors
    /// 422 when the credentials do not fit into a Secret, 503 when it cannot be written. Refuse the
    /// write.
    pub async fn store(
        &self,
        (kind, plural): (&str, &str),
        object: &Value,
        old: Option<&Value>,
        extracted: &Values,
    ) -> Result<Option<CredentialLock>, Status> {
        if !credentials::concerns(kind) {
            return Ok(None);
        }
        let needed = credentials::keys(kind, object);
        let new: Values = extracted
            .iter()
            .filter(|(key, _)| needed.contains(*key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let before = old.map(|old| credentials::keys(kind, old)).unwrap_or_default();
        if new.is_empty() && before.is_subset(&needed) {
            return Ok(None);
        }
        let owner = Owner::of(plural, object);
        let lock = self.lock(&owner.uid).await;
        if !new.is_empty() {
            self.add(&owner, &new).await.map_err(|error| refusal(kind, object.name(), &error))?;
        }
        Ok(Some(CredentialLock { owner, queue: self.queue.clone(), _lock: lock }))
    }

    /// Queues the credentials of an object that was deleted for removal.
    pub fn object_deleted(&self, kind: &str, plural: &str, object: &Value) {
        if credentials::keys(kind, object).is_empty() {
            return;
        }
        let owner = Owner::of(plural, object);
        if self.queue.try_send(owner.clone()).is_err() {
            tracing::warn!(owner = owner.annotation(), "cleaned up at the next start");
        }
    }

    /// The object with all its credentials, for use by the server itself.
    ///
    /// # Errors
    /// 503 when they cannot be read, or one is missing because `object` is older than the stored
    /// object: read the object again.
    pub async fn with_values(&self, kind: &str, mut object: Value) -> Result<Value, Status> {
        let keys = credentials::keys(kind, &object);
        if !keys.is_empty() {
            let values = self.values(object.uid()).await?;
            if !keys.iter().all(|key| values.contains_key(key)) {
                return Err(Status::unavailable("a credential of the object is not stored"));
            }
            credentials::put_back(kind, &mut object, &values, true);
        }
        Ok(object)
    }

    /// The credentials of the object with this uid, by key.
    async fn values(&self, uid: &str) -> Result<Values, Status> {
        let name = secret_name(uid);
        let found = with_rights(|| self.secrets.get_opt(&name).boxed()).await;
        let found = found.map_err(|error| {
            Status::unavailable(format!("cannot read the object's credentials: {error}"))
        })?;
        let data = found.and_then(|secret| secret.data).unwrap_or_default().into_iter();
        let text = |bytes: ByteString| String::from_utf8(bytes.0).ok();
        Ok(data.filter_map(|(key, bytes)| Some((key, text(bytes)?))).collect())
    }

    async fn add(&self, owner: &Owner, new: &Values) -> Result<(), kube::Error> {
        let name = owner.secret();
        let bytes = |(key, value): (&String, &String)| {
            (key.clone(), ByteString(value.clone().into_bytes()))
        };
        let data: BTreeMap<String, ByteString> = new.iter().map(bytes).collect();
        let patch = Patch::Merge(json!({ "data": data }));
        let params = PatchParams::default();
        let patched = with_rights(|| self.secrets.patch(&name, &params, &patch).boxed()).await;
        match patched {
            Err(error) if is_code(&error, 404) => {}
            other => return other.map(drop),
        }
        let annotations = [(OWNER.to_owned(), owner.annotation())];
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(name),
                annotations: Some(annotations.into()),
                ..ObjectMeta::default()
            },
            data: Some(data),
            type_: Some(SECRET_TYPE.to_owned()),
            ..Secret::default()
        };
        self.secrets.create(&PostParams::default(), &secret).await.map(drop)
    }

    async fn lock(&self, uid: &str) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.locks.lock();
            locks.retain(|_, lock| lock.strong_count() > 0);
            let found = locks.get(uid).and_then(Weak::upgrade);
            found.unwrap_or_else(|| {
                let lock = Arc::default();
                locks.insert(uid.to_owned(), Arc::downgrade(&lock));
                lock
            })
        };
        lock.lock_owned().await
    }

    /// Cleans up: all Secrets first, then those of ended writes. Until `stop`.
    async fn run(&self, stop: &CancellationToken) {
        let mut queued = self.queued.lock().await;
        let work = async {
            while let Err(error) = self.clean_up_all().await {
                tracing::warn!(%error, "cannot clean up credentials");
                tokio::time::sleep(RETRY_DELAY).await;
            }
            while let Some(owner) = queued.recv().await {
                if let Err(error) = self.clean_up(&owner).await {
                    tracing::warn!(owner = owner.annotation(), %error, "cannot clean up credentials");
                    tokio::time::sleep(RETRY_DELAY).await;
                    let _ = self.queue.try_send(owner);
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = work => {}
        }
    }

    async fn clean_up_all(&self) -> Result<(), kube::Error> {
        let mut page = ListParams::default().limit(PAGE);
        loop {
            let found = with_rights(|| self.secrets.list_metadata(&page).boxed()).await?;
            for secret in &found.items {
                if let Some(owner) = Owner::of_secret(&secret.metadata) {
                    self.clean_up(&owner).await?;
                }
            }
            match found.metadata.continue_ {
                Some(next) if !next.is_empty() => page = page.continue_token(&next),
                _ => return Ok(()),
            }
        }
    }

    /// Removes the credentials of an object that it does not refer to.
    async fn clean_up(&self, owner: &Owner) -> Result<(), kube::Error> {
        let _lock = self.lock(&owner.uid).await;
        let needed = self.needed(owner).await?;
        let name = owner.secret();
        if needed.is_empty() {
            let deleted = self.secrets.delete(&name, &DeleteParams::default()).await;
            return match deleted {
                Err(error) if !is_code(&error, 404) => Err(error),
                _ => Ok(()),
            };
        }
        let Some(secret) = self.secrets.get_opt(&name).await? else { return Ok(()) };
        let unused = secret.data.iter().flatten().filter(|(key, _)| !needed.contains(*key));
        let unused: BTreeMap<&String, Value> = unused.map(|(key, _)| (key, Value::Null)).collect();
        if unused.is_empty() {
            return Ok(());
        }
        let patch = Patch::Merge(json!({ "data": unused }));
        self.secrets.patch(&secret.name_any(), &PatchParams::default(), &patch).await.map(drop)
    }

    /// The keys that the object refers to; none when it was deleted.
    async fn needed(&self, owner: &Owner) -> Result<BTreeSet<String>, kube::Error> {
        let request = http::Request::get(owner.path()).body(Vec::new());
        let request = request.map_err(kube::Error::HttpError)?;
        match self.client.request::<Value>(request).await {
            Ok(object) if object.uid() == owner.uid => {
                Ok(credentials::keys(object.kind(), &object))
            }
            Ok(_) => Ok(BTreeSet::new()),
            Err(error) if is_code(&error, 404) => Ok(BTreeSet::new()),
            Err(error) => Err(error),
        }
    }
}

/// Retries while the rights of the identity are not yet in effect.
async fn with_rights<'a, T>(
    call: impl Fn() -> BoxFuture<'a, Result<T, kube::Error>>,
) -> Result<T, kube::Error> {
    let mut attempts = 1;
    loop {
        match call().await {
            Err(error) if is_code(&error, 403) && attempts < RIGHTS_ATTEMPTS_MAX => attempts += 1,
            done => return done,
        }
        tokio::time::sleep(RIGHTS_RETRY_DELAY).await;
    }
}

fn refusal(kind: &str, name: &str, error: &kube::Error) -> Status {
    if is_code(error, 422) || is_code(error, 413) {
        let text = "has more credentials than one Secret can hold, about 1 MiB; make them shorter";
        let cause = api_meta::status::Cause::new("FieldValueTooLong", "", text);
        return Status::invalid(GROUP, kind, name, vec![cause]);
    }
    Status::unavailable(format!("cannot store the object's credentials: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_says_whose_credentials_it_has() {
        for namespace in ["", "c-1"] {
            let metadata = json!({"namespace": namespace, "name": "n-1", "uid": "u"});
            let owner = Owner::of("notifiers", &json!({ "metadata": metadata }));
            let secret = ObjectMeta {
                name: Some(owner.secret()),
                annotations: Some([(OWNER.to_owned(), owner.annotation())].into()),
                ..ObjectMeta::default()
            };
            assert_eq!(Owner::of_secret(&secret), Some(owner));
        }
        let other = ObjectMeta { name: Some("credentials-u".to_owned()), ..ObjectMeta::default() };
        assert_eq!(Owner::of_secret(&other), None);
    }
}
