//! Pod Security templates on a cluster of real Kubernetes components: the cluster enforces the
//! level from the first pod of a namespace on, and nobody opens a namespace past its template.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use e2e::journey::{self, ImportTarget, Imported};
use e2e::{Cli, Client, Guarantee, HttpResponse, Server, eventually, no_second_try};
use http::{Method, Request};
use serde_json::{Value, json};
use testbed::RealCluster;

const CLUSTER: &str = "real";
const PREFIX: &str = "pod-security.kubernetes.io/";
const RESTRICTED: [(&str, &str); 6] = [
    ("audit", "restricted"),
    ("audit-version", "latest"),
    ("enforce", "restricted"),
    ("enforce-version", "latest"),
    ("warn", "restricted"),
    ("warn-version", "latest"),
];

struct World {
    imported: Imported,
    server: Server,
    admin: Client,
    cli: Cli,
    target: ImportTarget,
    _cluster: RealCluster,
}

impl World {
    fn start() -> Result<Self> {
        let cluster = RealCluster::start()?;
        let target = ImportTarget::of(&cluster)?;
        let server = Server::start()?;
        let cli = Cli::admin(&server)?;
        let imported = journey::import(&server, &cli, CLUSTER, &target)?;
        let admin = server.admin()?;
        Ok(Self { imported, server, admin, cli, target, _cluster: cluster })
    }

    /// A project of this name; its id.
    fn project(&self, name: &str) -> String {
        let body = json!({"name": name, "clusterId": self.imported.id});
        let made = self.admin.post("/v3/projects", &body).unwrap().success().unwrap();
        made["id"].as_str().unwrap().to_owned()
    }

    /// A user with a role in a project.
    fn user(&self, name: &str, role: &str, project: &str) -> (Cli, Client) {
        let cli = journey::user_with_role(&self.server, &self.cli, name, None).unwrap();
        let member = ["project", "add-member", project, "--cluster", CLUSTER];
        let grant = [&member[..], &["--user", name, "--role", role]].concat();
        self.cli.succeed(&grant).unwrap();
        let token = self.server.login(name, &format!("password-of-{name}")).unwrap();
        (cli, self.server.anyone().unwrap().bearer(&token))
    }

    /// The Pod Security labels of a namespace, as the cluster has them.
    fn levels(&self, namespace: &str) -> Result<BTreeMap<String, String>> {
        let found = self.target.kubectl.json(&["get", "namespace", namespace])?;
        let labels = found["metadata"]["labels"].as_object().into_iter().flatten();
        let levels = labels.filter_map(|(key, value)| {
            Some((key.strip_prefix(PREFIX)?.to_owned(), value.as_str()?.to_owned()))
        });
        Ok(levels.collect())
    }

    fn has_levels(&self, namespace: &str, expected: &[(&str, &str)]) {
        let expected: BTreeMap<String, String> =
            expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        eventually("the levels of the namespace", || {
            let levels = self.levels(namespace)?;
            ensure!(levels == expected, "{namespace} has {levels:?}");
            Ok(())
        });
    }

    /// Changes labels of a namespace through Drover.
    fn label(&self, client: &Client, namespace: &str, labels: &Value) -> HttpResponse {
        let path = format!("/k8s/clusters/{}/api/v1/namespaces/{namespace}", self.imported.id);
        let patch = json!({"metadata": {"labels": labels}});
        let request = Request::builder()
            .method(Method::PATCH)
            .uri(path)
            .header("content-type", "application/merge-patch+json")
            .body(e2e::http::body(patch.to_string()))
            .unwrap();
        client.send(request).unwrap()
    }
}

fn namespace(name: &str, project: &str, labels: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels,
        "annotations": {"field.cattle.io/projectId": project}}})
}

