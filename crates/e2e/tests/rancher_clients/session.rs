//! Plays a recorded session: sends its requests in their order, remembers ids, and looks for what the
//! commands print. The form is described at the top of the recording.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use e2e::{Answer, Client, eventually};
use http::Method;
use serde_json::Value;

/// What the CLI adds to every list.
const LIST: &str = "limit=-1&removed_null=1&state_ne=inactive&state_ne=stopped&state_ne=removing\
    &system=false";
const METHODS: [&str; 4] = ["GET", "POST", "PUT", "DELETE"];

/// One request and what is said of it.
#[derive(Default)]
struct Step {
    method: String,
    path: String,
    body: String,
    /// Some other answer than a success.
    status: Option<u16>,
    shows: Vec<String>,
    /// The length of a list.
    finds: Option<usize>,
    /// The state that it is asked for again and again.
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

    /// Gives the number of commands.
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

    /// As every client of the CLI begins: where the schemas are, and what they are.
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
        // Only slashes of ids need it: the rest of a recorded path is as it was sent.
        let path = path.replace("local://", "local:%2F%2F");
        let ask = || self.client.call(method.clone(), &path, body.clone());
        let answer = match &step.until {
            None => ask()?,
            Some(state) => eventually(&step.path, || {
                let answer = ask()?;
                ensure!(answer.json()["state"] == state.as_str(), "{}", answer.text());
                Ok(answer)
            }),
        };
        match step.status {
            Some(status) => {
                ensure!(answer.status == status, "{}: {}", answer.status, answer.text())
            }
            None => ensure!(answer.status.is_success(), "{}: {}", answer.status, answer.text()),
        }
        let shown = answer.json();
        if let Some(length) = step.finds {
            let found = shown["data"].as_array().map(Vec::len);
            ensure!(found == Some(length), "{found:?} in place of {length}: {shown}");
        }
        for field in &step.shows {
            ensure!(is_shown(&shown, field), "no '{field}': {shown}");
        }
        if let Some(name) = &step.remember {
            self.known.insert(name.clone(), id_of(&answer)?);
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

/// Whether the answer, or any resource in it, has something at `field`.
fn is_shown(answer: &Value, field: &str) -> bool {
    let at = format!("/{}", field.replace('.', "/"));
    let has = |resource: &Value| match resource.pointer(&at) {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(_) => true,
    };
    has(answer) || answer["data"].as_array().is_some_and(|data| data.iter().any(has))
}

/// The id of a resource, or of the only one in a list.
fn id_of(answer: &Answer) -> Result<String> {
    let shown = answer.json();
    let resource = match shown["data"].as_array().map(Vec::as_slice) {
        None => &shown,
        Some([only]) => only,
        Some(found) => bail!("{} resources in place of one: {shown}", found.len()),
    };
    resource["id"].as_str().map(str::to_owned).with_context(|| format!("no id: {shown}"))
}
