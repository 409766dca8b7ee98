//! Tokens on demand: `POST …/serviceaccounts/<name>/token`.

use std::sync::Arc;

use api_meta::object::ObjectExt;
use api_meta::status::{Cause, Status};
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::CoreObjects;
use super::claims::{Bound, Claims, Kubernetes};
use super::keys::SigningKey;
use super::user_name;
use crate::resource::{Call, Endpoint, Subresource, SubresourceHandler};
use crate::stored::new_uid;

const EXPIRATION_SECONDS: i64 = 3600;
const EXPIRATION_SECONDS_MIN: i64 = 600;
const EXPIRATION_SECONDS_MAX: i64 = 1 << 32;

/// Issues tokens of service accounts on request.
pub struct TokenRequests {
    issuer: String,
    audiences: Vec<String>,
    key: Arc<SigningKey>,
    objects: Arc<dyn CoreObjects>,
}

impl TokenRequests {
    /// Signs with `key` as `issuer`. `audiences` are those of tokens whose request names none.
    pub fn new(
        issuer: &str,
        audiences: Vec<String>,
        key: Arc<SigningKey>,
        objects: Arc<dyn CoreObjects>,
    ) -> Self {
        Self { issuer: issuer.to_owned(), audiences, key, objects }
    }

    /// The subresource `token` of `serviceaccounts`.
    pub fn subresource(self) -> Subresource {
        Subresource {
            name: "token",
            verbs: vec!["create"],
            handler: SubresourceHandler::Endpoint(Arc::new(self)),
            gvk: Some(("authentication.k8s.io", "v1", "TokenRequest")),
        }
    }

    /// Responds to a TokenRequest at `now` (unix seconds).
    ///
    /// # Errors
    /// 404 when the account or the object to bind to does not exist, 400 or 422 when the request is
    /// invalid.
    pub async fn issue(&self, call: &Call, now: i64) -> Result<Value, Status> {
        let account = self.objects.get("serviceaccounts", &call.namespace, &call.name).await;
        let account = account
            .filter(|account| !account.is_terminating())
            .ok_or_else(|| Status::not_found("", "serviceaccounts", &call.name))?;
        let spec = &call.body["spec"];
        let seconds = expiration_seconds(spec)?;
        let audiences = strings(&spec["audiences"])?;
        let audiences = if audiences.is_empty() { self.audiences.clone() } else { audiences };
        let mut kubernetes = Kubernetes {
            namespace: call.namespace.clone(),
            serviceaccount: Bound { name: call.name.clone(), uid: account.uid().to_owned() },
            ..Kubernetes::default()
        };
        if !spec["boundObjectRef"].is_null() {
            self.bind(&mut kubernetes, &spec["boundObjectRef"]).await?;
        }
        let claims = Claims {
            iss: self.issuer.clone(),
            sub: user_name(&call.namespace, &call.name),
            aud: audiences.clone(),
            exp: now + seconds,
            nbf: now,
            iat: now,
            jti: new_uid(),
            kubernetes,
        };
        let token = self.key.sign(&serde_json::to_value(&claims).expect("plain fields serialise"));
        Ok(json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "metadata": {
                "name": call.name,
                "namespace": call.namespace,
                "uid": account.uid(),
                "creationTimestamp": time(now),
            },
            "spec": {
                "audiences": audiences,
                "expirationSeconds": seconds,
                "boundObjectRef": spec["boundObjectRef"],
            },
            "status": {"token": token, "expirationTimestamp": time(claims.exp)},
        }))
    }

    /// Binds the token to an object: the token is invalid once the object is deleted.
    async fn bind(&self, kubernetes: &mut Kubernetes, reference: &Value) -> Result<(), Status> {
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        let (kind, version, name) = (text("kind"), text("apiVersion"), text("name"));
        let (plural, namespace) = match (version, kind) {
            ("v1", "Pod") => ("pods", kubernetes.namespace.clone()),
            ("v1", "Secret") => ("secrets", kubernetes.namespace.clone()),
            ("v1", "Node") => ("nodes", String::new()),
            _ => {
                let (group, version) = api_meta::object::group_version(version);
                return Err(Status::bad_request(format!(
                    "cannot bind token to object of type {group}/{version}, Kind={kind}"
                )));
            }
        };
        let object = self.objects.get(plural, &namespace, name).await;
        let object = object.ok_or_else(|| Status::not_found("", plural, name))?;
        let expected = text("uid");
        if !expected.is_empty() && expected != object.uid() {
            let text = format!(
                "the UID in the bound object reference ({expected}) does not match the UID in \
                 record. The object might have been deleted and then recreated"
            );
            return Err(Status::conflict("", plural, name, &text));
        }
        let bound = Some(Bound { name: name.to_owned(), uid: object.uid().to_owned() });
        match plural {
            "pods" => {
                let account = object["spec"]["serviceAccountName"].as_str().unwrap_or("default");
                if account != kubernetes.serviceaccount.name {
                    return Err(Status::bad_request(format!(
                        "cannot bind token for serviceaccount \"{}\" to pod running with different \
                         serviceaccount name.",
                        kubernetes.serviceaccount.name
                    )));
                }
                kubernetes.node = self.node_of(&object).await;
                kubernetes.pod = bound;
            }
            "secrets" => kubernetes.secret = bound,
            _ => kubernetes.node = bound,
        }
        Ok(())
    }

    async fn node_of(&self, pod: &Value) -> Option<Bound> {
        let name = pod["spec"]["nodeName"].as_str().filter(|name| !name.is_empty())?;
        let node = self.objects.get("nodes", "", name).await;
        let uid = node.map(|node| node.uid().to_owned()).unwrap_or_default();
        Some(Bound { name: name.to_owned(), uid })
    }
}

impl Endpoint for TokenRequests {
    fn call(&self, call: Call) -> BoxFuture<'_, Result<(u16, Value), Status>> {
        Box::pin(async move {
            let response = self.issue(&call, jiff::Timestamp::now().as_second()).await?;
            Ok((201, response))
        })
    }
}

fn expiration_seconds(spec: &Value) -> Result<i64, Status> {
    let given = &spec["expirationSeconds"];
    if given.is_null() {
        return Ok(EXPIRATION_SECONDS);
    }
    let Some(seconds) = given.as_i64() else {
        return Err(Status::bad_request("spec.expirationSeconds is not an integer"));
    };
    let problem = if seconds < EXPIRATION_SECONDS_MIN {
        "may not specify a duration less than 10 minutes"
    } else if seconds > EXPIRATION_SECONDS_MAX {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(seconds);
    };
    let cause = Cause::invalid("spec.expirationSeconds", given, problem);
    Err(Status::invalid("authentication.k8s.io", "TokenRequest", "", vec![cause]))
}

fn strings(list: &Value) -> Result<Vec<String>, Status> {
    match list {
        Value::Null => Ok(Vec::new()),
        list => serde::Deserialize::deserialize(list)
            .map_err(|_| Status::bad_request("spec.audiences is not a list of strings")),
    }
}

fn time(seconds: i64) -> Value {
    match jiff::Timestamp::from_second(seconds) {
        Ok(time) => json!(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
        Err(_) => Value::Null,
    }
}
