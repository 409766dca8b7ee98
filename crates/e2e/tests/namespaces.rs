//! The project of a namespace determines the Secrets that are copied into it. Only users who may
//! manage the namespaces of a project can change it, through Drover, on a cluster of real
//! Kubernetes components.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use e2e::journey::{self, ImportTarget, Imported, MANAGEMENT};
use e2e::{Agent, Cli, Client, Guarantee, Server, SharedWorld, eventually, no_second_try};
use http::{Method, Request};
use serde_json::{Value, json};
use testbed::RealCluster;

const KEY: &str = "field.cattle.io/projectId";
const CLUSTER: &str = "real";
const SECRET: &str = "database";

struct World {
    imported: Imported,
    server: Server,
    admin: Client,
    admin_cli: Cli,
    target: ImportTarget,
    /// Full id of a project with a Secret.
    project: String,
    other_project: String,
    _cluster: RealCluster,
}

static WORLD: SharedWorld<World> = SharedWorld::new();

fn good(response: Result<e2e::HttpResponse>) -> Value {
    response.unwrap().success().unwrap()
}

fn world() -> Arc<World> {
    WORLD.get(|| {
        let cluster = RealCluster::start()?;
        let target = ImportTarget::of(&cluster)?;
        let server = Server::start()?;
        let admin_cli = Cli::admin(&server)?;
        let imported = journey::import(&server, &admin_cli, CLUSTER, &target)?;
        let admin = server.admin()?;
        let project = |name: &str| -> Result<String> {
            let body = json!({"name": name, "clusterId": imported.id});
            let made = admin.post("/v3/projects", &body)?.success()?;
            Ok(made["id"].as_str().unwrap_or_default().to_owned())
        };
        let (shop, other) = (project("shop")?, project("other")?);
        let secret =
            json!({"type": "secret", "name": SECRET, "stringData": {"password": "CANARY"}});
        admin.post(&format!("/v3/projects/{shop}/secrets"), &secret)?.success()?;
        Ok(World {
            imported,
            server,
            admin,
            admin_cli,
            target,
            project: shop,
            other_project: other,
            _cluster: cluster,
        })
    })
}

fn short(project: &str) -> &str {
    project.split_once(':').unwrap().1
}

fn namespace(name: &str, project: Option<&str>) -> Value {
    let annotations = project.map(|project| json!({KEY: project})).unwrap_or_default();
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": annotations}})
}

impl World {
    fn namespaces(&self) -> String {
        format!("/k8s/clusters/{}/api/v1/namespaces", self.imported.id)
    }

    /// A user with a role of these rules in the cluster, once the rights are effective.
    fn user_with_role(&self, name: &str, rules: &Value) -> (Cli, Client) {
        let role = json!({
            "apiVersion": "management.cattle.io/v3", "kind": "RoleTemplate",
            "metadata": {"name": format!("role-{name}")}, "displayName": name, "context": "cluster",
            "rules": rules,
        });
        good(self.admin.post(&format!("{MANAGEMENT}/roletemplates"), &role));
        let role = format!("role-{name}");
        let role = Some((role.as_str(), CLUSTER));
        let cli = journey::user_with_role(&self.server, &self.admin_cli, name, role).unwrap();
        let token = self.server.login(name, &format!("password-of-{name}")).unwrap();
        let client = self.server.anyone().unwrap().bearer(&token);
        eventually("the user_with_role's rights", || client.get(&self.namespaces())?.success());
        (cli, client)
    }

    /// The annotation and the label in the cluster.
    fn says(&self, name: &str) -> (Option<String>, Option<String>) {
        let found = self.target.kubectl.json(&["get", "namespace", name]).unwrap();
        let text = |map: &str| found["metadata"][map][KEY].as_str().map(str::to_owned);
        (text("annotations"), text("labels"))
    }

    fn is_in(&self, name: &str, project: Option<&str>) {
        let expected = (project.map(str::to_owned), project.map(|it| short(it).to_owned()));
        eventually("the namespace says its project", || -> Result<()> {
            let says = self.says(name);
            ensure!(says == expected, "{name}: {says:?}, not {expected:?}");
            Ok(())
        });
    }

    fn has_secret(&self, namespace: &str) -> bool {
        let secrets = self.target.kubectl.json(&["get", "secrets", "-n", namespace]).unwrap();
        secrets["items"].as_array().unwrap().iter().any(|it| it["metadata"]["name"] == SECRET)
    }

    fn secret_comes(&self, namespace: &str) {
        eventually("the Secret of the project is there", || -> Result<()> {
            ensure!(self.has_secret(namespace), "no Secret in {namespace}");
            Ok(())
        });
    }

