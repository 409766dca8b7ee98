//! Paths, shapes, queries and writes.

use e2e::eventually;
use http::{Method, Request, header};
use serde_json::{Value, json};

use super::{config_map, ids, namespace, refusal, world};

#[test]
fn schemas_are_the_kinds_that_a_cluster_serves() {
    let world = world();
    let schemas = world.admin.get(&world.north.path("schemas")).unwrap();
    let url = schemas.headers["x-api-schemas"].to_str().unwrap().to_owned();
    assert!(url.ends_with(&world.north.path("schemas")), "{url}");
    let schemas = schemas.success().unwrap();
    let of = |id: &str| {
        let data = schemas["data"].as_array().unwrap();
        data.iter().find(|schema| schema["id"] == id).unwrap_or_else(|| panic!("no {id}"))
    };
    for (id, plural, kind) in [
        ("pod", "pods", "Pod"),
        ("apps.deployment", "apps.deployments", "Deployment"),
        ("storage.k8s.io.storageclass", "storage.k8s.io.storageclasses", "StorageClass"),
        ("example.io.widget", "example.io.widgets", "Widget"),
    ] {
        let schema = of(id);
        assert_eq!(
            (&schema["pluralName"], &schema["attributes"]["kind"]),
            (&json!(plural), &json!(kind))
        );
        assert_eq!(schema["collectionMethods"], json!(["GET", "POST"]));
        assert_eq!(schema["resourceMethods"], json!(["GET", "PUT", "PATCH", "DELETE"]));
        let collection = schema["links"]["collection"].as_str().unwrap();
        assert!(collection.ends_with(&world.north.path(plural)), "{collection}");
    }
    let widget = world.admin.get(&world.north.path("schemas/example.io.widget")).unwrap();
    let columns = widget.success().unwrap()["attributes"]["columns"].take();
    assert_eq!(columns[1]["name"], "Size");
    assert_eq!(columns[1]["field"], "$.metadata.fields[1]");
    // The other cluster does not serve it, nor does the management API.
    for path in [world.south.path("schemas/example.io.widget"), "/v1/example.io.widgets".into()] {
        assert_eq!(refusal(&world.admin.get(&path).unwrap()), (404, "NotFound".into()), "{path}");
    }
    let root = world.admin.get(&world.north.path("")).unwrap().success().unwrap();
    assert_eq!(root["type"], "apiRoot");
    assert!(root["links"]["pods"].as_str().unwrap().ends_with(&world.north.path("pods")));
}

#[test]
fn the_management_api_has_its_kinds_at_v1() {
    let world = world();
    let get = |path: &str| world.admin.get(path).unwrap().success().unwrap();
    let clusters = get("/v1/management.cattle.io.clusters?sort=spec.displayName");
    let names = |list: &Value| -> Vec<String> {
        let data = list["data"].as_array().unwrap().iter();
        data.map(|cluster| cluster["spec"]["displayName"].as_str().unwrap().to_owned()).collect()
    };
    let names = names(&clusters);
    let position = |name: &str| names.iter().position(|known| known == name).unwrap();
    assert!(position(super::NORTH) < position(super::SOUTH), "{names:?}");
    let through = get("/k8s/clusters/local/v1/management.cattle.io.cluster");
    let own = through["links"]["self"].as_str().unwrap();
    assert!(
        own.ends_with("/v1/management.cattle.io.clusters") && !own.contains("/local/"),
        "{own}"
    );
    assert_eq!(get("/v1/management.cattle.io.settings/server-url")["id"], "server-url");
}

