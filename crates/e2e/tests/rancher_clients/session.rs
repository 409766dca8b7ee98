//! Replays a recorded session: sends its requests in their order, stores ids, and checks the fields
//! that the commands print. The head of the recording describes its format.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use e2e::{Client, HttpResponse, eventually};
use http::Method;
use serde_json::Value;

/// The query that the CLI adds to every list.
const LIST: &str = "limit=-1&removed_null=1&state_ne=inactive&state_ne=stopped&state_ne=removing\
    &system=false";
const METHODS: [&str; 4] = ["GET", "POST", "PUT", "DELETE"];

/// One request and its expectations.
#[derive(Default)]
struct Step {
    method: String,
    path: String,
    body: String,
    /// An expected status other than success.
    status: Option<u16>,
    shows: Vec<String>,
    /// The length of a list.
    finds: Option<usize>,
    /// The state until which the request is repeated.
    until: Option<String>,
    remember: Option<String>,
}

pub struct Session {
    client: Client,
    known: BTreeMap<String, String>,
}

impl Session {
    /// `known`: ids by the names that the recording has for them.
    pub fn new(client: Client, known: BTreeMap<String, String>) -> Self {
        Self { client, known }
    }

    /// Returns the number of commands.
    pub fn play(&mut self, recording: &str) -> Result<usize> {
        let lines = recording.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let text = lines.collect::<Vec<_>>().join("\n");
        let commands: Vec<&str> = text.split("$ ").filter(|part| !part.is_empty()).collect();
        for command in &commands {
            let (title, steps) = command.split_once('\n').unwrap_or((command, ""));
            self.command(title, steps).with_context(|| format!("$ {title}"))?;
        }
        Ok(commands.len())
    }

    fn command(&mut self, title: &str, lines: &str) -> Result<()> {
        let all = ["/v3", "/v3/clusters/{cluster}", "/v3/projects/{cluster}:{project}", "/v1"];
        let opened = if title.ends_with("only management") { 1 } else { all.len() };
        for path in &all[..opened] {
            self.open(&self.filled(path)).with_context(|| format!("open {path}"))?;
        }
        for step in steps(lines)? {
            self.step(&step).with_context(|| format!("{} {}", step.method, step.path))?;
        }
        Ok(())
    }

    /// The first requests of every CLI command: the URL of the schemas, and the schemas.
    fn open(&self, path: &str) -> Result<()> {
        let root = self.client.get(path)?;
        ensure!(root.status == 200, "{}: {}", root.status, root.text());
        let schemas = root.headers.get("x-api-schemas").context("no X-API-Schemas")?.to_str()?;
        let at = schemas.find("/v").context("no path of a version")?;
        let list = self.client.get(&schemas[at..])?;
        ensure!(list.status == 200, "{schemas}: {}", list.text());
        ensure!(list.json()["data"].is_array(), "{schemas}: {}", list.text());
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<()> {
        let method: Method = step.method.parse()?;
        let (path, body) = (self.filled(&step.path), self.filled(&step.body));
        // Only slashes of ids need encoding: the rest of a recorded path is as it was sent.
        let path = path.replace("local://", "local:%2F%2F");
        let send = || self.client.call(method.clone(), &path, body.clone());
        let response = match &step.until {
            None => send()?,
            Some(state) => eventually(&step.path, || {
                let response = send()?;
                ensure!(response.json()["state"] == state.as_str(), "{}", response.text());
                Ok(response)
            }),
        };
        match step.status {
            Some(status) => {
                ensure!(response.status == status, "{}: {}", response.status, response.text())
            }
            None => {
                ensure!(response.status.is_success(), "{}: {}", response.status, response.text())
            }
        }
        let shown = response.json();
        if let Some(length) = step.finds {
            let found = shown["data"].as_array().map(Vec::len);
            ensure!(found == Some(length), "{found:?} in place of {length}: {shown}");
        }
        for field in &step.shows {
            ensure!(is_shown(&shown, field), "no '{field}': {shown}");
        }
        if let Some(name) = &step.remember {
            self.known.insert(name.clone(), id_of(&response)?);
        }
        Ok(())
    }

    fn filled(&self, text: &str) -> String {
        let mut text = text.replace("{list}", LIST);
        for (name, id) in &self.known {
            text = text.replace(&format!("{{{name}}}"), id);
        }
        text
    }
}

fn steps(lines: &str) -> Result<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::new();
    for line in lines.lines() {
        if let Some((method, path)) = line.split_once(' ').filter(|(m, _)| METHODS.contains(m)) {
            let (method, path) = (method.to_owned(), path.to_owned());
            steps.push(Step { method, path, ..Step::default() });
            continue;
        }
        let step = steps.last_mut().with_context(|| format!("'{line}' belongs to no request"))?;
        match line.trim().split_once(' ') {
            Some(("=>", status)) => step.status = Some(status.parse()?),
            Some(("shows", fields)) => {
                step.shows = fields.split(' ').map(str::to_owned).collect();
            }
            Some(("finds", length)) => step.finds = Some(length.parse()?),
            Some(("until", state)) => step.until = Some(state.to_owned()),
            Some(("as", name)) => step.remember = Some(name.to_owned()),
            _ if line.trim().starts_with('{') => line.trim().clone_into(&mut step.body),
            _ => bail!("'{line}' says nothing"),
        }
    }
    Ok(steps)
}

/// Whether the response, or any resource in it, has a value at `field`.
fn is_shown(response: &Value, field: &str) -> bool {
    let at = format!("/{}", field.replace('.', "/"));
    let has = |resource: &Value| match resource.pointer(&at) {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(_) => true,
    };
    has(response) || response["data"].as_array().is_some_and(|data| data.iter().any(has))
}

/// The id of a resource, or of the only one in a list.
fn id_of(response: &HttpResponse) -> Result<String> {
    let shown = response.json();
    let resource = match shown["data"].as_array().map(Vec::as_slice) {
        None => &shown,
        Some([only]) => only,
        Some(found) => bail!("{} resources in place of one: {shown}", found.len()),
    };
    resource["id"].as_str().map(str::to_owned).with_context(|| format!("no id: {shown}"))
}
