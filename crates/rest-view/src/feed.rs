//! The change feed `/v3/subscribe`: a WebSocket that says what changed among the objects its caller
//! may see.
//!
//! A socket works on keys. A key comes into its [`inbox`] when the socket opens, when a [`watch`]
//! says that the object changed, or when the caller's rights changed; it is in there at most once.
//! [`follower`] takes keys out one by one, reads each object *as the caller* and makes the frame,
//! with the very object that a GET answers. So the feed decides nothing about rights, and a slow
//! client gets fewer and newer states instead of a longer queue. All sockets share one watch per
//! kind and cluster. [`socket`] is the connection: pings, limits, how it ends. Start reading at
//! [`open`].
//!
//! Not here: the objects of types whose store cannot be followed ([`crate::Store::followed`]).

mod follower;
mod inbox;
mod places;
mod socket;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::follower::{Asked, Follower, Topic};
use self::places::Places;
use self::watch::Watches;
use crate::error::ApiError;
use crate::operations::{self, Narrowed};
use crate::route::{Route, Target, route};
use crate::types::context::{Caller, Context};
use crate::types::registry::Registry;
use crate::types::urls::{Urls, query_pairs};

/// Sockets open at once.
pub const SOCKETS_MAX: usize = 4_096;
/// Of them, one caller's: a person's tabs and scripts.
pub const SOCKETS_PER_CALLER_MAX: usize = 64;
/// Keys that wait in one socket's inbox. More than a client that reads at all ever has: all objects
/// of a large fleet.
pub const KEYS_WAITING_MAX: usize = 100_000;
/// Removed objects that wait in one inbox as they last were; further ones are told by id and type
/// alone.
pub const REMOVED_WAITING_MAX: usize = 256;
/// Pause between pings, which clients take as the sign that the feed is alive.
pub const PING_EVERY: Duration = Duration::from_secs(5);
/// A client must take a frame within this, or its socket is closed.
pub const FRAME_TIME_MAX: Duration = Duration::from_secs(30);
/// Longest message of a client. They mean nothing, but must be read.
pub const CLIENT_MESSAGE_MAX_BYTES: usize = 4 * 1024;
/// Messages of a client between two pings.
pub const CLIENT_MESSAGES_MAX: u32 = 100;
/// Pause between looks at the caller's rights. What is lost is not shown from the moment it is
/// lost, whatever this is; it is the longest time until a socket says so, or shows what was gained.
const RIGHTS_LOOK_EVERY: Duration = Duration::from_millis(250);
/// Where namespaces and roles of a cluster change all the time, a socket looks at what its caller may see
/// for one part of so many of the time.
const SIGHT_LOOK_SHARE: u32 = 10;
/// Longest wait for the client's half of an upgrade, and of a close.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
const CLOSE_TIME_MAX: Duration = Duration::from_secs(1);

/// Whoever opens a socket, as long as it is open.
pub struct Subscriber {
    pub caller: Caller,
    /// Acts as the caller, with the rights they have at the time of each request.
    pub client: kube::Client,
    /// A number that is another one once the caller's rights may have changed. Asked often: must
    /// not wait.
    pub rights: Box<dyn Fn() -> u64 + Send + Sync>,
}

/// What all sockets share.
pub struct Feed {
    watches: Watches,
    places: Arc<Places>,
    sockets: TaskTracker,
    stop: CancellationToken,
}

impl Feed {
    /// `client` needs list and watch on every watched kind. It learns *that* objects changed; what
    /// they are is read with each caller's own client. Sockets end with `stop`. What is inside clusters
    /// is followed with [`Self::reaching`].
    pub fn new(client: kube::Client, stop: CancellationToken) -> Self {
        Self {
            watches: Watches::new(client),
            places: Arc::default(),
            sockets: TaskTracker::new(),
            stop,
        }
    }

    /// Follows what is inside clusters, each with the client that is given for its id while it can be
    /// reached. The clients need what `client` of [`Self::new`] needs.
    #[must_use]
    pub fn reaching(
        mut self,
        clusters: impl Fn(&str) -> Option<kube::Client> + Send + Sync + 'static,
    ) -> Self {
        self.watches = self.watches.reaching(Arc::new(clusters));
        self
    }

    /// Waits until all sockets are closed, which is soon after `stop`.
    pub async fn closed(&self) {
        self.sockets.close();
        self.sockets.wait().await;
    }
}

