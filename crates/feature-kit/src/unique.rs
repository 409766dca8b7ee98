//! Names that only one object of a kind may have and that are not object names, such as login
//! names.
//!
//! The API server ensures only that object names are unique. So each such name has a claim: a
//! ConfigMap in [`keys::UNIQUE_NAMES_NS`] whose own name is a hash of it and which records the
//! holder. Admission creates the claim before it lets the write pass. The storage lets only one of
//! many writers create it, with one server or several. [`controller`] deletes claims whose holder
//! was deleted or has another name.
//!
//! A claim is *pending* until its holder was observed with the name. No other object can take over
//! a pending claim, since its write may still be in progress. After [`PENDING_TIME_MAX`] it cannot
//! be, and the claim that a crash or a refused write left is free again.

pub mod controller;

use std::time::Duration;

use ::controller::ensure::Object;
use api_management::keys;
use api_meta::status::{Cause, Status};
use jiff::Timestamp;
use k8s_openapi::ClusterResourceScope;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::grants;
use crate::kind::Review;
use crate::rbac::{ours, rule};
use crate::{ControllerIdentity, ReviewOperation, Seed};

/// How long after its claim a write may be committed. The API server ends every write after 34 s;
/// the rest allows for clock differences between servers.
pub const PENDING_TIME_MAX: Duration = Duration::from_secs(120);
/// Attempts at a claim that others write concurrently.
const ATTEMPTS_MAX: usize = 8;
/// At a start the rights of the identity take effect a moment after they are written.
const RIGHTS_ATTEMPTS_MAX: usize = 50;
const RIGHTS_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Label of claims; the value is [`UniqueName::what`].
const LABEL: &str = "drover.io/unique-name";
const NAME: &str = "name";
const HOLDER: &str = "holder";
const CLAIMED_AT: &str = "claimedAt";
const CONFIRMED: &str = "confirmed";

/// One kind of unique names, of cluster-scoped objects of kind `K`.
pub struct UniqueName<K> {
    /// Kebab case, such as `login-name`: prefix of the names of claims.
    pub what: &'static str,
    /// Name of the identity and the controller.
    pub controller: &'static str,
    /// Field with the name, for messages.
    pub field: &'static str,
    /// Returns the name of an object; empty when it has none.
    pub name_of: fn(&K) -> &str,
}

impl<K> Clone for UniqueName<K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K> Copy for UniqueName<K> {}

/// Kinds whose objects can have unique names.
pub trait UniquelyNamed: Object + Resource<Scope = ClusterResourceScope> + 'static {}
impl<K: Object + Resource<Scope = ClusterResourceScope> + 'static> UniquelyNamed for K {}

impl<K: UniquelyNamed> UniqueName<K> {
    /// The identity that reads the objects and writes the claims.
    pub fn identity(&self) -> ControllerIdentity {
        let verbs = ["get", "list", "create", "update", "delete"];
        ControllerIdentity::new(self.controller, vec![ours(&[&K::plural(&())], &["get"])])
            .within(keys::UNIQUE_NAMES_NS, rule("", &["configmaps"], &verbs))
    }

    /// The claims. `client` acts as [`Self::identity`].
    pub fn claims(&self, client: Client) -> Claims<K> {
        Claims {
            unique: *self,
            claims: Api::namespaced(client.clone(), keys::UNIQUE_NAMES_NS),
            objects: Api::all(client),
        }
    }
}

/// The namespace of claims, which must exist from the start.
pub fn seed() -> Seed {
    Seed::system_namespace(keys::UNIQUE_NAMES_NS)
}

/// The result of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimOutcome {
    /// The claimant has the name.
    Granted,
    /// The object of this name has it.
    Held(String),
    /// A write for the object of this name is in progress, or was interrupted.
    Pending(String),
}

/// The claims to one kind of names.
pub struct Claims<K> {
    unique: UniqueName<K>,
    claims: Api<ConfigMap>,
    objects: Api<K>,
}

/// A claim as it is stored.
#[derive(Clone, Debug, Default)]
struct Claim {
    name: String,
    holder: String,
    /// Unix seconds.
    claimed_at: i64,
    confirmed: bool,
}

impl Claim {
    fn of(stored: &ConfigMap) -> Self {
        let read = |key: &str| {
            let data = stored.data.as_ref().and_then(|data| data.get(key));
            data.cloned().unwrap_or_default()
        };
        Self {
            name: read(NAME),
            holder: read(HOLDER),
            claimed_at: read(CLAIMED_AT).parse().unwrap_or_default(),
            confirmed: read(CONFIRMED) == "true",
        }
    }

