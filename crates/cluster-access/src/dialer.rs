//! How a byte stream to an API server is opened.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::net::TcpStream;
use tunnel::{DialError, Io, Sessions};

use crate::endpoint::{Endpoint, Route};
use crate::error::AccessError;

/// Opens byte streams to API servers.
pub trait Dialer: Send + Sync + 'static {
    /// Opens a byte stream to `endpoint` of `cluster` within `timeout`. Dropping the future cancels
    /// it.
    ///
    /// # Errors
    /// [`AccessError::NotConnected`], [`AccessError::Unreachable`], [`AccessError::TimedOut`] or
    /// [`AccessError::Saturated`]. The pool passes them to its callers.
    fn dial<'a>(
        &'a self,
        cluster: &'a str,
        endpoint: &'a Endpoint,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Box<dyn Io>, AccessError>>;
}

/// The addresses of a host, or why none of them may be dialled.
pub type Resolve =
    dyn Fn(String, u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync;

/// The dialer of [`crate::ClusterAccess`], which uses the [`Route`] of the endpoint.
pub struct Routes {
    sessions: Arc<Sessions>,
    resolve: Arc<Resolve>,
}

impl Routes {
    /// Dials tunnel routes through `sessions`, and direct ones at the addresses of `resolve`.
    pub fn new(sessions: Arc<Sessions>, resolve: Arc<Resolve>) -> Self {
        Self { sessions, resolve }
    }

    async fn direct(
        &self,
        endpoint: &Endpoint,
        timeout: Duration,
    ) -> Result<Box<dyn Io>, AccessError> {
        let address = &endpoint.address;
        let connecting = async {
            let found = (self.resolve)(address.host().to_owned(), address.port()).await?;
            TcpStream::connect(found.as_slice()).await
        };
        let unreachable = |error: io::Error| AccessError::Unreachable {
            detail: format!("connect to \"{address}\": {error}"),
        };
        match tokio::time::timeout(timeout, connecting).await {
            Ok(Ok(stream)) => {
                stream.set_nodelay(true).map_err(unreachable)?;
                Ok(Box::new(stream))
            }
            Ok(Err(error)) => Err(unreachable(error)),
            Err(_) => Err(AccessError::TimedOut),
        }
    }

    async fn through_agent(
        &self,
        cluster: &str,
        endpoint: &Endpoint,
        timeout: Duration,
    ) -> Result<Box<dyn Io>, AccessError> {
        match self.sessions.dial(cluster, &endpoint.address, timeout).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(DialError::NotConnected | DialError::Lost) => Err(AccessError::NotConnected),
            Err(DialError::Saturated) => Err(AccessError::Saturated),
            Err(DialError::TimedOut { .. }) => Err(AccessError::TimedOut),
            Err(other) => Err(AccessError::Unreachable { detail: other.to_string() }),
        }
    }
}

impl Dialer for Routes {
    fn dial<'a>(
        &'a self,
        cluster: &'a str,
        endpoint: &'a Endpoint,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Box<dyn Io>, AccessError>> {
        Box::pin(async move {
            match endpoint.route {
                Route::Direct => self.direct(endpoint, timeout).await,
                Route::Tunnel => self.through_agent(cluster, endpoint, timeout).await,
            }
        })
    }
}