    fn patch(&self, as_whom: &Client, name: &str, kind: &str, body: &Value) -> e2e::HttpResponse {
        let request = Request::builder()
            .method(Method::PATCH)
            .uri(format!("{}/{name}", self.namespaces()))
            .header("content-type", kind)
            .body(e2e::http::body(body.to_string()))
            .unwrap();
        as_whom.send(request).unwrap()
    }

    /// The number of creations of Secrets of this name in a namespace, by the events of a watch
    /// from `version` on.
    fn copies_since(&self, namespace: &str, version: &str) -> usize {
        let path = format!(
            "/api/v1/namespaces/{namespace}/secrets?watch=true&timeoutSeconds=1&resourceVersion={version}"
        );
        let events = self.target.kubectl.succeed(&["get", "--raw", &path]).unwrap();
        events.lines().filter(|line| line.contains(SECRET)).count()
    }
}

#[test]
fn a_writer_of_one_namespace_gets_no_secrets_of_its_project() {
    no_second_try(Guarantee::Secrecy);
    let world = world();
    let rules = json!([{"apiGroups": [""], "resources": ["namespaces", "namespaces/status",
        "namespaces/finalize", "secrets"], "verbs": ["*"]}]);
    let (_, thief) = world.user_with_role("thief", &rules);
    good(thief.post(&world.namespaces(), &namespace("tenant", None)));
    let list = world.target.kubectl.json(&["get", "secrets", "-n", "tenant"]).unwrap();
    let version = list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();

    let (project, name) = (world.project.as_str(), short(&world.project));
    let annotated = json!({"metadata": {"annotations": {KEY: project}}});
    let labelled = json!({"metadata": {"labels": {KEY: name}}});
    let pointer = format!("/metadata/annotations/{}", KEY.replace('/', "~1"));
    let by_operations = json!([
        {"op": "add", "path": "/metadata/annotations", "value": {}},
        {"op": "add", "path": pointer, "value": project},
    ]);
    let mut applied = namespace("tenant", Some(project));
    let merge = "application/merge-patch+json";
    let patches = [
        ("tenant", merge, &annotated),
        ("tenant", merge, &labelled),
        ("tenant", "application/strategic-merge-patch+json", &annotated),
        ("tenant", "application/json-patch+json", &by_operations),
        ("tenant?fieldManager=me&force=true", "application/apply-patch+yaml", &applied),
        ("tenant?dryRun=All", merge, &annotated),
        ("tenant/status", merge, &annotated),
    ];
    for (path, kind, body) in patches {
        let response = world.patch(&thief, path, kind, body);
        assert_eq!(response.status, 403, "{path} {kind}: {}", response.text());
        let text = response.text();
        assert!(text.contains("manage-namespaces") || text.contains("the label"), "{text}");
    }
    let path = world.namespaces();
    let tenant = format!("{path}/tenant");
    let put = |path: &str| {
        let mut whole = good(thief.get(&tenant));
        whole["metadata"]["annotations"] = json!({KEY: project});
        thief.put(path, &whole).unwrap().status.as_u16()
    };
    assert_eq!((put(&tenant), put(&format!("{tenant}/finalize"))), (403, 403));
    applied["metadata"]["name"] = "another".into();
    assert_eq!(thief.post(&path, &applied).unwrap().status, 403);
    assert_eq!(thief.get(&format!("{path}/another")).unwrap().status, 404);
    // Users may change their own fields.
    let mine = json!({"metadata": {"annotations": {"mine": "1"}}});
    assert_eq!(world.patch(&thief, "tenant", merge, &mine).status, 200);
    assert_eq!(world.says("tenant"), (None, None));

    // A change in the cluster itself bypasses Drover: it is reverted, and the Secret is never
    // copied.
    let direct = &world.target.kubectl;
    for says in [format!("{KEY}={project}"), format!("{KEY}={project}x")] {
        direct.succeed(&["annotate", "namespace", "tenant", &says, "--overwrite"]).unwrap();
        world.is_in("tenant", None);
    }
    direct.succeed(&["label", "namespace", "tenant", &format!("{KEY}={name}")]).unwrap();
    world.is_in("tenant", None);
    eventually("an event says so", || -> Result<()> {
        let events = direct.json(&["get", "events", "-n", "default"])?;
        let about = events["items"].as_array().into_iter().flatten().any(|event| {
            event["reason"] == "ProjectPutBack" && event["involvedObject"]["name"] == "tenant"
        });
        ensure!(about, "{events}");
        Ok(())
    });
    assert_eq!(world.copies_since("tenant", &version), 0);

    // Nor does a recreated namespace get the project of the deleted one.
    let admin = &world.admin;
    good(admin.post(&path, &namespace("shared", Some(project))));
    world.secret_comes("shared");
    direct.succeed(&["delete", "namespace", "shared", "--wait=true"]).unwrap();
    direct.apply(&[namespace("shared", Some(project))]).unwrap();
    world.is_in("shared", None);
    assert!(!world.has_secret("shared"));
}