#[test]
fn a_list_is_filtered_sorted_and_cut_into_pages() {
    let world = world();
    let kubectl = &world.north.target.kubectl;
    let mut objects = vec![namespace("pages"), namespace("pages-too")];
    for number in 0..25 {
        let data = json!({"number": format!("{number:02}"), "even": (number % 2 == 0).to_string()});
        objects.push(config_map("pages", &format!("map-{number:02}"), &data));
    }
    objects.push(config_map("pages-too", "map-00", &json!({"number": "00", "even": "no"})));
    kubectl.apply(&objects).unwrap();
    let get = |rest: &str| world.admin.get(&world.north.path(rest)).unwrap().success().unwrap();
    // Where an index has the type, what kubectl wrote comes a moment later.
    eventually("the objects", || {
        let count = get("configmaps?filter=metadata.name=map-")["count"].take();
        if count == 26 { Ok(()) } else { Err(count) }
    });
    let base = "configmaps/pages?filter=data.even=true";
    let page = get(&format!("{base}&sort=-data.number&pagesize=5&page=2"));
    assert_eq!((&page["count"], &page["pages"]), (&json!(13), &json!(3)));
    let expected = ["14", "12", "10", "08", "06"].map(|number| format!("pages/map-{number}"));
    assert_eq!(ids(&page), expected);
    assert!(!page["revision"].as_str().unwrap().is_empty());
    assert_eq!(get(&format!("{base}&pagesize=5&page=9"))["data"], json!([]));

    // By tokens, over all namespaces.
    let mut path = world.north.path("configmaps?filter=metadata.name=map-&limit=10");
    let mut seen = Vec::new();
    loop {
        let part = world.admin.get(&path).unwrap().success().unwrap();
        seen.extend(ids(&part).into_iter().map(str::to_owned));
        let Some(next) = part["pagination"]["next"].as_str() else { break };
        path = next[next.find("/k8s").unwrap()..].to_owned();
    }
    assert_eq!((seen.len(), seen.last().unwrap().as_str()), (26, "pages-too/map-00"));

    let selected = get("configmaps?labelSelector=app%3Dmap-00&include=metadata.name");
    assert_eq!(ids(&selected), ["pages/map-00", "pages-too/map-00"]);
    assert_eq!(selected["data"][0]["metadata"], json!({"name": "map-00"}));
    let emptied = get("configmaps/pages/map-00?excludeValues=data&exclude=metadata.managedFields");
    assert_eq!(emptied["data"], json!({"number": "", "even": ""}));
    assert!(emptied["metadata"]["managedFields"].is_null());

    for wrong in ["filter=a", "page=0&pagesize=1", "continue=x", "labelSelector=a%3D%3Db%3D%3D"] {
        let response = world.admin.get(&world.north.path(&format!("configmaps?{wrong}"))).unwrap();
        assert_eq!(refusal(&response), (400, "InvalidParameter".into()), "{wrong}");
    }
    let field = world.admin.get(&world.north.path("configmaps?fieldSelector=spec.x%3Dy")).unwrap();
    assert_eq!(refusal(&field).0, 400, "as Kubernetes answers, and no empty list");
}

