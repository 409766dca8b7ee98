//! Assembles a whole server: the resources that it serves, authentication, authorization, and the
//! controllers that run beside it.
//!
//! There are two profiles: the kinds that a management plane needs, and the full API of a cluster.
//! The embedding program adds its own authenticators and token types.

use std::sync::Arc;

use api_meta::status::Status;
use apiserver::admission::AdmissionChain;
use apiserver::admission::policies::{self, kinds::PolicyGuard};
use apiserver::admission::webhooks;
use apiserver::aggregation::follow::start as follow_api_services;
use apiserver::aggregation::{self, Aggregation, FrontProxy};
use apiserver::attributes::Authenticator;
use apiserver::audit::{Audit, AuditSettings};
use apiserver::authentication::{
    BearerAuthenticator, BootstrapTokens, CertificateVerifier, TokenAuthenticator, TokenChain,
    UnionAuthenticator, X509Authenticator,
};
use apiserver::authorization::bootstrap::{cluster_policy, management_policy};
use apiserver::authorization::{EscalationGuard, RbacAuthorizer, follow, rbac_resources};
use apiserver::built_in_plugins::BuiltInPlugins;
use apiserver::connect::{self, Connector};
use apiserver::documents::{KEYS_PATH, OpenIdDocuments};
use apiserver::flow_control::FlowControl;
use apiserver::health::TaskCheck;
use apiserver::resource::Resource;
use apiserver::server::{ApiServer, Operations, Parts};
use apiserver::service_accounts::keys::openid_configuration;
use apiserver::service_accounts::{
    ServiceAccountTokens, SigningKey, TokenRequests, VerifyKeys, legacy, tracking,
};
use apiserver::tasks::WatchedTasks;
use apiserver::{Registry, flow_control};
use serde_json::Value;
use storage::{Storage, StorageError};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::reviews::{ReviewSources, review_resources};
use crate::service_range::ServiceRange;
use crate::{controllers, custom, kinds};

/// The Kubernetes version that the server reports in `/version`.
pub const GIT_VERSION: &str = "v1.36.3";
/// Issuer and default audience of service account tokens.
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// The set of built-in kinds that a server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// A subset of the core group, RBAC, leases, events, definitions, reviews.
    Management,
    /// Also workloads, networking and the kinds around them.
    Full,
}

/// Where the controllers run that reconcile namespaces, their contents, owned objects and token
/// Secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controllers {
    /// Controllers inside the server's process.
    Inside,
    /// A kube-controller-manager beside it.
    Outside,
}

/// The settings of a server, which [`Assembly::start`] assembles and runs.
pub struct Assembly {
    pub storage: Arc<dyn Storage>,
    pub profile: Profile,
    pub controllers: Controllers,
    /// Appended to [`GIT_VERSION`]: `+drover.1`.
    pub version_suffix: String,
    /// Tried before all other authenticators, in this order.
    pub authenticators: Vec<Arc<dyn Authenticator>>,
    /// Token authenticators that are tried before service account tokens.
    pub tokens: Vec<Arc<dyn TokenAuthenticator>>,
    /// Whether to accept bootstrap tokens: Secrets of that type in `kube-system`.
    pub bootstrap_tokens: bool,
    /// Token authenticators that are tried last. They may query other servers, which must not see
    /// the tokens that this server can verify itself.
    pub tokens_outside: Vec<Arc<dyn TokenAuthenticator>>,
    /// Client certificates are trusted when these authorities signed them. PEM.
    pub client_authorities_pem: Option<String>,
    /// Signs service account tokens; see [`SigningKey::generate_pem`].
    pub service_account_key_pem: String,
    /// The client certificate with which this server authenticates to aggregated API servers.
    /// Without it they do not accept the user names that this server sends.
    pub front_proxy: Option<FrontProxy>,
    /// The authority with which clients in pods verify the server: `kube-root-ca.crt`. PEM.
    pub root_ca_pem: String,
    /// Serves logs, commands and ports of pods. Without it these paths return 404.
    pub pods: Option<Arc<dyn Connector>>,
    /// Settings of the audit log; `None` records no requests.
    pub audit: Option<AuditSettings>,
    /// The admission plugins of Kubernetes that are enabled.
    pub built_in_plugins: BuiltInPlugins,
    /// The addresses that Services get.
    pub service_range: ServiceRange,
}

