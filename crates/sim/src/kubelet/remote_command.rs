//! `exec` and `attach`: a command's streams over SPDY or over a WebSocket, and its exit status.
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

use super::console::{Console, Disconnected};

/// Names the subprotocol of a SPDY connection, in the request and in the response.
pub const STREAM_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");
const V4: &str = "v4.channel.k8s.io";
const V5: &str = "v5.channel.k8s.io";
/// Longest wait for the connection after the upgrade, and for the streams that belong to it.
pub const SETUP_TIME_MAX: Duration = Duration::from_secs(30);
/// Longest wait for the client to close after the exit status was sent.
pub const CLOSE_TIME_MAX: Duration = Duration::from_secs(5);
/// Buffered pieces in each direction.
const PIECES_WAITING_MAX: usize = 4;

/// A command to run: it gets the console and returns its exit code.
pub type Run = Box<dyn FnOnce(Console) -> BoxFuture<'static, Result<u8, Disconnected>> + Send>;

/// The streams that a client requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    stdin: bool,
    stdout: bool,
    stderr: bool,
    tty: bool,
}

impl Streams {
    /// # Errors
    /// 400: no stream is requested.
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

/// Switches to the client's protocol and runs `run` on it.
///
/// # Errors
/// 400: the client does not request an upgrade, or only to unsupported protocols.
pub fn open(mut connect: Connect, streams: Streams, run: Run) -> Result<Response<Body>, Status> {
    match connect.protocol() {
        Some(Protocol::Spdy) => {
            let offers = connect.offers(&STREAM_PROTOCOL);
            let agreed = negotiate_protocol(&offers, &[V4])?;
            let (response, switched) = connect.switch(Protocol::Spdy, (STREAM_PROTOCOL, agreed))?;
            spawn(spdy::run(switched, streams, run));
            Ok(response)
        }
        Some(Protocol::WebSocket) => {
            let agreed = negotiate_protocol(&connect.websocket_protocols(), &[V5, V4])?;
            let (response, switched) =
                connect.switch(Protocol::WebSocket, (SEC_WEBSOCKET_PROTOCOL, agreed))?;
            spawn(websocket::run(switched, agreed == V5, streams, run));
            Ok(response)
        }
        None => Err(Status::bad_request("Upgrade request required")),
    }
}

/// The first supported protocol that the client offers.
pub fn negotiate_protocol(
    offers: &[String],
    known: &[&'static str],
) -> Result<&'static str, Status> {
    let found = known.iter().find(|known| offers.iter().any(|offer| offer == **known));
    found.copied().ok_or_else(|| {
        Status::bad_request(format!(
            "unable to negotiate protocol: client supports [{}], server supports [{}]",
            offers.join(", "),
            known.join(", ")
        ))
    })
}

/// Serves a connection in a task of its own. Errors there are caused by the client.
pub fn spawn(session: impl Future<Output = anyhow::Result<()>> + Send + 'static) {
    tokio::spawn(async move {
        if let Err(error) = session.await {
            let error = format!("{error:#}");
            tracing::debug!(error, "a connection to a simulated pod broke");
        }
    });
}

/// Waits for the upgrade, which happens after the response was sent; returns the connection.
pub async fn await_upgrade(
    switched: &mut Switched,
) -> anyhow::Result<hyper_util::rt::TokioIo<hyper::upgrade::Upgraded>> {
    let await_upgrade = tokio::time::timeout(SETUP_TIME_MAX, &mut switched.upgrade).await??;
    Ok(hyper_util::rt::TokioIo::new(await_upgrade))
}

/// The exit status of a command, as the error stream carries it.
fn exit_status(code: u8) -> Value {
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
    fn the_first_protocol_that_both_sides_support_is_chosen() {
        let offers =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            negotiate_protocol(&offers(&["v3.channel.k8s.io", V4, V5]), &[V5, V4]).unwrap(),
            V5
        );
        assert_eq!(negotiate_protocol(&offers(&[V5, V4]), &[V4]).unwrap(), V4);
        let status = negotiate_protocol(&offers(&["channel.k8s.io"]), &[V5, V4]).unwrap_err();
        assert_eq!(status.code, 400);
        assert!(status.message.contains("client supports [channel.k8s.io]"), "{status:?}");
    }

    #[test]
    fn a_terminal_has_no_error_stream_and_at_least_one_stream_must_be_requested() {
        let parse = |query: &str| Streams::parse(&Query::parse(Some(query)));
        let terminal = parse("stdin=true&stdout=true&stderr=true&tty=true").unwrap();
        assert!(terminal.tty && terminal.stdin && terminal.stdout && !terminal.stderr);
        assert_eq!(parse("command=ls").unwrap_err().code, 400);
        assert_eq!(parse("stderr=true&tty=true").unwrap_err().code, 400);
    }
}
