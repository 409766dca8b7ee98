//! The change feed `/v3/subscribe`: a WebSocket that reports what changed among the objects that
//! its caller may see.
//!
//! A socket works on keys. A key enters its [`inbox`] when the socket opens, when a [`watch`]
//! reports a change of the object, or when the rights of the caller changed. The inbox holds each
//! key at most once. [`follower`] takes keys out one by one, reads each object *as the caller* and
//! makes the frame, with the same object that a GET returns. So the feed decides nothing about
//! rights, and a slow client gets fewer and newer states instead of a longer queue. All sockets
//! share one watch per kind and cluster. [`socket`] is the connection: pings, limits, how it is
//! closed. Start reading at [`open`].
//!
//! Not here: the objects of types whose store cannot be followed
//! ([`crate::Store::watched_resources`]).

mod follower;
mod inbox;
mod socket;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use tokio_util::sync::CancellationToken;

use self::follower::{Follower, SocketRequest, Topic};
use self::watch::Watches;
use crate::error::ApiError;
use crate::operations::{self, Narrowed};
use crate::route::{Route, RouteTarget, route};
use crate::sockets::{Sockets, is_extended_connect};
use crate::types::context::{Caller, Context};
use crate::types::registry::Registry;
use crate::types::urls::{Urls, query_pairs};

/// Keys that wait in the inbox of one socket. A client that reads at all has fewer: this is every
/// object of a large fleet.
pub const KEYS_WAITING_MAX: usize = 100_000;
/// Removed objects that wait in one inbox in their last state. Further ones are reported by id and
/// type only.
pub const REMOVED_WAITING_MAX: usize = 256;
/// Interval between pings, from which clients see that the feed works.
pub const PING_EVERY: Duration = Duration::from_secs(5);
/// A client must read a frame within this time, or its socket is closed.
pub const FRAME_TIME_MAX: Duration = Duration::from_secs(30);
/// Longest message of a client. Messages are read and ignored.
pub const CLIENT_MESSAGE_MAX_BYTES: usize = 4 * 1024;
/// Messages of a client between two pings.
pub const CLIENT_MESSAGES_MAX: u32 = 100;
/// Interval between checks of the rights of the caller. Objects that the caller may no longer see
/// are never sent, whatever this is; it is the longest time until a socket reports that, or sends
/// objects that became visible.
const RIGHTS_CHECK_EVERY: Duration = Duration::from_millis(250);
/// Where namespaces and roles of a cluster change constantly, a socket spends at most one part in
/// this many of its time on resyncs.
const RESYNC_TIME_SHARE: u32 = 10;
/// Longest wait for the client's half of a close.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(1);

/// The caller of a socket, as long as the socket is open.
pub struct Subscriber {
    /// The caller; the socket is closed when [`Caller::ended`] is cancelled.
    pub caller: Caller,
    /// Acts as the caller, with the rights that the caller has at the time of each request.
    pub client: kube::Client,
    /// A number that changes whenever the rights of the caller may have changed. Called often: must
    /// not block.
    pub rights: Box<dyn Fn() -> u64 + Send + Sync>,
}

/// What all sockets share.
pub struct Feed {
    watches: Watches,
    sockets: Arc<Sockets>,
}

impl Feed {
    /// `client` needs list and watch on every watched kind. The feed learns from it only *that*
    /// objects changed; their contents are read with the client of each caller. Sockets are closed
    /// when `stop` is cancelled. Objects inside clusters are followed only with [`Self::reaching`].
    pub fn new(client: kube::Client, stop: CancellationToken) -> Self {
        Self { watches: Watches::new(client), sockets: Sockets::new(stop) }
    }

    /// Also follows objects inside clusters. `clusters` returns a client for the id of a cluster
    /// while the cluster is connected. These clients need the same rights as `client` of
    /// [`Self::new`].
    #[must_use]
    pub fn reaching(
        mut self,
        clusters: impl Fn(&str) -> Option<kube::Client> + Send + Sync + 'static,
    ) -> Self {
        self.watches = self.watches.reaching(Arc::new(clusters));
        self
    }

