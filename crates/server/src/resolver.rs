//! Who a person is in one cluster: the identity that the proxy sends downstream.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_management::{Cluster, User};
use api_meta::status::Status;
use cluster_access::proxy::{
    AccessResolver, Attributes, Caller, Identity, Impersonation, Resolved,
};
use controller::{Reflector, Reflectors, Whole};
use feature_clusters::Connections;
use feature_kit::access::GROUP_PEOPLE;
use feature_kit::{ClusterConnections, Membership};
use futures::future::BoxFuture;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::{Api, ObjectMeta, PostParams};

use crate::revocation::{Revocations, RoleScope};

/// See [`AccessResolver`].
pub struct Resolver {
    clusters: Arc<Reflector<Whole<Cluster>>>,
    users: Arc<Reflector<Whole<User>>>,
    connections: Arc<Connections>,
    revocations: Arc<Revocations>,
}

impl Resolver {
    pub fn new(
        reflectors: &Reflectors,
        connections: Arc<Connections>,
        revocations: Arc<Revocations>,
    ) -> Self {
        Self { clusters: reflectors.get(), users: reflectors.get(), connections, revocations }
    }

    fn known(&self, cluster: &str) -> Result<(), Status> {
        match self.clusters.named(cluster) {
            Some(_) => Ok(()),
            None => Err(Status::not_found(api_management::GROUP, "clusters", cluster)),
        }
    }

    /// The identity with the role groups of the cluster.
    fn with_roles(&self, cluster: &str, identity: Identity) -> Resolved {
        let person = Membership { user: &identity.user, groups: &identity.groups };
        let (roles, revoked) =
            self.revocations.of_roles(RoleScope::Cluster(cluster.to_owned()), person);
        let mut identity = identity;
        identity.groups.extend(roles);
        Resolved { identity, revoked }
    }

    /// Asks the cluster itself, as the full identity of the caller.
    async fn ask(&self, cluster: &str, caller: &Caller, what: &Attributes) -> Result<bool, Status> {
        let Some(client) = self.connections.client(cluster) else {
            let cluster = cluster.to_owned();
            return Err(cluster_access::AccessError::Unknown { cluster }.to_status());
        };
        let own = self.with_roles(cluster, identity_of(caller)).identity;
        let review = review(&own, what);
        let answer = Api::<SubjectAccessReview>::all(client)
            .create(&PostParams::default(), &review)
            .await
            .map_err(|error| {
                Status::unavailable(format!(
                    "cannot ask cluster \"{cluster}\" whether you may impersonate: {error}"
                ))
            })?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }
}

fn identity_of(caller: &Caller) -> Identity {
    Identity {
        user: caller.user.clone(),
        uid: caller.uid.clone(),
        groups: caller.groups.clone(),
        extra: caller.extra.clone(),
    }
}

fn review(identity: &Identity, what: &Attributes) -> SubjectAccessReview {
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

impl AccessResolver for Resolver {
    fn resolve<'a>(
        &'a self,
        cluster: &'a str,
        caller: &'a Caller,
    ) -> BoxFuture<'a, Result<Resolved, Status>> {
        Box::pin(async move {
            self.known(cluster)?;
            Ok(self.with_roles(cluster, identity_of(caller)))
        })
    }

    fn may_impersonate<'a>(
        &'a self,
        cluster: &'a str,
        caller: &'a Caller,
        what: &'a Attributes,
    ) -> BoxFuture<'a, Result<bool, Status>> {
        Box::pin(self.ask(cluster, caller, what))
    }

    fn resolve_impersonated<'a>(
        &'a self,
        cluster: &'a str,
        _caller: &'a Caller,
        wanted: &'a Impersonation,
    ) -> BoxFuture<'a, Result<Resolved, Status>> {
        Box::pin(async move {
            let mut groups = wanted.groups.clone();
            // Somebody who could log in here would be in it.
            if self.users.named(&wanted.user).is_some_and(|user| user.is_enabled()) {
                groups.push(GROUP_PEOPLE.to_owned());
            }
            let identity = Identity {
                user: wanted.user.clone(),
                uid: wanted.uid.clone(),
                groups,
                extra: wanted.extra.clone(),
            };
            Ok(self.with_roles(cluster, identity))
        })
    }
}
