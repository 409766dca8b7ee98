//! Objects of every type through `/v3`: created, shown, changed, listed and deleted, and by which
//! users.

use api_management::table::TypeTable;
use api_management::{Project, keys, types, unimplemented};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use test_kit::eventually;

use super::rest::{Requester, Rest};
use super::samples::{PASSWORD, Samples, make_needed};

/// Types whose objects other tests create, because their creation does more than storing them.
const MADE_ELSEWHERE: [&str; 3] = ["token", "user", "setting"];
const CLUSTER: &str = "c-types";
const PROJECT: &str = "p-tpzsz";

fn project() -> String {
    format!("{CLUSTER}:{PROJECT}")
}

fn creatable() -> impl Iterator<Item = TypeTable> {
    types::tables().filter(|table| {
        table.methods.contains(&"create")
            && table.methods.contains(&"get")
            && !MADE_ELSEWHERE.contains(&table.id)
            // Clusters create their nodes.
            && table.id != "node"
    })
}

/// A management plane with a cluster and a project, which have their namespaces.
async fn with_places() -> Rest {
    let rest = Rest::start().await;
    rest.world.create_cluster(CLUSTER).await;
    let namespaces: Api<Namespace> = Api::all(rest.world.admin());
    eventually("the cluster's namespace", async || {
        namespaces.get(CLUSTER).await.map(drop).map_err(|error| error.to_string())
    })
    .await;
    let mut project = Project::default();
    project.metadata.name = Some(PROJECT.to_owned());
    let projects: Api<Project> = Api::namespaced(rest.world.admin(), CLUSTER);
    projects.create(&PostParams::default(), &project).await.unwrap();
    eventually("the project's namespace", async || {
        namespaces.get(PROJECT).await.map(drop).map_err(|error| error.to_string())
    })
    .await;
    make_needed(&rest.world.admin()).await;
    rest
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_of_every_type_is_created_shown_changed_listed_and_deleted() {
    let rest = with_places().await;
    let (samples, mut count) = (Samples::of(CLUSTER, &project()), 0);
    for table in creatable() {
        let path = format!("/v3/{}", table.plural.to_lowercase());
        let body = samples.body(&table);
        let made = rest.must(201, "POST", &path, &body).await;
        let id = made["id"].as_str().unwrap();
        let own = format!("{path}/{id}");
        let shown = rest.must(200, "GET", &own, &Value::Null).await;
        for row in table.fields.iter().filter(|row| row.access.create) {
            let secret =
                row.kind == "password" || row.access.write_only || row.name == "stringData";
            let sent = body.get(row.name).filter(|_| !secret && row.name != "namespaceId");
            let Some(sent) = sent else { continue };
            // Nested types come with their defaults.
            let same = shown[row.name] == *sent
                || shown[row.name].is_object()
                || shown[row.name].is_array();
            let empty = *sent == json!({}) && shown[row.name].is_null();
            assert!(
                same || empty,
                "{}.{}: sent {sent}, shown {}",
                table.id,
                row.name,
                shown[row.name]
            );
        }
        if table.is_unimplemented {
            let stored = stored(&rest, &table, id).await;
            let conditions = stored["status"]["conditions"].as_array().unwrap();
            let said = conditions.iter().find(|c| c["type"] == unimplemented::EFFECTIVE).unwrap();
            assert_eq!(said["status"], "False", "{}: {stored}", table.id);
            let conditions = shown["conditions"].as_array().into_iter().flatten();
            let mut said =
                conditions.filter(|condition| condition["type"] == unimplemented::EFFECTIVE);
            assert!(said.any(|it| it["status"] == "False"), "{}: {shown}", table.id);
        }
        if table.methods.contains(&"list") {
            let list = rest.must(200, "GET", &path, &Value::Null).await;
            let ids = list["data"].as_array().unwrap().iter().map(|item| &item["id"]);
            assert!(ids.into_iter().any(|listed| listed == id), "{}: {list}", table.id);
        }
        let labels = json!({"labels": {"changed": "yes"}});
        let changed = rest.must(200, "PUT", &own, &labels).await;
        assert_eq!(changed["labels"]["changed"], "yes", "{}", table.id);
        // Like typed clients, which send the whole object.
        let whole = rest.must(200, "PUT", &format!("{own}?_replace=true"), &changed).await;
        assert_eq!(whole["labels"]["changed"], "yes", "{}", table.id);
        let (status, response) = rest.request(Requester::Admin, "DELETE", &own, &Value::Null).await;
        assert!([200, 204].contains(&status), "{}: {response}", table.id);
        count += 1;
    }
    println!("{count} types");
    assert!(count > 50, "{count}");
}

async fn stored(rest: &Rest, table: &TypeTable, id: &str) -> Value {
    let resource = feature_kit::table::resource_of(table).unwrap();
    let (namespace, name) = id.split_once(':').unwrap_or((table.namespace.unwrap_or(""), id));
    let key = rest_view::Key { namespace: namespace.to_owned(), name: name.to_owned() };
    let request = http::Request::get(resource.object_path(&key)).body(Vec::new()).unwrap();
    rest.world.admin().request(request).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_with_a_configuration_stores_all_of_it_and_reports_that_it_is_not_provisioned() {
    let rest = Rest::start().await;
    let config = json!({
        "kubernetesVersion": "v1.24.4-rancher1-1",
        "network": {"plugin": "calico", "mtu": 1400, "options": {"a": "b"}},
        "services": {"etcd": {"snapshot": false, "extraArgs": {"x": "y"}}},
        "nodes": [{"address": "10.0.0.1", "role": ["etcd"], "user": "core"}],
        "upgradeStrategy": {"maxUnavailableWorker": "20%"},
    });
    let body = json!({"name": "made", "rancherKubernetesEngineConfig": config});
    let made = rest.must(201, "POST", "/v3/clusters", &body).await;
    let path = format!("/v3/clusters/{}", made["id"].as_str().unwrap());
    eventually("the controllers have written their part", async || {
        let (_, shown) = rest.get(Requester::Admin, &path).await;
        let state = shown["state"].as_str().unwrap_or_default();
        let said = shown["transitioningMessage"].as_str().unwrap_or_default();
        let waits = state == "provisioning" && said.contains("makes no such clusters");
        if waits { Ok(()) } else { Err(shown.to_string()) }
    })
    .await;
    rest.must(200, "PUT", &path, &json!({"description": "changed"})).await;
    let shown = rest.must(200, "GET", &path, &Value::Null).await;
    assert_holds(&shown["rancherKubernetesEngineConfig"], &config, "config");
    let defaults = &shown["rancherKubernetesEngineConfig"]["network"];
    assert_eq!(defaults["plugin"], "calico");
    let (status, response) = rest
        .request(
            Requester::Admin,
            "PUT",
            &path,
            &json!({"rancherKubernetesEngineConfig": {"nodes": 1}}),
        )
        .await;
    assert_eq!((status, &response["fieldName"]), (422, &json!("nodes")), "{response}");
}

/// Checks that `shown` has everything that `sent` has.
fn assert_holds(shown: &Value, sent: &Value, at: &str) {
    match sent {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            assert_holds(&shown[key], value, &format!("{at}.{key}"));
        }),
        Value::Array(items) => items.iter().enumerate().for_each(|(index, item)| {
            assert_holds(&shown[index], item, &format!("{at}[{index}]"));
        }),
        sent => assert_eq!(shown, sent, "{at}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_roles_reads_public_objects_and_writes_only_preferences() {
    let rest = with_places().await;
    let (samples, user) = (Samples::of(CLUSTER, &project()), Requester::User("u-bob"));
    let (mut readable, mut closed) = (Vec::new(), Vec::new());
    for table in creatable() {
        let path = format!("/v3/{}", table.plural.to_lowercase());
        if table.id == "preference" {
            continue;
        }
        let (status, response) = rest.request(user, "POST", &path, &samples.body(&table)).await;
        assert_eq!(status, 403, "{}: {response}", table.id);
        let made = rest.must(201, "POST", &path, &samples.body(&table)).await;
        let own = format!("{path}/{}", made["id"].as_str().unwrap());
        let (got, _) = rest.get(user, &own).await;
        let (_, list) = rest.get(user, &path).await;
        let listed = list["data"].as_array().is_some_and(|data| !data.is_empty());
        if table.methods.contains(&"list") {
            assert_eq!(got == 200, listed, "{}: {got} {list}", table.id);
        }
        if got == 200 {
            readable.push(table.id)
        } else {
            closed.push(table.id)
        }
        let (status, _) = rest.request(user, "PUT", &own, &json!({"labels": {"a": "b"}})).await;
        assert_eq!(status, 403, "{}", table.id);
        let (status, _) = rest.request(user, "DELETE", &own, &Value::Null).await;
        assert_eq!(status, 403, "{}", table.id);
        rest.request(Requester::Admin, "DELETE", &own, &Value::Null).await;
    }
    insta::assert_snapshot!("readable", readable.join("\n"));
    assert!(
        closed.contains(&"cloudCredential") && closed.contains(&"managementSecret"),
        "{closed:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_has_their_own_preferences() {
    let rest = Rest::start().await;
    let (bob, eve) = (Requester::User("u-bob"), Requester::User("u-eve"));
    let body = json!({"name": "theme", "value": "dark", "namespaceId": "u-eve"});
    let (status, made) = rest.request(bob, "POST", "/v3/preferences", &body).await;
    assert_eq!((status, &made["id"]), (201, &json!("theme")), "{made}");
    let (status, _) = rest.get(eve, "/v3/preferences/theme").await;
    assert_eq!(status, 404);
    let (_, list) = rest.get(eve, "/v3/preferences").await;
    assert_eq!(list["data"], json!([]));
    let (status, changed) =
        rest.request(bob, "PUT", "/v3/preferences/theme", &json!({"value": "light"})).await;
    assert_eq!((status, &changed["value"]), (200, &json!("light")), "{changed}");
    let (_, list) = rest.get(bob, "/v3/preferences").await;
    assert_eq!(list["data"][0]["value"], "light");
    let (status, _) = rest.request(bob, "DELETE", "/v3/preferences/theme", &Value::Null).await;
    assert!([200, 204].contains(&status));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_of_a_namespace_of_a_users_name_does_not_get_their_preferences() {
    let rest = Rest::start().await;
    let bob = Requester::User("u-bob");
    let namespaces: Api<Namespace> = Api::all(rest.world.admin());
    let of_somebody = json!({"metadata": {"name": "u-bob"}});
    let of_somebody: Namespace = serde_json::from_value(of_somebody).unwrap();
    namespaces.create(&PostParams::default(), &of_somebody).await.unwrap();
    let theme = json!({"name": "theme", "value": "dark"});
    let (status, response) = rest.request(bob, "POST", "/v3/preferences", &theme).await;
    assert_eq!((status, &response["code"]), (409, &json!("NameTaken")), "{response}");
    assert_eq!(rest.get(bob, "/v3/preferences").await.0, 409);
    namespaces.delete("u-bob", &DeleteParams::default()).await.unwrap();
    // A preference from an earlier version becomes one of the user.
    let unowned = json!({"metadata": {"name": "u-bob", "annotations": {
        "management.cattle.io/system-namespace": "true"}}});
    let unowned: Namespace = serde_json::from_value(unowned).unwrap();
    eventually("the end of the namespace", async || {
        namespaces.create(&PostParams::default(), &unowned).await.map(drop)
    })
    .await;
    let (status, response) = rest.request(bob, "POST", "/v3/preferences", &theme).await;
    assert_eq!(status, 201, "{response}");
    let own = namespaces.get("u-bob").await.unwrap();
    assert_eq!(own.metadata.owner_references.unwrap()[0].kind, "User");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_can_be_described_but_not_enabled() {
    let rest = Rest::start().await;
    let list = rest.must(200, "GET", "/v3/authConfigs", &Value::Null).await;
    let types: Vec<_> = list["data"].as_array().unwrap().iter().map(|item| &item["type"]).collect();
    assert!(types.contains(&&json!("githubConfig")) && types.contains(&&json!("localConfig")));
    assert!(types.len() == 14 && types.contains(&&json!("oidcConfig")), "{types:?}");
    let github = rest.must(200, "GET", "/v3/authConfigs/github", &Value::Null).await;
    assert_eq!((&github["hostname"], &github["enabled"]), (&json!("github.com"), &json!(false)));
    let own = github["links"]["update"].as_str().unwrap().replace("https://drover.example", "");
    let own = own.replace("http://drover.example", "");
    let mut body = json!({"clientId": "id", "accessMode": "restricted"});
    let changed = rest.must(200, "PUT", &own, &body).await;
    assert_eq!(changed["clientId"], "id");
    body["clientSecret"] = PASSWORD.into();
    let changed = rest.must(200, "PUT", &own, &body).await;
    assert!(!changed.to_string().contains(PASSWORD), "{changed}");
    let (status, response) = rest
        .request(Requester::Admin, "PUT", "/v3/oktaConfigs/okta", &json!({"enabled": true}))
        .await;
    assert_eq!(status, 422, "{response}");
    assert!(response["message"].as_str().unwrap().contains("not available"), "{response}");
    let (status, _) = rest.get(Requester::Admin, "/v3/oktaConfigs/github").await;
    assert_eq!(status, 404);
    let body = json!({"issuer": "https://id.example", "clientSecret": PASSWORD});
    let oidc = rest.must(200, "PUT", "/v3/oidcConfigs/oidc", &body).await;
    assert_eq!((&oidc["type"], &oidc["issuer"]), (&json!("oidcConfig"), &body["issuer"]), "{oidc}");
    let enabled = json!({"enabled": true});
    let (status, _) = rest.request(Requester::Admin, "PUT", "/v3/oidcConfigs/oidc", &enabled).await;
    assert_eq!(status, 422);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_credential_of_a_provider_is_refused_once_though_several_types_have_the_field() {
    let rest = Rest::start().await;
    let own = "/v3/oktaConfigs/okta";
    let (taken, response) =
        rest.request(Requester::Admin, "PUT", own, &json!({"spKey": PASSWORD})).await;
    assert_eq!(taken, 200, "{response}");
    let foreign = json!({"spKey": "drover-credential://p-other"});
    let (status, response) = rest.request(Requester::Admin, "PUT", own, &foreign).await;
    assert_eq!(status, 422, "{response}");
    let text = response["message"].as_str().unwrap();
    assert_eq!(text.matches("send the credential itself").count(), 1, "{text}");
    let (status, response) =
        rest.request(Requester::Admin, "PUT", own, &json!({"enabled": true})).await;
    assert_eq!(status, 422, "{response}");
    assert_eq!(
        response["message"].as_str().unwrap().matches("not available").count(),
        1,
        "{response}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_in_a_cloud_credential_are_stored_and_never_shown() {
    let rest = Rest::start().await;
    let config = json!({"accessKey": "AK", "secretKey": "SK", "defaultRegion": "r"});
    let body = json!({"name": "backups", "s3credentialConfig": config});
    let made = rest.must(201, "POST", "/v3/cloudCredentials", &body).await;
    let id = made["id"].as_str().unwrap();
    assert!(id.starts_with("cattle-global-data:cc-"), "{id}");
    let path = format!("/v3/cloudCredentials/{id}");
    let body = json!({"description": "d", "s3credentialConfig": {"accessKey": "AK2"}});
    let shown = rest.must(200, "PUT", &path, &body).await;
    let config = json!({"accessKey": "AK2", "defaultRegion": "r"});
    assert_eq!((&shown["name"], &shown["s3credentialConfig"]), (&json!("backups"), &config));
    let secret = stored(&rest, &types::table("cloudCredential").unwrap(), id).await;
    assert_eq!(secret["data"]["s3credentialConfig-secretKey"], "U0s=");
    assert_eq!(secret["metadata"]["namespace"], keys::GLOBAL_DATA_NS);
}
