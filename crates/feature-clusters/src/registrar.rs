//! Which agents the tunnel lets in: looks up keys and tokens, registers the first key of a token.
//!
//! The registered key is in `status.agentIdentity` of the cluster, together with the name of the
//! token it came with. A token is used up when that entry names it; a newer token may replace the
//! key, which is how an agent that lost its key comes back. The write is bound to the version that
//! was read, so of two agents with one token exactly one gets in.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use api_management::cluster::{AgentIdentity, DRIVER_IMPORTED};
use api_management::{Cluster, ClusterRegistrationToken};
use controller::{Change, Key, Reflector, StatusPatch, StatusTarget, Whole, status};
use feature_kit::rbac::ours;
use feature_kit::{ControllerIdentity, ManagementContext};
use futures::future::BoxFuture;
use kube::Client;
use parking_lot::RwLock;
use serde_json::{Value, json};
use tunnel::admission::decide;
use tunnel::{
    Admission, ApiCredential, ExpectedKey, Hello, KeyId, KeyRecord, PublicKey, Refusal,
    RefusalReason, Registrar, SessionInfo, Sessions, TokenRecord,
};

use crate::cluster::uid;
use crate::connections::{Connections, Obstacle};

/// Replaced keys that are remembered. They matter only as long as their sessions take to end.
const REPLACED_KEYS_MAX: usize = 10_000;
/// What of an agent's words is kept in a condition.
const TROUBLE_MAX_BYTES: usize = 1024;
/// Reason of the condition that says that an agent was not let in.
const REFUSED: &str = "AgentRefused";
/// Reason of the condition that says that the agent has no access to its own cluster.
const NO_CREDENTIAL: &str = "AgentHasNoCredential";
/// How long an agent waits for a server that has just started to know its clusters.
const SYNC_TIME_MAX: Duration = Duration::from_secs(10);

/// Registers agents' keys: status of clusters and of registration tokens.
pub fn identity() -> ControllerIdentity {
    ControllerIdentity::new(
        "agent-registration",
        vec![
            ours(&["clusters", "clusterregistrationtokens"], &["get"]),
            ours(&["clusters/status", "clusterregistrationtokens/status"], &["patch"]),
        ],
    )
}

#[derive(Default)]
struct Index {
    keys: HashMap<KeyId, (String, PublicKey)>,
    /// Keys that were registered and no longer are: their sessions are over.
    replaced: HashSet<KeyId>,
    tokens: HashMap<String, Key>,
}

/// The tunnel's registrar over the objects of the management API.
pub struct AgentRegistrar {
    client: Client,
    clusters: Arc<Reflector<Whole<Cluster>>>,
    tokens: Arc<Reflector<Whole<ClusterRegistrationToken>>>,
    index: Arc<RwLock<Index>>,
    connections: Arc<Connections>,
    sessions: Arc<Sessions>,
}

impl AgentRegistrar {
    /// Must be called inside a tokio runtime.
    ///
    /// `sessions`: those of a key end when it is registered no more.
    pub fn new(
        context: &ManagementContext,
        connections: Arc<Connections>,
        sessions: Arc<Sessions>,
    ) -> Arc<Self> {
        let clusters = context.scope.reflectors.get::<Whole<Cluster>>();
        let tokens = context.scope.reflectors.get::<Whole<ClusterRegistrationToken>>();
        let index = Arc::new(RwLock::new(Index::default()));
        let (keys, open) = (index.clone(), sessions.clone());
        clusters.subscribe(move |change| {
            if let Some(replaced) = index_cluster(&mut keys.write(), change) {
                open.cut_key(&change.key().name, &replaced);
            }
            true
        });
        let by_token = index.clone();
        tokens.subscribe(move |change| {
            index_token(&mut by_token.write(), change);
            true
        });
        let client = context.clients.controller(&identity());
        Arc::new(Self { client, clusters, tokens, index, connections, sessions })
    }

    /// Whether the session's key was registered when it began and is no longer.
    fn is_replaced(&self, session: &SessionInfo) -> bool {
        self.index.read().replaced.contains(&session.key)
    }

