//! Requests whose responses this server reads itself: those of controllers, and those of the
//! management API's views for users. Each response has a size limit and a deadline, and counts
//! towards the volume of its cluster ([`crate::conduct`]).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Response, Uri};
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use crate::body::{Body, BoxError, wrap};
use crate::conduct::{Buffered, Conduct, count_rejected};
use crate::error::AccessError;
use crate::limits::{
    HEAD_TIME_MAX, LIST_BYTES_FOR_USER_MAX, OBJECT_BYTES_MAX, PAGE_BYTES_MAX, READ_TIME_MAX,
    WATCH_LINE_BYTES_MAX, WATCH_TIME_MAX,
};

/// Who reads a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseReader {
    /// The server itself, which requests pages: a larger response is an offence of the cluster.
    Server,
    /// A user, who may request more than the limit. Such a request fails without an effect on the
    /// cluster.
    User,
}

/// The kind of response that a request gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ResponseKind {
    /// An endless stream of lines: a watch, or followed logs.
    Watch,
    /// A list, or a page of one.
    List {
        path: String,
        is_first: bool,
    },
    Object,
}

/// Why a response was aborted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the cluster's API server {0}")]
pub(crate) struct Excess(String);

impl ResponseKind {
    /// Derives the kind from the method and path of a Kubernetes API.
    pub(crate) fn of(method: &Method, uri: &Uri) -> Self {
        let query = uri.query().unwrap_or_default();
        let value = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let is_set = |name| value(name).is_some_and(|value| !matches!(value, "" | "0" | "false"));
        if is_set("watch") || is_set("follow") || uri.path().contains("/watch/") {
            return Self::Watch;
        }
        if *method == Method::GET && is_collection(uri.path()) {
            return Self::List {
                path: uri.path().to_owned(),
                is_first: value("continue").unwrap_or_default().is_empty(),
            };
        }
        Self::Object
    }

    fn time_max(&self) -> Duration {
        if *self == Self::Watch { WATCH_TIME_MAX } else { READ_TIME_MAX }
    }
}

/// Whether a path names all objects of a resource, in one namespace or in all.
fn is_collection(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let rest = match *parts.as_slice() {
        ["api", _, ref rest @ ..] | ["apis", _, _, ref rest @ ..] => rest,
        _ => return false,
    };
    matches!(rest, [_] | ["namespaces", _, _])
}

/// The response of `sending`, bounded in size and time.
///
/// # Errors
/// Those of `sending`, [`AccessError::Misbehaved`] and [`AccessError::TimedOut`].
pub(crate) async fn bound_response(
    conduct: &Arc<Conduct>,
    reader: ResponseReader,
    kind: ResponseKind,
    sending: impl Future<Output = Result<Response<Body>, AccessError>>,
) -> Result<Response<Body>, AccessError> {
    if reader == ResponseReader::Server {
        conduct.check()?;
    }
    let end = Instant::now() + kind.time_max();
    let response = tokio::time::timeout(HEAD_TIME_MAX, sending).await;
    let response = response.map_err(|_| AccessError::TimedOut)??;
    if reader == ResponseReader::Server && response.status().is_redirection() {
        let excess = Excess("responded with a redirect, which is not followed".to_owned());
        conduct.offend(&excess.to_string());
        return conduct.check().map(|()| response);
    }
    let conduct = conduct.clone();
    Ok(response.map(|body| {
        wrap(Bounded {
            body,
            buffered: conduct.buffer(reader),
            conduct,
            reader,
            kind,
            bytes: 0,
            end: Box::pin(tokio::time::sleep_until(end)),
            is_over: false,
        })
    }))
}

/// The body of a response that this server reads itself.
struct Bounded {
    body: Body,
    conduct: Arc<Conduct>,
    buffered: Buffered,
    reader: ResponseReader,
    kind: ResponseKind,
    /// Bytes so far; of a watch, since the last line began.
    bytes: usize,
    end: Pin<Box<Sleep>>,
    is_over: bool,
}

impl Bounded {
    /// Counts received bytes.
    fn count(&mut self, data: &Bytes) -> Result<(), Excess> {
        self.bytes += data.len();
        if !self.conduct.add_volume(data.len()) {
            return Err(self.offence("sends more bytes than the server reads from one cluster"));
        }
        match &self.kind {
            ResponseKind::Watch => {
                if let Some(end) = data.iter().rposition(|byte| *byte == b'\n') {
                    self.bytes = data.len() - end - 1;
                }
                if self.bytes > WATCH_LINE_BYTES_MAX {
                    let text =
                        format!("sent a line of a watch of over {WATCH_LINE_BYTES_MAX} bytes");
                    return Err(self.offence(&text));
                }
                return Ok(());
            }
            ResponseKind::List { path, is_first } => {
                let is_first = *is_first && self.bytes == data.len();
                if self.reader == ResponseReader::Server
                    && !self.conduct.add_page(path, is_first, data.len())
                {
                    let text = format!("sent a list without an end at \"{path}\"");
                    return Err(self.offence(&text));
                }
                let size_max = match self.reader {
                    ResponseReader::Server => PAGE_BYTES_MAX,
                    ResponseReader::User => LIST_BYTES_FOR_USER_MAX,
                };
                if self.bytes > size_max {
                    let text = format!(
                        "sent a list of over {size_max} bytes at \"{path}\" in one response"
                    );
                    return Err(self.offence(&text));
                }
            }
            ResponseKind::Object => {
                if self.bytes > OBJECT_BYTES_MAX {
                    let text = format!("sent a response of over {OBJECT_BYTES_MAX} bytes");
                    return Err(self.offence(&text));
                }
            }
        }
        if !self.buffered.grow(data.len()) {
            return Err(Excess("sends too many responses at once to be read".to_owned()));
        }
        Ok(())
    }

    fn offence(&self, text: &str) -> Excess {
        let excess = Excess(text.to_owned());
        if self.reader == ResponseReader::Server {
            self.conduct.offend(&excess.to_string());
        }
        excess
    }

    fn break_off(&mut self, excess: Excess) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        count_rejected();
        self.is_over = true;
        // Ends the request downstream and frees what it holds.
        self.body = crate::body::empty();
        Poll::Ready(Some(Err(excess.into())))
    }
}

impl http_body::Body for Bounded {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        if this.is_over {
            return Poll::Ready(None);
        }
        if this.end.as_mut().poll(cx).is_ready() {
            if this.kind == ResponseKind::Watch {
                // The watcher restarts the watch, as when the API server ends it.
                this.is_over = true;
                this.body = crate::body::empty();
                return Poll::Ready(None);
            }
            let text = format!("did not finish a response within {} s", READ_TIME_MAX.as_secs());
            return this.break_off(Excess(text));
        }
        let frame = match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
            Some(Ok(frame)) => frame,
            other => return Poll::Ready(other),
        };
        if let Some(data) = frame.data_ref()
            && let Err(excess) = this.count(data)
        {
            return this.break_off(excess);
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
