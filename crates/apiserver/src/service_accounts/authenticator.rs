//! From a service account's token to its identity.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use api_meta::object::ObjectExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde::Deserialize as _;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;

use super::claims::{Bound, Claims};
use super::keys::{TokenError, VerifyKeys};
use super::tracking::{self, Use};
use super::{CoreObjects, groups, legacy, user_name};
use crate::attributes::{InvalidCredential, UserInfo};
use crate::authentication::certificates::CREDENTIAL_ID;
use crate::authentication::{TokenAuthenticator, TokenUser};

/// Tokens whose signatures are remembered. Agents and controllers send the same one with each request, and verifying it
/// costs more than a small request otherwise.
const REMEMBERED_MAX: usize = 1024;

/// Knows the tokens that this server has issued.
pub struct ServiceAccountTokens {
    issuer: String,
    keys: VerifyKeys,
    /// The claims of tokens whose signature holds, by the token's SHA-256. Everything else about them is checked anew
    /// each time.
    remembered: Mutex<HashMap<[u8; 32], Arc<Value>>>,
    objects: Arc<dyn CoreObjects>,
    uses: Option<mpsc::Sender<Use>>,
}

impl ServiceAccountTokens {
    /// Accepts tokens of `issuer` signed by one of `keys`, while the account and what the token is
    /// bound to are found in `objects`.
    pub fn new(issuer: &str, keys: VerifyKeys, objects: Arc<dyn CoreObjects>) -> Self {
        Self { issuer: issuer.to_owned(), keys, remembered: Mutex::default(), objects, uses: None }
    }

    /// Tells `uses` which tokens of Secrets are used.
    #[must_use]
    pub fn telling(mut self, uses: mpsc::Sender<Use>) -> Self {
        self.uses = Some(uses);
        self
    }

    /// Whose a token is at `now` (unix seconds).
    ///
    /// # Errors
    /// As [`TokenAuthenticator::authenticate_token`].
    pub async fn identify(
        &self,
        token: &str,
        audiences: &[String],
        now: i64,
    ) -> Result<Option<TokenUser>, InvalidCredential> {
        let claims = match self.verify(token) {
            Ok(claims) => claims,
            Err(TokenError::NotOurs) => return Ok(None),
            Err(TokenError::BadSignature) => return Err(InvalidCredential),
        };
        let issuer = claims["iss"].as_str().unwrap_or_default();
        if issuer == legacy::ISSUER {
            let (user, secret) = legacy::identify(&*self.objects, &claims, token).await?;
            if let Some(uses) = &self.uses {
                tracking::tell(uses, &secret, now);
            }
            return Ok(Some(TokenUser { user, audiences: audiences.to_vec() }));
        }
        if issuer != self.issuer {
            return Ok(None);
        }
        let claims = Claims::deserialize(&*claims).map_err(|_| InvalidCredential)?;
        let meant: Vec<String> =
            audiences.iter().filter(|wanted| claims.aud.contains(wanted)).cloned().collect();
        let subject =
            user_name(&claims.kubernetes.namespace, &claims.kubernetes.serviceaccount.name);
        if !claims.is_valid_at(now) || claims.sub != subject || meant.is_empty() {
            return Err(InvalidCredential);
        }
        self.check_bound(&claims).await?;
        Ok(Some(TokenUser { user: user(&claims), audiences: meant }))
    }

    /// As [`VerifyKeys::verify`], which happens once for each token. The keys are the same for as long as this lives.
    fn verify(&self, token: &str) -> Result<Arc<Value>, TokenError> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        if let Some(known) = self.remembered.lock().get(&digest) {
            return Ok(known.clone());
        }
        let claims = Arc::new(self.keys.verify(token)?);
        let mut remembered = self.remembered.lock();
        if remembered.len() >= REMEMBERED_MAX {
            remembered.clear();
        }
        remembered.insert(digest, claims.clone());
        Ok(claims)
    }

    /// The account and everything the token is bound to exist, and are not others of the same name.
    async fn check_bound(&self, claims: &Claims) -> Result<(), InvalidCredential> {
        let kubernetes = &claims.kubernetes;
        let namespace = kubernetes.namespace.as_str();
        let bound = [
            ("serviceaccounts", namespace, Some(&kubernetes.serviceaccount)),
            ("pods", namespace, kubernetes.pod.as_ref()),
            ("secrets", namespace, kubernetes.secret.as_ref()),
            // A pod's token names the pod's node for information only; a node's own token is bound
            // to it.
            ("nodes", "", kubernetes.node.as_ref().filter(|_| kubernetes.pod.is_none())),
        ];
        for (plural, namespace, wanted) in bound {
            let Some(wanted) = wanted else { continue };
            let found = self.objects.get(plural, namespace, &wanted.name).await;
            if !found.is_some_and(|object| is(&object, wanted)) {
                return Err(InvalidCredential);
            }
        }
        Ok(())
    }
}

fn is(object: &Value, wanted: &Bound) -> bool {
    // Deletion takes a while; a token of something that goes is no longer good.
    object.uid() == wanted.uid && !object.is_terminating()
}

fn user(claims: &Claims) -> UserInfo {
    let kubernetes = &claims.kubernetes;
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut tell = |key: &str, value: &str| {
        if !value.is_empty() {
            extra.insert(key.to_owned(), vec![value.to_owned()]);
        }
    };
    if !claims.jti.is_empty() {
        tell(CREDENTIAL_ID, &format!("JTI={}", claims.jti));
    }
    for (kind, bound) in [("pod", &kubernetes.pod), ("node", &kubernetes.node)] {
        if let Some(bound) = bound {
            tell(&format!("authentication.kubernetes.io/{kind}-name"), &bound.name);
            tell(&format!("authentication.kubernetes.io/{kind}-uid"), &bound.uid);
        }
    }
    UserInfo {
        name: claims.sub.clone(),
        uid: kubernetes.serviceaccount.uid.clone(),
        groups: groups(&kubernetes.namespace).to_vec(),
        extra,
    }
}

impl TokenAuthenticator for ServiceAccountTokens {
    fn authenticate_token<'a>(
        &'a self,
        token: &'a str,
        audiences: &'a [String],
    ) -> BoxFuture<'a, Result<Option<TokenUser>, InvalidCredential>> {
        Box::pin(self.identify(token, audiences, jiff::Timestamp::now().as_second()))
    }
}