    fn key_record(&self, id: &KeyId) -> Option<KeyRecord> {
        let index = self.index.read();
        let (cluster, public_key) = index.keys.get(id)?;
        Some(KeyRecord { cluster: cluster.as_str().into(), public_key: public_key.clone() })
    }

    fn token(&self, secret: &str) -> Option<(Key, Arc<ClusterRegistrationToken>)> {
        let key = self.index.read().tokens.get(secret)?.clone();
        let token = self.tokens.get(&key)?;
        Some((key, token))
    }

    fn token_record(&self, secret: &str) -> Option<TokenRecord> {
        let (key, token) = self.token(secret)?;
        let cluster = self.clusters.named(&token.spec.cluster_name)?;
        let registered = cluster.status.agent_identity.as_ref();
        // A token that registered an earlier key is spent, too: else its agent would come back.
        let is_spent = !token.status.used_at.is_empty();
        let used_by = registered.filter(|identity| is_spent || identity.token_name == key.name);
        let used_by = used_by.and_then(|identity| identity.public_key.parse::<PublicKey>().ok());
        Some(TokenRecord {
            cluster: token.spec.cluster_name.as_str().into(),
            expires_at: expires_at(&token),
            used_by: used_by.map(|key| key.id()),
        })
    }

    async fn admit_agent(&self, hello: &Hello) -> Result<Admission, Refusal> {
        let synced = async { tokio::join!(self.clusters.synced(), self.tokens.synced()) };
        if tokio::time::timeout(SYNC_TIME_MAX, synced).await.is_err() {
            return Err(Refusal::internal("the server is still starting"));
        }
        let key = self.key_record(&hello.key);
        let token = hello.token.as_ref().and_then(|token| self.token_record(token.reveal()));
        let decided = decide(hello, key.as_ref(), token.as_ref(), SystemTime::now());
        let decided = self.guard(hello, token.as_ref(), decided);
        if let (Err(refusal), Some(token)) = (&decided, &token) {
            self.note(&token.cluster, refusal, hello);
        }
        decided
    }

    /// Refuses the first key of an entry from a cluster that another entry manages: by the uid that
    /// the agent claims, or by its key, which is the other entry's when the manifest was applied
    /// beside that one's agent.
    ///
    /// Nothing of the other entry changes. Without the refusal the agent would replace the key that
    /// it shares with the other entry's agent, and its ready pod that agent's.
    fn guard(
        &self,
        hello: &Hello,
        token: Option<&TokenRecord>,
        decided: Result<Admission, Refusal>,
    ) -> Result<Admission, Refusal> {
        let Some(cluster) = token.and_then(|token| self.clusters.named(&token.cluster)) else {
            return decided;
        };
        if cluster.is_imported_as_new() {
            return decided;
        }
        let is_managed = |uid: &String| uid::is_managed_by_another(&self.clusters, &cluster, uid);
        match decided {
            Err(refusal) if refusal.reason == RefusalReason::KeyElsewhere => {
                Err(Refusal::already_managed())
            }
            Ok(Admission { key: ExpectedKey::First(_), .. })
                if hello.cluster_uid.as_ref().is_some_and(is_managed) =>
            {
                Err(Refusal::already_managed())
            }
            decided => decided,
        }
    }

    /// Whoever imports the cluster waits for this agent and does not see its log.
    fn note(&self, cluster: &str, refusal: &Refusal, hello: &Hello) {
        let obstacle = match refusal.reason {
            RefusalReason::AlreadyManaged => Obstacle {
                managed_by: self.managers(cluster, hello),
                ..Obstacle::new(uid::ALREADY_MANAGED, uid::MESSAGE)
            },
            _ => Obstacle::new(REFUSED, format!("an agent was refused: {}", refusal.message)),
        };
        self.connections.obstruct(cluster, obstacle);
    }

