//! What providers gave at a login to read the user anew later: one Secret per user, in a namespace
//! of their own, with a key per provider.

use std::collections::BTreeMap;

use api_management::{User, keys};
use controller::{Attempt, ReconcileError, ensure};
use feature_kit::ownership::owner_reference;
use identity::Secret as Hidden;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::ObjectMeta;

use crate::directory::Directory;

impl Directory {
    fn grants(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), keys::LOGIN_GRANTS_NS)
    }

    /// The grant of the user's last login through the provider; none if the provider gave none.
    ///
    /// # Errors
    /// The API refused.
    pub(crate) async fn stored_grant(
        &self,
        user_id: &str,
        provider: &str,
    ) -> Result<Option<Hidden>, ReconcileError> {
        let secret = self.grants().get_opt(user_id).await;
        let secret = secret.attempt(|| format!("read the grants of user \"{user_id}\""))?;
        let value = secret.and_then(|secret| secret.data?.remove(provider));
        Ok(value.and_then(|value| String::from_utf8(value.0).ok()).map(Hidden::new))
    }

    /// Stores the grant of a login; it goes when the user goes.
    ///
    /// # Errors
    /// The API refused.
    pub(crate) async fn store_grant(
        &self,
        user: &User,
        provider: &str,
        grant: &Hidden,
    ) -> Result<(), ReconcileError> {
        let value = ByteString(grant.expose().as_bytes().to_vec());
        let secret = Secret {
            metadata: ObjectMeta {
                name: user.metadata.name.clone(),
                namespace: Some(keys::LOGIN_GRANTS_NS.to_owned()),
                owner_references: Some(vec![owner_reference(user)]),
                ..ObjectMeta::default()
            },
            data: Some(BTreeMap::from([(provider.to_owned(), value)])),
            ..Secret::default()
        };
        // Those of other providers stay.
        ensure::like(&self.grants(), &secret).await.map(drop)
    }
}