#[test]
fn manifests_that_name_a_project_put_their_namespaces_there() {
    no_second_try(Guarantee::Rights);
    let world = world();
    let (project, other) = (world.project.as_str(), world.other_project.as_str());
    let rules = json!([
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["*"]},
        {"apiGroups": ["management.cattle.io"], "resources": ["projects"],
            "verbs": ["get", "manage-namespaces"], "resourceNames": [short(project)]},
    ]);
    let (cli, gitops) = world.user_with_role("gitops", &rules);
    let kubectl = cli.kubectl(CLUSTER).unwrap();
    kubectl.apply(&[namespace("web", Some(project))]).unwrap();
    world.is_in("web", Some(project));
    world.secret_comes("web");
    // Again, and by server-side apply: nothing changes.
    kubectl.apply(&[namespace("web", Some(project))]).unwrap();
    kubectl
        .with_file(
            &[namespace("web", Some(project))],
            &["apply", "--server-side", "--force-conflicts", "-f"],
        )
        .unwrap();
    world.is_in("web", Some(project));

    // Only for this project: neither into another one nor out of it.
    let refused =
        kubectl.refuse(&["annotate", "namespace", "web", &format!("{KEY}={other}"), "--overwrite"]);
    assert!(refused.unwrap().contains("into project"));
    good(world.admin.post(&world.namespaces(), &namespace("elsewhere", Some(other))));
    world.is_in("elsewhere", Some(other));
    let refused =
        kubectl.refuse(&["annotate", "namespace", "elsewhere", &format!("{KEY}-")]).unwrap();
    assert!(refused.contains("out of project"), "{refused}");
    let missing = format!("{}:p-zzzzz", world.imported.id);
    let response =
        world.admin.post(&world.namespaces(), &namespace("lost", Some(&missing))).unwrap();
    assert_eq!(response.status, 403, "{}", response.text());
    assert!(response.text().contains("there is no project"), "{}", response.text());

    // A dry run changes nothing, not even later: a change in the cluster itself is still reverted.
    kubectl
        .succeed(&["annotate", "namespace", "web", &format!("{KEY}-"), "--dry-run=server"])
        .unwrap();
    world.target.kubectl.succeed(&["annotate", "namespace", "web", &format!("{KEY}-")]).unwrap();
    world.is_in("web", Some(project));
    assert!(world.has_secret("web"));

    // An administrator moves it through `/v3`, and the Secret leaves with the project.
    let web = format!("/v3/clusters/{}/namespaces/web", world.imported.id);
    let moved =
        world.admin.post(&format!("{web}?action=move"), &json!({"projectId": other})).unwrap();
    assert_eq!(moved.status, 204, "{}", moved.text());
    world.is_in("web", Some(other));
    eventually("the Secret is deleted", || -> Result<()> {
        ensure!(!world.has_secret("web"), "still there");
        Ok(())
    });
    let not_theirs =
        gitops.post(&format!("{web}?action=move"), &json!({"projectId": project})).unwrap();
    assert_eq!(not_theirs.status, 403, "{}", not_theirs.text());
    world.is_in("web", Some(other));

    // Out of all projects; annotations of other software are not changed.
    let moved = world.admin.post(&format!("{web}?action=move"), &json!({"projectId": ""})).unwrap();
    assert_eq!(moved.status, 204, "{}", moved.text());
    world.is_in("web", None);
    let foreign = format!("{KEY}=c-m-abcdefgh:p-12345");
    world.target.kubectl.succeed(&["annotate", "namespace", "web", &foreign]).unwrap();
    kubectl.succeed(&["annotate", "namespace", "web", "mine=1"]).unwrap();
    assert_eq!(world.says("web").0.as_deref(), Some("c-m-abcdefgh:p-12345"));
}

/// The full id of a project of a cluster.
fn project_named(admin: &Client, cluster: &str, name: &str) -> String {
    let path = format!("/v3/projects?clusterId={cluster}&name={name}");
    eventually("the cluster has its first projects", || {
        let found = admin.get(&path)?.success()?;
        let id = found["data"][0]["id"].as_str();
        id.map(str::to_owned).with_context(|| format!("no project {name}: {found}"))
    })
}

