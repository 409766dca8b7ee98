//! Controllers as features declare them, each with an identity of its own and the rights that needs.

use std::sync::Arc;

use api_management::PolicyRule;
use controller::DownstreamController;
use futures::future::BoxFuture;
use kube::Client;

use crate::context::ManagementContext;

/// Group of all controllers' identities.
pub const GROUP_CONTROLLERS: &str = "drover:controllers";
/// Prefix of their names.
pub const USER_PREFIX: &str = "system:drover:controller:";
/// Name of the identity that watches on behalf of all of them.
pub const REFLECTORS: &str = "reflectors";
/// Name of the identity that watches for the change feed.
pub const FEED: &str = "change-feed";

/// Who a controller is to the management API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerIdentity {
    /// Kebab case.
    pub name: &'static str,
    /// What it may do there. Never a right on the spec of our kinds: reads come from shared watches,
    /// writes go to `…/status` and to dependants.
    pub rules: Vec<PolicyRule>,
    /// What it may do in one namespace of the management cluster only.
    pub rules_within: Vec<(&'static str, PolicyRule)>,
}

impl ControllerIdentity {
    pub fn new(name: &'static str, rules: Vec<PolicyRule>) -> Self {
        Self { name, rules, rules_within: Vec::new() }
    }
    /// Adds a rule that holds in one namespace only. The namespace must be a seed, or one that every
    /// API server has.
    pub fn within(mut self, namespace: &'static str, rule: PolicyRule) -> Self {
        self.rules_within.push((namespace, rule));
        self
    }
    pub fn user(&self) -> String {
        format!("{USER_PREFIX}{}", self.name)
    }
}

type Start = dyn Fn(ManagementContext, Client) -> BoxFuture<'static, ()> + Send + Sync;
type Build = dyn Fn(&ManagementContext, Client) -> Arc<dyn DownstreamController> + Send + Sync;

/// A controller over the management API.
#[derive(Clone)]
pub struct ManagementSpec {
    pub identity: ControllerIdentity,
    /// Runs until `scope.stop`. The client acts as the identity.
    pub start: Arc<Start>,
}

impl ManagementSpec {
    pub fn new<F>(
        identity: ControllerIdentity,
        start: impl Fn(ManagementContext, Client) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let start =
            move |context, client| -> BoxFuture<'static, ()> { Box::pin(start(context, client)) };
        Self { identity, start: Arc::new(start) }
    }
}

/// A controller that runs once per connected cluster.
#[derive(Clone)]
pub struct DownstreamSpec {
    pub identity: ControllerIdentity,
    /// The client acts as the identity *in the management API*; the downstream one comes with the
    /// scope.
    pub build: Arc<Build>,
}

impl DownstreamSpec {
    pub fn new(
        identity: ControllerIdentity,
        build: impl Fn(&ManagementContext, Client) -> Arc<dyn DownstreamController>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self { identity, build: Arc::new(build) }
    }
}
