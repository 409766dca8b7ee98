//! Objects inside an imported cluster of real Kubernetes components, through `/v3` of a real
//! server, its proxy and its agent.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use anyhow::{Result, ensure};
use e2e::journey::{self, ImportTarget};
use e2e::{Cli, Client, Guarantee, Server, eventually, no_second_try};
use serde_json::{Value, json};
use testbed::RealCluster;

fn user_client(server: &Server, admin: &Cli, name: &str, role: Option<(&str, &str)>) -> Client {
    journey::user_with_role(server, admin, name, role).unwrap();
    let token = server.login(name, &format!("password-of-{name}")).unwrap();
    server.anyone().unwrap().bearer(&token)
}

/// A response that must be a success.
fn good(response: Result<e2e::HttpResponse>) -> Value {
    response.unwrap().success().unwrap()
}

fn code(response: Result<e2e::HttpResponse>) -> (u16, String) {
    let response = response.unwrap();
    let body = response.json();
    (response.status.as_u16(), body["code"].as_str().unwrap_or_default().to_owned())
}

fn ids(list: &Value) -> Vec<&str> {
    list["data"].as_array().unwrap().iter().filter_map(|item| item["id"].as_str()).collect()
}

/// One body for each type of a project, in namespace `apps`.
fn bodies() -> Vec<(&'static str, Value)> {
    vec![
        ("configMaps", json!({"name": "app.conf", "data": {"k": "v"}})),
        (
            "services",
            json!({"name": "web", "kind": "ClusterIP", "selector": {"app": "web"},
            "ports": [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}]}),
        ),
        ("dnsRecords", json!({"name": "outside", "hostname": "db.example.org"})),
        ("dnsRecords", json!({"name": "pods", "selector": {"app": "web"}})),
        (
            "ingresses",
            json!({"name": "web", "rules": [{"host": "web.example", "paths": [
            {"path": "/", "pathType": "Prefix", "serviceId": "apps:web", "targetPort": 80}]}],
            "tls": [{"certificateId": "apps:tls", "hosts": ["web.example"]}]}),
        ),
        (
            "persistentVolumeClaims",
            json!({"name": "data", "accessModes": ["ReadWriteOnce"],
            "storageClassId": "fast", "resources": {"requests": {"storage": "1Gi"}}}),
        ),
        (
            "horizontalPodAutoscalers",
            json!({"name": "web", "workloadId": "deployment:apps:web",
            "maxReplicas": 3, "metrics": [{"type": "Resource", "name": "cpu",
                "target": {"type": "Utilization", "utilization": 60}}]}),
        ),
        ("namespacedSecrets", json!({"name": "plain", "stringData": {"k": "v"}})),
        ("namespacedBasicAuths", json!({"name": "basic", "username": "ann", "password": "p"})),
        ("namespacedSshAuths", json!({"name": "ssh", "privateKey": "KEY"})),
        (
            "namespacedDockerCredentials",
            json!({"name": "docker",
            "registries": {"r.example": {"username": "ann", "password": "p"}}}),
        ),
    ]
}