#[test]
fn default_and_the_systems_namespaces_begin_in_the_projects_default_and_system() {
    no_second_try(Guarantee::Rights);
    let world = world();
    let (admin, id) = (&world.admin, world.imported.id.as_str());
    let [default, system] = ["Default", "System"].map(|name| project_named(admin, id, name));
    world.is_in("default", Some(&default));
    for name in ["kube-system", "kube-public", "kube-node-lease", "cattle-system"] {
        world.is_in(name, Some(&system));
    }
    let container = json!({"name": "web", "image": "nginx"});
    let workload = json!({"name": "begin", "namespaceId": "default", "containers": [container]});
    good(admin.post(&format!("/v3/project/{default}/workloads"), &workload));

    // The management API as a cluster.
    let [of_local, system_of_local] =
        ["Default", "System"].map(|name| project_named(admin, "local", name));
    let in_local = |name: &str, project: Option<&str>| {
        eventually("the namespace of local says its project", || -> Result<()> {
            let path = format!("/v3/clusters/local/namespaces/{name}");
            let found = admin.get(&path)?.success()?;
            ensure!(found["projectId"].as_str() == project, "{found}");
            Ok(())
        });
    };
    in_local("default", Some(&of_local));
    in_local("kube-system", Some(&system_of_local));

    // Removing the annotation takes the namespace out of its project, whichever it is.
    for (cluster, name) in [(id, "kube-public"), ("local", "default")] {
        let path = format!("/v3/clusters/{cluster}/namespaces/{name}?action=move");
        let moved = admin.post(&path, &json!({"projectId": ""})).unwrap();
        assert_eq!(moved.status, 204, "{}", moved.text());
    }
    world.is_in("kube-public", None);
    in_local("default", None);

    // A namespace that another user creates begins there too, and needs the right to put namespaces
    // there.
    let setting = "/v3/settings/system-namespaces";
    let names = good(admin.get(setting))["value"].as_str().unwrap().to_owned();
    good(admin.put(setting, &json!({"value": format!("{names},addon-system,kube-addons")})));
    let rules = json!([{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["*"]}]);
    let (_, maker) = world.user_with_role("maker", &rules);
    let refused = maker.post(&world.namespaces(), &namespace("kube-addons", None)).unwrap();
    assert_eq!(refused.status, 403, "{}", refused.text());
    assert!(refused.text().contains("manage-namespaces"), "{}", refused.text());
    world.target.kubectl.apply(&[namespace("addon-system", None)]).unwrap();
    world.is_in("addon-system", Some(&system));
    assert_eq!(world.says("kube-public"), (None, None));
    in_local("default", None);
}

#[test]
fn namespaces_assigned_before_there_were_records_remain_assigned() {
    let cluster = RealCluster::start().unwrap();
    let target = ImportTarget::of(&cluster).unwrap();
    let mut server = Server::start().unwrap();
    let cli = Cli::admin(&server).unwrap();
    let mut imported = journey::import(&server, &cli, "old", &target).unwrap();
    let admin = server.admin().unwrap();
    let project = json!({"name": "shop", "clusterId": imported.id});
    let project = good(admin.post("/v3/projects", &project))["id"].as_str().unwrap().to_owned();
    let namespaces = format!("/k8s/clusters/{}/api/v1/namespaces", imported.id);
    good(admin.post(&namespaces, &namespace("kept", Some(&project))));
    let records = format!("{MANAGEMENT}/namespaces/{}/namespaceassignments", imported.id);
    let assigned = |admin: &Client| -> Result<Value> {
        let record = admin.get(&format!("{records}/kept"))?.success()?;
        let assigned = record["spec"]["assigned"]["project"].clone();
        ensure!(assigned == short(&project), "{record}");
        Ok(record["spec"]["assigned"].clone())
    };
    let before = eventually("the assignment is recorded", || assigned(&admin));

    // The state of an earlier version: only annotations, and a cluster without records.
    imported.agent.kill();
    let stored = json!({"status": {"namespacesAssigned": false}});
    let request = Request::builder()
        .method(Method::PATCH)
        .uri(format!("{MANAGEMENT}/clusters/{}/status", imported.id))
        .header("content-type", "application/merge-patch+json")
        .body(e2e::http::body(stored.to_string()))
        .unwrap();
    assert!(admin.send(request).unwrap().status.is_success());
    good(admin.delete(&format!("{records}/kept")));
    server.kill();
    server.restart().unwrap();
    let admin = server.admin().unwrap();
    let _agent = Agent::start(&imported.container, &target.downstream, &target.kubectl).unwrap();
    let after = eventually("the assignment is recorded again", || assigned(&admin));
    assert_eq!(before, after);
}
