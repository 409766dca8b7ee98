//! The change feed inside a cluster and its projects, for owners and other users.

use anyhow::ensure;
use e2e::{Kubectl, Sim};

use super::*;

struct Inside {
    /// The cluster's agent runs as long as this lives.
    sim: Sim,
    cluster: String,
    /// Id of the project `shop`.
    project: String,
}

impl Inside {
    fn start(world: &World, name: &str) -> Self {
        let sim = Sim::start(&["--nodes", "1"]).unwrap();
        let kubeconfig = sim.kubeconfig();
        let import = ["cluster", "import", name, "--kubeconfig", kubeconfig.to_str().unwrap()];
        world.cli.succeed(&import).unwrap();
        let cluster = journey::cluster_id(&world.server, name).unwrap();
        let body = json!({"type": "project", "name": "shop", "clusterId": cluster});
        let project = world.admin().post("/v3/projects", &body).unwrap().success().unwrap();
        Self { sim, cluster, project: project["id"].as_str().unwrap().to_owned() }
    }

    /// `kubectl` of the cluster, without Drover.
    fn kubectl(&self) -> Kubectl {
        self.sim.kubectl().unwrap()
    }

    fn cluster_path(&self, below: &str) -> String {
        format!("/v3/clusters/{}/{below}", self.cluster)
    }

    fn project_path(&self, below: &str) -> String {
        format!("/v3/projects/{}/{below}", self.project)
    }

    fn add_namespace(&self, admin: &Client, name: &str) {
        let body = json!({"type": "namespace", "name": name, "projectId": self.project});
        // The owner's rights in a new cluster come with a role that is created there.
        eventually("the namespace can be made", || {
            admin.post(&self.cluster_path("namespaces"), &body)?.success()
        });
    }
}

/// The names and ids of all frames until the next ping.
fn frames_until_ping(socket: &mut Socket) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let frames = socket.all_within(LOOK_AROUND).unwrap();
    frames.iter().map(|frame| (text(&frame["name"]), text(&frame["data"]["id"]))).collect()
}

#[test]
fn changes_inside_a_cluster_and_a_project_are_sent_like_a_get_shows_them() {
    let world = world();
    let inside = Inside::start(&world, "followed");
    let (admin, kubectl) = (world.admin(), inside.kubectl());
    let mut of_cluster = open(&admin, &inside.cluster_path("subscribe?resourceTypes=namespace"));
    let types = "resourceTypes=workload&resourceTypes=pod&resourceTypes=configMap";
    let mut of_project = open(&admin, &inside.project_path(&format!("subscribe?{types}")));
    about(&mut of_cluster, "resource.change", "kube-system");
    // Of every type: a kind that the agent may not watch would end them.
    let paths = [inside.cluster_path("subscribe"), inside.project_path("subscribe")];
    let mut all = paths.map(|path| open(&admin, &path));

    inside.add_namespace(&admin, "front");
    let change = about(&mut of_cluster, "resource.change", "front");
    let own = admin.get(&inside.cluster_path("namespaces/front")).unwrap().success().unwrap();
    assert_eq!((&change["projectId"], &change["links"]), (&own["projectId"], &own["links"]));

    // Only objects of this project.
    for namespace in ["default", "front"] {
        let map = ["create", "configmap", "colours", "--from-literal=a=b", "-n", namespace];
        kubectl.succeed(&map).unwrap();
    }
    let map = about(&mut of_project, "resource.change", "front:colours");
    assert_eq!((&map["data"]["a"], &map["projectId"]), (&json!("b"), &json!(inside.project)));
    kubectl.succeed(&["create", "deployment", "web", "--image=nginx", "-n", "front"]).unwrap();
    let web = about(&mut of_project, "resource.change", "deployment:front:web");
    assert_eq!(web["type"], "deployment", "{web}");
    let is_pod = |event: &Event| match event {
        Event::Frame(frame) => (frame["data"]["type"] == "pod").then(|| frame["data"].clone()),
        Event::Closed(..) => None,
    };
    let pod = of_project.until(is_pod).unwrap();
    assert_eq!(pod["workloadId"], "deployment:front:web", "{pod}");
    // An object that is deleted before a socket reads it produces no frame.
    about(&mut all[1], "resource.change", "deployment:front:web");

    kubectl.succeed(&["delete", "configmap", "colours", "-n", "default"]).unwrap();
    kubectl.succeed(&["delete", "deployment", "web", "-n", "front"]).unwrap();
    about(&mut of_project, "resource.remove", "deployment:front:web");
    kubectl.succeed(&["delete", "configmap", "colours", "-n", "front"]).unwrap();
    about(&mut of_project, "resource.remove", "front:colours");
    let rest = frames_until_ping(&mut of_project);
    assert!(rest.iter().all(|(_, id)| !id.contains("default")), "{rest:?}");
    about(&mut all[0], "resource.change", "front");
    about(&mut all[1], "resource.remove", "deployment:front:web");
    all.iter_mut().for_each(|socket| drop(frames_until_ping(socket)));
}

