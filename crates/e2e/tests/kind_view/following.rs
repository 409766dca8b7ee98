//! `/v1/subscribe`: what a client is sent of types that it follows, and what it is not.

use std::time::Duration;

use e2e::socket::Event;
use e2e::{Client, Socket};
use serde_json::{Value, json};

use super::{Cluster, NORTH, config_map, namespace, world};

/// Time within which a forbidden frame would have arrived.
const LOOK_AROUND: Duration = Duration::from_secs(1);

fn open(client: &Client, path: &str) -> Socket {
    let opened = Socket::open(client, path, &[]).unwrap();
    opened.unwrap_or_else(|refusal| panic!("refused: {refusal:?}"))
}

fn follow(socket: &mut Socket, message: &Value) {
    socket.send(message.to_string()).unwrap();
}

/// The next frame with this name and, unless it is empty, this id in its data.
fn frame(socket: &mut Socket, name: &str, id: &str) -> Value {
    let is_it = |event: &Event| match event {
        Event::Frame(frame) if frame["name"] == name => {
            (id.is_empty() || frame["data"]["id"] == id).then(|| frame.clone())
        }
        _ => None,
    };
    socket.until(is_it).unwrap_or_else(|error| panic!("no {name} of {id}: {error:#}"))
}

/// The error of a subscription that is refused, which ends it.
fn refused(socket: &mut Socket, message: &Value) -> String {
    follow(socket, message);
    let error = frame(socket, "resource.error", "");
    frame(socket, "resource.stop", "");
    error["data"]["error"].as_str().unwrap().to_owned()
}

fn label(cluster: &Cluster, space: &str, name: &str, value: &str) {
    let label = format!("seen={value}");
    let arguments = ["label", "configmap", name, "--namespace", space, "--overwrite", &label];
    cluster.target.kubectl.succeed(&arguments).unwrap();
}

#[test]
fn a_socket_reports_what_changes_among_the_types_that_it_follows() {
    let world = world();
    let cluster = &world.north;
    let data = json!({"k": "v"});
    let objects = [
        namespace("followed"),
        config_map("followed", "a", &data),
        config_map("followed", "b", &data),
    ];
    cluster.target.kubectl.apply(&objects).unwrap();
    let mut socket = open(&world.admin, &cluster.path("subscribe"));
    frame(&mut socket, "ping", "");
    let all = json!({"resourceType": "configmaps", "namespace": "followed"});
    follow(&mut socket, &all);
    let start = frame(&mut socket, "resource.start", "");
    assert_eq!(
        (&start["resourceType"], &start["namespace"]),
        (&"configmaps".into(), &"followed".into())
    );
    let made = frame(&mut socket, "resource.create", "followed/a");
    let object = &made["data"];
    assert_eq!((&object["type"], &object["data"]), (&json!("configmap"), &data));
    assert_eq!(object["metadata"]["fields"][0], "a");
    assert!(object["links"]["remove"].is_string(), "{object}");
    assert_eq!(made["revision"], object["metadata"]["resourceVersion"]);
    frame(&mut socket, "resource.create", "followed/b");
    label(cluster, "followed", "a", "one");
    let changed = frame(&mut socket, "resource.change", "followed/a");
    assert_eq!(changed["data"]["metadata"]["labels"]["seen"], "one");
    let delete = ["delete", "configmap", "b", "--namespace", "followed"];
    cluster.target.kubectl.succeed(&delete).unwrap();
    frame(&mut socket, "resource.remove", "followed/b");

    // From a version on, one object, by a label; then no more of the first.
    let list = world.admin.get(&cluster.path("configmaps/followed")).unwrap().success().unwrap();
    let one = json!({"resourceType": "configmap", "id": "followed/a", "resourceVersion": list["revision"]});
    follow(&mut socket, &one);
    assert_eq!(frame(&mut socket, "resource.start", "")["id"], "followed/a");
    let by_label =
        json!({"resourceType": "configmaps", "namespace": "followed", "selector": "app=a"});
    follow(&mut socket, &by_label);
    let labelled = frame(&mut socket, "resource.create", "followed/a");
    assert_eq!(labelled["selector"], "app=a");
    let mut stop = all.clone();
    stop["stop"] = true.into();
    follow(&mut socket, &stop);
    frame(&mut socket, "resource.stop", "");
    label(cluster, "followed", "a", "two");
    let frames = socket.all_within(LOOK_AROUND).unwrap();
    let changes: Vec<&Value> = frames.iter().map(|frame| &frame["name"]).collect();
    assert_eq!(changes, ["resource.change"; 2], "{frames:?}");

    // The management API has a socket, too.
    let mut socket = open(&world.admin, "/v1/subscribe");
    follow(&mut socket, &json!({"resourceType": "management.cattle.io.cluster"}));
    frame(&mut socket, "resource.create", &cluster.imported.id);
}

