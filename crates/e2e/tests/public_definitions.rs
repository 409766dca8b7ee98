//! Definitions of custom resources that ten operators publish, on kube-apiserver and on a simulated
//! cluster: both must accept them, publish them, and validate objects of them alike.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

#[path = "public_definitions/alike.rs"]
mod alike;
#[path = "public_definitions/sample.rs"]
mod sample;
#[path = "public_definitions/side.rs"]
mod side;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use e2e::{Sim, eventually, measure};
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use testbed::{Binaries, Program, RealCluster};

use crate::alike::differences;
use crate::sample::Samples;
use crate::side::{Side, text_of};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// Modules that publish definitions.
const SETS: usize = 10;
/// Bytes of a definition in JSON that counts as a large one.
const LARGE: usize = 1_000_000;
/// Longest time from the response until a kind is in discovery; far less on an idle machine.
const PUBLISHED_TIMEOUT: Duration = Duration::from_secs(5);
/// The part of the optional fields that the objects have, and whether they are applied.
const OBJECTS: [(f64, bool); 3] = [(0.0, false), (0.4, true), (1.0, false)];
/// The seed of every normal run, so that failures are reproducible.
const SEED: u64 = 1;
/// Variable with the duration of further objects, in seconds, each time with another seed.
const SOAK_ENV: &str = "DROVER_SOAK_SECONDS";
/// Most differences that are shown of a run.
const SHOWN_MAX: usize = 40;

#[test]
fn published_definitions_are_served_like_kube_apiserver_serves_them() {
    let soak = std::env::var(SOAK_ENV).ok().map(|text| Duration::from_secs(text.parse().unwrap()));
    let cluster = RealCluster::start().unwrap();
    let sim = Sim::start(&["--nodes", "0"]).unwrap();
    let mut pair = Pair {
        real: Side::real(&cluster).unwrap(),
        ours: Side::ours(&sim).unwrap(),
        differences: Vec::new(),
    };
    let server = cluster.process_id(Program::KubeApiserver).unwrap();
    let before = (measure::memory(server).unwrap(), measure::memory(sim.process_id()).unwrap());

    let sets = published(&Binaries::locate().definitions().unwrap());
    assert_eq!(sets.len(), SETS);
    let sets: Vec<Vec<Value>> = sets.iter().map(|texts| pair.create(texts)).collect();
    let count: usize = sets.iter().map(Vec::len).sum();
    println!("{count} definitions: {}", pair.times());
    let memory = (measure::memory(server).unwrap(), measure::memory(sim.process_id()).unwrap());
    println!(
        "resident with them: kube-apiserver {:.0} MiB (before {:.0}), drover {:.0} ({:.0})",
        memory.0, before.0, memory.1, before.1
    );

    let definitions: Vec<&Value> = sets.iter().flatten().collect();
    definitions.iter().for_each(|definition| pair.compare_status(definition));
    pair.compare_documents(&definitions);
    let since = Instant::now();
    sets.iter().filter_map(|set| set.first()).for_each(|first| pair.compare_kubectl(first));
    println!("kubectl in {:.1?}", since.elapsed());
    pair.compare_large(&definitions);

    let since = Instant::now();
    let mut seed = SEED;
    loop {
        pair.compare_objects(&definitions, seed);
        if soak.is_none_or(|soak| since.elapsed() >= soak) {
            break;
        }
        seed += 1;
    }
    let shown = pair.differences.len().min(SHOWN_MAX);
    assert!(
        pair.differences.is_empty(),
        "{} differences (kube-apiserver | drover), such as\n{}",
        pair.differences.len(),
        pair.differences[..shown].join("\n")
    );
}

/// The texts of the definitions of each module.
fn published(folder: &Path) -> Vec<Vec<String>> {
    let sorted = |folder: &Path| {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.collect::<BTreeSet<_>>()
    };
    let sets = sorted(folder).into_iter().filter(|path| path.is_dir()).map(|set| {
        let files = sorted(&set).into_iter().map(|file| std::fs::read_to_string(file).unwrap());
        let mut definitions = Vec::new();
        for file in files {
            let documents = file.split("\n---").map(str::to_owned);
            let defines =
                |text: &String| text.lines().any(|line| line == "kind: CustomResourceDefinition");
            definitions.extend(documents.filter(defines));
        }
        definitions
    });
    sets.collect()
}

