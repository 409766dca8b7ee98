//! A socket of the change feed, over a connection inside this process.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use http::Request;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rest_view::Subscriber;
use serde_json::Value;
use test_kit::PATIENCE;
use tokio::io::DuplexStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{self, Message};

use super::setup::{Setup, TestUser};

/// Buffer for all frames that arrive while the test does not read, in bytes.
const BUFFER_BYTES: usize = 16 * 1024 * 1024;

pub struct Socket(WebSocketStream<DuplexStream>);

impl Socket {
    /// # Errors
    /// The status of a refusal.
    pub async fn open(setup: &Arc<Setup>, who: TestUser, path: &str) -> Result<Self, u16> {
        let (near, far) = tokio::io::duplex(BUFFER_BYTES);
        let subscriber = Arc::new(Mutex::new(Some(subscriber(setup, who))));
        let setup = setup.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let (setup, subscriber) = (setup.clone(), subscriber.lock().unwrap().take());
            async move {
                let request = request.map(|_| ());
                let answer = setup.view.subscribe(request, subscriber.unwrap()).await;
                Ok::<_, std::convert::Infallible>(answer.map(Full::new))
            }
        });
        let server = hyper::server::conn::http1::Builder::new();
        tokio::spawn(server.serve_connection(TokioIo::new(far), service).with_upgrades());
        let url = format!("ws://drover.example{path}");
        match tokio_tungstenite::client_async(url, near).await {
            Ok((stream, _)) => Ok(Self(stream)),
            Err(tungstenite::Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    /// All frames until one is `last`, and then until none comes for `quiet`.
    pub async fn frames(&mut self, last: impl Fn(&Value) -> bool, quiet: Duration) -> Vec<Value> {
        let (mut frames, mut patience) = (Vec::new(), PATIENCE);
        loop {
            let Ok(message) = tokio::time::timeout(patience, self.0.next()).await else {
                assert!(patience == quiet, "the last frame never came: {frames:#?}");
                return frames;
            };
            let Message::Text(text) = message.unwrap().unwrap() else { continue };
            let frame: Value = serde_json::from_str(&text).unwrap();
            if frame["name"] == "ping" {
                continue;
            }
            if last(&frame) {
                patience = quiet;
            }
            frames.push(frame);
        }
    }
}

fn subscriber(setup: &Arc<Setup>, who: TestUser) -> Subscriber {
    let (caller, client) = setup.caller(who);
    let api = setup.world.api.clone();
    Subscriber { caller, client, rights: Box::new(move || api.server.authorizer().generation()) }
}