fn pod(name: &str, is_privileged: bool) -> Value {
    let container = match is_privileged {
        true => json!({"name": "c", "image": "nginx", "securityContext": {"privileged": true}}),
        false => json!({"name": "c", "image": "nginx", "securityContext": {
            "allowPrivilegeEscalation": false, "runAsNonRoot": true,
            "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}}}),
    };
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "web"},
        "spec": {"containers": [container]}})
}

fn enforce(level: &str) -> Value {
    json!({format!("{PREFIX}enforce"): level})
}

/// Refused, for a reason with this text in it.
fn refused(response: &HttpResponse, text: &str) {
    assert_eq!(response.status, 403, "{}", response.text());
    assert!(response.text().contains(text), "{}", response.text());
}

#[test]
fn a_cluster_enforces_the_template_of_a_project_and_nobody_writes_past_it() {
    no_second_try(Guarantee::Rights);
    let world = World::start().unwrap();
    let project = world.project("shop");
    let change = ["project", "pod-security", "shop", "--cluster", CLUSTER];
    assert_eq!(world.cli.succeed(&change).unwrap().trim(), "none");
    let set = [&change[..], &["--template", "rancher-restricted"]].concat();
    world.cli.succeed(&set).unwrap();
    assert_eq!(world.cli.succeed(&change).unwrap().trim(), "rancher-restricted");

    let (member_cli, member) = world.user("ada", "project-member", "shop");
    let (owner_cli, owner) = world.user("bob", "project-owner", "shop");
    let kubectl = member_cli.kubectl(CLUSTER).unwrap();
    let create = |object: Value| kubectl.with_file(&[object], &["create", "-f"]);
    let new = namespace("web", &project, &json!({}));
    eventually("the right to create namespaces", || create(new.clone()).map(drop));
    // Until one pod is accepted, no other was.
    eventually("the first pod", || {
        let open = create(pod("open", true));
        ensure!(open.is_err(), "a privileged pod was created");
        create(pod("closed", false)).map(drop)
    });
    let text = create(pod("open", true)).unwrap_err().to_string();
    assert!(text.contains("violates PodSecurity \"restricted:latest\""), "{text}");
    world.has_levels("web", &RESTRICTED);

    // Nobody writes other labels past the template, and in the cluster they are put back.
    for client in [&member, &owner, &world.admin] {
        let answer = world.label(client, "web", &enforce("privileged"));
        refused(&answer, "to have another level, change the template");
        let off = json!({format!("{PREFIX}enforce"): null});
        refused(&world.label(client, "web", &off), "leave the label out");
    }
    let also = json!({"team": "a"});
    assert_eq!(world.label(&member, "web", &also).status, 200);
    let open_from_the_start = namespace("open", &project, &enforce("privileged"));
    let text = create(open_from_the_start).unwrap_err().to_string();
    assert!(text.contains("leave the label out"), "{text}");
    let direct = &world.target.kubectl;
    for label in ["enforce=privileged", "enforce-", "warn=baseline"] {
        let label = format!("{PREFIX}{label}");
        direct.succeed(&["label", "namespace", "web", &label, "--overwrite"]).unwrap();
        world.has_levels("web", &RESTRICTED);
    }

    // The template is the choice of the owners of the cluster.
    let none = [&change[..], &["--none"]].concat();
    let text = owner_cli.refuse(&none).unwrap();
    assert!(text.contains("the owners of the cluster choose"), "{text}");
    let in_use = world
        .admin
        .delete("/v3/podsecurityadmissionconfigurationtemplates/rancher-restricted")
        .unwrap();
    assert!(!in_use.status.is_success(), "{}", in_use.text());

    // Without a template whoever has the verb on the project may write labels.
    world.cli.succeed(&none).unwrap();
    world.has_levels("web", &[]);
    refused(&world.label(&member, "web", &enforce("privileged")), "updatepsa");
    assert_eq!(world.label(&owner, "web", &enforce("baseline")).status, 200);
    refused(&world.label(&member, "web", &json!({format!("{PREFIX}enforce"): null})), "updatepsa");
    world.has_levels("web", &[("enforce", "baseline")]);
}

