//! `exec` and `attach`: a command's streams over SPDY or over a WebSocket, and how it ended.
//!
//! Source: `k8s.io/apimachinery/pkg/util/remotecommand` and `k8s.io/kubelet/pkg/cri/streaming`
//! of Kubernetes 1.36: subprotocols `v4.channel.k8s.io` and `v5.channel.k8s.io`.

mod spdy;
mod websocket;

use std::time::Duration;

use api_meta::status::Status;
use apiserver::body::respond::Body;
use apiserver::connect::{Connect, Protocol, Switched};
use apiserver::request::Query;
use futures::future::BoxFuture;
use http::header::SEC_WEBSOCKET_PROTOCOL;
use http::{HeaderName, Response};
use serde_json::{Value, json};

use super::console::{Console, Left};

/// Names the subprotocol of a SPDY connection, in the request and in the response.
pub const STREAM_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");
const V4: &str = "v4.channel.k8s.io";
const V5: &str = "v5.channel.k8s.io";
/// Longest wait for the connection after the upgrade, and for the streams that belong to it.
pub const SETUP_TIME_MAX: Duration = Duration::from_secs(30);
/// Longest wait for the client to close after it was told the end.
pub const CLOSE_TIME_MAX: Duration = Duration::from_secs(5);
/// Pieces that wait on each way.
const PIECES_WAITING_MAX: usize = 4;

/// What is run: it takes the console and gives its exit code.
pub type Run = Box<dyn FnOnce(Console) -> BoxFuture<'static, Result<u8, Left>> + Send>;

/// The streams that a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    stdin: bool,
    stdout: bool,
    stderr: bool,
    tty: bool,
}

impl Streams {
    /// # Errors
    /// 400: none is wanted.
    pub fn parse(query: &Query) -> Result<Self, Status> {
        let tty = query.flag("tty");
        let streams = Self {
            stdin: query.flag("stdin"),
            stdout: query.flag("stdout"),
            // A terminal has one stream for both.
            stderr: query.flag("stderr") && !tty,
            tty,
        };
        if !(streams.stdin || streams.stdout || streams.stderr) {
            let words = "you must specify at least 1 of stdin, stdout, stderr";
            return Err(Status::bad_request(words));
        }
        Ok(streams)
    }
}

/// Switches to what the client speaks and runs `run` on it.
///
/// # Errors
/// 400: the client does not ask for an upgrade, or for protocols that are not spoken here.
pub fn open(mut connect: Connect, streams: Streams, run: Run) -> Result<Response<Body>, Status> {
    match connect.protocol() {
        Some(Protocol::Spdy) => {
            let offers = connect.offers(&STREAM_PROTOCOL);
            let agreed = agree(&offers, &[V4])?;
            let (response, switched) = connect.switch(Protocol::Spdy, (STREAM_PROTOCOL, agreed))?;
            spawn(spdy::run(switched, streams, run));
            Ok(response)
        }
        Some(Protocol::WebSocket) => {
            let agreed = agree(&connect.websocket_protocols(), &[V5, V4])?;
            let (response, switched) =
                connect.switch(Protocol::WebSocket, (SEC_WEBSOCKET_PROTOCOL, agreed))?;
            spawn(websocket::run(switched, agreed == V5, streams, run));
            Ok(response)
        }
        None => Err(Status::bad_request("Upgrade request required")),
    }
}

/// The first of ours that the client offers.
pub fn agree(offers: &[String], known: &[&'static str]) -> Result<&'static str, Status> {
    let found = known.iter().find(|known| offers.iter().any(|offer| offer == **known));
    found.copied().ok_or_else(|| {
        Status::bad_request(format!(
            "unable to negotiate protocol: client supports [{}], server supports [{}]",
            offers.join(", "),
            known.join(", ")
        ))
    })
}

/// Speaks on a connection in a task of its own. What goes wrong there, the client does.
pub fn spawn(session: impl Future<Output = anyhow::Result<()>> + Send + 'static) {
    tokio::spawn(async move {
        if let Err(error) = session.await {
            let error = format!("{error:#}");
            tracing::debug!(error, "a connection to a simulated pod broke");
        }
    });
}

/// The connection, once the client has got the response.
pub async fn upgraded(
    switched: &mut Switched,
) -> anyhow::Result<hyper_util::rt::TokioIo<hyper::upgrade::Upgraded>> {
    let upgraded = tokio::time::timeout(SETUP_TIME_MAX, &mut switched.upgrade).await??;
    Ok(hyper_util::rt::TokioIo::new(upgraded))
}

/// How a command ended, as the error stream tells it.
fn ending(code: u8) -> Value {
    if code == 0 {
        return json!({"metadata": {}, "status": "Success"});
    }
    json!({
        "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
        "message": format!("command terminated with non-zero exit code: exit status {code}"),
        "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_protocol_that_both_sides_know_is_spoken() {
        let offers =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(agree(&offers(&["v3.channel.k8s.io", V4, V5]), &[V5, V4]).unwrap(), V5);
        assert_eq!(agree(&offers(&[V5, V4]), &[V4]).unwrap(), V4);
        let status = agree(&offers(&["channel.k8s.io"]), &[V5, V4]).unwrap_err();
        assert_eq!(status.code, 400);
        assert!(status.message.contains("client supports [channel.k8s.io]"), "{status:?}");
    }

    #[test]
    fn a_terminal_has_no_stream_for_errors_and_something_must_be_wanted() {
        let parse = |query: &str| Streams::parse(&Query::parse(Some(query)));
        let terminal = parse("stdin=true&stdout=true&stderr=true&tty=true").unwrap();
        assert!(terminal.tty && terminal.stdin && terminal.stdout && !terminal.stderr);
        assert_eq!(parse("command=ls").unwrap_err().code, 400);
        assert_eq!(parse("stderr=true&tty=true").unwrap_err().code, 400);
    }
}