/// Group and version, and the path of the collection.
fn versions(definition: &Value) -> Vec<(String, String, &Value)> {
    let spec = &definition["spec"];
    let (group, plural) = (text_of(&spec["group"]), text_of(&spec["names"]["plural"]));
    let place = if spec["scope"] == "Namespaced" { "namespaces/default/" } else { "" };
    let served = spec["versions"].as_array().unwrap().iter().filter(|one| one["served"] == true);
    let versions = served.map(|version| {
        let api_version = format!("{group}/{}", text_of(&version["name"]));
        let path = format!("/apis/{api_version}/{place}{plural}");
        (api_version, path, &version["schema"]["openAPIV3Schema"])
    });
    versions.collect()
}

/// Both servers, and their differences.
struct Pair {
    real: Side,
    ours: Side,
    differences: Vec<String>,
}

impl Pair {
    fn note(&mut self, what: &str, (real, ours): (&Value, &Value)) {
        let found = differences(real, ours);
        if !found.is_empty() {
            self.differences.push(format!("{what}\n    {}", found.join("\n    ")));
        }
    }

    /// The definitions from kube-apiserver.
    fn create(&mut self, texts: &[String]) -> Vec<Value> {
        let mut created = Vec::new();
        for text in texts {
            let real = self.real.post_yaml(DEFINITIONS, text).unwrap();
            let ours = self.ours.post_yaml(DEFINITIONS, text).unwrap();
            let name = text_of(&real.1["metadata"]["name"]);
            assert_eq!((real.0, ours.0), (201, 201), "{name}: {} | {}", real.1, ours.1);
            self.note(&name, (&real.1["spec"], &ours.1["spec"]));
            let discovery = format!("/apis/{}", versions(&real.1)[0].0);
            let plural = text_of(&real.1["spec"]["names"]["plural"]);
            self.ours.await_published(&discovery, &plural, PUBLISHED_TIMEOUT);
            created.push(real.1);
        }
        created
    }

    fn times(&self) -> String {
        format!(
            "kube-apiserver took {:.1?} to respond, drover {:.1?} and at most {:.0?} more to publish",
            self.real.answering, self.ours.answering, self.ours.publishing_max
        )
    }

    fn compare_status(&mut self, definition: &Value) {
        let path = format!("{DEFINITIONS}/{}", text_of(&definition["metadata"]["name"]));
        let settled = |side: &mut Side| {
            eventually("the kind is served", || {
                let definition = side.get(&path)?;
                let conditions = definition["status"]["conditions"].as_array();
                let is_true = |kind: &str| {
                    let mut conditions = conditions.into_iter().flatten();
                    conditions.any(|one| one["type"] == kind && one["status"] == "True")
                };
                let approved = definition["spec"]["group"].as_str().unwrap().ends_with(".k8s.io");
                let last = "KubernetesAPIApprovalPolicyConformant";
                if is_true("Established") && (!approved || is_true(last)) {
                    return Ok(definition);
                }
                Err(anyhow::anyhow!("{}", definition["status"]))
            })
        };
        let (real, ours) = (settled(&mut self.real), settled(&mut self.ours));
        self.note(&path, (&real, &ours));
    }

    /// Compares discovery, and the kinds in both OpenAPI documents. The descriptions of operations
    /// differ in their wording.
    fn compare_documents(&mut self, definitions: &[&Value]) {
        let all = definitions.iter().flat_map(|definition| versions(definition));
        let all: BTreeSet<String> = all.map(|(api_version, _, _)| api_version).collect();
        for api_version in &all {
            let path = format!("/apis/{api_version}");
            let documents = [&mut self.real, &mut self.ours].map(|side| {
                let mut document = side.get(&path).unwrap();
                let resources = document["resources"].as_array_mut().unwrap();
                resources.sort_by_key(|resource| text_of(&resource["name"]));
                document
            });
            self.note(&path, (&documents[0], &documents[1]));
        }
        let of = |document: &Value, place: &str| -> Value {
            let schemas = document.pointer(place).and_then(Value::as_object).unwrap();
            let own = schemas.iter().filter(|(_, schema)| {
                let kinds = schema["x-kubernetes-group-version-kind"].as_array();
                kinds.into_iter().flatten().any(|kind| {
                    all.contains(&format!(
                        "{}/{}",
                        text_of(&kind["group"]),
                        text_of(&kind["version"])
                    ))
                })
            });
            let own: serde_json::Map<String, Value> =
                own.map(|(name, schema)| (name.clone(), schema.clone())).collect();
            assert!(!own.is_empty(), "no kind of the definitions below '{place}'");
            own.into()
        };
        for api_version in &all {
            let path = format!("/openapi/v3/apis/{api_version}");
            let documents = [&mut self.real, &mut self.ours].map(|side| {
                let document = eventually("the schemas are published", || side.get(&path));
                of(&document, "/components/schemas")
            });
            self.note(&path, (&documents[0], &documents[1]));
        }
        let since = Instant::now();
        let documents = [&mut self.real, &mut self.ours]
            .map(|side| of(&side.get("/openapi/v2").unwrap(), "/definitions"));
        println!("/openapi/v2 twice in {:.1?}", since.elapsed());
        self.note("/openapi/v2", (&documents[0], &documents[1]));
    }

