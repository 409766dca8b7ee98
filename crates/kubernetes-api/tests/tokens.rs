//! Bearer tokens that other servers verify, through a whole server: OpenID Connect, a token
//! webhook, bootstrap tokens. For the server, the provider is a real one: HTTPS, discovery, key
//! set, signatures.

#![allow(clippy::unwrap_used)]

#[path = "tokens/oidc.rs"]
mod oidc;
#[path = "tokens/paths.rs"]
mod paths;
#[path = "tokens/provider.rs"]
mod provider;
#[path = "tokens/tracking.rs"]
mod tracking;
#[path = "wait/wait.rs"]
mod wait;

use std::sync::Arc;
use std::time::Duration;

use apiserver::authentication::{ReviewVersion, StaticTokens, TokenAuthenticator, TokenWebhook};
use apiserver::service_accounts::SigningKey;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Full};
use kubernetes_api::assembly::{Assembly, Profile, Running};
use provider::Provider;
use serde_json::{Value, json};
use storage::embedded::{EmbeddedConfig, EmbeddedStorage};

const SELF_REVIEW: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

struct World {
    running: Running,
    _folder: tempfile::TempDir,
}

struct TestResponse {
    code: u16,
    headers: HeaderMap,
    body: Value,
}

impl World {
    /// `t-root` has all rights; `t-ann` has none.
    async fn start(outside: Vec<Arc<dyn TokenAuthenticator>>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let people = "t-root,root,,system:masters\nt-ann,ann,";
        let running = Assembly {
            tokens: vec![Arc::new(StaticTokens::parse(people).unwrap())],
            bootstrap_tokens: true,
            tokens_outside: outside,
            root_ca_pem: "CA".to_owned(),
            ..Assembly::new(
                EmbeddedStorage::open(folder.path(), EmbeddedConfig::default()).unwrap(),
                Profile::Full,
                SigningKey::generate_pem(),
            )
        };
        Self { running: running.start().await.unwrap(), _folder: folder }
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Value,
    ) -> TestResponse {
        let kind = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let headers = [headers, &[("content-type", kind)]].concat();
        self.send_as(method, path, &headers, body).await
    }

    /// With these headers and no others.
    async fn send_as(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Value,
    ) -> TestResponse {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = request.body(Full::from(body)).unwrap();
        let (parts, body) = self.running.server.handle(request).await.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        TestResponse { code: parts.status.as_u16(), headers: parts.headers, body }
    }

    /// As root, and the request must succeed.
    async fn root(&self, method: Method, path: &str, body: Value) -> Value {
        let response = self.send(method, path, &[("authorization", "Bearer t-root")], body).await;
        assert!(response.code < 300, "{path}: {}", response.body);
        response.body
    }

    /// The user that the server authenticates; `None` for a 401.
    async fn who(&self, token: &str) -> Option<Value> {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str())];
        let response = self.send(Method::POST, SELF_REVIEW, &headers, json!({})).await;
        match response.code {
            201 => Some(response.body["status"]["userInfo"].clone()),
            401 => None,
            code => panic!("{code}: {}", response.body),
        }
    }
}

#[tokio::test]
async fn a_bootstrap_token_is_what_its_secret_says() {
    let world = World::start(Vec::new()).await;
    let secrets = "/api/v1/namespaces/kube-system/secrets";
    let one = format!("{secrets}/bootstrap-token-abcdef");
    let data = |key: &str, value: &str| json!({"stringData": {key: value}});
    let secret = json!({
        "metadata": {"name": "bootstrap-token-abcdef"},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "token-id": "abcdef",
            "token-secret": "0123456789abcdef",
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": "system:bootstrappers:workers,system:bootstrappers:a",
        },
    });
    let token = "abcdef.0123456789abcdef";
    assert_eq!(world.who(token).await, None);
    world.root(Method::POST, secrets, secret).await;
    let user = world.who(token).await.unwrap();
    assert_eq!(user["username"], "system:bootstrap:abcdef");
    let groups = json!([
        "system:bootstrappers",
        "system:bootstrappers:a",
        "system:bootstrappers:workers",
        "system:authenticated",
    ]);
    assert_eq!(user["groups"], groups);
    for other in ["abcdef.0123456789abcdeg", "abcdeg.0123456789abcdef", "abcdef.0123456789ABCDEF"] {
        assert_eq!(world.who(other).await, None, "{other}");
    }

    let spoilt = [
        ("expiration", "2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z"),
        ("expiration", "soon", ""),
        ("usage-bootstrap-authentication", "false", "true"),
        ("token-id", "abcdeg", "abcdef"),
        ("token-secret", "", "0123456789abcdef"),
        ("auth-extra-groups", "system:masters", ""),
        ("auth-extra-groups", "system:bootstrappers:", ""),
    ];
    for (key, bad, good) in spoilt {
        world.root(Method::PATCH, &one, data(key, bad)).await;
        assert_eq!(world.who(token).await, None, "{key} is \"{bad}\"");
        world.root(Method::PATCH, &one, data(key, good)).await;
        assert!(world.who(token).await.is_some(), "{key} is \"{good}\"");
    }
    world.root(Method::DELETE, &one, Value::Null).await;
    assert_eq!(world.who(token).await, None);
}

