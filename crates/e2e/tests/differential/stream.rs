//! The stream of requests: determined by a seed, independent of responses.

use std::fmt;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Map, Value, json};

use crate::kinds::{KINDS, Kind};
use crate::words::in_namespace;

/// The first two exist on both sides; the third does not.
pub const NAMESPACES: [&str; 2] = ["left", "right"];
const NO_NAMESPACE: &str = "nowhere";
/// Few names, so that the requests conflict.
const NAMES: [&str; 4] = ["a", "b", "c", "d"];
/// The field managers.
const MANAGERS: [&str; 4] = ["alpha", "beta", "gamma", "kubectl"];
const BAD_NAMES: [&str; 4] = ["Upper", "a_b", "-a", "a..b"];

/// One request; server-specific values are placeholders (see `words`).
pub struct Step {
    pub method: &'static str,
    pub path: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
}

impl Step {
    /// Version 0 requests a state of any age, any other version a state that is not older.
    pub fn takes_stale(&self) -> bool {
        let stale = ["resourceVersion=0", "resourceVersionMatch=NotOlderThan"];
        self.method == "GET" && stale.iter().any(|query| self.path.contains(query))
    }

    pub fn wants_yaml(&self) -> bool {
        self.headers.iter().any(|(name, value)| *name == "accept" && value.contains("yaml"))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)?;
        for (name, value) in &self.headers {
            write!(f, " [{name}: {value}]")?;
        }
        if !self.body.is_empty() {
            write!(f, " {}", self.body)?;
        }
        Ok(())
    }
}

/// Generates steps endlessly.
pub struct Stream {
    random: StdRng,
}

impl Stream {
    pub fn new(seed: u64) -> Self {
        Self { random: StdRng::seed_from_u64(seed) }
    }

    fn chance(&mut self, of: f64) -> bool {
        self.random.random_bool(of)
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from.choose(&mut self.random).copied().expect("the choice is not empty")
    }

    pub fn next(&mut self) -> Step {
        let kind = KINDS.choose(&mut self.random).expect("there are kinds");
        let mut step = match self.random.random_range(0..100) {
            0..25 => self.create(kind),
            25..45 => self.update(kind),
            45..55 => self.patch(kind),
            55..65 => self.apply(kind),
            65..75 => self.get(kind),
            75..88 => self.list(kind),
            88..98 => self.delete(kind),
            _ => self.delete_collection(kind),
        };
        // There, the collection is deleted before 406 is returned.
        if step.method != "DELETE" && self.chance(0.05) {
            let accept = self.pick(&[
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
                "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
                "application/yaml",
                "text/html",
                "*/*",
            ]);
            step.headers.push(("accept", accept.to_owned()));
        }
        step
    }