    /// Compares the output of kubectl for a kind.
    fn compare_kubectl(&mut self, definition: &Value) {
        let names = &definition["spec"]["names"];
        let (api_version, _, schema) = versions(definition).remove(0);
        let object = object(definition, &api_version, schema, &mut StdRng::seed_from_u64(0), 0.0);
        for command in [
            vec![
                "explain",
                "--recursive",
                "--api-version",
                &api_version,
                &text_of(&names["plural"]),
            ],
            vec!["apply", "--server-side", "--dry-run=server", "-o", "json", "-f"],
        ] {
            let what = format!("kubectl {} {api_version}", command[0]);
            let said = [&self.real, &self.ours].map(|side| side.kubectl(&command, &object));
            let [real, ours] = said.map(|[output, complaints]| {
                // Wrapped in a list, so that its version and times may differ.
                let output = serde_json::from_str(&output).unwrap_or(Value::String(output));
                json!({"output": output, "complaints": complaints})
            });
            self.note(&what, (&real, &ours));
        }
    }

    /// The largest one with every version twice.
    fn compare_large(&mut self, definitions: &[&Value]) {
        let size = |definition: &Value| definition.to_string().len();
        let largest = definitions.iter().max_by_key(|definition| size(definition)).unwrap();
        let mut spec = largest["spec"].clone();
        let (group, kind) = (text_of(&spec["group"]), text_of(&spec["names"]["kind"]));
        let plural = format!("{}again", kind.to_lowercase());
        spec["names"] = json!({"plural": plural, "kind": format!("{kind}Again")});
        let mut copies = spec["versions"].as_array().unwrap().clone();
        for copy in &mut copies {
            copy["name"] = format!("{}again1", text_of(&copy["name"])).into();
            copy["storage"] = false.into();
        }
        spec["versions"].as_array_mut().unwrap().extend(copies);
        let name = format!("{plural}.{group}");
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": name, "annotations": largest["metadata"]["annotations"]},
            "spec": spec,
        });
        let bytes = size(&definition);
        assert!(bytes > LARGE, "the large definition has {bytes} bytes only");
        let path = format!("{DEFINITIONS}/{name}");
        for step in ["applied", "applied again"] {
            let since = Instant::now();
            let real = self.real.apply(&path, &definition).unwrap();
            let (real_time, since) = (since.elapsed(), Instant::now());
            let ours = self.ours.apply(&path, &definition).unwrap();
            let our_time = since.elapsed();
            println!("{bytes} bytes {step}: {real_time:.1?} | {our_time:.1?}");
            assert_eq!((real.0, ours.0), (real.0.clamp(200, 201), real.0), "{} {}", real.1, ours.1);
            self.note(step, (&real.1["spec"], &ours.1["spec"]));
            self.compare_status(&definition);
        }
    }

    fn compare_objects(&mut self, definitions: &[&Value], seed: u64) {
        let since = Instant::now();
        let mut random = StdRng::seed_from_u64(seed);
        let (mut compared, mut accepted) = (0, 0);
        for definition in definitions {
            for (api_version, path, schema) in versions(definition) {
                for (fullness, applied) in OBJECTS {
                    let object = object(definition, &api_version, schema, &mut random, fullness);
                    let [real, ours] = [&mut self.real, &mut self.ours].map(|side| match applied {
                        true => side.apply(&format!("{path}/sample?dryRun=All"), &object).unwrap(),
                        false => side.post(&format!("{path}?dryRun=All"), &object).unwrap(),
                    });
                    compared += 1;
                    accepted += usize::from(real.0 < 300);
                    let what = format!("{path} seed {seed} fullness {fullness}: {}", real.0);
                    self.note(&what, (&real.1, &ours.1));
                }
            }
        }
        println!(
            "seed {seed}: {accepted} of {compared} objects accepted in {:.1?}",
            since.elapsed()
        );
        assert!(accepted > 0, "no object of any definition was accepted");
    }
}

fn object(
    definition: &Value,
    api_version: &str,
    schema: &Value,
    random: &mut StdRng,
    fullness: f64,
) -> Value {
    let mut object = Samples { random, fullness }.value(schema, 0);
    if !object.is_object() {
        object = json!({});
    }
    object["apiVersion"] = api_version.into();
    object["kind"] = definition["spec"]["names"]["kind"].clone();
    object["metadata"] = json!({"name": "sample"});
    object
}
