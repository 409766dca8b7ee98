//! Authenticates the tokens of service accounts.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde::Deserialize as _;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;

use super::claims::Claims;
use super::keys::{TokenError, VerifyKeys};
use super::tracking::{self, Use};
use super::{CoreObjects, groups, legacy, user_name};
use crate::attributes::{InvalidCredential, UserInfo};
use crate::authentication::certificates::CREDENTIAL_ID;
use crate::authentication::{TokenAuthenticator, TokenUser};

/// Tokens whose signatures are cached. Agents and controllers send the same token with each
/// request, and verifying it costs more than the rest of a small request.
const REMEMBERED_MAX: usize = 1024;

/// Authenticates the tokens that this server has issued.
pub struct ServiceAccountTokens {
    issuer: String,
    keys: VerifyKeys,
    /// The claims of tokens with a valid signature, by SHA-256 of the token. Everything else about
    /// them is checked each time.
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

    /// Reports to `uses` which tokens of Secrets are used.
    #[must_use]
    pub fn reporting_uses(mut self, uses: mpsc::Sender<Use>) -> Self {
        self.uses = Some(uses);
        self
    }

    /// The identity of a token at `now` (unix seconds), for any of `audiences`; `None` when another
    /// issuer made it.
    ///
    /// # Errors
    /// Those of [`TokenAuthenticator::authenticate_token`].
    pub async fn identify(
        &self,
        token: &str,
        audiences: &[String],
        now: i64,
    ) -> Result<Option<TokenUser>, InvalidCredential> {
        let claims = match self.verify(token) {
            Ok(claims) => claims,
            Err(TokenError::Unrecognized) => return Ok(None),
            Err(TokenError::BadSignature) => return Err(InvalidCredential),
        };
        let issuer = claims["iss"].as_str().unwrap_or_default();
        if issuer == legacy::ISSUER {
            let (user, secret) = legacy::identify(&*self.objects, &claims, token).await?;
            if let Some(uses) = &self.uses {
                tracking::report_use(uses, &secret, now);
            }
            return Ok(Some(TokenUser { user, audiences: audiences.to_vec() }));
        }
        if issuer != self.issuer {
            return Ok(None);
        }
        let claims = Claims::deserialize(&*claims).map_err(|_| InvalidCredential)?;
        let meant: Vec<String> =
            audiences.iter().filter(|audience| claims.aud.contains(audience)).cloned().collect();
        let subject =
            user_name(&claims.kubernetes.namespace, &claims.kubernetes.serviceaccount.name);
        if !claims.is_valid_at(now) || claims.sub != subject || meant.is_empty() {
            return Err(InvalidCredential);
        }
        self.check_bound(&claims).await?;
        Ok(Some(TokenUser { user: user(&claims), audiences: meant }))
    }

    /// [`VerifyKeys::verify`], once for each token. The keys never change during the life of this
    /// value.
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

    /// Checks that the account and every object the token is bound to exist, and are not new
    /// objects of the same name.
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
        for (plural, namespace, expected) in bound {
            let Some(expected) = expected else { continue };
            // Deletion takes a while; tokens of a terminating object are invalid.
            if !self.objects.is_alive(plural, namespace, &expected.name, &expected.uid).await {
                return Err(InvalidCredential);
            }
        }
        Ok(())
    }
}

fn user(claims: &Claims) -> UserInfo {
    let kubernetes = &claims.kubernetes;
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut insert = |key: &str, value: &str| {
        if !value.is_empty() {
            extra.insert(key.to_owned(), vec![value.to_owned()]);
        }
    };
    if !claims.jti.is_empty() {
        insert(CREDENTIAL_ID, &format!("JTI={}", claims.jti));
    }
    for (kind, bound) in [("pod", &kubernetes.pod), ("node", &kubernetes.node)] {
        if let Some(bound) = bound {
            insert(&format!("authentication.kubernetes.io/{kind}-name"), &bound.name);
            insert(&format!("authentication.kubernetes.io/{kind}-uid"), &bound.uid);
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