/// Whether the path is a feed's.
pub(crate) fn is_feed(registry: &Registry, path: &str) -> bool {
    route(registry, path).is_some_and(|route| matches!(route.target, Target::Subscribe))
}

/// Answers a request on a feed's path: 101 and a socket in a task of its own, or why not.
pub(crate) async fn open(
    feed: &Feed,
    registry: &Arc<ArcSwap<Registry>>,
    mut request: Request<()>,
    subscriber: Subscriber,
) -> Result<Response<Bytes>, ApiError> {
    let follower = admit(feed, registry, &request, subscriber).await?;
    let response = agree(&request)?;
    let place = feed.places.take(&follower.asked.subscriber.caller.user_id)?;
    let upgrade = hyper::upgrade::on(&mut request);
    let stop = feed.stop.clone();
    feed.sockets.spawn(async move {
        match tokio::time::timeout(HANDSHAKE_TIME_MAX, upgrade).await {
            Ok(Ok(upgraded)) => socket::run(TokioIo::new(upgraded), follower, stop).await,
            _ => tracing::debug!("a client asked for the change feed and went away"),
        }
        drop(place);
    });
    Ok(response)
}

/// The answer after which both sides speak WebSocket: 101 over HTTP/1.1, 200 over HTTP/2.
fn agree(request: &Request<()>) -> Result<Response<Bytes>, ApiError> {
    if is_extended_connect(request) {
        return Ok(Response::new(Bytes::new()));
    }
    create_response_with_body(request, Bytes::new).map_err(|error| {
        let text = format!("the change feed is a WebSocket: {error}");
        ApiError::new(400, "BadRequest", text)
    })
}

/// How browsers ask for a WebSocket on the HTTP/2 connection that they have anyway (RFC 8441).
fn is_extended_connect(request: &Request<()>) -> bool {
    let protocol = request.extensions().get::<hyper::ext::Protocol>();
    *request.method() == Method::CONNECT && protocol.is_some_and(|p| p.as_str() == "websocket")
}

/// Checks who asks, from where, for what.
async fn admit(
    feed: &Feed,
    registry: &Arc<ArcSwap<Registry>>,
    request: &Request<()>,
    subscriber: Subscriber,
) -> Result<Follower, ApiError> {
    let types = registry.load_full();
    let path = request.uri().path();
    let found = route(&types, path).filter(|route| matches!(route.target, Target::Subscribe));
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
    let wanted: Vec<&str> =
        query.iter().filter(|(key, _)| key == "resourceTypes").map(|(_, v)| v.as_str()).collect();
    let asked = Asked { subscriber, urls, inside: found.inside.clone(), action_links };
    let headers = HeaderMap::new();
    let context = asked.context(&types, &headers);
    operations::require_around(&context, &found).await?;
    let topics = topics(&context, &found, &wanted);
    if topics.is_empty() {
        return Err(ApiError::not_found("no resources types matched"));
    }
    Ok(Follower::new(registry.clone(), asked, topics, &feed.watches))
}

/// The types that the socket is about: of those asked for, or of all.
fn topics(context: &Context<'_>, route: &Route, wanted: &[&str]) -> Vec<Topic> {
    let registry = context.registry;
    let own = registry.descriptors_of(&route.version.path);
    // Inside a resource, also the types beside it that refer to it.
    let outer = route.version.parent_type.as_ref().and(route.version.path.rsplit_once('/'));
    let beside = outer.into_iter().flat_map(|(outer, _)| registry.descriptors_of(outer));
    let is_wanted = |id: &str, plural: &str| {
        wanted.is_empty()
            || wanted.iter().any(|w| w.eq_ignore_ascii_case(id) || w.eq_ignore_ascii_case(plural))
    };
    own.chain(beside)
        .filter(|descriptor| {
            descriptor.methods.get && !descriptor.store.followed(context).is_empty()
        })
        .filter(|descriptor| is_wanted(&descriptor.id, &descriptor.plural))
        .filter_map(|descriptor| {
            let narrowed = Narrowed::by(route, descriptor).ok()?;
            let scope = operations::scope_within(context, descriptor, narrowed.as_ref());
            Some(Topic::new(descriptor.clone(), narrowed, scope))
        })
        .collect()
}
