//! Query parameters and option bodies, checked.

use std::time::Duration;

use api_meta::fields::FieldSelector;
use api_meta::labels::LabelSelector;
use api_meta::number;
use api_meta::status::{Cause, Status, StatusDetails};
use serde_json::{Value, json};

use crate::registry::{FieldValidation, ListQuery, Version, WriteOptions};
use crate::request::Query;
use crate::resource::Resource;

use super::Context;

/// Longest `fieldManager`.
const FIELD_MANAGER_LENGTH_MAX: usize = 128;

/// A refused option, told as an invalid `ListOptions`, `CreateOptions`, ….
fn invalid(kind: &str, causes: Vec<Cause>) -> Status {
    let mut status = Status::invalid("meta.k8s.io", kind, "", causes);
    if let Some(details) = &mut status.details {
        **details = StatusDetails { name: String::new(), ..(**details).clone() };
    }
    status
}

fn forbidden(field: &str, detail: &str) -> Status {
    invalid("ListOptions", vec![Cause::forbidden(field, detail)])
}

fn parse_version(text: &str) -> Result<Option<u64>, Status> {
    match text {
        "" => Ok(None),
        text => number::unsigned(text).map(Some).map_err(|problem| {
            Status::bad_request(format!(
                "invalid resource version: {}",
                bad_version(text, &problem)
            ))
        }),
    }
}

fn bad_version(text: &str, problem: &str) -> String {
    format!("resourceVersion: Invalid value: {}: {problem}", Value::from(text))
}

/// `resourceVersion` of a GET.
pub fn get_version(query: &Query) -> Result<Version, Status> {
    let text = query.text("resourceVersion");
    match text {
        "" => Ok(Version::Latest),
        "0" => Ok(Version::Any),
        text => number::unsigned(text)
            .map(Version::NotOlderThan)
            .map_err(|problem| Status::new(500, "", bad_version(text, &problem))),
    }
}

/// Both selectors, parsed. A request that was authorised for one name, which an old watch has from
/// its path, is shown what has that name and nothing else.
fn parse_selectors(context: &Context<'_>) -> Result<(LabelSelector, FieldSelector), Status> {
    let query = context.query;
    let labels = LabelSelector::parse(query.text("labelSelector"))
        .map_err(|error| Status::bad_request(error.to_string()))?;
    let fields = FieldSelector::parse(query.text("fieldSelector"))
        .map_err(|error| Status::bad_request(error.to_string()))?;
    match context.info.name.as_str() {
        "" => Ok((labels, fields)),
        name if fields.required("metadata.name").is_some_and(|wanted| wanted != name) => {
            let text = "fieldSelector metadata.name doesn't match requested name";
            Err(Status::bad_request(text))
        }
        name => Ok((labels, fields.and_equal("metadata.name", name))),
    }
}

fn check_fields(resource: &Resource, fields: &FieldSelector) -> Result<(), Status> {
    fields.fields().into_iter().try_for_each(|field| check_field(resource, field))
}

/// Both selectors, checked against what the resource offers.
pub fn selectors(context: &Context<'_>) -> Result<(LabelSelector, FieldSelector), Status> {
    let (labels, fields) = parse_selectors(context)?;
    check_fields(&context.resource, &fields)?;
    Ok((labels, fields))
}

fn check_field(resource: &Resource, field: &str) -> Result<(), Status> {
    let has_own = resource.custom || !resource.selectable_fields.is_empty();
    let known = match field {
        "metadata.name" => true,
        "metadata.namespace" => resource.namespaced || !has_own,
        other => {
            resource.selectable_fields.iter().any(|known| known.offered && known.label == other)
        }
    };
    if known {
        return Ok(());
    }
    if has_own {
        return Err(Status::bad_request(match resource.kind.as_str() {
            "Job" if !resource.custom => format!("field label {field:?} not supported for Job"),
            "ResourceSlice" if !resource.custom => {
                let kind = format!("{}, Kind={}", resource.api_version(), resource.kind);
                format!("field label not supported for {kind}: {field}")
            }
            _ => format!("field label not supported: {field}"),
        }));
    }
    Err(Status::bad_request(format!(
        "\"{field}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
    )))
}

