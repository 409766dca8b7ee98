//! One API server over embedded storage, with RBAC, custom resources and its own controllers.

use std::sync::Arc;

use apiserver::admission::AdmissionChain;
use apiserver::attributes::{GROUP_MASTERS, InvalidCredential};
use apiserver::authentication::{TokenAuthenticator, TokenUser};
use apiserver::authorization::follow::{self, RbacFollower};
use apiserver::authorization::{
    EscalationGuard, RbacAuthorizer, RuleResolver, bootstrap, rbac_resources,
};
use apiserver::{ApiServer, Authenticator, Authorizer, Registry, UserInfo};
use feature_kit::Clients;
use futures::future::BoxFuture;
use kube::Client;
use kubernetes_api::custom::DefinitionController;
use kubernetes_api::reviews::{ReviewSources, review_resources};
use kubernetes_api::service_range::ServiceRange;
use kubernetes_api::{controllers, kinds};
use storage::embedded::{EmbeddedConfig, EmbeddedStorage};
use tokio::task::JoinSet;

/// Which kinds the server has.
#[derive(Clone, Copy, Debug)]
pub enum Profile {
    /// The kinds of a management plane.
    Management,
    /// The kinds of a cluster.
    Cluster,
}

/// An API server in this process. Stops when it is dropped.
pub struct KubeApi {
    pub server: ApiServer,
    pub registry: Arc<Registry>,
    /// The authorizer over its RBAC objects.
    pub authorizer: Arc<dyn Authorizer>,
    _follower: RbacFollower,
    _definitions: DefinitionController,
    _controllers: JoinSet<()>,
    _folder: tempfile::TempDir,
}

/// Authenticates every request as the user in its extensions: these tests need no credentials.
struct Nobody;

impl Authenticator for Nobody {
    fn authenticate<'a>(
        &'a self,
        _: &'a http::request::Parts,
    ) -> BoxFuture<'a, Result<Option<UserInfo>, InvalidCredential>> {
        Box::pin(async { Ok(None) })
    }
}

impl TokenAuthenticator for Nobody {
    fn authenticate_token<'a>(
        &'a self,
        _: &'a str,
        _: &'a [String],
    ) -> BoxFuture<'a, Result<Option<TokenUser>, InvalidCredential>> {
        Box::pin(async { Ok(None) })
    }
}

impl KubeApi {
    /// Starts an API server with an empty storage, which a temporary folder holds.
    pub async fn start(profile: Profile) -> Arc<Self> {
        let folder = tempfile::tempdir().unwrap();
        let storage = EmbeddedStorage::open(folder.path(), EmbeddedConfig::default()).unwrap();
        let registry = Registry::start(storage, Arc::new(AdmissionChain::default())).await.unwrap();
        let rbac = Arc::new(RbacAuthorizer::default());
        let authorizer: Arc<dyn Authorizer> = rbac.clone();
        let rules: Arc<dyn RuleResolver> = rbac.clone();
        let guard = Arc::new(EscalationGuard::new(authorizer.clone(), rules.clone()));
        let reviews = ReviewSources {
            authorizer: authorizer.clone(),
            rules,
            tokens: Arc::new(Nobody),
            audiences: Vec::new(),
        };
        let mut kinds = match profile {
            Profile::Management => kinds::management_profile(),
            Profile::Cluster => kinds::full_profile(&std::sync::Arc::default()),
        };
        kinds::add_endpoints(&registry, &mut kinds);
        registry.install(kinds).await.unwrap();
        registry.install(rbac_resources(&guard)).await.unwrap();
        registry.install(review_resources(&reviews)).await.unwrap();
        let follower =
            follow::start(&registry, &rbac, bootstrap::management_policy()).await.unwrap();
        let definitions = DefinitionController::start(&registry).await.unwrap();
        let _ = controllers::bootstrap(&registry, ServiceRange::default()).await;
        let mut tasks = JoinSet::new();
        controllers::start(&registry, &Arc::default(), "", &mut tasks);
        let server = ApiServer::new(apiserver::server::Parts {
            registry: registry.clone(),
            authenticator: Arc::new(Nobody),
            authorizer: authorizer.clone(),
            git_version: "v1.36.3".to_owned(),
        });
        server.set_ready(true);
        Arc::new(Self {
            server,
            registry,
            authorizer,
            _follower: follower,
            _definitions: definitions,
            _controllers: tasks,
            _folder: folder,
        })
    }

    /// A client with all rights, like the server itself.
    pub fn admin(&self) -> Client {
        self.client_as("system:drover:server", &[GROUP_MASTERS.to_owned()])
    }
}

impl Clients for KubeApi {
    fn client_as(&self, user: &str, groups: &[String]) -> Client {
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        Client::new(self.server.as_user(UserInfo::new(user, &groups)), "default")
    }
}
