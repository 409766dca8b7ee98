//! The value a feature crate exports. Built once, at start.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::controller::{ControllerIdentity, DownstreamSpec, ManagementSpec};
use crate::kind::KindRules;
use crate::route::Route;
use crate::seed::Seed;
use crate::view::{ViewExtension, ViewSpec};
use cluster_access::proxy::WriteCheck;
use std::sync::Arc;

/// Everything that one feature adds to the server.
#[derive(Default)]
pub struct Feature {
    /// One lower-case word.
    pub name: &'static str,
    /// Rules of its kinds at admission.
    pub kinds: Vec<KindRules>,
    /// Objects that must exist from the start.
    pub seeds: Vec<Seed>,
    /// Controllers over the management API.
    pub management: Vec<ManagementSpec>,
    /// Controllers that run once per connected cluster.
    pub downstream: Vec<DownstreamSpec>,
    /// Identities that it uses beside those of its controllers and views.
    pub identities: Vec<ControllerIdentity>,
    /// Checks of writes before they are forwarded into clusters.
    pub write_checks: Vec<Arc<dyn WriteCheck>>,
    /// Paths that it serves itself.
    pub routes: Vec<Route>,
    /// Its kinds in the REST view.
    pub views: Vec<ViewSpec>,
    /// What it adds to kinds of other features there.
    pub view_extensions: Vec<ViewExtension>,
}

impl Feature {
    /// A feature without anything yet. `name`: one lower-case word.
    pub fn new(name: &'static str) -> Self {
        Self { name, ..Self::default() }
    }
    /// Adds a kind: its definition and its rules.
    pub fn kind<K: api_management::kind::ObjectRules>(self) -> Self {
        self.kind_with(KindRules::of::<K>())
    }
    /// Like [`Self::kind`], with additional rules.
    pub fn kind_with(mut self, rules: KindRules) -> Self {
        self.kinds.push(rules);
        self
    }
    /// The definitions of its kinds.
    pub fn crds(&self) -> impl Iterator<Item = CustomResourceDefinition> {
        self.kinds.iter().map(|rules| (rules.crd)())
    }
    /// Adds objects that every server creates at its start.
    pub fn seed(mut self, seeds: impl IntoIterator<Item = Seed>) -> Self {
        self.seeds.extend(seeds);
        self
    }
    /// Adds a controller over the management API.
    pub fn management(mut self, spec: ManagementSpec) -> Self {
        self.management.push(spec);
        self
    }
    /// Adds a controller that runs once per connected cluster.
    pub fn downstream(mut self, spec: DownstreamSpec) -> Self {
        self.downstream.push(spec);
        self
    }
    /// Adds an identity that no controller or view declares.
    pub fn identity(mut self, identity: ControllerIdentity) -> Self {
        self.identities.push(identity);
        self
    }
    /// Adds a check of writes into clusters.
    pub fn write_check(mut self, check: Arc<dyn WriteCheck>) -> Self {
        self.write_checks.push(check);
        self
    }
    /// Adds kinds to the REST view.
    pub fn view(mut self, spec: ViewSpec) -> Self {
        self.views.push(spec);
        self
    }
    /// Adds something to a kind of another feature in the REST view.
    pub fn extend_view(mut self, extension: ViewExtension) -> Self {
        self.view_extensions.push(extension);
        self
    }
    /// Adds a path.
    pub fn route(mut self, route: Route) -> Self {
        self.routes.push(route);
        self
    }
}