    /// Ids of the entries for whose sake an agent of `cluster` is refused: by the uid that it
    /// claims, else by its key.
    fn managers(&self, cluster: &str, hello: &Hello) -> Vec<String> {
        let uid = hello.cluster_uid.as_deref().unwrap_or_default();
        let mut managers = uid::entries(&self.clusters, uid);
        if managers.is_empty() {
            managers.extend(self.key_record(&hello.key).map(|key| key.cluster.to_string()));
        }
        managers.retain(|id| id != cluster);
        managers
    }

    async fn register(&self, hello: &Hello, admission: &Admission) -> Result<(), Refusal> {
        let secret = hello.token.as_ref().ok_or_else(Refusal::token_unknown)?;
        let (key, token) = self.token(secret.reveal()).ok_or_else(Refusal::token_unknown)?;
        if token.spec.cluster_name != *admission.cluster {
            return Err(Refusal::token_unknown());
        }
        if expires_at(&token) <= SystemTime::now() {
            return Err(Refusal::token_expired());
        }
        let identity = AgentIdentity {
            public_key: admission.key.public_key().to_string(),
            registered_at: status::now(),
            token_name: key.name.clone(),
        };
        self.store(&admission.cluster, &identity, hello.cluster_uid.as_deref()).await?;
        let used = StatusPatch::new().field("usedAt", identity.registered_at.clone());
        let target = StatusTarget::of::<ClusterRegistrationToken>(&key.namespace, &key.name);
        if let Err(error) = used.write(&self.client, &target).await {
            // For people only: what counts is the cluster's entry.
            tracing::warn!(token = %key, error = error.chain(), "use of the token was not noted");
        }
        tracing::info!(cluster = %admission.cluster, token = %key, "agent registered its key");
        Ok(())
    }

    /// The atomic step: checks again on the object as it is and stores.
    async fn store(
        &self,
        cluster: &str,
        identity: &AgentIdentity,
        uid: Option<&str>,
    ) -> Result<(), Refusal> {
        let refused = AtomicBool::new(false);
        let patch = StatusPatch::new()
            .field("agentIdentity", serde_json::to_value(identity).unwrap_or_default());
        let found = self.clusters.named(cluster);
        let patch = match found.is_some_and(|found| found.driver_name().is_some()) {
            true => patch,
            false => patch.field("driver", DRIVER_IMPORTED),
        };
        let patch = match uid {
            Some(uid) => patch.field("kubeSystemUid", uid),
            None => patch,
        };
        let target = StatusTarget::of::<Cluster>("", cluster);
        let written = patch.write_if(&self.client, &target, |stored| {
            let free = is_free(stored, identity);
            refused.store(!free, Ordering::Relaxed);
            free
        });
        written.await.map_err(|error| Refusal::internal(error.chain()))?;
        if refused.load(Ordering::Relaxed) { Err(Refusal::token_used()) } else { Ok(()) }
    }
}

/// Whether `identity` may become the cluster's: none is there, it is there already, or it came with
/// a newer token. A cluster under removal takes none.
fn is_free(cluster: &Value, identity: &AgentIdentity) -> bool {
    let stored = &cluster["status"]["agentIdentity"];
    let removing = cluster["metadata"]["deletionTimestamp"].is_string();
    let same_key = stored["publicKey"] == json!(identity.public_key);
    let same_token = stored["tokenName"] == json!(identity.token_name);
    same_key || (!removing && (stored.is_null() || !same_token))
}

/// When the token ends; one without a readable time has ended.
pub(crate) fn expires_at(token: &ClusterRegistrationToken) -> SystemTime {
    let at = token.status.expires_at.parse::<jiff::Timestamp>();
    at.map_or(SystemTime::UNIX_EPOCH, SystemTime::from)
}

/// Gives back the key that is registered no more.
fn index_cluster(index: &mut Index, change: &Change<'_, Cluster>) -> Option<KeyId> {
    let registered = |cluster: &Cluster| {
        let identity = cluster.status.agent_identity.as_ref()?;
        identity.public_key.parse::<PublicKey>().ok()
    };
    let old = match change {
        Change::Applied { old, .. } => old.and_then(|old| registered(old)),
        Change::Deleted { old, .. } => registered(old),
    };
    let old = old.map(|key| key.id());
    if let Some(old) = &old {
        index.keys.remove(old);
        if index.replaced.len() >= REPLACED_KEYS_MAX {
            index.replaced.clear();
        }
        index.replaced.insert(old.clone());
    }
    if let Change::Applied { key, new, .. } = change
        && let Some(public_key) = registered(new)
    {
        index.replaced.remove(&public_key.id());
        index.keys.insert(public_key.id(), (key.name.clone(), public_key));
    }
    old.filter(|old| index.replaced.contains(old))
}

