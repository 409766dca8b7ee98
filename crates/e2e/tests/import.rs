//! A cluster of real Kubernetes components that Drover did not create: imported, active, and used
//! through Drover like directly.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, ensure};
use e2e::journey::{self, ImportTarget, Imported, MANAGEMENT};
use e2e::{Cli, Guarantee, Kubectl, ProgramOutput, Server, SharedWorld, eventually, no_second_try};
use serde_json::{Value, json};
use testbed::RealCluster;

/// The imported cluster, its server and its agent.
struct World {
    imported: Imported,
    admin: Cli,
    server: Server,
    cluster: RealCluster,
}

static WORLD: SharedWorld<World> = SharedWorld::new();

fn world() -> Arc<World> {
    WORLD.get(|| {
        let cluster = RealCluster::start()?;
        let target = ImportTarget::of(&cluster)?;
        target.kubectl.apply(&contents())?;
        let server = Server::start()?;
        let admin = Cli::admin(&server)?;
        let imported = journey::import(&server, &admin, "first", &target)?;
        Ok(World { imported, admin, server, cluster })
    })
}

/// A node and a pod on it: the testbed runs no kubelet, so no other program creates them.
fn contents() -> Vec<Value> {
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "paper", "labels": {"kubernetes.io/hostname": "paper"}},
        "status": {
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
            "allocatable": {"cpu": "3500m", "memory": "7Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "Paper"}],
        },
    });
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "resting"},
        "spec": {"nodeName": "paper", "containers": [{
            "name": "main", "image": "example.invalid/resting:1",
            "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
        }]},
    });
    vec![node, pod]
}

impl World {
    fn directly(&self) -> Kubectl {
        Kubectl::new(&self.cluster.kubeconfig_path(), self.cluster.folder()).unwrap()
    }

    fn through_drover(&self) -> Kubectl {
        self.admin.kubectl(&self.imported.name).unwrap()
    }

    /// Id of a user by the name typed at login.
    fn user_id(&self, username: &str) -> String {
        let path = format!("{MANAGEMENT}/users");
        let list = self.server.admin().unwrap().get(&path).unwrap().success().unwrap();
        let users = list["items"].as_array().unwrap();
        let user = users.iter().find(|user| user["username"] == username);
        user.unwrap()["metadata"]["name"].as_str().unwrap().to_owned()
    }

    /// `kubectl` of a user by a file that only holds the login, whether or not there are rights.
    fn kubectl_of(&self, user: &Cli, username: &str) -> Kubectl {
        let token = self.server.login(username, &format!("password-of-{username}")).unwrap();
        let path = user.home().join("by-hand.kubeconfig");
        let url = format!("{}/k8s/clusters/{}", self.server.url(), self.imported.id);
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {
                "server": url, "certificate-authority": self.server.ca_file(),
            }}],
            "users": [{"name": "it", "user": {"token": token}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        });
        std::fs::write(&path, text.to_string()).unwrap();
        Kubectl::new(&path, user.home()).unwrap()
    }

    /// `kubectl` directly on the cluster, as the same user in the same groups.
    fn directly_as(&self, id: &str, role: Option<&str>) -> Kubectl {
        let mut groups = Vec::new();
        if let Some(role) = role {
            groups.push(format!("drover:cluster:{}:{role}", self.imported.id));
        }
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        let file: PathBuf = self.cluster.kubeconfig_file_for(id, &groups).unwrap();
        Kubectl::new(&file, self.cluster.folder()).unwrap()
    }
}

#[test]
fn an_address_that_leads_each_machine_to_itself_is_warned_of() {
    let world = world();
    // Only the end of the words is stored.
    let log = world.admin.home().join(format!("import-{}.log", world.imported.name));
    let words = std::fs::read_to_string(log).unwrap();
    let url = words.split("the server at ").nth(1).and_then(|rest| rest.split(' ').next());
    let url = url.unwrap_or_else(|| panic!("no warning: {words}"));
    assert!(url.starts_with("https://localhost:"), "{words}");
    let better = url.replace("localhost", "NAME");
    let command = format!("hint: run \"drover settings set server-url {better}\"");
    assert!(words.contains(&command), "{words}");
    // Before anything is created.
    let warned = words.find("warning: the agent is to reach").unwrap();
    assert!(warned < words.find("cluster object created").unwrap(), "{words}");
}