    fn to_config_map(&self, what: &str) -> ConfigMap {
        let data = [
            (NAME, self.name.clone()),
            (HOLDER, self.holder.clone()),
            (CLAIMED_AT, self.claimed_at.to_string()),
            (CONFIRMED, self.confirmed.to_string()),
        ];
        ConfigMap {
            metadata: ObjectMeta {
                name: Some(claim_name(what, &self.name)),
                labels: Some([(LABEL.to_owned(), what.to_owned())].into()),
                ..ObjectMeta::default()
            },
            data: Some(data.map(|(key, value)| (key.to_owned(), value)).into()),
            ..ConfigMap::default()
        }
    }

    /// How much longer the write may take; `None`: the name is free for others if no object has it.
    fn pending_for(&self, now: i64) -> Option<Duration> {
        let age = Duration::from_secs(now.saturating_sub(self.claimed_at).try_into().unwrap_or(0));
        if self.confirmed {
            None
        } else {
            PENDING_TIME_MAX.checked_sub(age).filter(|rest| !rest.is_zero())
        }
    }
}

/// Any text has a claim of its own, whose name is a valid object name.
fn claim_name(what: &str, name: &str) -> String {
    let digest = Sha256::digest(name.as_bytes());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{what}-{hex}")
}

fn now() -> i64 {
    Timestamp::now().as_second()
}

fn is_code(error: &kube::Error, code: u16) -> bool {
    ::controller::error::is_code(error, code)
}

impl<K: UniquelyNamed> Claims<K> {
    /// Admission of a write: claims the name of the object unless it already has it. A dry run only
    /// checks.
    ///
    /// # Errors
    /// 422: another object has the name, or may be about to get it. 503: claims cannot be read or
    /// written.
    pub async fn admit(&self, review: &Review<'_>) -> Result<(), Status> {
        let stored = review.object.filter(|_| review.operation != ReviewOperation::Delete);
        let name = stored.map(|object| self.name_in(object)).unwrap_or_default();
        let before = review.old.map(|old| self.name_in(old)).unwrap_or_default();
        if before == name {
            return Ok(());
        }
        if !before.is_empty() && !review.dry_run {
            self.confirm(&before, review.name).await;
        }
        if name.is_empty() {
            return Ok(());
        }
        let failed = |error: kube::Error| {
            let text =
                format!("cannot check whether the {} \"{name}\" is free: {error}", self.words());
            Err(Status::unavailable(text))
        };
        if review.old.is_none() {
            // The write will be refused, and must not change the claims of the existing object.
            match self.objects.get_metadata_opt(review.name).await {
                Ok(None) => {}
                Ok(Some(_)) => {
                    let plural = K::plural(&());
                    return Err(Status::already_exists(
                        api_management::GROUP,
                        &plural,
                        review.name,
                    ));
                }
                Err(error) if is_code(&error, 403) => {}
                Err(error) => return failed(error),
            }
        }
        let outcome = if review.dry_run {
            self.check_claim(&name, review.name).await
        } else {
            self.claim(&name, review.name).await
        };
        match outcome {
            Ok(ClaimOutcome::Granted) => Ok(()),
            Ok(ClaimOutcome::Held(id)) => {
                Err(self.taken_error(review, &name, &id, "has this name; choose another"))
            }
            Ok(ClaimOutcome::Pending(id)) => {
                let detail = format!(
                    "is being given this name; if that write failed, try again in {} s; choose \
                     another",
                    PENDING_TIME_MAX.as_secs()
                );
                Err(self.taken_error(review, &name, &id, &detail))
            }
            Err(error) => failed(error),
        }
    }

    fn words(&self) -> String {
        self.unique.what.replace('-', " ")
    }

    /// Others than administrators may not see the object of that name, and do not get its id.
    fn taken_error(&self, review: &Review<'_>, name: &str, holder: &str, detail: &str) -> Status {
        let kind = K::kind(&());
        let mut cause = Cause::duplicate(self.unique.field, &Value::from(name));
        let other = kind.to_lowercase();
        let other = match grants::is_administrator(review.groups) {
            true => format!("{other} \"{holder}\""),
            false => format!("another {other}"),
        };
        cause.message.push_str(&format!(": {other} {detail}"));
        Status::invalid(api_management::GROUP, &kind, review.name, vec![cause])
    }

    fn name_in(&self, object: &Value) -> String {
        // What does not decode has been refused before.
        let object: Option<K> = serde_json::from_value(object.clone()).ok();
        object.map(|object| (self.unique.name_of)(&object).to_owned()).unwrap_or_default()
    }