fn index_token(index: &mut Index, change: &Change<'_, ClusterRegistrationToken>) {
    let old = match change {
        Change::Applied { old, .. } => old.map(|old| old.status.token.clone()),
        Change::Deleted { old, .. } => Some(old.status.token.clone()),
    };
    if let Some(secret) = old {
        index.tokens.remove(&secret);
    }
    if let Change::Applied { key, new, .. } = change
        && !new.status.token.is_empty()
    {
        index.tokens.insert(new.status.token.clone(), (*key).clone());
    }
}

impl Registrar for AgentRegistrar {
    fn admit<'a>(&'a self, hello: &'a Hello) -> BoxFuture<'a, Result<Admission, Refusal>> {
        Box::pin(self.admit_agent(hello))
    }
    fn enrol<'a>(
        &'a self,
        hello: &'a Hello,
        admission: &'a Admission,
    ) -> BoxFuture<'a, Result<(), Refusal>> {
        Box::pin(async move {
            let registered = self.register(hello, admission).await;
            registered.inspect_err(|refusal| self.note(&admission.cluster, refusal, hello))
        })
    }
    fn claimed_cluster(&self, hello: &Hello) -> Option<tunnel::ClusterId> {
        let by_token = hello.token.as_ref().and_then(|token| self.token_record(token.reveal()));
        let by_token = by_token.map(|token| token.cluster);
        by_token.or_else(|| self.key_record(&hello.key).map(|key| key.cluster))
    }
    fn on_connect(&self, session: &SessionInfo) {
        // It was let in, and its key replaced before it was there to be cut.
        if self.is_replaced(session) {
            self.sessions.cut_key(&session.cluster, &session.key);
            return;
        }
        self.connections.clear(&session.cluster);
    }
    fn on_disconnect(&self, session: &SessionInfo, _cause: &str) {
        self.connections.clear(&session.cluster);
    }
    fn on_credential(&self, session: &SessionInfo, credential: ApiCredential) {
        if self.is_replaced(session) {
            return;
        }
        self.connections.report(&session.cluster, credential);
    }
    fn on_credential_problem(&self, session: &SessionInfo, trouble: &str) {
        if self.is_replaced(session) {
            return;
        }
        let trouble = &trouble[..trouble.floor_char_boundary(TROUBLE_MAX_BYTES)];
        let message = format!("the agent is connected, but: {trouble}");
        self.connections.obstruct(&session.cluster, Obstacle::new(NO_CREDENTIAL, message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_registers_one_key_and_a_newer_token_replaces_it() {
        let identity = |key: &str, token: &str| AgentIdentity {
            public_key: key.to_owned(),
            token_name: token.to_owned(),
            ..AgentIdentity::default()
        };
        let stored = json!({"metadata": {}, "status": {"agentIdentity":
            {"publicKey": "a", "tokenName": "t"}}});
        assert!(is_free(&json!({"metadata": {}}), &identity("a", "t")));
        assert!(is_free(&stored, &identity("a", "t")));
        assert!(!is_free(&stored, &identity("b", "t")));
        assert!(is_free(&stored, &identity("b", "newer")));
        let removing = json!({"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}});
        assert!(!is_free(&removing, &identity("a", "t")));
    }

    #[test]
    fn a_token_without_a_readable_end_has_ended() {
        let mut token = ClusterRegistrationToken::default();
        assert_eq!(expires_at(&token), SystemTime::UNIX_EPOCH);
        token.status.expires_at = "2999-01-01T00:00:00Z".to_owned();
        assert!(expires_at(&token) > SystemTime::now());
    }
}