#[test]
fn an_object_is_created_changed_patched_and_deleted() {
    let world = world();
    let (admin, north) = (&world.admin, &world.north);
    north.target.kubectl.apply(&[namespace("writes")]).unwrap();
    // As Terraform sends a Secret: with the type of the view, and that of Kubernetes.
    let body = json!({"type": "secret", "_type": "Opaque", "stringData": {"key": "one"},
        "metadata": {"name": "login", "namespace": "writes"}});
    let made = admin.post(&north.path("secrets"), &body).unwrap();
    assert_eq!(made.status, 201, "{}", made.text());
    let made = made.json();
    assert_eq!((&made["id"], &made["_type"]), (&json!("writes/login"), &json!("Opaque")));
    let own = north.path("secrets/writes/login");
    let mut read = admin.get(&own).unwrap().success().unwrap();
    assert_eq!(read["data"]["key"], "b25l");
    assert_eq!(read["metadata"]["fields"][0], "login");
    assert_eq!(read["metadata"]["state"]["name"], "active");
    for link in ["self", "update", "remove"] {
        assert!(read["links"][link].as_str().unwrap().ends_with(&own), "{link}: {read}");
    }
    let view = read["links"]["view"].as_str().unwrap();
    let view = admin.get(&view[view.find("/k8s").unwrap()..]).unwrap().success().unwrap();
    assert_eq!(view["kind"], "Secret");

    let without = json!({"metadata": {"name": "login"}, "stringData": {"key": "two"}});
    let refused = admin.put(&own, &without).unwrap();
    assert_eq!(refusal(&refused), (422, "MissingRequired".into()));
    let mut other = read.clone();
    other["metadata"]["name"] = "other".into();
    assert_eq!(refusal(&admin.put(&own, &other).unwrap()).0, 400);
    read["stringData"] = json!({"key": "two"});
    let changed = admin.put(&own, &read).unwrap().success().unwrap();
    assert_eq!(changed["data"]["key"], "dHdv");
    assert_eq!(refusal(&admin.put(&own, &read).unwrap()), (409, "Conflict".into()));

    let patch = |path: &str, kind: &str, body: Value| {
        let request = Request::patch(path).header(header::CONTENT_TYPE, kind);
        let request = request.body(e2e::http::body(body.to_string())).unwrap();
        admin.send(request).unwrap().success().unwrap()
    };
    let label = |value: &str| json!({"metadata": {"labels": {"by": value}}});
    let merged = patch(&own, "application/merge-patch+json", label("merge"));
    assert_eq!(merged["metadata"]["labels"]["by"], "merge");
    assert_eq!(patch(&own, "application/json", label("any"))["metadata"]["labels"]["by"], "any");
    let json_patch = json!([{"op": "replace", "path": "/metadata/labels/by", "value": "json"}]);
    let patched = patch(&own, "application/json-patch+json", json_patch);
    assert_eq!(patched["metadata"]["labels"]["by"], "json");
    let dry = patch(&format!("{own}?dryRun=All"), "application/json", label("dry"));
    assert_eq!(dry["metadata"]["labels"]["by"], "dry");
    let read = admin.get(&own).unwrap().success().unwrap();
    assert_eq!(read["metadata"]["labels"]["by"], "json");

    let deleted = admin.delete(&own).unwrap();
    assert_eq!((deleted.status.as_u16(), deleted.text()), (204, String::new()));
    assert_eq!(refusal(&admin.get(&own).unwrap()), (404, "NotFound".into()));

    // Custom resources have no strategic merge; one with a finalizer stays for a while.
    let widget = json!({"metadata": {"name": "a", "finalizers": ["example.io/wait"]},
        "spec": {"size": 3}});
    eventually("the widget", || {
        admin.post(&north.path("example.io.widgets/writes"), &widget)?.success()
    });
    let own = north.path("example.io.widgets/writes/a");
    assert_eq!(patch(&own, "application/json", json!({"spec": {"size": 4}}))["spec"]["size"], 4);
    let applied = json!({"apiVersion": "example.io/v1", "kind": "Widget",
        "metadata": {"name": "a"}, "spec": {"colour": "red"}});
    let applied = patch(&own, "application/apply-patch+yaml", applied);
    assert_eq!((&applied["spec"]["size"], &applied["spec"]["colour"]), (&json!(4), &json!("red")));
    let pending = admin.delete(&own).unwrap().success().unwrap();
    assert_eq!(pending["metadata"]["state"]["name"], "removing", "{pending}");
    patch(&own, "application/merge-patch+json", json!({"metadata": {"finalizers": null}}));
    eventually("the end of the widget", || match admin.get(&own)?.status.as_u16() {
        404 => Ok(()),
        other => Err(anyhow::anyhow!("{other}")),
    });
}

#[test]
fn what_is_not_there_is_an_error_with_a_body() {
    let world = world();
    let (admin, north) = (&world.admin, &world.north);
    for (method, rest, expected) in [
        (Method::GET, "nothing", (404, "NotFound")),
        (Method::GET, "pods/default/none", (404, "NotFound")),
        (Method::GET, "pods/default/none/log/more", (404, "NotFound")),
        (Method::POST, "schemas", (405, "MethodNotAllowed")),
        (Method::PUT, "pods", (405, "MethodNotAllowed")),
        (Method::POST, "configmaps", (422, "MissingRequired")),
        (Method::OPTIONS, "pods", (405, "MethodNotAllowed")),
    ] {
        let response = admin.call(method.clone(), &north.path(rest), "{}").unwrap();
        let expected = (expected.0, expected.1.to_owned());
        assert_eq!(refusal(&response), expected, "{method} {rest}");
    }
    let bad = admin.call(Method::POST, &north.path("configmaps/default"), "{").unwrap();
    assert_eq!(refusal(&bad), (422, "InvalidBodyContent".into()));
    let large = format!("{{\"data\": {{\"a\": \"{}\"}}}}", "x".repeat(3 << 20));
    let large = admin.call(Method::POST, &north.path("configmaps/default"), large).unwrap();
    assert_eq!(large.status, 413);
    let unknown = admin.get("/k8s/clusters/c-none/v1/pods").unwrap();
    assert_eq!(refusal(&unknown).0, 404, "{}", unknown.text());
    let yaml = Request::get(north.path("namespaces/default")).header("accept", "application/yaml");
    let yaml = admin.send(yaml.body(e2e::http::empty()).unwrap()).unwrap();
    assert!(yaml.text().contains("id: default\n"), "{}", yaml.text());
}