/// The options of a list, by the matrix of version, match, limit and continue.
pub fn list_query(context: &Context<'_>) -> Result<ListQuery, Status> {
    let query = context.query;
    let limit: i64 = integer(query, "limit")?.unwrap_or(0);
    let (labels, fields) = parse_selectors(context)?;
    if query.get("sendInitialEvents").is_some() {
        let text = "sendInitialEvents is forbidden for list";
        return Err(forbidden("sendInitialEvents", text));
    }
    let limit = usize::try_from(limit).ok().filter(|limit| *limit > 0);
    let continue_token =
        Some(query.text("continue")).filter(|token| !token.is_empty()).map(str::to_owned);
    let matching = query.text("resourceVersionMatch");
    let causes = check_match(matching, query.text("resourceVersion"), continue_token.is_some());
    if !causes.is_empty() {
        return Err(invalid("ListOptions", causes));
    }
    check_fields(&context.resource, &fields)?;
    if continue_token.is_some() && !matches!(query.text("resourceVersion"), "" | "0") {
        return Err(Status::bad_request(
            "specifying resource version is not allowed when using continue",
        ));
    }
    let version = parse_version(query.text("resourceVersion"))?;
    let version = match (version, matching, limit) {
        (None, _, _) => Version::Latest,
        (Some(0), _, _) => Version::Any,
        (Some(version), "Exact", _) => Version::Exact(version),
        // A page is as old as is said, but for what can have only one.
        (Some(version), "", Some(_)) if !names_one(context, &fields) => Version::Exact(version),
        (Some(version), _, _) => Version::NotOlderThan(version),
    };
    let limit = if version == Version::Any { None } else { limit };
    let namespace = context.info.namespace.clone();
    Ok(ListQuery { namespace, labels, fields, version, limit, continue_token })
}

/// Whether the selector says which object is meant.
fn names_one(context: &Context<'_>, fields: &FieldSelector) -> bool {
    let is_said = |field: &str| fields.required(field).is_some();
    let in_one_place = !context.resource.namespaced
        || !context.info.namespace.is_empty()
        || is_said("metadata.namespace");
    is_said("metadata.name") && in_one_place
}

fn check_match(matching: &str, version: &str, continued: bool) -> Vec<Cause> {
    if matching.is_empty() {
        return Vec::new();
    }
    let field = "resourceVersionMatch";
    let mut causes = Vec::new();
    if continued {
        let text = "resourceVersionMatch is forbidden when continue is provided";
        causes.push(Cause::forbidden(field, text));
    }
    if version.is_empty() {
        let text = "resourceVersionMatch is forbidden unless resourceVersion is provided";
        causes.push(Cause::forbidden(field, text));
    }
    match matching {
        "Exact" if version == "0" => {
            let text = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            causes.push(Cause::forbidden(field, text));
        }
        "Exact" | "NotOlderThan" => {}
        other => {
            let supported = ["Exact", "NotOlderThan", ""];
            causes.push(Cause::not_supported(field, &other.into(), &supported));
        }
    }
    causes
}

/// How a watch begins and ends.
pub struct WatchQuery {
    pub labels: LabelSelector,
    pub fields: FieldSelector,
    /// `None`: begin with the present state; else only events above.
    pub after: Option<u64>,
    /// The present state must be at least this new.
    pub not_older_than: Option<u64>,
    pub bookmarks: bool,
    /// Mark the end of the initial state with a bookmark.
    pub end_mark: bool,
    pub timeout: Duration,
}

pub fn watch_query(context: &Context<'_>) -> Result<WatchQuery, Status> {
    let query = context.query;
    let (labels, fields) = selectors(context)?;
    let version = parse_version(query.text("resourceVersion"))?;
    let matching = query.text("resourceVersionMatch");
    if !query.text("continue").is_empty() {
        let text = "resourceVersionMatch is forbidden when continue is provided";
        return Err(forbidden("resourceVersionMatch", text));
    }
    let bookmarks = query.flag("allowWatchBookmarks");
    let initial = query.get("sendInitialEvents").map(|text| text != "false" && text != "0");
    match (initial, matching) {
        (None, "") | (Some(_), "NotOlderThan") => {}
        (None, _) => {
            let text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is \
                        provided";
            return Err(forbidden("resourceVersionMatch", text));
        }
        (Some(_), other) => {
            let field = "resourceVersionMatch";
            let text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            let mut causes = vec![Cause::forbidden(field, text)];
            if !other.is_empty() {
                causes.push(Cause::not_supported(field, &other.into(), &["NotOlderThan"]));
            }
            return Err(invalid("ListOptions", causes));
        }
    }
    let from_state = initial.unwrap_or(matches!(version, None | Some(0)));
    let after = if from_state { None } else { version.filter(|version| *version > 0) };
    Ok(WatchQuery {
        labels,
        fields,
        after: if from_state { None } else { Some(after.unwrap_or(u64::MAX)) },
        not_older_than: if from_state { version.filter(|version| *version > 0) } else { None },
        bookmarks,
        end_mark: bookmarks && from_state,
        timeout: watch_timeout(query)?,
    })
}

/// Longest watch that a client gets, whatever it asks for. What was allowed once does not go on for years.
const WATCH_TIME_MAX: Duration = Duration::from_hours(1);