#[test]
fn what_cannot_be_followed_is_an_error_and_an_end() {
    let world = world();
    let mut socket = open(&world.admin, &world.north.path("subscribe"));
    let text = refused(&mut socket, &json!({"resourceType": "nothing"}));
    assert_eq!(text, "failed to find schema nothing");
    let version = json!({"resourceType": "configmaps", "resourceVersion": "x"});
    let text = refused(&mut socket, &version);
    assert!(
        text.contains("invalid resource version") || text.contains("resourceVersion"),
        "{text}"
    );
    let text = refused(&mut socket, &json!({"resourceType": "configmaps", "selector": "a==b==c"}));
    assert!(text.contains("found '=='"), "{text}");
    for message in ["", "[]", "{\"resourceType\": 7}"] {
        socket.send(message).unwrap();
        frame(&mut socket, "resource.error", "");
    }
    // It still works.
    follow(&mut socket, &json!({"resourceType": "namespaces"}));
    frame(&mut socket, "resource.create", "kube-system");
    socket.send("x".repeat(20_000)).unwrap();
    let closed = socket.until(|event| match event {
        Event::Closed(code, _) => Some(*code),
        Event::Frame(_) => None,
    });
    assert_eq!(closed.unwrap(), 1009);

    let plain = world.admin.get(&world.north.path("subscribe")).unwrap();
    assert_eq!(super::refusal(&plain), (400, "BadRequest".into()));
    let anyone = world.server.anyone().unwrap();
    let refusal = Socket::open(&anyone, &world.north.path("subscribe"), &[]).unwrap();
    assert_eq!(refusal.err().map(|(status, _)| status), Some(401));
}

#[test]
fn a_socket_reports_nothing_that_a_get_refuses() {
    let world = world();
    let cluster = &world.north;
    let mut objects = vec![namespace("follow-own"), namespace("follow-foreign")];
    for space in ["follow-own", "follow-foreign"] {
        objects.push(config_map(space, "a", &json!({})));
    }
    cluster.target.kubectl.apply(&objects).unwrap();
    world.cli.succeed(&["project", "create", "follow", "--cluster", NORTH]).unwrap();
    let moved = ["namespace", "move", "follow-own", "--project", "follow", "--cluster", NORTH];
    world.cli.succeed(&moved).unwrap();
    let member = world.user("follower");
    let of_project = ["--user", "follower", "--cluster", NORTH, "--project", "follow"];
    world.cli.succeed(&[&["role", "grant", "project-member"], &of_project[..]].concat()).unwrap();
    e2e::eventually("the role of the project", || {
        let list = member.get(&cluster.path("configmaps"))?.success()?;
        anyhow::ensure!(super::ids(&list).contains(&"follow-own/a"), "{list}");
        Ok::<_, anyhow::Error>(())
    });

    let mut socket = open(&member, &cluster.path("subscribe"));
    follow(&mut socket, &json!({"resourceType": "configmaps"}));
    frame(&mut socket, "resource.create", "follow-own/a");
    for foreign in [
        json!({"resourceType": "configmaps", "namespace": "follow-foreign"}),
        json!({"resourceType": "configmaps", "id": "follow-foreign/a"}),
        json!({"resourceType": "nodes"}),
    ] {
        refused(&mut socket, &foreign);
    }
    label(cluster, "follow-foreign", "a", "one");
    label(cluster, "follow-own", "a", "one");
    frame(&mut socket, "resource.change", "follow-own/a");
    let seen = socket.all_within(LOOK_AROUND).unwrap();
    assert!(!Value::from(seen.clone()).to_string().contains("follow-foreign"), "{seen:?}");

    // Without the role nothing comes any more.
    world.cli.succeed(&[&["role", "revoke", "project-member"], &of_project[..]].concat()).unwrap();
    frame(&mut socket, "resource.stop", "");
    label(cluster, "follow-own", "a", "two");
    assert_eq!(socket.all_within(LOOK_AROUND).unwrap(), [json!(null); 0]);
}