#[test]
fn one_list_has_the_objects_of_several_clusters() {
    let world = world();
    let mut objects = vec![namespace("fleet")];
    for name in ["a", "b"] {
        objects.push(config_map("fleet", name, &json!({"fleet": "yes"})));
    }
    world.north.target.kubectl.apply(&objects).unwrap();
    world.south.target.kubectl.apply(&objects[..2]).unwrap();
    let base = "/v1/configmaps/fleet?filter=data.fleet=yes&clusters";
    let get = |path: &str| world.admin.get(path).unwrap().success().unwrap();
    let place = |object: &Value| {
        let cluster = object["metadata"]["cluster"]["name"].as_str().unwrap();
        format!("{cluster} {}", object["id"].as_str().unwrap())
    };
    let places = |list: &Value| -> Vec<String> {
        list["data"].as_array().unwrap().iter().map(place).collect()
    };
    // Where an index has the type, what kubectl wrote comes a moment later.
    eventually("the objects of both clusters", || {
        let count = get(&format!("{base}=*"))["count"].take();
        if count == 3 { Ok(()) } else { Err(count) }
    });
    let all = get(&format!("{base}=*&sort=-metadata.cluster.name,metadata.name"));
    assert_eq!(places(&all), ["south fleet/a", "north fleet/a", "north fleet/b"]);
    assert_eq!((&all["count"], &all["unavailable"]), (&json!(3), &json!([])));
    let link = all["data"][0]["links"]["remove"].as_str().unwrap();
    assert!(link.ends_with(&world.south.path("configmaps/fleet/a")), "{link}");
    let page = get(&format!("{base}=*&sort=metadata.cluster.name&pagesize=2&page=2"));
    assert_eq!(places(&page), ["south fleet/a"]);
    let south = get(&format!("{base}={}", super::SOUTH));
    assert_eq!(places(&south), ["south fleet/a"]);
    // Only one of the clusters has the type.
    get("/v1/example.io.widgets?clusters=*");
    let none = world.admin.get("/v1/nothing.of.the.kind?clusters=*").unwrap();
    assert_eq!(refusal(&none), (404, "NotFound".into()));
    let unknown = world.admin.get(&format!("{base}=west")).unwrap();
    assert_eq!(refusal(&unknown), (400, "InvalidParameter".into()));

    let rows = ["get", "configmaps", "--all-clusters", "-n", "fleet", "--filter", "data.fleet=yes"];
    let rows = [&rows[..], &["--sort-by", "-metadata.cluster.name"]].concat();
    let rows = world.cli.succeed(&rows).unwrap();
    let clusters: Vec<&str> =
        rows.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(clusters, ["south", "north", "north"], "{rows}");

    let search = ["search", "leet-wid", "--types", "configmaps,example.io.widgets"];
    let found = world.cli.succeed(&search).unwrap();
    assert_eq!(found.lines().count(), 1, "{found}");
    world.north.target.kubectl.apply(&[config_map("fleet", "fleet-wide", &json!({}))]).unwrap();
    let found = eventually("an object by a part of its name", || {
        let found = world.cli.succeed(&["search", "leet-wid"])?;
        anyhow::ensure!(found.lines().count() == 2, "{found}");
        Ok::<_, anyhow::Error>(found)
    });
    let words: Vec<&str> = found.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(words[..4], ["north", "configmap", "fleet", "fleet-wide"]);
    let unknown = world.cli.refuse(&["search", "a", "--types", "nothing"]).unwrap();
    assert!(unknown.contains("searching nothing"), "{unknown}");
    let object = ["delete", "configmap", "fleet-wide", "--namespace", "fleet"];
    world.north.target.kubectl.succeed(&object).unwrap();
    eventually("its removal", || {
        let count = get(&format!("{base}=*"))["count"].take();
        if count == 3 { Ok(()) } else { Err(count) }
    });

    // A cluster that is not there is named, and the others are listed.
    let away = json!({"name": "away", "description": "never joined"});
    let away = world.admin.post("/v3/clusters", &away).unwrap().success().unwrap();
    let all = get(&format!("{base}=*"));
    assert_eq!(all["unavailable"][0]["name"], "away", "{}", all["unavailable"]);
    assert_eq!(all["count"], 3);
    let cli = ["get", "configmaps", "--all-clusters", "-n", "fleet"];
    let failed = world.cli.refuse(&cli).unwrap();
    assert!(failed.contains("away") && failed.contains("1 clusters could not be read"), "{failed}");
    let id = away["id"].as_str().unwrap();
    world.admin.delete(&format!("/v3/clusters/{id}")).unwrap().success().unwrap();
}
