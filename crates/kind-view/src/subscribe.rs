//! `/v1/subscribe`: a WebSocket on which a client follows types of one place, one subscription
//! each.
//!
//! A subscription is a watch of the place, as the caller: the place decides what its caller sees.
//! What the caller may list is looked at again every [`RIGHTS_CHECK_EVERY`]; a subscription whose
//! part of the objects has changed is stopped, and the client subscribes again.
//!
//! [`messages`] has the texts of both directions, [`subscription`] follows one type, [`socket`] is
//! the connection.

mod messages;
mod socket;
mod subscription;

use std::sync::Arc;
use std::time::Duration;

use rest_view::sockets::SocketIo;
use rest_view::{Subscriber, Urls};
use tokio_util::sync::CancellationToken;

use crate::discovery::Discovery;
use crate::index::KindIndexes;
use crate::path::Place;

/// Subscriptions of one socket.
const SUBSCRIPTIONS_MAX: usize = 100;
/// Frames that wait for the client. While there are so many, no more changes are read.
const FRAMES_WAITING_MAX: usize = 100;
/// A client must read a frame within this time, or its socket is closed.
const FRAME_TIME_MAX: Duration = Duration::from_secs(30);
/// Longest message of a client.
const CLIENT_MESSAGE_MAX_BYTES: usize = 16 * 1024;
/// Interval between pings, from which clients see that the socket works.
const PING_EVERY: Duration = Duration::from_secs(5);
/// Interval between checks of what the caller may see.
const RIGHTS_CHECK_EVERY: Duration = Duration::from_secs(5);
/// Longest wait for the client's half of a close, and when its login has ended.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(1);
const REVOKED_CLOSE_TIME_MAX: Duration = Duration::from_millis(300);

/// What all subscriptions of one socket share.
pub struct Session {
    pub place: Place,
    pub subscriber: Subscriber,
    pub urls: Urls,
    pub discovery: Arc<Discovery>,
    pub indexes: Option<KindIndexes>,
    /// Of the request that opened the socket, decoded: fields that are shown.
    pub query: Vec<(String, String)>,
}

impl Session {
    /// Serves the socket until it ends.
    pub async fn serve(self, io: SocketIo, stop: CancellationToken) {
        socket::run(io, Arc::new(self), stop).await;
    }
}
