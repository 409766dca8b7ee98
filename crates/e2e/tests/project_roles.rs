//! Roles in projects on a cluster of real Kubernetes components: a member works in the namespaces
//! of the project and in no others, through `drover` and `kubectl`, from the grant to the
//! revocation.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use anyhow::{Result, ensure};
use e2e::journey::{self, ImportTarget, Imported, MANAGEMENT};
use e2e::{Cli, Client, Guarantee, Server, eventually, no_second_try};
use serde_json::{Value, json};
use testbed::RealCluster;

const CLUSTER: &str = "real";
const KEY: &str = "field.cattle.io/projectId";
/// A role like `project-member`: the cluster's own role `edit`, and more.
const ROLE: &str = "deployer";
/// Users beside the first one, who change nothing in the cluster.
const USERS: usize = 20;

struct World {
    imported: Imported,
    server: Server,
    admin: Client,
    admin_cli: Cli,
    target: ImportTarget,
    _cluster: RealCluster,
}

impl World {
    fn start() -> Self {
        let cluster = RealCluster::start().unwrap();
        let target = ImportTarget::of(&cluster).unwrap();
        let server = Server::start().unwrap();
        let admin_cli = Cli::admin(&server).unwrap();
        let imported = journey::import(&server, &admin_cli, CLUSTER, &target).unwrap();
        let admin = server.admin().unwrap();
        let world = Self { imported, server, admin, admin_cli, target, _cluster: cluster };
        world.make_roles();
        world
    }

    fn make_roles(&self) {
        let role = |name: &str, rest: Value| {
            let mut body = json!({
                "apiVersion": "management.cattle.io/v3", "kind": "RoleTemplate",
                "metadata": {"name": name}, "displayName": name, "context": "project",
            });
            for (field, value) in rest.as_object().unwrap() {
                body[field] = value.clone();
            }
            let made = self.admin.post(&format!("{MANAGEMENT}/roletemplates"), &body).unwrap();
            made.success().unwrap();
        };
        // External, under a name of our own: the built-in one may be there.
        let own = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "editors"}, "rules": [
                {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"]}]});
        self.target.kubectl.apply(&[own]).unwrap();
        role("editors", json!({"external": true}));
        let creates =
            json!([{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["create"]}]);
        role(ROLE, json!({"roleTemplateNames": ["editors"], "rules": creates}));
    }

    fn project(&self, name: &str) -> String {
        let body = json!({"name": name, "clusterId": self.imported.id});
        let made = self.admin.post("/v3/projects", &body).unwrap().success().unwrap();
        made["id"].as_str().unwrap().to_owned()
    }

    fn namespaces(&self) -> String {
        format!("/k8s/clusters/{}/api/v1/namespaces", self.imported.id)
    }

    fn create_namespace(&self, user: &Client, name: &str, project: Option<&str>) -> u16 {
        let annotations = project.map(|project| json!({KEY: project})).unwrap_or_default();
        let body = json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "annotations": annotations}});
        user.post(&self.namespaces(), &body).unwrap().status.as_u16()
    }

    fn user(&self, name: &str) -> (Cli, Client) {
        let cli = journey::user_with_role(&self.server, &self.admin_cli, name, None).unwrap();
        let token = self.server.login(name, &format!("password-of-{name}")).unwrap();
        (cli, self.server.anyone().unwrap().bearer(&token))
    }

    fn grant(&self, user: &str, project: &str) {
        let to =
            ["role", "grant", ROLE, "--user", user, "--cluster", CLUSTER, "--project", project];
        self.admin_cli.succeed(&to).unwrap();
    }

    fn deploy(&self, user: &Client, namespace: &str, name: &str) -> u16 {
        let path = format!(
            "/k8s/clusters/{}/apis/apps/v1/namespaces/{namespace}/deployments",
            self.imported.id
        );
        let labels = json!({"app": name});
        let container = json!({"name": "web", "image": "nginx"});
        let body = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels}, "spec": {"containers": [container]}}}});
        user.post(&path, &body).unwrap().status.as_u16()
    }

    /// Names of all objects that Drover made in the cluster for roles.
    fn objects(&self) -> Vec<String> {
        let kinds = "clusterroles,clusterrolebindings,rolebindings";
        let found =
            self.target.kubectl.json(&["get", kinds, "-A", "-l", "drover.io/owned"]).unwrap();
        let name = |object: &Value| {
            let metadata = &object["metadata"];
            format!("{} {} {}", object["kind"], metadata["namespace"], metadata["name"])
        };
        found["items"].as_array().unwrap().iter().map(name).collect()
    }
}