/// Why a server could not be assembled. Each variant is one failed step.
#[derive(Debug, thiserror::Error)]
pub enum AssemblyError {
    #[error("cannot read the storage")]
    Storage(#[from] StorageError),
    #[error("the key of service account tokens cannot be used: {0}")]
    Key(String),
    #[error("the client authorities cannot be used: {0}")]
    Authorities(String),
    #[error("cannot open the audit log: {0}")]
    Audit(std::io::Error),
    #[error("cannot write the initial objects: {0}")]
    Bootstrap(#[from] Status),
}

/// A running server and its background tasks, which end when this value is dropped.
pub struct Running {
    pub server: ApiServer,
    _flow_control: flow_control::follow::FlowControlFollower,
    _rbac: follow::RbacFollower,
    _webhooks: webhooks::follow::WebhookFollower,
    _policies: policies::follow::PolicyFollower,
    _definitions: custom::controller::DefinitionController,
    _addresses: Option<kinds::AddressFollower>,
    _api_services: aggregation::follow::ApiServiceFollower,
    _tasks: JoinSet<()>,
}

/// The authentication of requests, and what belongs to it.
struct Identities {
    authenticator: Arc<dyn Authenticator>,
    tokens: Arc<dyn TokenAuthenticator>,
    /// The audiences of tokens that are requested without any.
    audiences: Vec<String>,
    signing: Arc<SigningKey>,
    /// Receives the uses of tokens from Secrets.
    uses: mpsc::Receiver<tracking::Use>,
    openid: OpenIdDocuments,
}

impl Assembly {
    /// A server that reconciles its own objects and accepts only its service accounts' tokens.
    pub fn new(
        storage: Arc<dyn Storage>,
        profile: Profile,
        service_account_key_pem: String,
    ) -> Self {
        Self {
            storage,
            profile,
            controllers: Controllers::Inside,
            version_suffix: String::new(),
            authenticators: Vec::new(),
            tokens: Vec::new(),
            bootstrap_tokens: false,
            tokens_outside: Vec::new(),
            client_authorities_pem: None,
            service_account_key_pem,
            front_proxy: None,
            root_ca_pem: String::new(),
            pods: None,
            audit: None,
            built_in_plugins: BuiltInPlugins::default(),
            service_range: ServiceRange::default(),
        }
    }

    /// Starts the server. When it returns, stored definitions, roles and namespaces are served. The
    /// server is not yet marked ready.
    ///
    /// # Errors
    /// A stored object cannot be read, or a setting is not valid. The variant names the step.
    pub async fn start(mut self) -> Result<Running, AssemblyError> {
        let admission = Arc::new(AdmissionChain::default());
        let registry = Registry::start(self.storage.clone(), admission.clone()).await?;
        let aggregation = Arc::new(Aggregation::default());
        registry.set_built_in_plugins(self.built_in_plugins);
        let rbac = Arc::new(RbacAuthorizer::default());
        let identities = self.identities(&registry)?;
        let addresses = Arc::new(kinds::Addresses::new(self.service_range));
        let mut served = resources(self.profile, &registry, &rbac, &identities, &addresses);
        if self.pods.is_some() {
            connect::add_to_pods(&mut served);
        }
        registry.install(served).await?;
        let addresses = match self.profile {
            Profile::Management => None,
            Profile::Full => Some(kinds::follow_addresses(&registry, &addresses).await?),
        };

        controllers::bootstrap(&registry, self.service_range).await?;
        let rbac_follower = follow::start(&registry, &rbac, policy(self.profile)).await?;
        registry.set_authorizer(rbac.clone());
        let webhooks = webhooks::follow::start(&registry, &admission).await?;
        let policies = policies::follow::start(&registry, &admission).await?;
        if let Some(front_proxy) = &self.front_proxy {
            let authorities = self.client_authorities_pem.as_deref();
            aggregation::delegation::publish(&registry, front_proxy, authorities).await?;
        }
        let api_services = follow_api_services(&registry, &aggregation, self.front_proxy).await?;
        let definitions = custom::controller::DefinitionController::start(&registry).await?;
        let mut tasks = JoinSet::new();
        let tracking = tasks.spawn(tracking::record(registry.clone(), identities.uses));
        if self.controllers == Controllers::Inside {
            controllers::start(&registry, &aggregation, &self.root_ca_pem, &mut tasks);
            tasks.spawn(legacy::reconcile_secrets(
                registry.clone(),
                identities.signing,
                self.root_ca_pem,
            ));
        }
        let registration = tasks.spawn(aggregation::register::run(registry.clone()));

        let (operations, flow_follower) = operations(&registry, self.audit).await?;
        let tasks_to_check = task_checks([
            flow_follower.tasks(),
            definitions.tasks(),
            tracking.into(),
            rbac_follower.tasks(),
            api_services.tasks(),
            registration.into(),
        ]);
        let operations =
            Operations { connector: self.pods, aggregation, tasks: tasks_to_check, ..operations };
        let parts = Parts {
            registry,
            authenticator: identities.authenticator,
            authorizer: rbac,
            git_version: format!("{GIT_VERSION}{}", self.version_suffix),
        };
        let server = ApiServer::with(parts, operations);
        server.serve_openid(identities.openid);
        Ok(Running {
            server,
            _addresses: addresses,
            _flow_control: flow_follower,
            _rbac: rbac_follower,
            _webhooks: webhooks,
            _policies: policies,
            _definitions: definitions,
            _api_services: api_services,
            _tasks: tasks,
        })
    }

    fn identities(&mut self, registry: &Arc<Registry>) -> Result<Identities, AssemblyError> {
        let key_failed = |error: &dyn std::fmt::Display| AssemblyError::Key(error.to_string());
        let pem = self.service_account_key_pem.as_str();
        let signing = SigningKey::from_pem(pem).map_err(|error| key_failed(&error))?;
        let verify = VerifyKeys::from_pems([pem]).map_err(|error| key_failed(&error))?;
        let openid = OpenIdDocuments {
            configuration: openid_configuration(ISSUER, &format!("{ISSUER}{KEYS_PATH}")),
            keys: verify.jwks(),
        };
        let objects = Arc::new(Arc::downgrade(registry));
        let mut kinds = std::mem::take(&mut self.tokens);
        let (uses, uses_to_write) = tracking::channel();
        let accounts = ServiceAccountTokens::new(ISSUER, verify, objects.clone());
        kinds.push(Arc::new(accounts.reporting_uses(uses)));
        if self.bootstrap_tokens {
            kinds.push(Arc::new(BootstrapTokens::new(objects)));
        }
        kinds.append(&mut self.tokens_outside);
        let tokens: Arc<dyn TokenAuthenticator> = Arc::new(TokenChain::new(kinds));

        let mut members = std::mem::take(&mut self.authenticators);
        if let Some(pem) = &self.client_authorities_pem {
            let verifier = CertificateVerifier::new(pem)
                .map_err(|error| AssemblyError::Authorities(error.to_string()))?;
            members.push(Arc::new(X509Authenticator::new(Arc::new(verifier))));
        }
        let audiences = vec![ISSUER.to_owned()];
        members.push(Arc::new(BearerAuthenticator::new(tokens.clone(), audiences.clone())));
        Ok(Identities {
            authenticator: Arc::new(UnionAuthenticator::new(members, true)),
            tokens,
            audiences,
            signing: Arc::new(signing),
            uses: uses_to_write,
            openid,
        })
    }
}

/// The roles and bindings that a server of `profile` starts with.
fn policy(profile: Profile) -> Vec<Value> {
    match profile {
        Profile::Management => management_policy(),
        Profile::Full => cluster_policy(),
    }
}

/// The checks of the tasks that a live server needs, under the names that kube-apiserver gives
/// them.
fn task_checks(tasks: [WatchedTasks; 6]) -> Vec<TaskCheck> {
    let names = [
        "poststarthook/priority-and-fairness-config-consumer",
        "poststarthook/start-apiextensions-controllers",
        "poststarthook/start-legacy-token-tracking-controller",
        "poststarthook/rbac/bootstrap-roles",
        "poststarthook/apiservice-registration-controller",
        "poststarthook/kube-apiserver-autoregistration",
    ];
    let named = names.into_iter().zip(tasks);
    named.map(|(name, tasks)| TaskCheck { name, tasks }).collect()
}

/// All kinds of `profile` that are built in.
fn resources(
    profile: Profile,
    registry: &Arc<Registry>,
    rbac: &Arc<RbacAuthorizer>,
    identities: &Identities,
    addresses: &Arc<kinds::Addresses>,
) -> Vec<Resource> {
    let mut resources = match profile {
        Profile::Management => kinds::management_profile(),
        Profile::Full => kinds::full_profile(addresses),
    };
    kinds::add_scale(registry, &mut resources);
    kinds::add_endpoints(registry, &mut resources);
    if let Some(accounts) = resources.iter_mut().find(|r| r.plural == "serviceaccounts") {
        let objects = Arc::new(Arc::downgrade(registry));
        let (audiences, key) = (identities.audiences.clone(), identities.signing.clone());
        let requests = TokenRequests::new(ISSUER, audiences, key, objects);
        accounts.subresources.push(requests.subresource());
    }
    let guard = Arc::new(EscalationGuard::new(rbac.clone(), rbac.clone()));
    resources.extend(rbac_resources(&guard));
    let guard = Arc::new(PolicyGuard::new(rbac.clone(), registry));
    resources.extend(policies::kinds::policy_resources(&guard));
    resources.push(custom::definition_resource());
    resources.extend(review_resources(&ReviewSources {
        authorizer: rbac.clone(),
        rules: rbac.clone(),
        tokens: identities.tokens.clone(),
        audiences: identities.audiences.clone(),
    }));
    resources
}

/// The layers around each request, which use the stored objects.
async fn operations(
    registry: &Arc<Registry>,
    audit: Option<AuditSettings>,
) -> Result<(Operations, flow_control::follow::FlowControlFollower), AssemblyError> {
    let metrics = registry.metrics().clone();
    let control = FlowControl::new(metrics.clone());
    let follower = flow_control::follow::start(registry, &control).await?;
    let audit = audit.map(|settings| Audit::open(settings, metrics).map(Arc::new));
    let audit = audit.transpose().map_err(AssemblyError::Audit)?;
    let operations = Operations { flow_control: Some(control), audit, ..Operations::default() };
    Ok((operations, follower))
}
