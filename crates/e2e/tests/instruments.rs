//! Tests of the other tests' instruments: on a real API server, recorders must record everything,
//! and comparisons must find differences; a long way must be long.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use e2e::agent::Downstream;
use e2e::http::with_trailers;
use e2e::link::Network;
use e2e::{Client, Kubeconfig, Link, Manifest, Protocol, Recorder, SharedWorld, snapshot};
use http::{HeaderMap, HeaderValue, Request};
use serde_json::json;
use testbed::RealCluster;

struct World {
    /// A client through the recorder, as cluster administrator with a token.
    client: Client,
    token: String,
    recorder: Recorder,
    direct: Client,
    cluster: RealCluster,
}

static WORLD: SharedWorld<World> = SharedWorld::new();

fn world() -> Arc<World> {
    WORLD.get(|| {
        let cluster = RealCluster::start()?;
        let kubeconfig = Kubeconfig::parse(cluster.kubeconfig())?;
        let recorder = Recorder::in_front_of(&Downstream::of(&kubeconfig)?)?;
        let kubectl = e2e::Kubectl::new(&cluster.kubeconfig_path(), cluster.folder())?;
        let bind = ["create", "clusterrolebinding", "it", "--clusterrole=cluster-admin"];
        let mut arguments = bind.to_vec();
        arguments.push("--serviceaccount=default:default");
        kubectl.succeed(&arguments)?;
        let token = kubectl.succeed(&["create", "token", "default"])?.trim().to_owned();
        let down = recorder.downstream();
        let url = format!("https://{}:{}", down.host, down.port);
        let client = Client::new(&url, &down.ca_pem)?.bearer(&token);
        let direct = Client::of(&kubeconfig)?;
        Ok(World { client, token, recorder, direct, cluster })
    })
}

#[test]
fn the_recorder_stores_every_value_of_every_header() {
    let world = world();
    let text = format!(
        "GET /api/v1/nodes?mark=headers HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
         iMPERSONATE-uSER: one\r\nImpersonate-Group: two\r\nImpersonate-Group: three\r\n\
         X-Remote-User: four\r\nConnection: close\r\n\r\n",
        world.token
    );
    let response = world.client.exchange(text.as_bytes()).unwrap();
    // It was forwarded: the API server knows no such user.
    assert!(response.contains("User \\\"one\\\" cannot list"), "{response}");
    let seen = world.recorder.only("mark=headers").unwrap();
    let pairs = [
        ("impersonate-group", "three"),
        ("impersonate-group", "two"),
        ("impersonate-user", "one"),
        ("x-remote-user", "four"),
    ];
    assert_eq!(seen.identity(), pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[test]
fn the_recorder_stores_trailers_of_both_protocols() {
    let world = world();
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let body = body.to_string();
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews?mark=";
    let text = format!(
        "POST {path}one HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\
         Trailer: Impersonate-User\r\nConnection: close\r\n\r\n{:x}\r\n{body}\r\n0\r\n\
         Impersonate-User: somebody\r\n\r\n",
        world.token,
        body.len()
    );
    let response = world.client.exchange(text.as_bytes()).unwrap();
    assert!(response.contains("system:serviceaccount:default:default"), "{response}");

    let trailers = HeaderMap::from_iter([(
        "impersonate-user".parse().unwrap(),
        HeaderValue::from_static("somebody"),
    )]);
    let request = Request::post(format!("{path}two"))
        .header("content-type", "application/json")
        .body(with_trailers(body, trailers))
        .unwrap();
    let response = world.client.over(Protocol::Http2).send(request).unwrap();
    assert_eq!(response.status, 201, "{}", response.text());

    for mark in ["mark=one", "mark=two"] {
        let seen = world.recorder.only(mark).unwrap();
        let expected = ("impersonate-user".to_owned(), "somebody".to_owned());
        assert_eq!(seen.identity(), [expected], "{mark}");
        assert_eq!(seen.trailers, seen.identity(), "{mark}");
    }
    assert_eq!(world.recorder.only("mark=two").unwrap().version, http::Version::HTTP_2);
}

#[test]
fn the_recorder_passes_upgrades_on() {
    let world = world();
    let text = format!(
        "GET /api/v1/namespaces?watch=true&mark=upgrade HTTP/1.1\r\nHost: x\r\n\
         Authorization: Bearer {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Origin: https://x\r\n\r\n",
        world.token
    );
    let response = world.client.exchange(text.as_bytes()).unwrap();
    assert!(response.starts_with("HTTP/1.1 101"), "{response}");
    assert_eq!(world.recorder.only("mark=upgrade").unwrap().method, "GET");
    assert!(world.recorder.all("mark=nothing-like-it").is_empty());
}

#[test]
fn a_snapshot_sees_what_came_changed_and_went() {
    let world = world();
    let kubectl = e2e::Kubectl::new(&world.cluster.kubeconfig_path(), world.cluster.folder());
    let kubectl = kubectl.unwrap();
    let key = |name: &str| format!("configmaps/default/{name}");
    let create = ["create", "configmap"];
    for name in ["changing", "going"] {
        kubectl.succeed(&[&create[..], &[name]].concat()).unwrap();
    }
    let before = snapshot::take(&world.direct).unwrap();
    assert!(before.contains_key("namespaces/-/kube-system"));
    assert!(before.contains_key("clusterroles.rbac.authorization.k8s.io/-/cluster-admin"));
    kubectl.succeed(&[&create[..], &["coming"]].concat()).unwrap();
    kubectl.succeed(&["label", "configmap", "changing", "a=b"]).unwrap();
    kubectl.succeed(&["delete", "configmap", "going"]).unwrap();
    let after = snapshot::take(&world.direct).unwrap();
    let lines = snapshot::differences(&before, &after);
    for start in [
        format!("new: {}", key("coming")),
        format!("changed: {}", key("changing")),
        format!("gone: {}", key("going")),
    ] {
        assert!(lines.iter().any(|line| line.starts_with(&start)), "no '{start}' in {lines:#?}");
    }
    assert!(snapshot::differences(&after, &after).is_empty());
}

#[test]
fn a_manifest_resolves_volumes_and_variables_like_a_kubelet() {
    let text = r#"
apiVersion: v1
kind: Secret
metadata: {name: creds, namespace: cattle-system}
data: {token: dG9w, url: aHR0cHM6Ly94}
stringData: {namespace: c-1}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: cattle-cluster-agent, namespace: cattle-system}
spec:
  template:
    spec:
      serviceAccountName: cattle
      containers:
      - name: cluster-register
        image: drover-agent:1
        args: [cluster]
        env:
        - {name: CATTLE_SERVER, value: "https://x"}
        - name: TOKEN
          valueFrom: {secretKeyRef: {name: creds, key: token}}
        - name: NAMESPACE
          valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
        volumeMounts: [{name: creds, mountPath: /cattle-credentials}]
      volumes: [{name: creds, secret: {secretName: creds}}]
"#;
    let agent = Manifest::parse(text).unwrap().agent().unwrap();
    assert_eq!(agent.image, "drover-agent:1");
    assert_eq!(agent.arguments, ["cluster"]);
    assert_eq!(agent.service_account, "cattle");
    assert_eq!(agent.environment["CATTLE_SERVER"], "https://x");
    assert_eq!(agent.environment["TOKEN"], "top");
    assert_eq!(agent.environment["NAMESPACE"], "cattle-system");
    let files = &agent.secrets["/cattle-credentials"];
    assert_eq!(files["url"], b"https://x");
    assert_eq!(files["namespace"], b"c-1");
}

/// Calls `work` on a thread of its own in `network`.
fn inside<T: Send>(network: &Network, work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let entered = scope.spawn(|| {
            network.enter().unwrap();
            work()
        });
        entered.join().unwrap()
    })
}