#[test]
fn events_of_secrets_of_a_whole_project_omit_their_contents() {
    let world = world();
    let inside = Inside::start(&world, "secretive");
    let admin = world.admin();
    let secrets = inside.project_path("secrets");
    let body = json!({"type": "secret", "name": "sesame", "stringData": {"word": "open"}});
    // Without waiting: the project's namespace exists when the create returns.
    let made = admin.post(&secrets, &body).unwrap().success().unwrap();
    let id = made["id"].as_str().unwrap();
    let mut socket = open(&admin, &inside.project_path("subscribe"));
    let frame = about(&mut socket, "resource.change", id);
    let own = admin.get(&format!("{secrets}/{id}")).unwrap().success().unwrap();
    assert_eq!((&frame["projectId"], &frame["data"]), (&own["projectId"], &own["data"]));

    let path = inside.project_path("basicAuths");
    let body = json!({"type": "basicAuth", "name": "door", "username": "u", "password": "hidden"});
    let door = admin.post(&path, &body).unwrap().success().unwrap();
    let door = door["id"].as_str().unwrap();
    let frame = about(&mut socket, "resource.change", door);
    assert_eq!((&frame["type"], &frame["username"]), (&json!("basicAuth"), &json!("u")));
    assert!(!frame.to_string().contains("hidden"), "{frame}");
    // A Secret in another namespace does not belong to the project.
    let body = json!({"type": "managementSecret", "name": "elsewhere", "stringData": {"a": "b"}});
    admin.post("/v3/managementSecrets", &body).unwrap().success().unwrap();
    admin.delete(&format!("{secrets}/{id}")).unwrap().success().unwrap();
    about(&mut socket, "resource.remove", id);
    let rest = frames_until_ping(&mut socket);
    assert!(rest.iter().all(|(_, id)| !id.contains("elsewhere")), "{rest:?}");
}

#[test]
fn a_namespace_that_leaves_a_project_takes_its_objects_out_of_sight() {
    let world = world();
    let inside = Inside::start(&world, "moved");
    let admin = world.admin();
    inside.add_namespace(&admin, "roams");
    let map = ["create", "configmap", "baggage", "-n", "roams"];
    inside.kubectl().succeed(&map).unwrap();
    let path = inside.project_path("subscribe?resourceTypes=configMap");
    let mut socket = open(&admin, &path);
    about(&mut socket, "resource.change", "roams:baggage");
    let to = |project: &str| {
        let path = inside.cluster_path("namespaces/roams?action=move");
        let response = admin.post(&path, &json!({"projectId": project})).unwrap();
        assert_eq!(response.status, 204, "{}", response.text());
    };
    to("");
    about(&mut socket, "resource.remove", "roams:baggage");
    to(&inside.project);
    about(&mut socket, "resource.change", "roams:baggage");
}

