//! Who a user is in one cluster: the identity that the proxy sends downstream, from the login and
//! the roles in the cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_management::{Cluster, User};
use api_meta::status::Status;
use cluster_access::proxy::{
    AccessResolver, Attributes, DownstreamIdentity, GROUP_AUTHENTICATED, Impersonation,
    ProjectToken, ProxyCaller, Resolved,
};
use controller::{Reflector, Reflectors, Whole};
use feature_kit::access::{GROUP_PEOPLE, project_group};
use feature_kit::{ClusterConnections, Membership};
use futures::future::BoxFuture;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::{Api, ObjectMeta, PostParams};
use tokio_util::sync::CancellationToken;

use crate::revocation::{Revocations, RoleScope};

/// Prefix of the user in a cluster that a token of one project is; its name follows.
const PROJECT_TOKEN_USER: &str = "drover:project-token:";

/// See [`AccessResolver`].
pub struct ClusterIdentities {
    clusters: Arc<Reflector<Whole<Cluster>>>,
    users: Arc<Reflector<Whole<User>>>,
    connections: Arc<dyn ClusterConnections>,
    revocations: Arc<Revocations>,
}

impl ClusterIdentities {
    /// Identities from the shared reflectors. Connections that depend on a role end by
    /// `revocations`.
    pub fn new(
        reflectors: &Reflectors,
        connections: Arc<dyn ClusterConnections>,
        revocations: Arc<Revocations>,
    ) -> Self {
        Self { clusters: reflectors.get(), users: reflectors.get(), connections, revocations }
    }

    /// The caller with their roles in the cluster, and what ends these. Nobody without a role
    /// there.
    fn access_of(
        &self,
        cluster: &str,
        caller: &ProxyCaller,
    ) -> (Option<DownstreamIdentity>, CancellationToken) {
        let mut identity = identity_of(caller);
        let (mut roles, revoked) = self.roles(cluster, &identity);
        if let Some(of) = &caller.project {
            let prefix = project_group(&of.project, "");
            roles.retain(|role| role.starts_with(&prefix));
            identity = without_person(identity, of);
        }
        let has_role = !roles.is_empty();
        identity.groups.extend(roles);
        (has_role.then_some(identity), revoked)
    }

    /// The role groups that an identity has in the cluster, and what ends them.
    fn roles(
        &self,
        cluster: &str,
        identity: &DownstreamIdentity,
    ) -> (Vec<String>, CancellationToken) {
        let person = Membership { user: &identity.user, groups: &identity.groups };
        self.revocations.of_roles(RoleScope::Cluster(cluster.to_owned()), person)
    }

    /// Requests a review from the cluster itself, of the full identity of the caller.
    async fn review(
        &self,
        cluster: &str,
        caller: &ProxyCaller,
        what: &Attributes,
    ) -> Result<bool, Status> {
        let Some(client) = self.connections.client(cluster) else {
            let cluster = cluster.to_owned();
            return Err(cluster_access::AccessError::Unknown { cluster }.to_status());
        };
        let (Some(own), _) = self.access_of(cluster, caller) else { return Ok(false) };
        let review = access_review(&own, what);
        let answer = Api::<SubjectAccessReview>::all(client)
            .create(&PostParams::default(), &review)
            .await
            .map_err(|error| {
                Status::unavailable(format!(
                    "cannot check in cluster \"{cluster}\" whether you may impersonate: {error}"
                ))
            })?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }
}

fn identity_of(caller: &ProxyCaller) -> DownstreamIdentity {
    DownstreamIdentity {
        user: caller.user.clone(),
        uid: caller.uid.clone(),
        groups: caller.groups.clone(),
        extra: caller.extra.clone(),
    }
}

/// A token of one project is not the person, to whom the cluster itself may have bound roles, nor a
/// member of any group that holds elsewhere.
fn without_person(person: DownstreamIdentity, of: &ProjectToken) -> DownstreamIdentity {
    DownstreamIdentity {
        user: format!("{PROJECT_TOKEN_USER}{}", of.token),
        uid: String::new(),
        groups: vec![GROUP_AUTHENTICATED.to_owned()],
        extra: person.extra,
    }
}

fn access_review(identity: &DownstreamIdentity, what: &Attributes) -> SubjectAccessReview {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let extra: BTreeMap<String, Vec<String>> = identity.extra.clone();
    SubjectAccessReview {
        metadata: ObjectMeta::default(),
        spec: SubjectAccessReviewSpec {
            user: Some(identity.user.clone()),
            uid: some(&identity.uid),
            groups: Some(identity.groups.clone()),
            extra: Some(extra),
            resource_attributes: Some(ResourceAttributes {
                verb: Some("impersonate".to_owned()),
                group: Some(what.group.to_owned()),
                resource: Some(what.resource.to_owned()),
                subresource: some(&what.subresource),
                namespace: some(&what.namespace),
                name: some(&what.name),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        status: None,
    }
}

/// The refusal of a person without a role in the cluster: the same whether there is such a cluster
/// or not, so that nobody finds out which ones there are.
pub fn no_role(cluster: &str) -> Status {
    let text = "you have no role in this cluster, or there is no such cluster; ask one of its owners for a role";
    Status::forbidden(api_management::GROUP, "clusters", cluster, text)
}

impl AccessResolver for ClusterIdentities {
    fn resolve<'a>(
        &'a self,
        cluster: &'a str,
        caller: &'a ProxyCaller,
    ) -> BoxFuture<'a, Result<Resolved, Status>> {
        let result = match self.access_of(cluster, caller) {
            (None, _) => Err(no_role(cluster)),
            (Some(_), _) if self.clusters.named(cluster).is_none() => {
                Err(Status::not_found(api_management::GROUP, "clusters", cluster))
            }
            (Some(identity), revoked) => Ok(Resolved { identity, revoked }),
        };
        Box::pin(std::future::ready(result))
    }

    fn may_impersonate<'a>(
        &'a self,
        cluster: &'a str,
        caller: &'a ProxyCaller,
        what: &'a Attributes,
    ) -> BoxFuture<'a, Result<bool, Status>> {
        // Who it would be then has roles in other places.
        if caller.project.is_some() {
            return Box::pin(std::future::ready(Ok(false)));
        }
        Box::pin(self.review(cluster, caller, what))
    }

    fn resolve_impersonated<'a>(
        &'a self,
        cluster: &'a str,
        _caller: &'a ProxyCaller,
        requested: &'a Impersonation,
    ) -> BoxFuture<'a, Result<Resolved, Status>> {
        Box::pin(async move {
            // Roles bound to the user come along, as Kubernetes' bindings to users do; of those
            // held through groups only the ones of groups that the caller named, and so was allowed
            // to impersonate.
            let mut groups = requested.groups.clone();
            // Somebody who could log in here would be in it.
            if self.users.named(&requested.user).is_some_and(|user| user.is_enabled()) {
                groups.push(GROUP_PEOPLE.to_owned());
            }
            let mut identity = DownstreamIdentity {
                user: requested.user.clone(),
                uid: requested.uid.clone(),
                groups,
                extra: requested.extra.clone(),
            };
            let (roles, revoked) = self.roles(cluster, &identity);
            identity.groups.extend(roles);
            Ok(Resolved { identity, revoked })
        })
    }
}