    /// The sockets of this feed; others may be opened among them.
    pub fn sockets(&self) -> &Arc<Sockets> {
        &self.sockets
    }
}

/// Whether the path is that of a change feed.
pub(crate) fn is_feed(registry: &Registry, path: &str) -> bool {
    route(registry, path).is_some_and(|route| matches!(route.target, RouteTarget::Subscribe))
}

/// Handles a request on the path of a feed: 101 and a socket in a task of its own.
///
/// # Errors
/// The request is no WebSocket upgrade, the caller may not open it, or a limit of sockets is
/// reached.
pub(crate) async fn open(
    feed: &Feed,
    registry: &Arc<ArcSwap<Registry>>,
    request: Request<()>,
    subscriber: Subscriber,
) -> Result<Response<Bytes>, ApiError> {
    let follower = admit(feed, registry, &request, subscriber).await?;
    let user = follower.request.subscriber.caller.user_id.clone();
    feed.sockets.open(request, &user, |io, stop| socket::run(io, follower, stop))
}

/// Checks the caller, the path and the requested types.
async fn admit(
    feed: &Feed,
    registry: &Arc<ArcSwap<Registry>>,
    request: &Request<()>,
    subscriber: Subscriber,
) -> Result<Follower, ApiError> {
    let types = registry.load_full();
    let path = request.uri().path();
    let found = route(&types, path).filter(|route| matches!(route.target, RouteTarget::Subscribe));
    let found = found.ok_or_else(|| ApiError::not_found(format!("no such path \"{path}\"")))?;
    let bound = subscriber.caller.token_cluster.as_deref();
    if subscriber.caller.is_anonymous() || bound.is_some_and(|id| !found.is_within(&types, id)) {
        return Err(ApiError::unauthenticated());
    }
    if request.method() != Method::GET && !is_extended_connect(request) {
        return Err(ApiError::method_not_allowed(request.method().as_str()));
    }
    let urls = found.urls(Urls::of_request(request.headers(), request.uri()));
    let action_links = request.headers().contains_key("x-api-action-links");
    let query = query_pairs(request.uri().query().unwrap_or_default());
    let requested: Vec<&str> =
        query.iter().filter(|(key, _)| key == "resourceTypes").map(|(_, v)| v.as_str()).collect();
    let socket_request =
        SocketRequest { subscriber, urls, inside: found.inside.clone(), action_links };
    let headers = HeaderMap::new();
    let context = socket_request.context(&types, &headers);
    operations::require_around(&context, &found).await?;
    let topics = topics(&context, &found, &requested);
    if topics.is_empty() {
        return Err(ApiError::not_found("no resources types matched"));
    }
    Ok(Follower::new(registry.clone(), socket_request, topics, &feed.watches))
}

/// The types of the socket: those that were requested, or all.
fn topics(context: &Context<'_>, route: &Route, requested: &[&str]) -> Vec<Topic> {
    let registry = context.registry;
    let own = registry.descriptors_of(&route.version.path);
    // Inside a resource, also the types beside it that refer to it.
    let outer = route.version.parent_type.as_ref().and(route.version.path.rsplit_once('/'));
    let beside = outer.into_iter().flat_map(|(outer, _)| registry.descriptors_of(outer));
    let is_requested = |id: &str, plural: &str| {
        requested.is_empty()
            || requested
                .iter()
                .any(|w| w.eq_ignore_ascii_case(id) || w.eq_ignore_ascii_case(plural))
    };
    own.chain(beside)
        .filter(|descriptor| {
            descriptor.methods.get && !descriptor.store.watched_resources(context).is_empty()
        })
        .filter(|descriptor| is_requested(&descriptor.id, &descriptor.plural))
        .filter_map(|descriptor| {
            let narrowed = Narrowed::by(route, descriptor).ok()?;
            let scope = operations::scope_within(context, descriptor, narrowed.as_ref());
            Some(Topic::new(descriptor.clone(), narrowed, scope))
        })
        .collect()
}
