//! `drover apply`: creates or changes objects as files describe them. Fields that a file does not
//! name stay.
//!
//! [`document`] reads files, [`change`] compares the desired fields with the existing object; both
//! are pure.

mod change;
mod document;

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::api::{self, Api, id, text};
use crate::args::ApplyArgs;
use crate::commands::wait;
use crate::effect;
use crate::error::{CliError, Failure};
use crate::output::{self, TableColumn};
use crate::types::Type;
use document::{Document, LookupKey};

/// The largest file, in bytes.
const FILE_SIZE_MAX: u64 = 16 * 1024 * 1024;

const COLUMNS: &[TableColumn] = &[
    TableColumn { heading: "TYPE", cell: |row, _| text(row, "type").to_owned() },
    TableColumn { heading: "NAME", cell: |row, _| text(row, "name").to_owned() },
    TableColumn { heading: "ID", cell: |row, _| text(row, "id").to_owned() },
    TableColumn { heading: "RESULT", cell: |row, _| text(row, "result").to_owned() },
    TableColumn { heading: "FIELDS", cell: |row, _| fields(row) },
];

fn fields(row: &Value) -> String {
    let fields = row["fields"].as_array().into_iter().flatten().filter_map(Value::as_str);
    fields.collect::<Vec<_>>().join(", ")
}

/// Creates or changes the objects of all files, and prints each with what was done.
///
/// # Errors
/// A file is invalid, or a request fails; earlier objects stay changed.
pub async fn run(args: ApplyArgs) -> Result<(), CliError> {
    let api = Api::open(args.output.server.name())?;
    let mut apply = Apply { args: &args, objects: ObjectFinder::new(&api) };
    // Everything that can be checked is checked before the first change.
    let documents = apply.objects.read(&args.files).await?;
    let (mut rows, mut first_failure) = (Vec::new(), None);
    for document in documents {
        let title = document.location.clone();
        match apply.one(document).await {
            Ok(row) => rows.push(row),
            Err(error) => {
                first_failure = Some(error.during(&title));
                break;
            }
        }
    }
    output::list(args.output.output, COLUMNS, &rows)?;
    first_failure.map_or(Ok(()), Err)
}

/// The objects that files describe, as the server has them: with ids in place of names, their type,
/// and their id if they exist. Nothing is written.
///
/// # Errors
/// A file is invalid, or a request fails.
pub async fn resolved(api: &Api, files: &[PathBuf]) -> Result<Vec<Value>, CliError> {
    let mut objects = ObjectFinder::new(api);
    let mut resolved = Vec::new();
    for mut document in objects.read(files).await? {
        let kind = objects.kind(&document.kind).await?;
        let found = objects.locate(&kind, &mut document).await;
        let found = found.map_err(|error| error.during(&document.location))?;
        let mut fields = document.fields;
        fields.insert("type".to_owned(), kind.id.as_str().into());
        if let Some(found) = found {
            fields.insert("id".to_owned(), id(&found).into());
        }
        resolved.push(Value::Object(fields));
    }
    Ok(resolved)
}

/// The text of a file, or of stdin for `-`.
///
/// # Errors
/// It cannot be read, or is too large.
pub fn content(file: &Path) -> Result<String, CliError> {
    let mut text = String::new();
    let read = match file.to_str() {
        Some("-") => std::io::stdin().lock().take(FILE_SIZE_MAX + 1).read_to_string(&mut text),
        _ => std::fs::File::open(file)
            .and_then(|open| open.take(FILE_SIZE_MAX + 1).read_to_string(&mut text)),
    };
    read.map_err(|error| {
        let message = format!("reading \"{}\": {error}", file.display());
        CliError::new(Failure::Other, message)
            .hint("give a text file that you can read, or - for stdin")
    })?;
    if text.len() as u64 > FILE_SIZE_MAX {
        let message = format!("\"{}\" has more than {FILE_SIZE_MAX} bytes", file.display());
        return Err(CliError::new(Failure::Invalid, message).hint("split it"));
    }
    Ok(text)
}

struct Apply<'a> {
    args: &'a ApplyArgs,
    objects: ObjectFinder<'a>,
}

impl Apply<'_> {
    async fn one(&mut self, mut document: Document) -> Result<Value, CliError> {
        let kind = self.objects.kind(&document.kind).await?;
        let (now, result, fields) = match self.objects.locate(&kind, &mut document).await? {
            None => (self.create(&kind, &document).await?, "created", Vec::new()),
            Some(current) => {
                let change = change::diff(&kind, &current, &document.fields)?;
                if !change.left_out.is_empty() {
                    let fields = change.left_out.join(", ");
                    let name = api::name(&current);
                    notify!("note: {} {name}: {fields} is only set at creation", kind.id);
                }
                if change.is_empty() {
                    (current, "unchanged", Vec::new())
                } else {
                    let fields: Vec<String> = change.body.keys().cloned().collect();
                    (self.update(&kind, &current, change.body).await?, "changed", fields)
                }
            }
        };
        let now = self.wait_for(&kind, now).await?;
        effect::warn_if_none(&now, &format!("{} \"{}\"", kind.id, api::name(&now)));
        let result = match (self.args.dry_run, result) {
            (true, "created") => "would be created",
            (true, "changed") => "would be changed",
            (_, result) => result,
        };
        let name = api::name(&now);
        Ok(json!({
            "type": kind.id, "name": name, "id": id(&now), "result": result, "fields": fields,
        }))
    }

    async fn create(&self, kind: &Type, document: &Document) -> Result<Value, CliError> {
        let mut body = document.fields.clone();
        body.retain(|field, value| kind.allows(field, "create") && !value.is_null());
        if self.args.dry_run {
            return Ok(Value::Object(body));
        }
        body.insert("type".to_owned(), kind.id.as_str().into());
        self.objects
            .api
            .create(&kind.plural, &Value::Object(body), &format!("creating {}", kind.id))
            .await
    }

    async fn update(
        &self,
        kind: &Type,
        current: &Value,
        body: Map<String, Value>,
    ) -> Result<Value, CliError> {
        if self.args.dry_run {
            return Ok(current.clone());
        }
        let what = format!("changing {} \"{}\"", kind.id, api::name(current));
        let path = format!("/v3/{}/{}", kind.plural, api::encode(id(current)));
        self.objects.api.call(http::Method::PUT, &path, Some(&Value::Object(body)), &what).await
    }

    /// With `--wait`, waits until the object is active. Types without a state are not waited for.
    async fn wait_for(&self, kind: &Type, now: Value) -> Result<Value, CliError> {
        let wait = &self.args.wait;
        if !wait.wait || self.args.dry_run || text(&now, "state").is_empty() {
            return Ok(now);
        }
        wait::until(self.objects.api, &kind.plural, &now, &wait::Goal::active(), wait.timeout).await
    }
}