/// A connection from the near to the far network, both ends.
fn connection(link: &Link) -> (TcpStream, TcpStream) {
    let listener = inside(link.far(), || TcpListener::bind((link.far().address(), 0)).unwrap());
    let address = listener.local_addr().unwrap();
    let near = inside(link.near(), || TcpStream::connect(address).unwrap());
    (near, listener.accept().unwrap().0)
}

#[test]
fn every_byte_of_the_long_way_takes_its_delay_in_both_directions() {
    let one_way = Duration::from_millis(50);
    let link = Link::start(one_way).unwrap();
    let (near, far) = connection(&link);
    for (mut from, mut to) in [(&near, &far), (&far, &near)] {
        let since = Instant::now();
        from.write_all(b"x").unwrap();
        to.read_exact(&mut [0]).unwrap();
        assert!(since.elapsed() >= one_way, "{:?}", since.elapsed());
    }
    let counts = link.counts().unwrap();
    assert_eq!((counts.lost, counts.overflowed), (0, 0), "{counts:?}");
}

#[test]
fn the_long_way_loses_the_requested_share_of_packets_and_tcp_repairs_it() {
    const BYTES: usize = 2_000_000;
    let link = Link::start(Duration::from_millis(5)).unwrap();
    let (mut near, mut far) = connection(&link);
    link.lose(100);
    let sent: Vec<u8> = (0..BYTES).map(|index| index.to_le_bytes()[index % 3]).collect();
    let received = thread::scope(|scope| {
        scope.spawn(|| near.write_all(&sent).unwrap());
        let mut received = vec![0; BYTES];
        far.read_exact(&mut received).unwrap();
        received
    });
    assert!(received == sent, "bytes were changed");
    let counts = link.counts().unwrap();
    // Packets have 1,500 bytes; the share is that of more than 1,300 draws.
    let share = counts.lost as f64 / counts.sent as f64;
    assert!(counts.sent > 1300 && (0.06..0.14).contains(&share), "{counts:?}");
}

#[test]
fn a_network_of_the_long_way_reaches_nothing_but_the_other() {
    let link = Link::start(Duration::ZERO).unwrap();
    connection(&link);
    let here = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = here.local_addr().unwrap();
    let local = inside(link.far(), || TcpStream::connect(address));
    assert!(local.is_err(), "the loopback device of this machine is reached");
    let other = Ipv4Addr::new(192, 0, 2, 1);
    let routed = inside(link.far(), || TcpStream::connect((other, 80)));
    assert!(routed.is_err(), "a packet found a route beyond the link");
}
