//! Which requests a server waits for when it stops: those that have an end of their own.

use http::{Method, Request, header};
use tokio::sync::watch;

/// Counts the short requests that are open. Cheap to clone.
#[derive(Clone)]
pub struct ShortRequests(watch::Sender<usize>);

/// An open request, until dropped.
pub struct Open(watch::Sender<usize>);

impl ShortRequests {
    /// No open requests.
    pub fn new() -> Self {
        Self(watch::Sender::new(0))
    }

    /// Counts a request until the result is dropped; `None` when it is long-running.
    pub fn begin<B>(&self, request: &Request<B>) -> Option<Open> {
        if is_long_running(request) {
            return None;
        }
        self.0.send_modify(|open| *open += 1);
        Some(Open(self.0.clone()))
    }

    /// Waits until no short request is open.
    pub async fn wait_until_ended(&self) {
        let _ = self.0.subscribe().wait_for(|open| *open == 0).await;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

/// Watches, followed logs, and upgrades to another protocol.
fn is_long_running<B>(request: &Request<B>) -> bool {
    let is_requested = |pair: &str| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        matches!(key, "watch" | "follow") && !matches!(value, "0" | "false")
    };
    request.method() == Method::CONNECT
        || request.headers().contains_key(header::UPGRADE)
        || request.uri().query().is_some_and(|query| query.split('&').any(is_requested))
        || request.uri().path().contains("/watch/")
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn shutdown_waits_for_short_requests_and_not_for_long_running_ones() {
        let requests = ShortRequests::new();
        let get = |uri: &str| Request::get(uri).body(()).unwrap();
        for uri in ["/api/v1/pods?watch=1", "/logs?x=1&follow=true", "/api/v1/watch/pods"] {
            assert!(requests.begin(&get(uri)).is_none(), "{uri}");
        }
        let upgrade = Request::get("/exec").header("upgrade", "websocket").body(()).unwrap();
        assert!(requests.begin(&upgrade).is_none());
        assert!(requests.wait_until_ended().now_or_never().is_some());
        let open = requests.begin(&get("/api/v1/pods?watch=false")).unwrap();
        assert!(requests.wait_until_ended().now_or_never().is_none());
        drop(open);
        assert!(requests.wait_until_ended().now_or_never().is_some());
    }
}