    fn namespace(&mut self) -> &'static str {
        if self.chance(0.02) { NO_NAMESPACE } else { self.pick(&NAMESPACES) }
    }

    fn name(&mut self) -> &'static str {
        if self.chance(0.02) { self.pick(&BAD_NAMES) } else { self.pick(&NAMES) }
    }

    /// The collection of the kind, in some namespace.
    fn collection(&mut self, kind: &Kind) -> String {
        if kind.namespaced {
            let object = in_namespace(kind.path, self.namespace(), "");
            object.trim_end_matches('/').to_owned()
        } else {
            kind.path.to_owned()
        }
    }

    fn object_path(&mut self, kind: &Kind) -> String {
        let collection = self.collection(kind);
        format!("{collection}/{}", self.name())
    }

    /// A mostly valid object named `name`.
    fn object(&mut self, kind: &Kind, name: &str) -> Value {
        let mut object = (kind.content)(&mut self.random);
        object["apiVersion"] = kind.api_version.into();
        object["kind"] = kind.kind.into();
        object["metadata"] = json!({"name": name});
        if self.chance(0.4) {
            object["metadata"]["labels"] = self.labels();
        }
        if self.chance(0.2) {
            object["metadata"]["annotations"] = json!({"note": self.pick(&["one", "two", ""])});
        }
        if self.chance(0.05) {
            let finalizer = self.pick(&["example.com/hold", "hold", "a b"]);
            object["metadata"]["finalizers"] = json!([finalizer]);
        }
        object
    }

    fn labels(&mut self) -> Value {
        if self.chance(0.05) {
            return json!({"bad key!": "x", "long": "-"});
        }
        json!({"app": self.pick(&["web", "db", ""]), "tier": self.pick(&["one", "two"])})
    }

    /// Makes one field of a body invalid, so that the body is refused, or the field dropped.
    fn spoil(&mut self, object: &mut Value) {
        match self.random.random_range(0..9) {
            0 => object["apiVersion"] = self.pick(&["v9", "example.com/v1", ""]).into(),
            1 => object["kind"] = self.pick(&["Other", ""]).into(),
            2 => object["metadata"]["namespace"] = "elsewhere".into(),
            3 => object["metadata"]["name"] = self.pick(&["", "z", "Upper"]).into(),
            4 => object["unknown"] = json!({"a": 1}),
            5 => object["metadata"]["unknown"] = "x".into(),
            6 => object["metadata"]["labels"] = json!({"a": 1}),
            7 => self.retype(object),
            _ => object["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000".into(),
        }
    }

    /// Gives a field of the content another type.
    fn retype(&mut self, object: &mut Value) {
        let Some(fields) = object.as_object_mut() else { return };
        let names: Vec<String> = fields
            .keys()
            .filter(|name| !["apiVersion", "kind", "metadata"].contains(&name.as_str()))
            .cloned()
            .collect();
        let Some(name) = names.choose(&mut self.random) else { return };
        let other = [json!("text"), json!(7), json!(true), json!([]), json!({}), Value::Null];
        let other = other.choose(&mut self.random).expect("there are some").clone();
        match fields[name].as_object_mut() {
            Some(inner) if !inner.is_empty() && self.random.random_bool(0.6) => {
                let inner_names: Vec<String> = inner.keys().cloned().collect();
                let inner_name = inner_names.choose(&mut self.random).expect("not empty");
                // For these, empty and absent differ there: an empty one has an owner, or
                // increments the generation, or is bytes given as numbers.
                let empty_is_distinct = ["limits", "ingress", "egress"]
                    .contains(&inner_name.as_str())
                    || ["binaryData", "data"].contains(&name.as_str());
                if !(empty_is_distinct && other == json!([])) {
                    inner[inner_name] = other;
                }
            }
            _ => fields[name] = other,
        }
    }

    fn write_options(&mut self) -> String {
        let mut options = Vec::new();
        if self.chance(0.1) {
            options.push(format!("dryRun={}", self.pick(&["All", "All", "Some"])));
        }
        if self.chance(0.2) {
            let how = self.pick(&["Strict", "Warn", "Ignore", "Loose"]);
            options.push(format!("fieldValidation={how}"));
        }
        if self.chance(0.3) {
            options.push(format!("fieldManager={}", self.pick(&MANAGERS)));
        }
        if options.is_empty() { String::new() } else { format!("?{}", options.join("&")) }
    }

    fn json_step(&mut self, method: &'static str, path: String, body: String) -> Step {
        let content_type = if self.chance(0.01) {
            self.pick(&["text/plain", "application/xml", ""])
        } else {
            "application/json"
        };
        let headers = vec![("content-type", content_type.to_owned())];
        Step { method, path, headers, body }
    }

    fn create(&mut self, kind: &Kind) -> Step {
        let name = self.name();
        let mut object = self.object(kind, name);
        if self.chance(0.15) {
            self.spoil(&mut object);
        }
        if kind.kind == "LimitRange" && object["metadata"]["name"] == "" {
            // It would get an unpredictable one.
            object["metadata"]["name"] = "z".into();
        }
        let path = format!("{}{}", self.collection(kind), self.write_options());
        let body = self.text(&object);
        self.json_step("POST", path, body)
    }

    /// Usually the text of `object`; sometimes invalid JSON, or a duplicate field.
    fn text(&mut self, object: &Value) -> String {
        let text = object.to_string();
        match self.random.random_range(0..100) {
            0 => text[..text.floor_char_boundary(text.len() / 2)].to_owned(),
            1 => text.replacen('{', r#"{"kind":"Twice","#, 1),
            2 => "[]".to_owned(),
            3 => String::new(),
            _ => text,
        }
    }

    fn update(&mut self, kind: &Kind) -> Step {
        let path = self.object_path(kind);
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        let mut object = self.object(kind, &name);
        match self.random.random_range(0..10) {
            0..5 => object["metadata"]["resourceVersion"] = format!("‹version {path}›").into(),
            5 => object["metadata"]["resourceVersion"] = format!("‹stale {path}›").into(),
            6 => object["metadata"]["resourceVersion"] = self.pick(&["0", "x", "-1"]).into(),
            7 => object["metadata"]["uid"] = format!("‹uid {path}›").into(),
            _ => {}
        }
        if self.chance(0.1) {
            self.spoil(&mut object);
        }
        if kind.kind == "Thing" && object["kind"] == "Other" {
            // Accepted there as a status, deliberately not here.
            object["kind"] = kind.kind.into();
        }
        let body = self.text(&object);
        let status = if kind.kind == "Thing" && self.chance(0.2) { "/status" } else { "" };
        let path = format!("{path}{status}{}", self.write_options());
        self.json_step("PUT", path, body)
    }

    fn patch(&mut self, kind: &Kind) -> Step {
        let path = self.object_path(kind);
        let (content_type, body) = match self.random.random_range(0..3) {
            0 => ("application/json-patch+json", self.json_patch()),
            1 => ("application/merge-patch+json", self.merge_patch(kind)),
            _ if kind.built_in || self.chance(0.1) => {
                ("application/strategic-merge-patch+json", self.strategic_patch(kind))
            }
            _ => ("application/merge-patch+json", self.merge_patch(kind)),
        };
        let body = if self.chance(0.02) { "{".to_owned() } else { body.to_string() };
        let path = format!("{path}{}", self.write_options());
        let headers = vec![("content-type", content_type.to_owned())];
        Step { method: "PATCH", path, headers, body }
    }

    /// A part of an object, by one of several managers.
    fn apply(&mut self, kind: &Kind) -> Step {
        let path = self.object_path(kind);
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        let mut object = self.object(kind, &name);
        if self.chance(0.3) {
            // Only metadata: fields of earlier applies are removed.
            let kept = ["apiVersion", "kind", "metadata"];
            object.as_object_mut().expect("it is one").retain(|name, _| kept.contains(&&**name));
        }
        match self.random.random_range(0..20) {
            0 => object["metadata"]["resourceVersion"] = format!("‹version {path}›").into(),
            1 => object["metadata"]["resourceVersion"] = format!("‹stale {path}›").into(),
            2 => object["metadata"]["managedFields"] = json!([{}]),
            3 | 4 => self.spoil(&mut object),
            _ => {}
        }
        let mut options = Vec::new();
        if !self.chance(0.02) {
            options.push(format!("fieldManager={}", self.pick(&MANAGERS)));
        }
        if self.chance(0.5) {
            options.push(format!("force={}", self.pick(&["true", "true", "false", "x"])));
        }
        if self.chance(0.1) {
            options.push("dryRun=All".to_owned());
        }
        if self.chance(0.2) {
            let how = self.pick(&["Strict", "Warn", "Ignore", "Loose"]);
            options.push(format!("fieldValidation={how}"));
        }
        let status = if kind.kind == "Thing" && self.chance(0.2) { "/status" } else { "" };
        let body = self.text(&object);
        let headers = vec![("content-type", "application/apply-patch+yaml".to_owned())];
        let path = format!("{path}{status}?{}", options.join("&"));
        Step { method: "PATCH", path, headers, body }
    }

    fn json_patch(&mut self) -> Value {
        let operation = match self.random.random_range(0..9) {
            0 => json!({"op": "add", "path": "/metadata/labels", "value": {"app": "web"}}),
            1 => json!({"op": "add", "path": "/metadata/labels/app", "value": "db"}),
            2 => json!({"op": "remove", "path": "/metadata/labels/app"}),
            3 => json!({"op": "replace", "path": "/metadata/annotations", "value": {}}),
            4 => json!({"op": "test", "path": "/metadata/labels/app", "value": "web"}),
            5 => json!({"op": "copy", "from": "/metadata/name", "path": "/metadata/labels/copy"}),
            6 => json!({"op": "move", "from": "/metadata/labels", "path": "/metadata/annotations"}),
            7 => json!({"op": "replace", "path": "/metadata/name", "value": "other"}),
            _ => json!({"op": "wrong", "path": "/x"}),
        };
        if self.chance(0.05) { operation } else { json!([operation]) }
    }

    fn merge_patch(&mut self, kind: &Kind) -> Value {
        match self.random.random_range(0..7) {
            0 => json!({"metadata": {"labels": {"app": self.pick(&["web", "db"])}}}),
            1 => json!({"metadata": {"labels": null, "annotations": {"note": null}}}),
            2 => json!({"metadata": {"finalizers": []}}),
            3 => json!({"metadata": {"resourceVersion": "1"}}),
            4 => json!({}),
            5 => {
                let mut content = (kind.content)(&mut self.random);
                self.retype(&mut content);
                content
            }
            _ => (kind.content)(&mut self.random),
        }
    }

    fn strategic_patch(&mut self, kind: &Kind) -> Value {
        match self.random.random_range(0..6) {
            0 => json!({"metadata": {"labels": {"$patch": "replace", "app": "web"}}}),
            1 => json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/hold"]}}),
            2 if kind.kind == "PodTemplate" => json!({"template": {"spec": {"containers": [
                {"name": "main", "env": [{"name": "A", "$patch": "delete"}, {"name": "C", "value": "3"}]},
            ]}}}),
            3 if kind.kind == "PodTemplate" => json!({"template": {"spec": {
                "$setElementOrder/containers": [{"name": "side"}, {"name": "main"}],
                "containers": [{"name": "side", "image": "busybox"}],
            }}}),
            4 => json!({"$patch": "wrong"}),
            _ => self.merge_patch(kind),
        }
    }

    fn get(&mut self, kind: &Kind) -> Step {
        let mut path = self.object_path(kind);
        if self.chance(0.1) {
            path += self.pick(&[
                "?resourceVersion=0",
                "?resourceVersion=x",
                "?resourceVersion=99999999999",
                "/status",
                "/nothing",
            ]);
        }
        let method = if self.chance(0.02) { "HEAD" } else { "GET" };
        Step { method, path, headers: Vec::new(), body: String::new() }
    }

    fn selectors(&mut self) -> Vec<String> {
        let mut query = Vec::new();
        if self.chance(0.5) {
            let selector = self.pick(&[
                "app=web",
                "app==db",
                "app!=web",
                "app+in+(web,db)",
                "app+notin+(web)",
                "tier",
                "!tier",
                "app=web,tier=one",
                "app=",
                "app+in+()",
                "a+b",
                "=x",
                "app%3E1",
                "bad!key=1",
            ]);
            query.push(format!("labelSelector={selector}"));
        }
        if self.chance(0.3) {
            let selector = self.pick(&[
                "metadata.name=a",
                "metadata.name!=a",
                "metadata.namespace=left",
                "metadata.name=a,metadata.namespace=right",
                "spec.other=1",
                "type=Opaque",
                "nonsense",
            ]);
            query.push(format!("fieldSelector={selector}"));
        }
        query
    }

    fn list(&mut self, kind: &Kind) -> Step {
        let everywhere = !kind.shared && self.chance(0.3);
        let path = if everywhere { kind.path.to_owned() } else { self.collection(kind) };
        let mut query = self.selectors();
        if self.chance(0.4) {
            query.push(format!("limit={}", self.pick(&["1", "2", "100", "0", "-1", "x"])));
        }
        if self.chance(0.2) {
            query.push(self.pick(&["continue=‹continue›", "continue=nonsense"]).to_owned());
        }
        if self.chance(0.3) {
            query.push(
                self.pick(&[
                    "resourceVersion=0",
                    "resourceVersion=‹list›",
                    "resourceVersion=‹list›&resourceVersionMatch=Exact",
                    "resourceVersion=‹list›&resourceVersionMatch=NotOlderThan",
                    "resourceVersion=0&resourceVersionMatch=Exact",
                    "resourceVersionMatch=NotOlderThan",
                    "resourceVersion=1&resourceVersionMatch=Sometimes",
                    "resourceVersion=abc",
                ])
                .to_owned(),
            );
        }
        let query = query.join("&").replace("‹list›", &format!("‹list {}›", kind.path));
        let path = if query.is_empty() { path } else { format!("{path}?{query}") };
        Step { method: "GET", path, headers: Vec::new(), body: String::new() }
    }

    fn delete(&mut self, kind: &Kind) -> Step {
        let path = self.object_path(kind);
        let mut options = Map::new();
        match self.random.random_range(0..8) {
            0 => drop(
                options.insert("preconditions".to_owned(), json!({"uid": format!("‹uid {path}›")})),
            ),
            1 => {
                let wrong = json!({"uid": "00000000-0000-0000-0000-000000000000"});
                options.insert("preconditions".to_owned(), wrong);
            }
            2 => {
                let version = json!({"resourceVersion": format!("‹version {path}›")});
                options.insert("preconditions".to_owned(), version);
            }
            3 => drop(options.insert("gracePeriodSeconds".to_owned(), json!(0))),
            4 => drop(options.insert("dryRun".to_owned(), json!(["All"]))),
            5 => drop(options.insert("propagationPolicy".to_owned(), json!("Background"))),
            _ => {}
        }
        if self.chance(0.03) {
            options.insert("propagationPolicy".to_owned(), json!("Sideways"));
        }
        let body = match options.is_empty() {
            true if self.chance(0.5) => String::new(),
            _ => Value::Object(options).to_string(),
        };
        self.json_step("DELETE", path, body)
    }

    fn delete_collection(&mut self, kind: &Kind) -> Step {
        let mut query = self.selectors();
        if kind.kind == "ConfigMap" {
            // Without the one that every namespace has.
            query = vec!["labelSelector=app=web".to_owned()];
        }
        // A whole collection rarely, or objects would not exist long.
        if query.is_empty() && self.chance(0.7) {
            query.push("labelSelector=app=db".to_owned());
        }
        let collection = self.collection(kind);
        let path =
            if query.is_empty() { collection } else { format!("{collection}?{}", query.join("&")) };
        Step { method: "DELETE", path, headers: Vec::new(), body: String::new() }
    }
}
