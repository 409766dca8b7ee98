//! The features' rules as the API server's admission plugin.

use api_meta::status::{Cause, Status};
use apiserver::Resource;
use apiserver::admission::Plugin;
use apiserver::strategy::{Operation as Op, Write};
use feature_kit::{Feature, KindRules, Operation, Review};
use futures::future::BoxFuture;
use serde_json::Value;

/// See the module.
pub struct RulesPlugin(Vec<KindRules>);

impl RulesPlugin {
    pub fn new(features: &[Feature]) -> Self {
        Self(features.iter().flat_map(|feature| feature.kinds.clone()).collect())
    }
    fn rules(&self, resource: &Resource) -> Option<&KindRules> {
        self.0.iter().find(|r| r.group == resource.group && r.plural == resource.plural)
    }
}

fn operation(write: &Write<'_>) -> Operation {
    match write.operation {
        Op::Create => Operation::Create,
        Op::Update | Op::UpdateStatus | Op::Finalize => Operation::Update,
        Op::Delete => Operation::Delete,
    }
}

impl Plugin for RulesPlugin {
    fn handles(&self, resource: &Resource) -> bool {
        self.rules(resource).is_some()
    }
    fn prepare(
        &self,
        resource: &Resource,
        write: &Write<'_>,
        object: &mut Value,
        old: Option<&Value>,
    ) {
        if let Some(rules) = self.rules(resource) {
            rules.prepare(operation(write), &write.user.name, object, old);
        }
    }
    fn validate(
        &self,
        resource: &Resource,
        _: &Write<'_>,
        object: &Value,
        old: Option<&Value>,
    ) -> Vec<Cause> {
        self.rules(resource).map(|rules| rules.validate(object, old)).unwrap_or_default()
    }
    fn admit<'a>(
        &'a self,
        resource: &'a Resource,
        write: &'a Write<'a>,
        object: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let Some(rules) = self.rules(resource) else { return Ok(()) };
            let review = Review {
                operation: operation(write),
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
}