    /// Claims `name` for the object `holder`, whose write follows.
    ///
    /// # Errors
    /// Those of the API; refuse the write with 503.
    pub async fn claim(&self, name: &str, holder: &str) -> Result<ClaimOutcome, kube::Error> {
        let requested = Claim {
            name: name.to_owned(),
            holder: holder.to_owned(),
            claimed_at: now(),
            confirmed: false,
        };
        let requested = requested.to_config_map(self.unique.what);
        for _ in 0..ATTEMPTS_MAX {
            match self.create(&requested).await {
                Err(error) if is_code(&error, 409) => {}
                created => return created.map(|()| ClaimOutcome::Granted),
            }
            let Some(found) = self.claims.get_opt(&requested.name_any()).await? else { continue };
            let other = self.holder_against(&Claim::of(&found), holder).await?;
            if other != ClaimOutcome::Granted {
                return Ok(other);
            }
            // Take the claim over, or claim again, unless another writer did so in between.
            let mut next = requested.clone();
            next.metadata.resource_version = found.metadata.resource_version;
            match self.claims.replace(&requested.name_any(), &PostParams::default(), &next).await {
                Err(error) if is_code(&error, 409) || is_code(&error, 404) => {}
                replaced => return replaced.map(|_| ClaimOutcome::Granted),
            }
        }
        Ok(ClaimOutcome::Pending("another object".to_owned()))
    }

    /// Marks the claim of an object that has the name and is about to lose it, so that the name is
    /// free at once. The controller may not have done so yet.
    async fn confirm(&self, name: &str, holder: &str) {
        let claim_name = claim_name(self.unique.what, name);
        let confirmed = async {
            let Some(found) = self.claims.get_opt(&claim_name).await? else { return Ok(()) };
            let claim = Claim::of(&found);
            if claim.holder != holder || claim.confirmed {
                return Ok(());
            }
            let mut next = Claim { confirmed: true, ..claim }.to_config_map(self.unique.what);
            next.metadata.resource_version = found.metadata.resource_version;
            self.claims.replace(&claim_name, &PostParams::default(), &next).await.map(drop)
        };
        let confirmed: Result<(), kube::Error> = confirmed.await;
        if let Err(error) = confirmed {
            // Then the name becomes free later.
            tracing::debug!(name, holder, %error, "the claim to a name was not confirmed");
        }
    }

    /// Like [`Self::claim`], without claiming.
    async fn check_claim(&self, name: &str, holder: &str) -> Result<ClaimOutcome, kube::Error> {
        match self.claims.get_opt(&claim_name(self.unique.what, name)).await? {
            Some(found) => self.holder_against(&Claim::of(&found), holder).await,
            None => Ok(ClaimOutcome::Granted),
        }
    }

    /// Whether `holder` may have a name with this claim.
    async fn holder_against(
        &self,
        claim: &Claim,
        holder: &str,
    ) -> Result<ClaimOutcome, kube::Error> {
        if claim.holder == holder {
            return Ok(ClaimOutcome::Granted);
        }
        if self.has(&claim.holder, &claim.name).await? {
            return Ok(ClaimOutcome::Held(claim.holder.clone()));
        }
        Ok(match claim.pending_for(now()) {
            Some(_) => ClaimOutcome::Pending(claim.holder.clone()),
            None => ClaimOutcome::Granted,
        })
    }

    /// Whether the object has the name now. Reads from the storage, not from a watch.
    async fn has(&self, object: &str, name: &str) -> Result<bool, kube::Error> {
        let found = self.objects.get_opt(object).await?;
        Ok(found.is_some_and(|found| (self.unique.name_of)(&found) == name))
    }

    async fn create(&self, claim: &ConfigMap) -> Result<(), kube::Error> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            match self.claims.create(&PostParams::default(), claim).await {
                Err(error) if is_code(&error, 403) && attempts < RIGHTS_ATTEMPTS_MAX => {
                    tokio::time::sleep(RIGHTS_RETRY_DELAY).await;
                }
                created => return created.map(drop),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pending_claim_is_free_when_its_write_can_no_longer_be_committed() {
        let mut claim = Claim { claimed_at: 1_000, ..Claim::default() };
        assert_eq!(claim.pending_for(1_000), Some(PENDING_TIME_MAX));
        // The clock of the server that claimed is ahead.
        assert_eq!(claim.pending_for(990), Some(PENDING_TIME_MAX));
        assert_eq!(claim.pending_for(1_119), Some(Duration::from_secs(1)));
        assert_eq!(claim.pending_for(1_120), None);
        claim.confirmed = true;
        assert_eq!(claim.pending_for(1_000), None);
    }

    #[test]
    fn every_name_has_a_claim_of_its_own_that_an_object_can_be_called() {
        let names = ["ann", "Ann", "ann ", "a.n-n", "\u{e9}", "e\u{301}", &"x".repeat(500)];
        let claims: std::collections::BTreeSet<String> =
            names.iter().map(|name| claim_name("login-name", name)).collect();
        assert_eq!(claims.len(), names.len());
        for claim in claims {
            assert!(api_meta::names::dns1123_subdomain(&claim).is_empty(), "{claim}");
        }
    }

    #[test]
    fn a_claim_survives_being_stored() {
        let claim = Claim {
            name: "ann".to_owned(),
            holder: "u-1".to_owned(),
            claimed_at: 7,
            confirmed: true,
        };
        let read = Claim::of(&claim.to_config_map("login-name"));
        assert_eq!(format!("{read:?}"), format!("{claim:?}"));
    }
}