/// A policy of the cluster that refuses levels.
fn no_levels() -> [Value; 2] {
    let group = "admissionregistration.k8s.io/v1";
    [
        json!({"apiVersion": group, "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "no-levels"},
        "spec": {
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                "operations": ["UPDATE"], "resources": ["namespaces"]}]},
            "validations": [{"message": "no levels here", "expression": format!(
                "!has(object.metadata.labels) || !('{PREFIX}enforce' in object.metadata.labels)"
            )}],
        }}),
        json!({"apiVersion": group, "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "no-levels"},
            "spec": {"policyName": "no-levels", "validationActions": ["Deny"]}}),
    ]
}

#[test]
fn members_have_no_rights_in_a_namespace_before_its_levels_are_there() {
    no_second_try(Guarantee::Rights);
    let world = World::start().unwrap();
    let (closed, open) = (world.project("closed"), world.project("open"));
    for project in ["closed", "open"] {
        let add = ["project", "add-member", project, "--cluster", CLUSTER, "--user", "admin"];
        world.cli.succeed(&add).unwrap();
    }
    let set = ["project", "pod-security", "closed", "--cluster", CLUSTER, "--template"];
    world.cli.succeed(&[&set[..], &["rancher-restricted"]].concat()).unwrap();
    let direct = &world.target.kubectl;
    direct.apply(&no_levels()).unwrap();
    direct.succeed(&["create", "namespace", "probe"]).unwrap();
    let label = format!("{PREFIX}enforce=baseline");
    eventually("the cluster refuses levels", || {
        let text = direct.refuse(&["label", "namespace", "probe", &label, "--dry-run=server"])?;
        ensure!(text.contains("no levels here"), "{text}");
        Ok(())
    });

    let kubectl = world.cli.kubectl(CLUSTER).unwrap();
    let create = |name: &str, project: &str| {
        kubectl.with_file(&[namespace(name, project, &json!({}))], &["create", "-f"]).unwrap();
    };
    let bindings = |namespace: &str| -> Result<usize> {
        let selector = ["-n", namespace, "-l", "drover.io/owned=project-role"];
        let found = direct.json(&[&["get", "rolebindings"][..], &selector].concat())?;
        Ok(found["items"].as_array().map_or(0, Vec::len))
    };
    create("first", &closed);
    eventually("the refusal in the cluster's condition", || {
        let shown = world.admin.get(&format!("/v3/clusters/{}", world.imported.id))?.success()?;
        let all = shown["conditions"].as_array().into_iter().flatten();
        let mut of_levels = all.filter(|condition| condition["type"] == "PodSecurityApplied");
        let is_refused = |it: &Value| it.to_string().contains("no levels here");
        ensure!(of_levels.any(is_refused), "{}", shown["conditions"]);
        Ok(())
    });
    // Rights in a later namespace show that those in the first were left out.
    create("second", &open);
    let has_rights = |namespace: &str| -> Result<()> {
        ensure!(bindings(namespace)? > 0, "no rights in {namespace}");
        Ok(())
    };
    eventually("rights in a namespace without levels", || has_rights("second"));
    assert_eq!(bindings("first").unwrap(), 0);

    direct.succeed(&["delete", "validatingadmissionpolicybinding", "no-levels"]).unwrap();
    world.has_levels("first", &RESTRICTED);
    eventually("rights after the levels", || has_rights("first"));
}

