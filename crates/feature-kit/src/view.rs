//! The kinds of a feature in the REST view `/v3`: descriptors and their stores.

mod dynamic;
mod with_namespace;

use std::sync::Arc;

use api_management::kind::Kind;
use api_management::{Cluster, GROUP, KindScope, Project, VERSION};
use kube::Client;
use rest_view::{ApiVersion, Descriptor, Feed, KubeResource, KubeStore, RestView, Store};

pub use with_namespace::with_namespace;

use crate::context::ManagementContext;
use crate::controller::ControllerIdentity;
use crate::credentials::revealing;
use crate::feature::Feature;
use crate::rbac::{feed_identity, reflector_identity};

/// Path of the version that is open without a login.
pub const PUBLIC: &str = "/v3-public";
type Extend = dyn Fn(Descriptor) -> Descriptor + Send + Sync;
type Build = dyn Fn(&ManagementContext, Option<Client>) -> Vec<Descriptor> + Send + Sync;

/// Descriptors of a feature, built once at start.
#[derive(Clone)]
pub struct ViewSpec {
    /// Acts for what an action does beyond the rights of the caller.
    pub identity: Option<ControllerIdentity>,
    build: Arc<Build>,
}

impl ViewSpec {
    /// Descriptors that need only the rights of the caller.
    pub fn new(
        build: impl Fn(&ManagementContext) -> Vec<Descriptor> + Send + Sync + 'static,
    ) -> Self {
        Self { identity: None, build: Arc::new(move |context, _| build(context)) }
    }
    /// Descriptors whose actions also act as `identity`. Such an action must check itself what its
    /// caller may request.
    pub fn acting_as(
        identity: ControllerIdentity,
        build: impl Fn(&ManagementContext, Client) -> Vec<Descriptor> + Send + Sync + 'static,
    ) -> Self {
        let build = move |context: &ManagementContext, client: Option<Client>| {
            client.map(|client| build(context, client)).unwrap_or_default()
        };
        Self { identity: Some(identity), build: Arc::new(build) }
    }

    /// Builds the descriptors.
    pub fn descriptors(&self, context: &ManagementContext) -> Vec<Descriptor> {
        let client = self.identity.as_ref().map(|id| context.clients.controller(id));
        (self.build)(context, client)
    }
}

/// Links and actions that a feature adds to a type of another one.
#[derive(Clone)]
pub struct ViewExtension {
    type_id: &'static str,
    extend: Arc<Extend>,
}

impl ViewExtension {
    /// `extend` gets the descriptor of the type `type_id`.
    pub fn new(
        type_id: &'static str,
        extend: impl Fn(Descriptor) -> Descriptor + Send + Sync + 'static,
    ) -> Self {
        Self { type_id, extend: Arc::new(extend) }
    }
}

/// The versions of the REST view.
pub fn api_versions() -> Vec<ApiVersion> {
    vec![
        ApiVersion::new(GROUP, VERSION, "/v3"),
        ApiVersion::new("cluster.cattle.io", "v3", "/v3/cluster").inside("cluster"),
        ApiVersion::new("project.cattle.io", "v3", "/v3/project").inside("project"),
        ApiVersion::new(GROUP, "v3public", PUBLIC).public(),
    ]
}

/// The REST view over the kinds of all features, with the change feed. Must be called inside a
/// tokio runtime.
pub fn rest_view(features: &[Feature], context: &ManagementContext) -> RestView {
    let specs = features.iter().flat_map(|feature| &feature.views);
    let watching = context.clients.controller(&feed_identity());
    let connections = context.connections.clone();
    let clusters = move |cluster: &str| connections.client(cluster);
    let extensions = || features.iter().flat_map(|feature| &feature.view_extensions);
    let found = specs.flat_map(|spec| spec.descriptors(context)).map(|found| {
        let own: Vec<_> = extensions().filter(|added| added.type_id == found.id).collect();
        own.into_iter().fold(found, |found, added| (added.extend)(found))
    });
    let found = found.map(|found| revealing::descriptor(found, &context.credentials));
    let view = RestView::new(api_versions(), found)
        .with_server(context.clients.controller(&reflector_identity()))
        .with_feed(Feed::new(watching, context.scope.stop.clone()).reaching(clusters));
    dynamic::follow(view.types(), context.scope.reflectors.get(), context.scope.stop.clone());
    view
}

/// The resource of objects of `K` in the management API.
pub fn resource_of<K: Kind>() -> KubeResource {
    KubeResource::new(GROUP, VERSION, K::PLURAL, K::KIND, K::SCOPE == KindScope::Namespaced)
}

/// The store of a kind in the namespaces of clusters: callers who may not list all of them get the
/// objects in the clusters that they may see.
pub fn in_clusters<K: Kind>() -> Arc<dyn Store> {
    Arc::new(KubeStore::new(resource_of::<K>()).in_namespaces_of(resource_of::<Cluster>()))
}

/// The store of a resource in the namespaces of projects: callers who may not list all of them get
/// the objects in the projects that they may see.
pub fn in_projects(resource: KubeResource) -> Arc<dyn Store> {
    let projects = KubeStore::new(resource_of::<Project>());
    let projects = projects.in_namespaces_of(resource_of::<Cluster>());
    Arc::new(KubeStore::new(resource).in_namespaces_of(projects))
}
