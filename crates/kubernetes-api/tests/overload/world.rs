//! One assembled server, several users, and writes whose objects state how long they take.

use std::sync::Arc;
use std::time::Duration;

use api_meta::object::ObjectExt;
use api_meta::status::{Cause, Status};
use apiserver::audit::AuditSettings;
use apiserver::authentication::StaticTokens;
use apiserver::body::respond::Body;
use apiserver::registry::admission::Plugin;
use apiserver::service_accounts::SigningKey;
use apiserver::strategy::Write;
use apiserver::{ApiServer, Resource};
use futures::future::BoxFuture;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use kubernetes_api::assembly::{Assembly, Controllers, Profile, Running};
use serde_json::{Value, json};
use storage::embedded::{EmbeddedConfig, EmbeddedStorage};

use super::wait::{pause, pause_between_polls};

pub const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// Token, name, UID, groups.
const PEOPLE: &str = "t-admin,admin,1,system:masters\nt-alice,alice,2,\"dev,ops\"\n\
                      t-monitor,prometheus,3,system:monitoring\n\
                      t-scheduler,system:kube-scheduler,4,\nt-flood,flood,5,\nt-bob,bob,6,";

pub struct World {
    pub server: ApiServer,
    _running: Running,
    _folder: tempfile::TempDir,
}

pub struct TestResponse {
    pub code: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl TestResponse {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }
}

/// Holds up writes of config maps by their `data.seconds`; `never` is for ever.
struct Slow;

impl Plugin for Slow {
    fn handles(&self, resource: &Resource) -> bool {
        resource.plural == "configmaps"
    }

    fn prepare(&self, _: &Resource, _: &Write<'_>, _: &mut Value, _: Option<&Value>) {}

    fn validate(&self, _: &Resource, _: &Write<'_>, _: &Value, _: Option<&Value>) -> Vec<Cause> {
        Vec::new()
    }

    fn admit<'a>(
        &'a self,
        _: &'a Resource,
        _: &'a Write<'a>,
        object: Option<&'a Value>,
        _: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<(), Status>> {
        let seconds = object.and_then(|object| object["data"]["seconds"].as_str());
        Box::pin(async move {
            match seconds {
                None => {}
                Some("never") => std::future::pending().await,
                Some(text) => {
                    pause(Duration::from_secs_f64(text.parse().unwrap())).await;
                }
            }
            Ok(())
        })
    }
}

impl World {
    pub async fn start(audit: Option<AuditSettings>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let storage = EmbeddedStorage::open(folder.path(), EmbeddedConfig::default()).unwrap();
        let assembly = Assembly {
            controllers: Controllers::Outside,
            tokens: vec![Arc::new(StaticTokens::parse(PEOPLE).unwrap())],
            root_ca_pem: "CA".to_owned(),
            audit,
            ..Assembly::new(storage, Profile::Management, SigningKey::generate_pem())
        };
        let running = assembly.start().await.unwrap();
        let server = running.server.clone();
        server.registry().set_plugins(vec![Arc::new(Slow)]);
        Self { server, _running: running, _folder: folder }
    }

    /// Sends a request and returns the head of the response.
    pub async fn open(
        &self,
        who: &str,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response<Body> {
        let mut request = Request::builder().method(method).uri(path);
        if !who.is_empty() {
            request = request.header("authorization", format!("Bearer t-{who}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.server.handle(request.body(Full::from(body.to_owned())).unwrap()).await
    }

    pub async fn send(
        &self,
        who: &str,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> TestResponse {
        let (parts, body) = self.open(who, method, path, headers, body).await.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        TestResponse { code: parts.status.as_u16(), headers: parts.headers, text }
    }

    pub async fn get(&self, who: &str, path: &str) -> TestResponse {
        self.send(who, Method::GET, path, &[], "").await
    }

    /// Creates an object, which must succeed.
    pub async fn create(&self, path: &str, object: &Value) -> Value {
        let headers = [("content-type", "application/json")];
        let response = self.send("admin", Method::POST, path, &headers, &object.to_string()).await;
        assert_eq!(response.code, 201, "{path} {}: {}", object.name(), response.text);
        response.json()
    }

    /// Grants a user all rights, and waits until the authorizer has them.
    pub async fn allow(&self, user: &str) {
        let group = "rbac.authorization.k8s.io";
        let binding = json!({
            "metadata": {"name": format!("test:{user}")},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
        });
        self.create(&format!("/apis/{group}/v1/clusterrolebindings"), &binding).await;
        let question = json!({"spec": {
            "user": user, "resourceAttributes": {"verb": "*", "group": "*", "resource": "*"},
        }});
        let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        while self.create(reviews, &question).await["status"]["allowed"] != true {
            pause_between_polls().await;
        }
    }
}
