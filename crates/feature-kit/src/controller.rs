//! Controllers as features declare them, each with an identity of its own and the rights that it
//! needs.

use std::sync::Arc;

use api_management::{PolicyRule, ids};
use controller::{DownstreamController, DownstreamScope};
use futures::future::BoxFuture;
use kube::Client;

use crate::context::ManagementContext;

/// Group of the identities of all controllers.
pub const GROUP_CONTROLLERS: &str = "drover:controllers";
/// Prefix of the user names of controllers.
pub const USER_PREFIX: &str = "system:drover:controller:";
/// Name of the identity that watches on behalf of all controllers.
pub const REFLECTORS: &str = "reflectors";
/// Name of the identity that watches for the change feed.
pub const FEED: &str = "change-feed";

/// The identity of a controller in the management API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerIdentity {
    /// Kebab case.
    pub name: &'static str,
    /// What it may do there. Never a right on the spec of Drover's kinds: reads come from shared
    /// watches, writes go to `…/status` and to dependants.
    pub rules: Vec<PolicyRule>,
    /// What it may do in single namespaces of the management cluster.
    pub rules_within: Vec<(&'static str, PolicyRule)>,
}

impl ControllerIdentity {
    /// An identity with these rules. `name` in kebab case.
    pub fn new(name: &'static str, rules: Vec<PolicyRule>) -> Self {
        Self { name, rules, rules_within: Vec::new() }
    }
    /// Adds a rule for one namespace only. The namespace must be a seed, or one that every API
    /// server has.
    pub fn within(mut self, namespace: &'static str, rule: PolicyRule) -> Self {
        self.rules_within.push((namespace, rule));
        self
    }
    /// Its user name in the management API.
    pub fn user(&self) -> String {
        format!("{USER_PREFIX}{}", self.name)
    }
}

type Start = dyn Fn(ManagementContext, Client) -> BoxFuture<'static, ()> + Send + Sync;
type Build = dyn Fn(&ManagementContext, Client) -> Arc<dyn DownstreamController> + Send + Sync;

/// A controller over the management API.
#[derive(Clone)]
pub struct ManagementSpec {
    /// The identity of its client.
    pub identity: ControllerIdentity,
    /// Runs until `scope.stop` is cancelled. The client acts as the identity.
    pub start: Arc<Start>,
}

impl ManagementSpec {
    /// A controller that runs `start`, which must return soon after `scope.stop` is cancelled. It
    /// is started again when it returns earlier.
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
    /// The identity of its client of the management API.
    pub identity: ControllerIdentity,
    /// Makes the controller of one cluster. The client acts as the identity *in the management
    /// API*; the downstream client comes with the scope.
    pub build: Arc<Build>,
}

impl DownstreamSpec {
    /// A controller that `build` makes once for each connected cluster.
    pub fn new(
        identity: ControllerIdentity,
        build: impl Fn(&ManagementContext, Client) -> Arc<dyn DownstreamController>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self { identity, build: Arc::new(build) }
    }
    /// Leaves out the cluster `local`, which is the server itself.
    pub fn except_local(self) -> Self {
        let build = self.build;
        let except = move |context: &ManagementContext, client| -> Arc<dyn DownstreamController> {
            Arc::new(ExceptLocal(build(context, client)))
        };
        Self { identity: self.identity, build: Arc::new(except) }
    }
}

struct ExceptLocal(Arc<dyn DownstreamController>);

impl DownstreamController for ExceptLocal {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn run(&self, scope: DownstreamScope) -> BoxFuture<'static, ()> {
        match scope.cluster == ids::LOCAL_CLUSTER {
            true => Box::pin(async {}),
            false => self.0.run(scope),
        }
    }
}