/// Watches without a wish end after 30 to 60 minutes, spread out so that clients do not come back at once.
fn watch_timeout(query: &Query) -> Result<Duration, Status> {
    let seconds: i64 = integer(query, "timeoutSeconds")?.unwrap_or(0);
    match u64::try_from(seconds) {
        Ok(seconds) if seconds > 0 => Ok(Duration::from_secs(seconds).min(WATCH_TIME_MAX)),
        _ => Ok(Duration::from_secs(rand::random_range(1800..3600))),
    }
}

fn integer(query: &Query, key: &str) -> Result<Option<i64>, Status> {
    match query.text(key) {
        "" => Ok(None),
        text => number::signed(text).map(Some).map_err(Status::bad_request),
    }
}

/// The options of create, update and patch.
pub fn write_options(context: &Context<'_>, kind: &str) -> Result<WriteOptions, Status> {
    options_of_write(context, kind, false)
}

/// The options of an apply.
pub fn apply_options(context: &Context<'_>) -> Result<WriteOptions, Status> {
    let mut options = options_of_write(context, "PatchOptions", true)?;
    options.is_patch = true;
    Ok(options)
}

/// Who comes to own what is written: who says so, else the program that asks.
fn manager_of(context: &Context<'_>, given: &str) -> String {
    if !given.is_empty() {
        return given.to_owned();
    }
    let agent = context.parts.headers.get(http::header::USER_AGENT);
    let agent = agent.and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    let program = agent.split('/').next().unwrap_or_default();
    program.chars().filter(|c| !c.is_control()).take(FIELD_MANAGER_LENGTH_MAX).collect()
}

fn options_of_write(
    context: &Context<'_>,
    kind: &str,
    is_apply: bool,
) -> Result<WriteOptions, Status> {
    let query = context.query;
    let mut causes = Vec::new();
    let dry_run = dry_run(query, &mut causes);
    let field_validation = match query.text("fieldValidation") {
        "" | "Warn" => FieldValidation::Warn,
        "Strict" => FieldValidation::Strict,
        "Ignore" => FieldValidation::Ignore,
        other => {
            let supported = ["", "Ignore", "Strict", "Warn"];
            causes.push(Cause::not_supported("fieldValidation", &other.into(), &supported));
            FieldValidation::Warn
        }
    };
    let manager = query.text("fieldManager");
    if manager.chars().count() > FIELD_MANAGER_LENGTH_MAX {
        causes.push(Cause::too_long("fieldManager", FIELD_MANAGER_LENGTH_MAX));
    }
    let control = manager.char_indices().find(|(_, character)| character.is_control());
    if let Some((at, character)) = control {
        let code = u32::from(character);
        let text = format!("invalid character U+{code:04X} (at position {at})");
        causes.push(Cause::invalid("fieldManager", &manager.into(), &text));
    }
    if is_apply && manager.is_empty() {
        causes.push(Cause::required("fieldManager", "is required for apply patch"));
    }
    if !is_apply && query.get("force").is_some() {
        causes.push(Cause::forbidden("force", "may not be specified for non-apply patch"));
    }
    if !causes.is_empty() {
        return Err(invalid(kind, causes));
    }
    Ok(WriteOptions {
        dry_run,
        field_validation,
        manager: manager_of(context, manager),
        audit: context.sink(),
        ..WriteOptions::of(context.user.clone())
    })
}

fn dry_run(query: &Query, causes: &mut Vec<Cause>) -> bool {
    let values: Vec<&str> = query.all("dryRun").filter(|value| !value.is_empty()).collect();
    all_of_dry_run(&values, causes)
}

/// `All` is the only stage that can be asked for.
fn all_of_dry_run(values: &[&str], causes: &mut Vec<Cause>) -> bool {
    if values.iter().any(|value| *value != "All") {
        causes.push(Cause::not_supported("dryRun", &json!(values), &["All"]));
    }
    !values.is_empty()
}

/// `dryRun` of a delete, from the query or, when there is a body, from it alone.
pub fn delete_dry_run(query: &Query, body: Option<&Value>) -> Result<bool, Status> {
    let mut causes = Vec::new();
    let all = match body {
        None => dry_run(query, &mut causes),
        Some(body) => {
            let values = body["dryRun"].as_array().into_iter().flatten();
            let values: Vec<&str> = values.filter_map(Value::as_str).collect();
            all_of_dry_run(&values, &mut causes)
        }
    };
    if causes.is_empty() { Ok(all) } else { Err(invalid("DeleteOptions", causes)) }
}

/// An invalid `DeleteOptions`.
pub fn invalid_delete(causes: Vec<Cause>) -> Status {
    invalid("DeleteOptions", causes)
}
