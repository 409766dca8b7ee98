//! Puts a whole server together: which resources it serves, who is believed, who may, what runs
//! beside.
//!
//! Two profiles: what a management plane needs, and the full API of a cluster. The embedding
//! program adds authenticators and token kinds of its own.

use std::sync::Arc;

use api_meta::status::Status;
use apiserver::admission::AdmissionChain;
use apiserver::admission::policies::{self, kinds::PolicyGuard};
use apiserver::admission::webhooks;
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
use apiserver::reviews::{ReviewSources, review_resources};
use apiserver::server::{ApiServer, Operations, Parts};
use apiserver::service_accounts::keys::openid_configuration;
use apiserver::service_accounts::{
    ServiceAccountTokens, SigningKey, TokenRequests, VerifyKeys, legacy, tracking,
};
use apiserver::service_range::ServiceRange;
use apiserver::{Registry, controllers, custom, flow_control};
use storage::{Storage, StorageError};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::kinds;

/// The version of Kubernetes that the server answers as.
pub const GIT_VERSION: &str = "v1.36.3";
/// Issuer and default audience of service account tokens.
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// Which built-in kinds are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Core subset, RBAC, leases, events, definitions, reviews.
    Management,
    /// Also workloads, networking and the kinds around them.
    Full,
}

/// Who keeps namespaces, what each of them holds, owned objects and token Secrets in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controllers {
    /// Controllers inside the server's process.
    Inside,
    /// A kube-controller-manager beside it.
    Outside,
}

/// What a server is put together from.
pub struct Assembly {
    pub storage: Arc<dyn Storage>,
    pub profile: Profile,
    pub controllers: Controllers,
    /// Appended to [`GIT_VERSION`]: `+drover.1`.
    pub version_suffix: String,
    /// Asked first.
    pub authenticators: Vec<Arc<dyn Authenticator>>,
    /// Kinds of bearer tokens that are looked at before service account tokens.
    pub tokens: Vec<Arc<dyn TokenAuthenticator>>,
    /// Believe bootstrap tokens: Secrets of that type in `kube-system`.
    pub bootstrap_tokens: bool,
    /// Kinds of bearer tokens that are asked last: those that ask somebody else are not shown the
    /// tokens that this server knows itself.
    pub tokens_outside: Vec<Arc<dyn TokenAuthenticator>>,
    /// Certificates of clients are believed when they are of these authorities.
    pub client_authorities_pem: Option<String>,
    /// Signs service account tokens; see [`SigningKey::generate_pem`].
    pub service_account_key_pem: String,
    /// How servers that serve a part of the API elsewhere believe this one. Without it they are
    /// told users in vain.
    pub front_proxy: Option<FrontProxy>,
    /// What clients inside verify the server with: `kube-root-ca.crt`.
    pub root_ca_pem: String,
    /// Serves logs of pods, commands in them and their ports. Without it such paths do not exist.
    pub pods: Option<Arc<dyn Connector>>,
    /// Requests are recorded so, if at all.
    pub audit: Option<AuditSettings>,
    /// The admission plugins of Kubernetes that are in force.
    pub built_in_plugins: BuiltInPlugins,
    /// Where Services get their addresses from.
    pub service_range: ServiceRange,
}

/// Why a server could not be put together.
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
    #[error("cannot write what every server starts with: {0}")]
    Bootstrap(#[from] Status),
}

/// A server and the tasks that run beside it, which end when this is dropped.
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

/// Who callers are known by, and what belongs to it.
struct Identities {
    authenticator: Arc<dyn Authenticator>,
    tokens: Arc<dyn TokenAuthenticator>,
    /// Of tokens that are asked for without any.
    audiences: Vec<String>,
    signing: Arc<SigningKey>,
    /// Of tokens that live in Secrets.
    uses: mpsc::Receiver<tracking::Use>,
    openid: OpenIdDocuments,
}

impl Assembly {
    /// A server that keeps itself in order and believes nobody but its service accounts.
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

    /// Serves stored definitions, roles and namespaces when it returns. Not yet marked ready.
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
        let policy = match self.profile {
            Profile::Management => management_policy(),
            Profile::Full => cluster_policy(),
        };
        let rbac_follower = follow::start(&registry, &rbac, policy).await?;
        registry.set_authorizer(rbac.clone());
        let webhooks = webhooks::follow::start(&registry, &admission).await?;
        let policies = policies::follow::start(&registry, &admission).await?;
        if let Some(front_proxy) = &self.front_proxy {
            let authorities = self.client_authorities_pem.as_deref();
            aggregation::delegation::publish(&registry, front_proxy, authorities).await?;
        }
        let api_services =
            aggregation::follow::start(&registry, &aggregation, self.front_proxy).await?;
        let definitions = custom::controller::DefinitionController::start(&registry).await?;
        let mut tasks = JoinSet::new();
        let tracking = tasks.spawn(tracking::record(registry.clone(), identities.uses));
        if self.controllers == Controllers::Inside {
            controllers::start(&registry, &aggregation, &self.root_ca_pem, &mut tasks);
            tasks.spawn(legacy::keep(registry.clone(), identities.signing, self.root_ca_pem));
        }
        let registration = tasks.spawn(aggregation::register::run(registry.clone()));

        let (mut operations, flow_follower) = operations(&registry, self.audit).await?;
        let check = |name, tasks| TaskCheck { name, tasks };
        operations.connector = self.pods;
        operations.aggregation = aggregation;
        operations.tasks = vec![
            check("poststarthook/priority-and-fairness-config-consumer", flow_follower.tasks()),
            check("poststarthook/start-apiextensions-controllers", definitions.tasks()),
            check("poststarthook/start-legacy-token-tracking-controller", tracking.into()),
            check("poststarthook/rbac/bootstrap-roles", rbac_follower.tasks()),
            check("poststarthook/apiservice-registration-controller", api_services.tasks()),
            check("poststarthook/kube-apiserver-autoregistration", registration.into()),
        ];
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
        kinds.push(Arc::new(accounts.telling(uses)));
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

/// Every kind of `profile` but those that definitions bring.
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

/// What stands around the requests, with the stored objects in force.
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
