//! How a byte stream to an API server comes about.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::net::TcpStream;
use tunnel::{DialError, Io, Sessions};

use crate::endpoint::{Endpoint, Route};
use crate::error::AccessError;

/// Opens byte streams to API servers.
pub trait Dialer: Send + Sync + 'static {
    /// Opens one within `timeout`. Dropping the future gives up.
    ///
    /// # Errors
    /// [`AccessError::NotConnected`], [`AccessError::Unreachable`], [`AccessError::TimedOut`] or
    /// [`AccessError::Saturated`].
    fn dial<'a>(
        &'a self,
        cluster: &'a str,
        endpoint: &'a Endpoint,
        timeout: Duration,
    ) -> BoxFuture<'a, Result<Box<dyn Io>, AccessError>>;
}

/// What [`crate::ClusterAccess`] uses: the route that the endpoint names.
pub struct Routes {
    sessions: Arc<Sessions>,
}

impl Routes {
    pub fn new(sessions: Arc<Sessions>) -> Self {
        Self { sessions }
    }

    async fn direct(endpoint: &Endpoint, timeout: Duration) -> Result<Box<dyn Io>, AccessError> {
        let address = &endpoint.address;
        let connecting = TcpStream::connect((address.host(), address.port()));
        let unreachable = |error: std::io::Error| AccessError::Unreachable {
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
                Route::Direct => Self::direct(endpoint, timeout).await,
                Route::Tunnel => self.through_agent(cluster, endpoint, timeout).await,
            }
        })
    }
}
