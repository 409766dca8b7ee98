//! HTTP/1.1 connections, which carry one request at a time.

use std::sync::Weak;
use std::time::Duration;

use http::{Request, Uri, Version};
use hyper::client::conn::http1;
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::{Held, Pool, SendOutcome, to_unsent};
use crate::body::{Body, empty, wrap};
use crate::limits::EXCLUSIVE_IDLE_MAX;

/// A connection between two requests.
pub(super) struct Exclusive {
    sender: http1::SendRequest<Body>,
    used: Instant,
    _permit: OwnedSemaphorePermit,
}

impl Exclusive {
    pub(super) fn new(sender: http1::SendRequest<Body>, permit: OwnedSemaphorePermit) -> Self {
        Self { sender, used: Instant::now(), _permit: permit }
    }

    /// Whether a request may use it. API servers close unused connections, and a request that is
    /// sent at that moment is lost.
    pub(super) fn is_fresh(&self) -> bool {
        self.is_fresh_for(Duration::ZERO)
    }

    /// Whether a request may use it even after `time`, as far as is known.
    pub(super) fn is_fresh_for(&self, time: Duration) -> bool {
        !self.sender.is_closed() && self.used.elapsed() + time < EXCLUSIVE_IDLE_MAX
    }

    /// Sends a request. The connection returns to `pool` when the response has been read to its
    /// end.
    pub(super) async fn send(
        mut self,
        mut request: Request<Body>,
        pool: Weak<Pool>,
    ) -> SendOutcome {
        let target = request.uri().clone();
        let again = repeatable(&request);
        *request.version_mut() = Version::HTTP_11;
        *request.uri_mut() = origin_form(&target);
        match self.sender.try_send_request(request).await {
            Ok(response) => {
                let returned = Returned { line: Some(self), pool };
                Ok(response.map(|body| wrap(Held { body, _held: returned })))
            }
            Err(error) => {
                let (mut unsent, error) = to_unsent(error);
                if let Some(request) = &mut unsent {
                    *request.uri_mut() = target;
                }
                Err((unsent.or(again), error))
            }
        }
    }

    fn give_back(mut self, pool: &Weak<Pool>) {
        let Some(pool) = pool.upgrade() else { return };
        self.used = Instant::now();
        pool.store(self);
    }
}

/// A copy of a request that changes nothing and has no body: it may be sent again when its
/// connection ends before the response begins.
fn repeatable(request: &Request<Body>) -> Option<Request<Body>> {
    let is_end = http_body::Body::is_end_stream(request.body());
    (request.method().is_safe() && is_end).then(|| {
        let mut copy = Request::new(empty());
        *copy.method_mut() = request.method().clone();
        *copy.uri_mut() = request.uri().clone();
        *copy.headers_mut() = request.headers().clone();
        copy
    })
}

/// The path and query only.
fn origin_form(target: &Uri) -> Uri {
    let mut parts = http::uri::Parts::default();
    parts.path_and_query = target.path_and_query().cloned();
    Uri::from_parts(parts).unwrap_or_default()
}

/// Returns a connection to the pool on drop.
struct Returned {
    line: Option<Exclusive>,
    pool: Weak<Pool>,
}

impl Drop for Returned {
    fn drop(&mut self) {
        let Some(mut line) = self.line.take() else { return };
        if line.sender.is_ready() {
            line.give_back(&self.pool);
            return;
        }
        // Its task has not seen the end of the response yet, or closes the connection because there
        // is none.
        let pool = self.pool.clone();
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn(async move {
            if line.sender.ready().await.is_ok() {
                line.give_back(&pool);
            }
        });
    }
}