#[test]
fn policies_of_earlier_days_become_levels_and_a_default_spares_the_system() {
    let world = World::start().unwrap();
    let project = world.project("shop");
    let admin = &world.admin;
    let new = ["namespace", "create", "web", "--cluster", CLUSTER, "--project", "shop"];
    world.cli.succeed(&new).unwrap();

    // The action that clients of Rancher know.
    let action = format!("/v3/projects/{project}?action=setpodsecuritypolicytemplate");
    let bind = |template: Value| {
        admin.post(&action, &json!({"podSecurityPolicyTemplateId": template})).unwrap()
    };
    let unknown = bind("nothing".into());
    assert_eq!(
        (unknown.status.as_u16(), &unknown.json()["code"]),
        (422, &json!("InvalidReference"))
    );
    let bound = bind("restricted".into()).success().unwrap();
    assert_eq!(bound["podSecurityPolicyTemplateId"], "restricted");
    world.has_levels("web", &RESTRICTED);
    eventually("the project's status", || {
        let shown = admin.get(&format!("/v3/projects/{project}"))?.success()?;
        ensure!(shown["podSecurityPolicyTemplateId"] == "restricted", "{shown}");
        Ok(())
    });
    // What a policy says beyond its level is named.
    let mut policy =
        admin.get("/v3/podsecuritypolicytemplates/restricted").unwrap().success().unwrap();
    assert_eq!(policy["podSecurityLevel"], "restricted");
    let beyond = json!(["volumes", "fsGroup", "supplementalGroups"]);
    assert_eq!(policy["podSecurityNotCovered"], beyond);
    policy["hostNetwork"] = true.into();
    let changed = admin.put("/v3/podsecuritypolicytemplates/restricted", &policy).unwrap();
    assert_eq!(changed.success().unwrap()["podSecurityLevel"], "privileged");
    let open =
        RESTRICTED.map(|(key, level)| (key, if level == "latest" { level } else { "privileged" }));
    world.has_levels("web", &open);
    bind(Value::Null).success().unwrap();
    world.has_levels("web", &[]);
    let no_rules = admin.post("/v3/podsecuritypolicytemplates", &json!({"name": "x"})).unwrap();
    assert_eq!(
        (no_rules.status.as_u16(), &no_rules.json()["code"]),
        (422, &json!("MissingRequired"))
    );

    spares_the_system(&world);
    world.cli.succeed(&["cluster", "rm", CLUSTER, "--yes", "--wait"]).unwrap();
    for namespace in ["web", "default"] {
        world.has_levels(namespace, &[]);
    }
}

/// A default of the cluster is for all namespaces but those of the system, and those that the
/// template names.
fn spares_the_system(world: &World) {
    let admin = &world.admin;
    let template = json!({"name": "ours", "configuration": {
        "defaults": {"enforce": "baseline", "enforce-version": "v1.31"},
        "exemptions": {"namespaces": ["exempt"]}}});
    let templates = "/v3/podsecurityadmissionconfigurationtemplates";
    admin.post(templates, &template).unwrap().success().unwrap();
    let mut strange = template.clone();
    strange["name"] = "strange".into();
    strange["configuration"]["defaults"]["enforce"] = "strict".into();
    let strange = admin.post(templates, &strange).unwrap();
    assert_eq!(strange.status, 422, "{}", strange.text());
    world.target.kubectl.succeed(&["create", "namespace", "exempt"]).unwrap();
    let default = ["cluster", "pod-security", CLUSTER, "--template", "ours"];
    world.cli.succeed(&default).unwrap();
    for namespace in ["web", "default"] {
        world.has_levels(namespace, &[("enforce", "baseline"), ("enforce-version", "v1.31")]);
    }
    for namespace in ["kube-system", "cattle-system", "exempt"] {
        assert_eq!(world.levels(namespace).unwrap(), BTreeMap::new(), "{namespace}");
    }
    eventually("the condition of the cluster", || {
        let shown = admin.get(&format!("/v3/clusters/{}", world.imported.id))?.success()?;
        let all = shown["conditions"].as_array().into_iter().flatten();
        let mut of_levels = all.filter(|condition| condition["type"] == "PodSecurityApplied");
        ensure!(of_levels.next().is_some_and(|it| it["status"] == "True"), "{shown}");
        Ok(())
    });
}