fn kubeconfig(provider: &Provider, path: &str, user: &Value) -> String {
    json!({
        "clusters": [{"name": "c", "cluster": {
            "server": provider.url(path),
            "certificate-authority-data": STANDARD.encode(&provider.ca_pem),
        }}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    })
    .to_string()
}

fn webhook(config: &str, keep: Duration) -> Result<TokenWebhook, String> {
    TokenWebhook::new(config, "/".as_ref(), ReviewVersion::V1, keep)
        .map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_webhook_authenticates_tokens_and_is_called_last_and_once() {
    let provider = Provider::start().await;
    let config = kubeconfig(&provider, "/review", &json!({"token": "hook-secret"}));
    let hook = webhook(&config, Duration::from_secs(60)).unwrap();
    let world = World::start(vec![Arc::new(hook)]).await;

    let user = world.who("outside-carol").await.unwrap();
    assert_eq!(user["username"], "carol");
    assert_eq!(user["uid"], "u-carol");
    assert_eq!(user["groups"], json!(["people", "system:authenticated"]));
    assert_eq!(user["extra"], json!({"team": ["red"]}));
    let reviews = provider.take_reviews();
    assert_eq!(reviews.len(), 1);
    assert_eq!(reviews[0].authorization, "Bearer hook-secret");
    assert_eq!(reviews[0].body["apiVersion"], "authentication.k8s.io/v1");
    assert_eq!(reviews[0].body["spec"]["token"], "outside-carol");
    let issuer = "https://kubernetes.default.svc.cluster.local";
    assert_eq!(reviews[0].body["spec"]["audiences"], json!([issuer]));

    assert!(world.who("outside-carol").await.is_some());
    assert_eq!(world.who("unknown").await, None);
    assert_eq!(world.who("unknown").await, None);
    let reviews = provider.take_reviews();
    assert_eq!(reviews.len(), 1, "responses are cached, refusals too");
    for strange in ["for-others", "nameless", "no-json"] {
        assert_eq!(world.who(strange).await, None, "{strange}");
    }
    provider.take_reviews();
    assert!(world.who("t-ann").await.is_some());
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    world.root(Method::POST, accounts, json!({"metadata": {"name": "robot"}})).await;
    let path = format!("{accounts}/robot/token");
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"});
    let issued = world.root(Method::POST, &path, request).await;
    assert!(world.who(issued["status"]["token"].as_str().unwrap()).await.is_some());
    assert_eq!(provider.take_reviews().len(), 0, "tokens of this server are not shown to others");
    // It fails twice, then responds.
    assert_eq!(world.who("outside-late").await.unwrap()["username"], "late");
    assert_eq!(provider.take_reviews().len(), 3);
}

#[tokio::test]
async fn a_webhook_file_that_would_be_half_obeyed_is_refused() {
    let provider = Provider::start().await;
    let refused = |user: Value| webhook(&kubeconfig(&provider, "/review", &user), Duration::ZERO);
    let problem = refused(json!({"client-certificate": "c.pem"})).err().unwrap();
    assert!(problem.contains("client-certificate") && problem.contains("not offered"), "{problem}");
    let config = kubeconfig(&provider, "/review", &json!({}));
    let with = |from: &str, to: &str| webhook(&config.replace(from, to), Duration::ZERO).err();
    assert!(with("https://", "http://").unwrap().contains("no usable server"));
    assert!(with("current-context\":\"x", "current-context\":\"y").unwrap().contains("contexts"));
    assert_eq!(with("nothing", "else"), None);
}
