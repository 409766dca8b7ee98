//! Objects with the deepest nesting that this server allows, which is less than kube-apiserver
//! allows.

use api_meta::decode::DEPTH_MAX;
use apiserver::body::decode::YAML_DEPTH_MAX;
use serde_json::{Value, json};

use super::side::{Side, TestResponse};
use super::wait::until;
use super::world::{loose_definition, run};

/// An object with a nesting of `levels`; all but one are in its `spec`.
fn nested(kind: &str, api_version: &str, name: &str, levels: usize) -> String {
    let spec = format!("{}1{}", r#"{"a":"#.repeat(levels - 1), "}".repeat(levels - 1));
    format!(
        r#"{{"apiVersion":"{api_version}","kind":"{kind}","metadata":{{"name":"{name}"}},"spec":{spec}}}"#
    )
}

/// A kind whose objects may have any fields.
struct Wells {
    group: &'static str,
    path: String,
}

impl Wells {
    async fn furnish(group: &'static str, side: &Side) -> Self {
        let path = format!("/apis/{group}/v1/namespaces/default/wells");
        let wells = Self { group, path };
        furnish(side, &wells).await;
        wells
    }

    fn well(&self, name: &str, levels: usize) -> String {
        nested("Well", &format!("{}/v1", self.group), name, levels)
    }
}

async fn furnish(side: &Side, wells: &Wells) {
    let definition = loose_definition(wells.group, "Well");
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    side.post(definitions, &definition).await.success();
    until("the kind is served", async || {
        let response = post(side, &wells.path, "json", &wells.well("small", 3)).await;
        response.code == 201
    })
    .await;
}

async fn post(side: &Side, path: &str, media: &str, body: &str) -> TestResponse {
    let media = format!("application/{media}");
    side.send(http::Method::POST, path, &[("content-type", &media)], body.to_owned()).await
}

#[test]
fn objects_with_the_deepest_nesting_can_be_written_in_every_way() {
    run(async |world| {
        let side = &world.drover;
        let wells = Wells::furnish("kept.example.org", side).await;
        let collection = &wells.path;
        let deep: Value = serde_json::from_str(&wells.well("kept", DEPTH_MAX)).unwrap();
        let path = format!("{collection}/kept");
        side.post(collection, &deep).await.success();
        let read = side.get(&path).await.success();
        assert_eq!(read["spec"], deep["spec"]);
        // The owner of the deepest field is stored, and read again.
        let owned = read["metadata"]["managedFields"][0]["fieldsV1"].to_string();
        assert_eq!(owned.matches("f:a").count(), DEPTH_MAX - 1, "{owned}");
        assert_eq!(side.put(&path, &read).await.success()["spec"], deep["spec"]);
        let patch = json!({"metadata": {"labels": {"x": "y"}}}).to_string();
        side.patch(&path, "merge-patch+json", patch).await.success();
        let patch = r#"[{"op": "add", "path": "/spec/b", "value": 1}]"#;
        side.patch(&path, "json-patch+json", patch).await.success();
        let apply = format!("{path}?fieldManager=m&force=true");
        let applied = side.patch(&apply, "apply-patch+yaml", deep.to_string()).await.success();
        assert_eq!(applied["spec"]["a"], deep["spec"]["a"]);
        let list =
            side.get(&format!("{collection}?fieldSelector=metadata.name=kept")).await.success();
        assert_eq!(list["items"][0]["spec"]["a"], deep["spec"]["a"]);
        let yaml = side.send(http::Method::GET, &path, &[("accept", "application/yaml")], "").await;
        assert_eq!((yaml.code, yaml.text.matches("a:").count() >= DEPTH_MAX - 1), (200, true));

        // One more level, with any type of patch.
        let at = "/a".repeat(DEPTH_MAX - 1);
        let patch = format!(r#"[{{"op": "add", "path": "/spec{at}", "value": {{}}}}]"#);
        let response = side.patch(&path, "json-patch+json", patch).await;
        assert_eq!(response.code, 422, "{}", response.text);
        // Operations that each double the nesting.
        let mut operations = vec![json!({"op": "add", "path": "/spec/b", "value": {"a": {}}})];
        for doubled in 0..14 {
            let path = format!("/spec/b{}", "/a".repeat(1 << doubled));
            operations.push(json!({"op": "copy", "from": "/spec/b", "path": path}));
        }
        let bomb = Value::from(operations).to_string();
        assert_eq!(side.patch(&path, "json-patch+json", bomb).await.code, 422);
        side.delete(&path).await.success();
    });
}

/// An object of `levels` in YAML, each on a line of its own, with the last lines at the deepest
/// level.
fn block(wells: &Wells, name: &str, levels: usize, last: &[&str]) -> String {
    let group = wells.group;
    let mut text =
        format!("apiVersion: {group}/v1\nkind: Well\nmetadata: {{name: {name}}}\nspec:\n");
    for level in 1..levels - 1 {
        text.push_str(&format!("{}a:\n", " ".repeat(level)));
    }
    for line in last {
        text.push_str(&format!("{}{line}\n", " ".repeat(levels - 1)));
    }
    text
}

/// The name of an encoding of objects, and a function that encodes one from its name, levels and
/// last lines.
type Form<'f> = (&'f str, &'f dyn Fn(&str, usize, &[&str]) -> String);

#[test]
fn yaml_with_the_deepest_nesting_does_not_overflow_a_worker_of_any_build() {
    run(async |world| {
        let side = &world.drover;
        let wells = Wells::furnish("yaml.example.org", side).await;
        let flow = |name: &str, levels: usize, last: &[&str]| match last {
            [_] => wells.well(name, levels),
            last => wells.well(name, levels).replace(r#""a":1"#, &last.join(", ")),
        };
        let block = |name: &str, levels: usize, last: &[&str]| block(&wells, name, levels, last);
        let forms: [Form<'_>; 2] = [("flow", &flow), ("block", &block)];
        for (form, text) in forms {
            let deepest =
                post(side, &wells.path, "yaml", &text(form, YAML_DEPTH_MAX, &["a: 1"])).await;
            assert_eq!(deepest.code, 201, "{form}: {}", deepest.text);
            for levels in [YAML_DEPTH_MAX + 1, DEPTH_MAX + 1, 1000] {
                let deeper = post(side, &wells.path, "yaml", &text("x", levels, &["a: 1"])).await;
                assert_eq!(deeper.code, 400, "{form}, {levels}: {}", deeper.text);
            }
            // Such a body is parsed a second time.
            for levels in 4..=YAML_DEPTH_MAX {
                let name = format!("{form}-{levels}");
                let body = text(&name, levels, &["a: 1", "a: 2"]);
                let twice = post(side, &wells.path, "yaml", &body).await;
                assert!([201, 400].contains(&twice.code), "{name}: {}", twice.text);
            }
        }
    });
}