/// Finds the objects that documents describe.
struct ObjectFinder<'a> {
    api: &'a Api,
    types: HashMap<String, Type>,
    /// Ids of referenced objects, by type and the name or id in the document.
    ids: HashMap<(String, String), String>,
}

impl<'a> ObjectFinder<'a> {
    fn new(api: &'a Api) -> Self {
        Self { api, types: HashMap::new(), ids: HashMap::new() }
    }

    /// The documents of all files, checked against their types.
    async fn read(&mut self, files: &[PathBuf]) -> Result<Vec<Document>, CliError> {
        let mut documents = Vec::new();
        for file in files {
            documents.extend(document::read(&content(file)?, &file.display().to_string())?);
        }
        if documents.is_empty() {
            return Err(CliError::new(Failure::Invalid, "the files describe no object").hint(
                "an object has at least a type and a name, such as: {type: project, name: web}",
            ));
        }
        for document in &documents {
            let kind = self.kind(&document.kind).await.map_err(|e| e.during(&document.location))?;
            document.check(&kind)?;
        }
        Ok(documents)
    }

    async fn kind(&mut self, name: &str) -> Result<Type, CliError> {
        if let Some(known) = self.types.get(name) {
            return Ok(known.clone());
        }
        let kind = Type::find(self.api, name).await?;
        self.types.insert(name.to_owned(), kind.clone());
        Ok(kind)
    }

    /// Resolves the references of a document, and reads the object that it is about.
    async fn locate(
        &mut self,
        kind: &Type,
        document: &mut Document,
    ) -> Result<Option<Value>, CliError> {
        self.resolve_references(kind, &mut document.fields).await?;
        self.find(kind, &document.lookup_key(kind)?).await
    }

    /// Replaces names in reference fields by ids: ids differ between servers.
    async fn resolve_references(
        &mut self,
        kind: &Type,
        fields: &mut Map<String, Value>,
    ) -> Result<(), CliError> {
        for (field, value) in fields {
            let (Some(of), Some(name)) = (kind.reference(field), value.as_str()) else { continue };
            if name.is_empty() {
                continue;
            }
            let key = (of.to_owned(), name.to_owned());
            if let Some(known) = self.ids.get(&key) {
                *value = known.as_str().into();
                continue;
            }
            let found = match self.kind(of).await {
                Ok(target) => self.api.resolve(&target.as_named(), name).await,
                Err(error) => Err(error),
            };
            match found {
                Ok(found) => {
                    let found = id(&found).to_owned();
                    *value = found.as_str().into();
                    self.ids.insert(key, found);
                }
                // The server validates references that the caller may not resolve.
                Err(error) if matches!(error.failure, Failure::NotFound | Failure::Forbidden) => {}
                Err(error) => return Err(error.during(&format!("field \"{field}\""))),
            }
        }
        Ok(())
    }

    async fn find(&self, kind: &Type, lookup_key: &LookupKey) -> Result<Option<Value>, CliError> {
        let filter = match lookup_key {
            LookupKey::Id(id) => {
                let what = format!("{} \"{id}\"", kind.id);
                return self.api.get(&kind.plural, id, &what).await.map(Some).map_err(|error| {
                    match error.failure {
                        Failure::NotFound => error.hint("leave out the id to create a new one"),
                        _ => error,
                    }
                });
            }
            LookupKey::Fields(fields) => fields,
        };
        let query: Vec<(&str, &str)> =
            filter.iter().map(|(field, value)| (field.as_str(), value.as_str())).collect();
        let mut found = self.api.list(&kind.plural, &query).await?;
        // Types without this filter return all objects.
        found.retain(|object| query.iter().all(|(field, value)| text(object, field) == *value));
        if found.len() > 1 {
            let ids: Vec<&str> = found.iter().map(id).collect();
            let filters: Vec<String> = query.iter().map(|(f, v)| format!("{f} \"{v}\"")).collect();
            let message = format!("{} objects have the {}", ids.len(), filters.join(" and the "));
            return Err(CliError::new(Failure::Conflict, message)
                .hint(format!("write the id of one of them: {}", ids.join(", "))));
        }
        Ok(found.pop())
    }
}