#[test]
fn an_imported_real_cluster_is_active_and_known_by_its_parts() {
    let world = world();
    let (server, id) = (&world.server, &world.imported.id);
    journey::is_active(server, id).unwrap();
    let cluster = journey::cluster(server, id).unwrap();
    let version = world.directly().json(&["version"]).unwrap();
    assert_eq!(
        cluster["status"]["version"]["gitVersion"], version["serverVersion"]["gitVersion"],
        "{cluster}"
    );
    assert_eq!(cluster["status"]["appliedSpec"]["displayName"], "first", "{cluster}");

    eventually("node and capacity are known", || -> Result<()> {
        let cluster = journey::cluster(server, id)?;
        let status = &cluster["status"];
        ensure!(status["nodeCount"] == 1, "{status}");
        ensure!(status["capacity"]["cpu"] == "4", "{status}");
        // The pod above, and the agent's own, which the scheduler has put there too.
        ensure!(status["requested"]["cpu"] == "510m", "{status}");
        let nodes = server.kubectl()?.json(&["get", "nodes.management.cattle.io", "-n", id])?;
        let node = &nodes["items"][0];
        ensure!(node["status"]["nodeName"] == "paper", "{nodes}");
        Ok(())
    });
}

#[test]
fn node_counts_follow_the_cluster_as_it_changes() {
    let world = world();
    let count = |expected: i64| {
        eventually("the count follows", || -> Result<()> {
            let cluster = journey::cluster(&world.server, &world.imported.id)?;
            let seen = &cluster["status"]["nodeCount"];
            ensure!(seen.as_i64().is_some_and(|seen| seen == expected), "nodeCount is {seen}");
            Ok(())
        });
    };
    count(1);
    let second = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "second"}});
    world.directly().apply(&[second]).unwrap();
    count(2);
    world.directly().succeed(&["delete", "node", "second"]).unwrap();
    count(1);
}

#[test]
fn lists_through_drover_equal_the_direct_responses() {
    let world = world();
    for arguments in [
        &["get", "ns,nodes,pods", "-A"][..],
        &["get", "clusterroles,deployments,configmaps", "-A"],
        &["get", "--raw", "/apis"],
        &["get", "--raw", "/openapi/v3"],
        &["api-resources"],
        &["version"],
    ] {
        let mut all = arguments.to_vec();
        if arguments.contains(&"-A") || arguments == ["version"] {
            all.extend(["-o", "json"]);
        }
        let (direct, through) = (world.directly(), world.through_drover());
        // Controllers may change an object between the two reads; then the next two are equal.
        eventually("both responses are equal", || -> Result<()> {
            let (one, other) = (direct.succeed(&all)?, through.succeed(&all)?);
            ensure!(one == other, "{all:?}: directly\n{one}\nthrough Drover\n{other}");
            Ok(())
        });
    }
    let pods = world.through_drover().json(&["get", "pods", "-A"]).unwrap();
    let pods = pods["items"].as_array().unwrap();
    assert!(pods.iter().any(|pod| pod["metadata"]["name"] == "resting"), "{pods:?}");
}

#[test]
fn apply_watch_and_delete_work_through_drover() {
    let world = world();
    let through = world.through_drover();
    through.succeed(&["create", "namespace", "used"]).unwrap();
    let log = world.server.folder().join("watch.log");
    let watch = through
        .start(&["get", "configmaps", "-n", "used", "-w", "--output-watch-events"], &log)
        .unwrap();
    let seen = |what: &str, words: [&str; 2]| {
        eventually(what, || -> Result<()> {
            let text = std::fs::read_to_string(watch.log())?;
            let found = text.lines().any(|line| words.iter().all(|word| line.contains(word)));
            ensure!(found, "{text}");
            Ok(())
        });
    };
    seen("the watch has begun", ["ADDED", "kube-root-ca.crt"]);

    let settings = |value: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "settings", "namespace": "used"}, "data": {"key": value},
        })
    };
    through.apply(&[settings("one")]).unwrap();
    seen("the creation is seen", ["ADDED", "settings"]);
    let direct = world.directly().json(&["get", "configmap", "-n", "used", "settings"]).unwrap();
    assert_eq!(direct["data"]["key"], "one");

    through.apply(&[settings("two")]).unwrap();
    seen("the change is seen", ["MODIFIED", "settings"]);
    let direct = world.directly().json(&["get", "configmap", "-n", "used", "settings"]).unwrap();
    assert_eq!(direct["data"]["key"], "two");

    // The default of current kubectl versions, and the option that users enable.
    let file = [settings("three")];
    through.with_file(&file, &["apply", "--server-side", "--force-conflicts", "-f"]).unwrap();
    through.succeed(&["delete", "configmap", "-n", "used", "settings"]).unwrap();
    seen("the deletion is seen", ["DELETED", "settings"]);
    let refused = world.directly().refuse(&["get", "configmap", "-n", "used", "settings"]);
    assert!(refused.unwrap().contains("NotFound"));
    through.succeed(&["delete", "namespace", "used", "--wait=false"]).unwrap();
}

