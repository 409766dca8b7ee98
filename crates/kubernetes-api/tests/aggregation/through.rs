//! An available server, as clients use it through this one.

use std::process::Command;
use std::sync::Arc;

use apiserver::UserInfo;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use testbed::{Binaries, Program};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::own::Own;
use super::real::Real;
use super::{DEFINITIONS, SERVICES, api_service, gadgets, wait};

pub const GROUP: &str = "there.example";
const GADGETS: &str = "/apis/there.example/v1/namespaces/default/gadgets";

/// Returns a namespace that has objects there.
pub async fn run(own: &Own, real: &Real) -> &'static str {
    let (code, response) = real.send(Method::POST, DEFINITIONS, &gadgets(GROUP)).await;
    assert_eq!(code, 201, "{response}");
    let mut service = api_service(GROUP, "away", real.port());
    service["metadata"]["name"] = format!("v1.{GROUP}").into();
    own.make("POST", SERVICES, service).await;
    let path = format!("{SERVICES}/v1.{GROUP}");
    wait::until("it is available", async || {
        own.get(&path).await["status"]["conditions"][0]["reason"] == "Passed"
            && real.send(Method::GET, &format!("/apis/{GROUP}/v1"), &Value::Null).await.0 == 200
    })
    .await;
    documents(own).await;
    kubectl(own, real).await;
    schemas_in_protobuf(own, real).await;
    identity(own, real).await;
    watches(own).await;
    let namespace = json!({"metadata": {"name": "held"}});
    own.make("POST", "/api/v1/namespaces", namespace.clone()).await;
    assert_eq!(real.send(Method::POST, "/api/v1/namespaces", &namespace).await.0, 201);
    own.make("POST", &GADGETS.replace("default", "held"), gadget("there")).await;
    "held"
}

fn gadget(name: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Gadget", "metadata": {"name": name},
        "spec": {"size": 3},
    })
}

async fn documents(own: &Own) {
    let groups = own.get("/apis").await;
    let last = groups["groups"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["name"], GROUP, "the lowest priority comes last");
    let all = own.aggregated().await;
    let item = all["items"].as_array().unwrap().last().unwrap();
    assert_eq!(item["versions"][0]["freshness"], "Current");
    assert_eq!(item["versions"][0]["resources"][0]["resource"], "gadgets");
    // It publishes schemas asynchronously, and is polled.
    wait::until("its schemas are merged", async || {
        own.touch_service().await;
        let index = own.get("/openapi/v3").await;
        let v2 = own.get("/openapi/v2").await;
        let entry = &index["paths"][format!("apis/{GROUP}/v1")]["serverRelativeURL"];
        entry.is_string() && v2["definitions"]["example.there.v1.Gadget"].is_object()
    })
    .await;
    let v2 = own.get("/openapi/v2").await;
    assert!(v2["paths"][GADGETS.replace("default", "{namespace}")]["post"].is_object());
    let index = own.get("/openapi/v3").await;
    let url = index["paths"][format!("apis/{GROUP}/v1")]["serverRelativeURL"].as_str().unwrap();
    let document = own.get(url).await;
    assert!(document["components"]["schemas"]["example.there.v1.Gadget"].is_object(), "{document}");
}

async fn kubectl(own: &Own, real: &Real) {
    let output = own.kubectl(&["get", "apiservices"]).await;
    let row = output.lines().find(|line| line.starts_with("v1.there.example")).unwrap();
    assert!(row.contains("default/away") && row.contains("True"), "{row}");
    assert!(own.kubectl(&["api-resources"]).await.contains("there.example/v1"));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), gadget("one").to_string()).unwrap();
    let output = own.kubectl(&["apply", "-f", file.path().to_str().unwrap()]).await;
    assert_eq!(output, "gadget.there.example/one created\n");
    let (_, found) = real.send(Method::GET, &format!("{GADGETS}/one"), &Value::Null).await;
    assert_eq!(found["spec"]["size"], 3);
    assert!(own.kubectl(&["get", "gadgets"]).await.contains("one"));
    let output = own.kubectl(&["explain", "gadget.spec.size"]).await;
    assert!(output.contains("How large it is."), "{output}");
}

/// A Go client reads the schemas of both servers in protobuf and in JSON, and both are equal. Those
/// of this server contain a part of the other's.
async fn schemas_in_protobuf(own: &Own, real: &Real) {
    for kubeconfig in [real.kubeconfig(), own.kubeconfig()] {
        let mut command = Command::new(Binaries::locate().path(Program::GoClient).unwrap());
        command.arg("openapi").arg(kubeconfig);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let done: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("ok ")).collect();
        let complained = String::from_utf8_lossy(&output.stderr);
        assert_eq!(done, ["version 2", "version 3"], "{said}\n{complained}");
    }
    let index = own.get("/openapi/v3").await;
    assert!(index["paths"][format!("apis/{GROUP}/v1")].is_object(), "it was among what was read");
}

/// The other server authorizes the user that this server sends: here everybody may list, there only
/// Alice.
async fn identity(own: &Own, real: &Real) {
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
    let rules = json!([{"apiGroups": [GROUP], "resources": ["gadgets"], "verbs": ["list"]}]);
    let role = json!({"metadata": {"name": "gadgets"}, "rules": rules});
    let binding = |kind: &str, name: &str| {
        let api_group = "rbac.authorization.k8s.io";
        json!({
            "metadata": {"name": "gadgets"},
            "roleRef": {"apiGroup": api_group, "kind": "ClusterRole", "name": "gadgets"},
            "subjects": [{"apiGroup": api_group, "kind": kind, "name": name}],
        })
    };
    let (roles, bindings) = (format!("{RBAC}/clusterroles"), format!("{RBAC}/clusterrolebindings"));
    own.make("POST", &roles, role.clone()).await;
    own.make("POST", &bindings, binding("Group", "system:authenticated")).await;
    assert_eq!(real.send(Method::POST, &roles, &role).await.0, 201);
    assert_eq!(real.send(Method::POST, &bindings, &binding("User", "alice")).await.0, 201);
    let list = async |name: &str| {
        let user = UserInfo::new(name, &["system:authenticated"]);
        own.send(user, "GET", GADGETS, "application/json", &Value::Null).await
    };
    wait::until("Alice may list", async || list("alice").await.0 == StatusCode::OK).await;
    let (code, status) = list("bob").await;
    assert_eq!(code, StatusCode::FORBIDDEN);
    assert!(status["message"].as_str().unwrap().contains("User \"bob\" cannot list"), "{status}");
}

async fn watches(own: &Own) {
    let events = own.get(&format!("{GADGETS}?watch=1&timeoutSeconds=1")).await;
    assert_eq!(events["type"], "ADDED", "{events}");
    assert_eq!(events["object"]["metadata"]["name"], "one");
    let mut tls = pki::client_config(&own.ca_pem, None).unwrap();
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    let name = "localhost".try_into().unwrap();
    let tcp = TcpStream::connect(own.address).await.unwrap();
    let mut stream = TlsConnector::from(Arc::new(tls)).connect(name, tcp).await.unwrap();
    let request = format!(
        "GET {GADGETS}?watch=1&timeoutSeconds=2 HTTP/1.1\r\nHost: localhost\r\n\
         Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: https://localhost\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut output = Vec::new();
    let mut buffer = [0; 4096];
    while !String::from_utf8_lossy(&output).contains("\"ADDED\"") {
        let read = stream.read(&mut buffer).await.unwrap();
        assert!(read > 0, "it ended after {}", String::from_utf8_lossy(&output));
        output.extend_from_slice(&buffer[..read]);
    }
    assert!(output.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&output));
}