#[test]
fn a_member_of_a_namespace_sees_it_only_while_the_binding_exists() {
    let world = world();
    let inside = Inside::start(&world, "guarded");
    let (admin, kubectl) = (world.admin(), inside.kubectl());
    inside.add_namespace(&admin, "vault");
    kubectl.succeed(&["create", "configmap", "ledger", "-n", "vault"]).unwrap();
    let (guest, id) = world.new_user("feed-guest");
    let path = inside.project_path("subscribe?resourceTypes=configMap");
    assert!([403, 404].contains(&refused(&guest, &path, &[]).0));

    let rules = json!([{"apiGroups": ["management.cattle.io"], "resources": ["projects"],
                        "verbs": ["get", "list", "watch"]}]);
    let role =
        json!({"type": "roleTemplate", "name": "Looks", "context": "cluster", "rules": rules});
    let role = admin.post("/v3/roleTemplates", &role).unwrap().success().unwrap();
    let binding = json!({"type": "clusterRoleTemplateBinding", "roleTemplateId": role["id"],
                         "clusterId": inside.cluster, "userId": id});
    admin.post("/v3/clusterRoleTemplateBindings", &binding).unwrap().success().unwrap();
    let mut socket = eventually("the guest may read the project", || {
        let opened = Socket::open(&guest, &path, &[])?;
        opened.map_err(|refusal| anyhow::anyhow!("{refusal:?}"))
    });
    kubectl.succeed(&["label", "configmap", "ledger", "-n", "vault", "page=1"]).unwrap();
    assert_eq!(frames_until_ping(&mut socket), []);

    let user = format!("--user={id}");
    let see = ["create", "clusterrole", "see-vault", "--verb=get", "--resource=namespaces"];
    kubectl.succeed(&[&see[..], &["--resource-name=vault"]].concat()).unwrap();
    let see = ["create", "clusterrolebinding", "see-vault", "--clusterrole=see-vault", &user];
    kubectl.succeed(&see).unwrap();
    let bind = ["create", "rolebinding", "guest", "--clusterrole=view", &user, "-n", "vault"];
    kubectl.succeed(&bind).unwrap();
    about(&mut socket, "resource.change", "vault:ledger");
    kubectl.succeed(&["delete", "rolebinding", "guest", "-n", "vault"]).unwrap();
    let gone = about(&mut socket, "resource.remove", "vault:ledger");
    assert_eq!(gone["labels"], Value::Null, "no more than its id is sent: {gone}");
    kubectl
        .succeed(&["label", "configmap", "ledger", "-n", "vault", "page=2", "--overwrite"])
        .unwrap();
    // Frames for the lost role may still arrive; frames of later changes may not.
    let later = frames_until_ping(&mut socket);
    assert!(later.iter().all(|(name, _)| name == "resource.remove"), "{later:?}");
}

#[test]
fn sockets_inside_a_cluster_end_when_it_disconnects_and_when_it_reconnects() {
    let world = world();
    let inside = Inside::start(&world, "flickers");
    let admin = world.admin();
    let path = inside.cluster_path("subscribe?resourceTypes=namespace&resourceTypes=project");
    let mut socket = open(&admin, &path);
    about(&mut socket, "resource.change", "default");
    let Inside { mut sim, project, .. } = inside;
    let again = |(code, reason): (u16, String)| {
        assert!(code == 1013 && reason.contains("connect again"), "{code} {reason}");
    };
    sim.kill();
    again(closed(&mut socket));

    // Changes in the management API are sent meanwhile.
    let mut socket = eventually("a socket without the cluster lasts", || {
        let mut socket = open(&admin, &path);
        let frames = socket.all_within(LOOK_AROUND)?;
        ensure!(frames.iter().any(|frame| frame["data"]["id"] == project.as_str()), "{frames:?}");
        ensure!(!frames.iter().any(|frame| frame["data"]["id"] == "default"), "it is still there");
        Ok(socket)
    });
    sim.restart().unwrap();
    again(closed(&mut socket));
    // A new connection may break once more, with the same advice.
    eventually("a new socket sends frames of the cluster", || {
        let frames = open(&admin, &path).all_within(LOOK_AROUND)?;
        ensure!(frames.iter().any(|frame| frame["data"]["id"] == "default"), "{frames:?}");
        Ok(())
    });
}
