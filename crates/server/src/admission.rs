//! The features' rules as admission rules of the embedded API server, and what becomes of
//! credentials.

use std::collections::HashMap;
use std::sync::Arc;

use api_meta::status::{Cause, Status};
use apiserver::Resource;
use apiserver::registry::admission::{Held, Plugin, TakenValues};
use apiserver::strategy::{Operation, Write};
use feature_kit::{CredentialStore, Feature, KindRules, Review, ReviewOperation};
use futures::future::BoxFuture;
use serde_json::Value;

/// The rules of all features' kinds, by plural.
pub struct FeatureRules {
    kinds: HashMap<&'static str, KindRules>,
    credentials: Arc<CredentialStore>,
}

impl FeatureRules {
    /// `credentials`: where those of all objects go.
    pub fn new(features: &[Feature], credentials: Arc<CredentialStore>) -> Self {
        let rules = features.iter().flat_map(|feature| &feature.kinds);
        let kinds = rules.map(|rules| (rules.plural, rules.clone())).collect();
        Self { kinds, credentials }
    }

    fn of(&self, resource: &Resource) -> Option<&KindRules> {
        self.kinds.get(resource.plural.as_str()).filter(|rules| rules.group == resource.group)
    }
}

fn review_operation(operation: Operation) -> ReviewOperation {
    match operation {
        Operation::Create => ReviewOperation::Create,
        Operation::Update | Operation::UpdateStatus | Operation::Finalize | Operation::Part(_) => {
            ReviewOperation::Update
        }
        Operation::Delete => ReviewOperation::Delete,
    }
}

impl Plugin for FeatureRules {
    fn handles(&self, resource: &Resource) -> bool {
        self.of(resource).is_some()
    }

    fn prepare(
        &self,
        resource: &Resource,
        write: &Write<'_>,
        object: &mut Value,
        old: Option<&Value>,
    ) {
        if let Some(rules) = self.of(resource) {
            rules.prepare(review_operation(write.operation), &write.user.name, object, old);
        }
    }

    fn validate(
        &self,
        resource: &Resource,
        _write: &Write<'_>,
        object: &Value,
        old: Option<&Value>,
    ) -> Vec<Cause> {
        self.of(resource).map(|rules| rules.validate(object, old)).unwrap_or_default()
    }

    fn admit<'a>(
        &'a self,
        resource: &'a Resource,
        write: &'a Write<'a>,
        object: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let Some(rules) = self.of(resource) else { return Ok(()) };
            let review = Review {
                operation: review_operation(write.operation),
                user: &write.user.name,
                groups: &write.user.groups,
                namespace: write.namespace,
                name: write.name,
                dry_run: write.dry_run,
                object,
                old,
            };
            rules.admit(&review).await
        })
    }

    fn take_out<'a>(
        &'a self,
        resource: &'a Resource,
        object: &'a mut Value,
        old: Option<&'a Value>,
        taken: &'a mut TakenValues,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(self.credentials.take_out(&resource.kind, object, old, &mut taken.0))
    }

    fn store_taken<'a>(
        &'a self,
        resource: &'a Resource,
        object: &'a Value,
        old: Option<&'a Value>,
        taken: &'a TakenValues,
    ) -> BoxFuture<'a, Result<Option<Held>, Status>> {
        Box::pin(async move {
            let names = (resource.kind.as_str(), resource.plural.as_str());
            let held = self.credentials.store(names, object, old, &taken.0).await?;
            Ok(held.map(|held| Box::new(held) as Held))
        })
    }

    fn on_deleted(&self, resource: &Resource, object: &Value) {
        self.credentials.object_deleted(&resource.kind, &resource.plural, object);
    }
}