/// Requests of users; the responses must be those that Kubernetes returns to the same user
/// directly.
const TRIED: [&[&str]; 9] = [
    &["auth", "whoami"],
    &["get", "nodes", "-o", "name"],
    &["get", "pods", "-A", "-o", "name"],
    &["get", "secrets", "-n", "kube-system"],
    &["get", "--raw", "/metrics/slis"],
    &["create", "configmap", "tried", "--dry-run=server", "-o", "name"],
    &["create", "namespace", "tried", "--dry-run=server", "-o", "name"],
    &["delete", "pod", "resting", "--dry-run=server", "-o", "name"],
    &["auth", "can-i", "create", "clusterrolebindings"],
];

/// Begins the warning that Drover adds to a refusal.
const EXPLANATION: &str = "Warning: which right is missing shows: drover access why me";

/// Checks that both are equal, except that Drover's refusals come with one line of explanation.
fn compare(direct: &ProgramOutput, through: &ProgramOutput) -> Result<()> {
    let (explanations, rest): (Vec<&str>, Vec<&str>) =
        through.stderr.split_inclusive('\n').partition(|line| line.starts_with(EXPLANATION));
    let said = (through.code, &through.stdout, rest.concat());
    let context = || format!("directly {direct:?}\nthrough Drover {through:?}");
    ensure!(said == (direct.code, &direct.stdout, direct.stderr.clone()), context());
    let refused = direct.stderr.contains("forbidden");
    ensure!(explanations.len() == usize::from(refused), context());
    Ok(())
}

/// The user's responses through Drover, each compared with the direct one.
fn responses(world: &World, username: &str, role: Option<&str>) -> Vec<ProgramOutput> {
    let given = role.map(|role| (role, world.imported.name.as_str()));
    let user = journey::user_with_role(&world.server, &world.admin, username, given).unwrap();
    let through = world.kubectl_of(&user, username);
    let direct = world.directly_as(&world.user_id(username), role);
    let tried = TRIED.iter().skip(1);
    tried
        .map(|arguments| {
            // The role may not have reached the cluster at the time of the first request.
            eventually("both responses are equal", || -> Result<ProgramOutput> {
                let (one, other) = (direct.run(arguments)?, through.run(arguments)?);
                compare(&one, &other)?;
                Ok(other)
            })
        })
        .collect()
}

#[test]
fn a_cluster_owner_may_do_everything() {
    let world = world();
    let responses = responses(&world, "olga", Some("cluster-owner"));
    let failed: Vec<_> = responses.iter().filter(|response| !response.success).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn a_cluster_member_may_read_nodes_and_gets_refusals_worded_like_kubernetes() {
    no_second_try(Guarantee::Rights);
    let world = world();
    let responses = responses(&world, "mia", Some("cluster-member"));
    assert!(responses[0].stdout.contains("node/paper"), "{:?}", responses[0]);
    let id = world.user_id("mia");
    let words = format!(
        "User \"{id}\" cannot list resource \"secrets\" in API group \"\" in the namespace \
         \"kube-system\""
    );
    assert!(responses[2].stderr.contains("(Forbidden)"), "{:?}", responses[2]);
    assert!(responses[2].stderr.contains(&words), "{:?}", responses[2]);
    assert!(!responses[5].success, "{:?}", responses[5]);
    assert_eq!(responses[7].stdout.trim(), "no");
}

#[test]
fn a_user_without_a_role_gets_a_refusal_that_says_so_on_every_request() {
    no_second_try(Guarantee::Rights);
    let world = world();
    let user =
        journey::user_with_role(&world.server, &world.admin, "nobody-special", None).unwrap();
    let through = world.kubectl_of(&user, "nobody-special");
    for arguments in TRIED.iter().skip(1) {
        let refused = through.refuse(arguments).unwrap();
        assert!(refused.contains("you have no role in this cluster"), "{arguments:?}: {refused}");
    }
}

#[test]
fn a_revoked_role_has_no_effect_on_the_next_request() {
    no_second_try(Guarantee::Revocation);
    let world = world();
    let name = world.imported.name.as_str();
    let role = Some(("cluster-member", name));
    let user = journey::user_with_role(&world.server, &world.admin, "tom", role).unwrap();
    let through = world.kubectl_of(&user, "tom");
    eventually("the role counts", || through.succeed(&["get", "nodes"]));
    let revoke = ["role", "revoke", "cluster-member", "--cluster", name, "--user", "tom"];
    world.admin.succeed(&revoke).unwrap();
    let refused = through.refuse(&["get", "nodes"]).unwrap();
    assert!(refused.contains("you have no role in this cluster"), "{refused}");
}

#[test]
fn the_kubeconfig_of_a_cluster_is_self_contained() {
    let world = world();
    let path = world.admin.kubeconfig_file(&world.imported.name).unwrap();
    let kubeconfig = e2e::Kubeconfig::read(&path).unwrap();
    let token = kubeconfig.token.expect("a token inside");
    assert!(token.starts_with("kubeconfig-") && token.contains(':'), "another form of token");
    let end = format!("/k8s/clusters/{}", world.imported.id);
    assert!(kubeconfig.server.ends_with(&end), "{}", kubeconfig.server);
}