#[test]
#[expect(clippy::too_many_lines, reason = "the steps of one story, in their order")]
fn members_use_the_contents_of_a_real_cluster_through_v3() {
    no_second_try(Guarantee::Rights);
    let cluster = RealCluster::start().unwrap();
    let server = Server::start().unwrap();
    let admin = Cli::admin(&server).unwrap();
    let target = ImportTarget::of(&cluster).unwrap();
    let mut imported = journey::import(&server, &admin, "real", &target).unwrap();
    let inside = format!("/v3/clusters/{}", imported.id);
    let owner = user_client(&server, &admin, "owner", Some(("cluster-owner", "real")));
    let member = user_client(&server, &admin, "member", Some(("cluster-member", "real")));
    let nobody = user_client(&server, &admin, "nobody", None);
    let namespaces = format!("{inside}/namespaces");
    eventually("the owner's rights", || -> Result<()> {
        let list = owner.get(&namespaces)?.success()?;
        ensure!(ids(&list).contains(&"kube-system"), "{list}");
        Ok(())
    });
    eventually("the member's rights", || member.get(&inside)?.success().map(drop));

    // Lists are equal to those of Kubernetes for the same user.
    assert_eq!(code(nobody.get(&namespaces)).0, 403);
    let none: Vec<&str> = Vec::new();
    assert_eq!(ids(&good(member.get(&namespaces))), none);
    assert_eq!(
        code(member.post(&namespaces, &json!({"name": "x"}))),
        (403, "Forbidden".to_owned())
    );

    let project = json!({"name": "shop", "clusterId": imported.id});
    let project = good(owner.post("/v3/projects", &project));
    let project = project["id"].as_str().unwrap();
    let pointed = owner.get(&format!("/v3/projects/{project}")).unwrap();
    let schemas = pointed.headers["x-api-schemas"].to_str().unwrap().to_owned();
    assert!(schemas.ends_with(&format!("/v3/projects/{project}/schemas")), "{schemas}");
    let apps = json!({"name": "apps", "projectId": project});
    let apps = good(owner.post(&namespaces, &apps));
    assert_eq!((&apps["projectId"], &apps["state"]), (&json!(project), &json!("active")));
    let class = json!({"name": "fast", "provisioner": "example.org/disk"});
    good(owner.post(&format!("{inside}/storageclasses"), &class));
    assert_eq!(ids(&good(member.get(&format!("{inside}/storageclasses")))), ["fast"]);
    let volume = json!({
        "name": "disk", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/data", "kind": "Directory"},
    });
    let volume = good(owner.post(&format!("{inside}/persistentvolumes"), &volume));
    assert_eq!(volume["hostPath"]["kind"], "Directory");
    let services = good(owner.get(&format!("{inside}/apiservices")));
    assert!(ids(&services).contains(&"v1.apps"), "{services}");

    for (plural, mut body) in bodies() {
        body["namespaceId"] = "apps".into();
        let path = format!("/v3/projects/{project}/{plural}");
        let made = good(owner.post(&path, &body));
        let own = format!("{path}/{}", made["id"].as_str().unwrap());
        let shown = good(owner.get(&own));
        assert_eq!((&shown["id"], &shown["projectId"]), (&made["id"], &json!(project)));
        let labels = json!({"labels": {"changed": "yes"}});
        let changed = good(owner.put(&own, &labels));
        assert_eq!(changed["labels"]["changed"], "yes", "{plural}");
        assert!(ids(&good(owner.get(&path))).contains(&made["id"].as_str().unwrap()), "{plural}");
        assert_eq!(code(member.get(&own)).0, 403, "{plural}");
    }
    // The objects in the cluster itself, created by the user.
    let direct = target.kubectl.json(&["get", "configmap", "app.conf", "-n", "apps"]).unwrap();
    assert_eq!(direct["data"], json!({"k": "v"}));
    let creator = direct["metadata"]["annotations"]["field.cattle.io/creatorId"].as_str();
    assert!(creator.unwrap().starts_with("u-"), "{direct}");
    for (plural, body) in bodies() {
        let id = format!("apps:{}", body["name"].as_str().unwrap());
        let own = format!("/v3/projects/{project}/{plural}/{id}");
        assert!(owner.delete(&own).unwrap().status.is_success(), "{own}");
    }

    // A token for this cluster can read its objects.
    let token = json!({"clusterId": imported.id, "description": "for scripts"});
    let token = good(owner.post("/v3/tokens", &token));
    let bound = server.anyone().unwrap().bearer(token["token"].as_str().unwrap());
    assert!(ids(&good(bound.get(&namespaces))).contains(&"apps"));
    assert_eq!(code(bound.get("/v3/clusters/local/namespaces")).0, 401);

    // The management API is a cluster too, for kinds that it has.
    let local = good(server.admin().unwrap().get("/v3/clusters/local/namespaces"));
    assert!(ids(&local).contains(&imported.id.as_str()), "{local}");

    imported.agent.kill();
    eventually("a cluster without its agent is unavailable", || -> Result<()> {
        let (status, code) = code(owner.get(&namespaces));
        ensure!((status, code.as_str()) == (503, "ClusterUnavailable"), "{status} {code}");
        Ok(())
    });
    let write = owner.post(&namespaces, &json!({"name": "late"}));
    assert_eq!(code(write), (503, "ClusterUnavailable".to_owned()));
}
