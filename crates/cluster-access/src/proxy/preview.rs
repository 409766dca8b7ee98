//! Writes that are checked before they are sent to the cluster. A dry run first returns the object
//! that the write would leave, for any kind of write.

use api_meta::status::Status;
use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use http::header::{ACCEPT, ACCEPT_ENCODING};
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::BodyExt;
use serde_json::Value;

use super::DownstreamIdentity;
use crate::access::ClusterAccess;
use crate::body::{Body, full};
use crate::limits::{CHECKED_WRITE_BYTES_MAX, CHECKED_WRITE_TIME_MAX, OBJECT_BYTES_MAX};
use crate::reading::{ResponseKind, ResponseReader, bound_response};

/// Decides about writes that need more than the cluster's own rights.
///
/// A write whose dry run fails is sent unchecked: security must not depend on this check alone.
pub trait WriteCheck: Send + Sync + 'static {
    /// Whether writes of this method to this path of an API server are checked.
    fn concerns(&self, method: &Method, path: &str) -> bool;

    /// Checks a write before it is sent.
    ///
    /// # Errors
    /// The refusal, which the client gets.
    fn check<'a>(&'a self, write: CheckedWrite<'a>) -> BoxFuture<'a, Result<(), Status>>;
}

/// A write whose dry run succeeded.
#[derive(Clone, Copy, Debug)]
pub struct CheckedWrite<'a> {
    pub cluster: &'a str,
    /// The identity of the request.
    pub identity: &'a DownstreamIdentity,
    pub method: &'a Method,
    /// The object that the write would leave.
    pub object: &'a Value,
    /// Whether the client's write is a dry run itself, so that nothing is stored.
    pub is_dry_run: bool,
}

/// Runs a check of a write. Returns the body of the write, to be sent.
///
/// `downstream` is the request that is sent to the cluster, without its body.
///
/// # Errors
/// The refusal; 413 and 408 for a body that is too large or does not arrive.
pub(super) fn check<'a>(
    access: &'a ClusterAccess,
    check: &'a dyn WriteCheck,
    cluster: &'a str,
    identity: &'a DownstreamIdentity,
    downstream: &'a Request<()>,
    body: Body,
) -> BoxFuture<'a, Result<Body, Status>> {
    Box::pin(async move {
        let body = collect(body).await?;
        let uri = downstream.uri();
        let is_dry_run = query(uri).any(|pair| pair == DRY_RUN);
        if let Some(object) = preview(access, cluster, downstream, &body).await {
            let method = downstream.method();
            let write = CheckedWrite { cluster, identity, method, object: &object, is_dry_run };
            check.check(write).await?;
        }
        Ok(full(body))
    })
}

const DRY_RUN: &str = "dryRun=All";

fn query(uri: &Uri) -> impl Iterator<Item = &str> {
    uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty())
}

async fn collect(body: Body) -> Result<Bytes, Status> {
    let reading = read(body, CHECKED_WRITE_BYTES_MAX);
    match tokio::time::timeout(CHECKED_WRITE_TIME_MAX, reading).await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(Unread::TooLong)) => {
            let text = format!("the body may not be longer than {CHECKED_WRITE_BYTES_MAX} bytes");
            Err(Status::new(413, "RequestEntityTooLarge", text))
        }
        Ok(Err(Unread::Broken)) => Err(Status::bad_request("the body ended early")),
        Err(_) => {
            let seconds = CHECKED_WRITE_TIME_MAX.as_secs();
            let text = format!("the body did not arrive within {seconds} seconds");
            Err(Status::new(408, "Timeout", text))
        }
    }
}

/// Why a body was not read whole.
enum Unread {
    TooLong,
    Broken,
}

async fn read(mut body: Body, bytes_max: usize) -> Result<Bytes, Unread> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Unread::Broken)?;
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + data.len() > bytes_max {
            return Err(Unread::TooLong);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.freeze())
}

/// The object that the write would leave; `None` if the write would fail or its result is unknown.
async fn preview(
    access: &ClusterAccess,
    cluster: &str,
    downstream: &Request<()>,
    body: &Bytes,
) -> Option<Value> {
    let uri = downstream.uri();
    let others = query(uri).filter(|pair| !pair.starts_with("dryRun="));
    let pairs: Vec<&str> = others.chain([DRY_RUN]).collect();
    let target = format!("{}?{}", uri.path(), pairs.join("&"));
    let mut request =
        Request::builder().method(downstream.method()).uri(target).body(full(body.clone())).ok()?;
    *request.headers_mut() = downstream.headers().clone();
    request.headers_mut().remove(ACCEPT_ENCODING);
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
    let conduct = access.conduct(cluster).ok()?;
    let sending = access.send(cluster, request);
    let response =
        bound_response(&conduct, ResponseReader::User, ResponseKind::Object, sending).await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let object = read(response.into_body(), OBJECT_BYTES_MAX).await.ok()?;
    serde_json::from_slice(&object).ok()
}
