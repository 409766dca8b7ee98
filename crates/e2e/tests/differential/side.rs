//! One of the two servers: sends a step with its own values of the placeholders.

use anyhow::{Context, Result};
use bytes::Bytes;
use e2e::Kubeconfig;
use e2e::http::{Body, Client, Connection, HttpResponse, runtime};
use http::Request;
use http_body_util::{BodyExt, Full};

use crate::stream::{NAMESPACES, Step};
use crate::words::{Words, collection, in_namespace};

/// A server, and its values of the placeholders.
pub struct Side {
    pub name: &'static str,
    client: Client,
    connection: Option<Connection>,
    pub words: Words,
}

impl Side {
    pub fn new(name: &'static str, kubeconfig: &Kubeconfig) -> Result<Self> {
        Ok(Self {
            name,
            client: Client::of(kubeconfig)?,
            connection: None,
            words: Words::default(),
        })
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Sends `step` as the administrator, on a persistent connection.
    pub fn send(&mut self, step: &Step) -> Result<HttpResponse> {
        runtime().block_on(self.exchange(step))
    }

    /// Sends `step` to both at once.
    pub fn send_both(
        &mut self,
        other: &mut Self,
        step: &Step,
    ) -> Result<(HttpResponse, HttpResponse)> {
        let both = async { tokio::try_join!(self.exchange(step), other.exchange(step)) };
        runtime().block_on(both)
    }

    async fn exchange(&mut self, step: &Step) -> Result<HttpResponse> {
        let request = self.request(step)?;
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.client.connect().await?,
        };
        let response = connection.send(request).await;
        let response = response.with_context(|| format!("{}: {step}", self.name))?;
        if !response.headers.contains_key("connection") {
            self.connection = Some(connection);
        }
        Ok(response)
    }

    /// Sends `step` as the user of `client`.
    pub fn send_as(&self, client: &Client, step: &Step) -> Result<HttpResponse> {
        let response = client.send(self.request(step)?);
        response.with_context(|| format!("{}: {step}", self.name))
    }

    fn request(&self, step: &Step) -> Result<Request<Body>> {
        let mut request = Request::builder().method(step.method).uri(self.words.own(&step.path));
        for (name, value) in &step.headers {
            request = request.header(*name, self.words.own(value));
        }
        let body = self.words.own(&step.body);
        let body = match body.strip_prefix("hex:") {
            Some(digits) => from_hex(digits)?,
            None => body.into_bytes(),
        };
        Ok(request.body(Full::new(Bytes::from(body)).boxed_unsync())?)
    }

    /// The object at the path of a step, for the analysis of a difference; nothing for a whole
    /// collection.
    pub fn stands(&self, step: &Step) -> Result<String> {
        let path = step.path.split('?').next().unwrap_or_default();
        if step.method == "GET" || path == collection(&step.path) {
            return Ok(String::new());
        }
        Ok(self.client.get(path)?.json().to_string())
    }

    /// Removes the objects that a request to `path` may have created, including their finalizers.
    pub fn forget(&mut self, path: &str) -> Result<()> {
        let collection = collection(path);
        self.words.forget(&collection);
        let list = self.client.get(&collection)?.success()?;
        for item in list["items"].as_array().into_iter().flatten() {
            let name = item["metadata"]["name"].as_str().unwrap_or_default();
            if name.starts_with("kube-") || name.starts_with("system-") {
                continue;
            }
            let object = match item["metadata"]["namespace"].as_str() {
                Some(namespace) if NAMESPACES.contains(&namespace) => {
                    in_namespace(&collection, namespace, name)
                }
                Some(_) => continue,
                None => format!("{collection}/{name}"),
            };
            let request = Request::patch(&object)
                .header("content-type", "application/merge-patch+json")
                .body(
                    Full::new(Bytes::from_static(br#"{"metadata":{"finalizers":null}}"#))
                        .boxed_unsync(),
                )?;
            self.client.send(request)?;
            self.client.delete(&object)?;
        }
        Ok(())
    }
}

fn from_hex(digits: &str) -> Result<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| Ok(u8::from_str_radix(str::from_utf8(pair)?, 16)?));
    bytes.collect::<Result<_>>().context("no hexadecimal digits")
}