/// A program with a token of one project that `user` made: it has that project and nothing else,
/// though the user has more.
fn pipeline(world: &World, user: &str, project: &str) -> Client {
    let cli = Cli::of(&world.server, user, &format!("password-of-{user}")).unwrap();
    // A role in the whole cluster, and one that the cluster itself gives.
    let all = ["role", "grant", "cluster-owner", "--user", user, "--cluster", CLUSTER];
    world.admin_cli.succeed(&all).unwrap();
    let own = world.server.login(user, &format!("password-of-{user}")).unwrap();
    let person = world.server.anyone().unwrap().bearer(&own);
    let id = person.get("/v3/users?me=true").unwrap().success().unwrap()["data"][0]["id"].clone();
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "natives"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": id}]});
    world.target.kubectl.apply(&[binding]).unwrap();
    eventually("the rights in the cluster", || -> Result<()> {
        let status = world.deploy(&person, "elsewhere", "person");
        ensure!(status == 201 || status == 409, "{status}");
        Ok(())
    });

    let create =
        ["token", "create", "--project", "shop", "--cluster", CLUSTER, "--description", "pipeline"];
    let token = cli.succeed(&create).unwrap();
    let program = world.server.anyone().unwrap().bearer(token.trim());
    assert_eq!(world.deploy(&program, "web", "pipeline"), 201);
    let cluster = &world.imported.id;
    let pods =
        |namespace: &str| format!("/k8s/clusters/{cluster}/api/v1/namespaces/{namespace}/pods");
    for path in [
        &pods("elsewhere"),
        &pods("default"),
        &pods("kube-system"),
        &format!("/k8s/clusters/{cluster}/api/v1/nodes"),
        &format!("/k8s/clusters/{cluster}/api/v1/secrets"),
        "/k8s/clusters/local/api/v1/namespaces",
        "/k8s/clusters/c-other/api/v1/namespaces",
        "/v3/clusters",
        "/v3/tokens",
        "/v1/management.cattle.io.clusters",
        &format!("/v3/project/{project}/deployments"),
        "/api/v1/namespaces",
        MANAGEMENT,
        "/drover.io/v1/access/why",
        "/v3/subscribe",
    ] {
        let refused = program.get(path).unwrap();
        assert_eq!(refused.status, 403, "{path}: {refused:?}");
    }
    assert_eq!(world.create_namespace(&program, "from-pipeline", Some(project)), 403);
    assert_eq!(world.create_namespace(&program, "from-pipeline", None), 403);
    let kubectl = ["get", "deployments", "-n", "web"];
    let server = format!("{}/k8s/clusters/{cluster}", world.server.url());
    let access = ["--server", &server, "--token", token.trim(), "--insecure-skip-tls-verify"];
    let as_root = ["--as", "root", "--as-group", "system:masters"];
    world.target.kubectl.succeed(&[&kubectl[..], &access].concat()).unwrap();
    world.target.kubectl.refuse(&[&kubectl[..], &access, &as_root].concat()).unwrap();

    eventually("the token was used", || -> Result<()> {
        let tokens = cli.json(&["token", "ls"])?;
        let mut tokens = tokens.as_array().unwrap().iter();
        let own = tokens.find(|token| token["description"] == "pipeline").unwrap();
        ensure!(own["lastUsedAt"].is_string() && own["projectId"] == project, "{own}");
        Ok(())
    });

    let rights = ["role", "revoke", "cluster-owner", "--user", user, "--cluster", CLUSTER];
    world.admin_cli.succeed(&rights).unwrap();
    world.target.kubectl.succeed(&["delete", "clusterrolebinding", "natives"]).unwrap();
    program
}

#[test]
fn a_member_of_a_project_deploys_in_its_namespaces_until_the_role_is_revoked() {
    no_second_try(Guarantee::Rights);
    let world = World::start();
    let (shop, other) = (world.project("shop"), world.project("other"));
    assert_eq!(world.create_namespace(&world.admin, "web", Some(&shop)), 201);
    assert_eq!(world.create_namespace(&world.admin, "elsewhere", Some(&other)), 201);
    let (_, mia) = world.user("mia");
    assert_eq!(world.deploy(&mia, "web", "early"), 403);
    world.grant("mia", "shop");
    eventually("the rights in the namespace", || -> Result<()> {
        let status = world.deploy(&mia, "web", "shop");
        ensure!(status == 201 || status == 409, "{status}");
        Ok(())
    });
    assert_eq!(world.deploy(&mia, "elsewhere", "shop"), 403);
    assert_eq!(world.deploy(&mia, "default", "shop"), 403);
    let seen = mia.get(&format!("{}/elsewhere", world.namespaces())).unwrap();
    assert_eq!(seen.status, 403);
    let projects = mia.get("/v3/projects").unwrap().success().unwrap();
    let ids: Vec<&str> =
        projects["data"].as_array().unwrap().iter().filter_map(|it| it["id"].as_str()).collect();
    assert_eq!(ids, [shop.as_str()]);

    // A namespace of one's own, in the project and nowhere else.
    assert_eq!(world.create_namespace(&mia, "mine", Some(&shop)), 201);
    assert_eq!(world.create_namespace(&mia, "theirs", Some(&other)), 403);
    assert_eq!(world.create_namespace(&mia, "nobodys", None), 403);
    eventually("the rights in the new namespace", || -> Result<()> {
        let status = world.deploy(&mia, "mine", "shop");
        ensure!(status == 201 || status == 409, "{status}");
        Ok(())
    });

    let pipeline = pipeline(&world, "mia", &shop);

    // More users change nothing in the cluster.
    let before = world.objects();
    for n in 0..USERS {
        let name = format!("user{n}");
        world.user(&name);
        world.grant(&name, "shop");
    }
    let (_, last) = world.user("last");
    world.grant("last", "shop");
    eventually("the last user's rights", || -> Result<()> {
        let status = world.deploy(&last, "web", "last");
        ensure!(status == 201 || status == 409, "{status}");
        Ok(())
    });
    assert_eq!(world.objects(), before);

    // The next request after the revocation is refused.
    let revoke =
        ["role", "revoke", ROLE, "--user", "mia", "--cluster", CLUSTER, "--project", "shop"];
    world.admin_cli.succeed(&revoke).unwrap();
    assert_eq!(world.deploy(&mia, "web", "late"), 403);
    assert_eq!(world.deploy(&pipeline, "web", "late"), 403);
    assert_eq!(world.deploy(&last, "mine", "last"), 201);
    assert_eq!(world.objects(), before);
}
