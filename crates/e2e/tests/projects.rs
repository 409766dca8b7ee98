//! A project with a quota and isolation on a cluster of real Kubernetes components: namespaces
//! share the quota, the cluster refuses what is over it, and the removal of the cluster leaves
//! nothing of either.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use anyhow::{Context, Result, ensure};
use e2e::journey::{self, ImportTarget};
use e2e::{Cli, Server, eventually};
use serde_json::{Value, json};
use testbed::RealCluster;

const CLUSTER: &str = "real";
const QUOTA: &str = "default-drover";

/// The rows of `drover project quota`, as `resource limit used default container`.
fn quota(cli: &Cli, changes: &[&str]) -> Result<Vec<String>> {
    let arguments = [&["project", "quota", "shop", "--cluster", CLUSTER], changes];
    let rows = cli.json(&arguments.concat())?;
    let row = |row: &Value| {
        let fields = ["resource", "limit", "used", "namespaceDefault", "container"];
        fields.map(|field| row[field].as_str().unwrap_or("-")).join(" ")
    };
    Ok(rows.as_array().context("no list")?.iter().map(row).collect())
}

fn project_id(cli: &Cli) -> String {
    let project = cli.json(&["project", "get", "shop", "--cluster", CLUSTER]).unwrap();
    project["id"].as_str().unwrap().to_owned()
}

/// Switches isolation on: the namespace of the project is closed, those of the system are not.
fn isolates(cli: &Cli, target: &ImportTarget) {
    let state = cli.succeed(&["cluster", "isolation", CLUSTER]).unwrap();
    assert_eq!(state.trim(), "off");
    cli.succeed(&["cluster", "isolation", CLUSTER, "on"]).unwrap();
    eventually("the policy of the namespace", || {
        let found = target.kubectl.json(&["get", "networkpolicies", "-A"])?;
        let of = |policy: &Value| policy["metadata"]["namespace"].as_str().map(str::to_owned);
        let closed: Vec<_> = found["items"].as_array().context("no list")?.iter().map(of).collect();
        let web = closed.iter().flatten().any(|namespace| namespace == "web");
        let system = closed.iter().flatten().any(|namespace| namespace == "kube-system");
        ensure!(web && !system, "{closed:?}");
        Ok(())
    });
    eventually("the state", || {
        let state = cli.succeed(&["cluster", "isolation", CLUSTER])?;
        ensure!(state.trim() == "on", "{state}");
        Ok(())
    });
}

#[test]
fn a_cluster_enforces_the_quota_of_a_project_until_it_is_removed() {
    let cluster = RealCluster::start().unwrap();
    let target = ImportTarget::of(&cluster).unwrap();
    let server = Server::start().unwrap();
    let cli = Cli::admin(&server).unwrap();
    let imported = journey::import(&server, &cli, CLUSTER, &target).unwrap();
    cli.succeed(&["project", "create", "shop", "--cluster", CLUSTER]).unwrap();
    let wrong = ["project", "quota", "shop", "--cluster", CLUSTER, "--limit", "pods=3"];
    let refused = cli.refuse(&wrong).unwrap();
    assert!(refused.contains("namespaceDefaultResourceQuota.limit.pods"), "{refused}");
    let limits =
        ["--limit", "pods=3", "--namespace-default", "pods=2", "--container", "limitsCpu=1"];
    let rows = quota(&cli, &limits).unwrap();
    assert_eq!(rows, ["limitsCpu - - - 1", "pods 3 - 2 -"]);

    let create = |name: &'static str| {
        ["namespace", "create", name, "--cluster", CLUSTER, "--project", "shop"]
    };
    cli.succeed(&create("web")).unwrap();
    eventually("the namespace's part of the quota", || {
        let rows = quota(&cli, &[])?;
        ensure!(rows == ["limitsCpu - - - 1", "pods 3 2 2 -"], "{rows:?}");
        Ok(())
    });
    let refused = cli.refuse(&create("late")).unwrap();
    assert!(refused.contains("1 of 3 is left"), "{refused}");

    // The cluster counts, and gives containers the limits.
    let kubectl = cli.kubectl(CLUSTER).unwrap();
    let pod = |name: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "web"},
            "spec": {"containers": [{"name": "web", "image": "nginx"}]}})
    };
    eventually("the first pod", || kubectl.apply(&[pod("first")]).map(drop));
    kubectl.apply(&[pod("second")]).unwrap();
    let third = kubectl.with_file(&[pod("third")], &["create", "-f"]).unwrap_err().to_string();
    assert!(third.contains("exceeded quota: default-drover"), "{third}");
    let first = kubectl.json(&["get", "pod", "first", "-n", "web"]).unwrap();
    assert_eq!(first["spec"]["containers"][0]["resources"]["limits"]["cpu"], "1", "{first}");

    // Under /v3 a part of its own has the codes that clients know.
    let admin = server.admin().unwrap();
    let path = format!("/v3/clusters/{}/namespaces/web", imported.id);
    let change =
        |limit: Value| admin.put(&path, &json!({"resourceQuota": {"limit": limit}})).unwrap();
    let new = json!({"name": "new", "projectId": project_id(&cli),
        "resourceQuota": {"limit": {"services": "1"}}});
    let namespaces = format!("/v3/clusters/{}/namespaces", imported.id);
    for (refused, code) in [
        (change(json!({"pods": "4"})), "MaxLimitExceeded"),
        (change(json!({"services": "1"})), "InvalidOption"),
        (admin.post(&namespaces, &new).unwrap(), "MissingRequired"),
    ] {
        assert_eq!(refused.status, 422, "{refused:?}");
        let body = refused.json();
        let expected = (&json!(code), &json!("resourceQuota"));
        assert_eq!((&body["code"], &body["fieldName"]), expected, "{body}");
    }
    change(json!({"pods": "3"})).success().unwrap();
    eventually("a third pod", || kubectl.with_file(&[pod("third")], &["create", "-f"]).map(drop));
    let shown = admin.get(&path).unwrap().success().unwrap();
    assert_eq!(
        (&shown["state"], &shown["resourceQuota"]["limit"]["pods"]),
        (&json!("active"), &json!("3"))
    );

    isolates(&cli, &target);

    cli.succeed(&["cluster", "rm", CLUSTER, "--yes", "--wait"]).unwrap();
    leaves_nothing(&target);
}

/// Nothing of it stays when the cluster is no longer managed.
fn leaves_nothing(target: &ImportTarget) {
    eventually("a cluster without quotas", || {
        let kinds = "resourcequotas,limitranges,networkpolicies";
        let left = target.kubectl.json(&["get", kinds, "-A"])?;
        let left = left["items"].as_array().context("no list")?.len();
        ensure!(left == 0, "{left} are left, such as {QUOTA}");
        let web = target.kubectl.json(&["get", "namespace", "web"])?;
        let annotations = web["metadata"]["annotations"].to_string();
        ensure!(!annotations.contains("cattle.io"), "{annotations}");
        Ok(())
    });
}
