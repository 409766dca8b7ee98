//! The value a feature crate exports. Built once, at start.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::controller::{ControllerIdentity, DownstreamSpec, ManagementSpec};
use crate::kind::KindRules;
use crate::route::Route;
use crate::seed::Seed;
use crate::view::ViewSpec;
use cluster_access::proxy::WriteCheck;
use std::sync::Arc;

/// All that one feature adds to the server.
#[derive(Default)]
pub struct Feature {
    /// One lower-case word.
    pub name: &'static str,
    /// Rules of its kinds at admission.
    pub kinds: Vec<KindRules>,
    /// Objects that must be there from the start.
    pub seeds: Vec<Seed>,
    /// Controllers over the management API.
    pub management: Vec<ManagementSpec>,
    /// Controllers that run once per connected cluster.
    pub downstream: Vec<DownstreamSpec>,
    /// Identities it acts under beside its controllers' and views'.
    pub identities: Vec<ControllerIdentity>,
    /// What it checks of writes before they go into clusters.
    pub write_checks: Vec<Arc<dyn WriteCheck>>,
    /// Paths it answers itself.
    pub routes: Vec<Route>,
    /// Its kinds in the REST view.
    pub views: Vec<ViewSpec>,
}

impl Feature {
    pub fn new(name: &'static str) -> Self {
        Self { name, ..Self::default() }
    }
    /// A kind of ours: its definition and its rules.
    pub fn kind<K: api_management::kind::Rules>(self) -> Self {
        self.kind_with(KindRules::of::<K>())
    }
    /// As [`Self::kind`], with rules that were added to.
    pub fn kind_with(mut self, rules: KindRules) -> Self {
        self.kinds.push(rules);
        self
    }
    /// The definitions of its kinds, made anew.
    pub fn crds(&self) -> impl Iterator<Item = CustomResourceDefinition> {
        self.kinds.iter().map(|rules| (rules.crd)())
    }
    pub fn seed(mut self, seeds: impl IntoIterator<Item = Seed>) -> Self {
        self.seeds.extend(seeds);
        self
    }
    pub fn management(mut self, spec: ManagementSpec) -> Self {
        self.management.push(spec);
        self
    }
    pub fn downstream(mut self, spec: DownstreamSpec) -> Self {
        self.downstream.push(spec);
        self
    }
    pub fn identity(mut self, identity: ControllerIdentity) -> Self {
        self.identities.push(identity);
        self
    }
    pub fn write_check(mut self, check: Arc<dyn WriteCheck>) -> Self {
        self.write_checks.push(check);
        self
    }
    pub fn view(mut self, spec: ViewSpec) -> Self {
        self.views.push(spec);
        self
    }
    pub fn route(mut self, route: Route) -> Self {
        self.routes.push(route);
        self
    }
}
