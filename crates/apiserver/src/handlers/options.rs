//! Validates query parameters and option bodies.

use std::time::Duration;

use api_meta::fields::FieldSelector;
use api_meta::labels::LabelSelector;
use api_meta::number;
use api_meta::status::{Cause, Status, StatusDetails};
use serde_json::{Value, json};

use crate::registry::{FieldValidation, ListQuery, ReadVersion, WriteOptions};
use crate::request::Query;
use crate::resource::Resource;

use super::HandlerContext;

/// Longest `fieldManager`.
const FIELD_MANAGER_LENGTH_MAX: usize = 128;

/// A rejected option, reported as an invalid `ListOptions`, `CreateOptions`, ….
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

/// The `resourceVersion` of a GET.
///
/// # Errors
/// 500 when it is not a number, like kube-apiserver.
pub fn get_version(query: &Query) -> Result<ReadVersion, Status> {
    let text = query.text("resourceVersion");
    match text {
        "" => Ok(ReadVersion::Latest),
        "0" => Ok(ReadVersion::Any),
        text => number::unsigned(text)
            .map(ReadVersion::NotOlderThan)
            .map_err(|problem| Status::new(500, "", bad_version(text, &problem))),
    }
}

/// Parses both selectors. A request that was authorised for one name (a legacy watch has one in its
/// path) sees only the object of that name.
fn parse_selectors(context: &HandlerContext<'_>) -> Result<(LabelSelector, FieldSelector), Status> {
    let query = context.query;
    let labels = LabelSelector::parse(query.text("labelSelector"))
        .map_err(|error| Status::bad_request(error.to_string()))?;
    let fields = FieldSelector::parse(query.text("fieldSelector"))
        .map_err(|error| Status::bad_request(error.to_string()))?;
    match context.info.name.as_str() {
        "" => Ok((labels, fields)),
        name if fields.required("metadata.name").is_some_and(|required| required != name) => {
            let text = "fieldSelector metadata.name doesn't match requested name";
            Err(Status::bad_request(text))
        }
        name => Ok((labels, fields.and_equal("metadata.name", name))),
    }
}

fn check_fields(resource: &Resource, fields: &FieldSelector) -> Result<(), Status> {
    fields.fields().into_iter().try_for_each(|field| check_field(resource, field))
}

/// Parses both selectors and validates them against the fields that the resource offers.
///
/// # Errors
/// 400 when a selector does not parse, or names a field that the resource does not offer.
pub fn selectors(context: &HandlerContext<'_>) -> Result<(LabelSelector, FieldSelector), Status> {
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

/// The options of a list, by the matrix of `resourceVersion`, `resourceVersionMatch`, `limit` and
/// `continue` of Kubernetes.
///
/// # Errors
/// 400 or 422 when parameters are malformed or exclude each other.
pub fn list_query(context: &HandlerContext<'_>) -> Result<ListQuery, Status> {
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
        (None, _, _) => ReadVersion::Latest,
        (Some(0), _, _) => ReadVersion::Any,
        (Some(version), "Exact", _) => ReadVersion::Exact(version),
        // A page has exactly the given version, unless the list can have only one object.
        (Some(version), "", Some(_)) if !names_one(context, &fields) => ReadVersion::Exact(version),
        (Some(version), _, _) => ReadVersion::NotOlderThan(version),
    };
    let limit = if version == ReadVersion::Any { None } else { limit };
    let namespace = context.info.namespace.clone();
    Ok(ListQuery { namespace, labels, fields, version, limit, continue_token })
}

/// Whether the selector determines one object.
fn names_one(context: &HandlerContext<'_>, fields: &FieldSelector) -> bool {
    let is_given = |field: &str| fields.required(field).is_some();
    let has_namespace = !context.resource.namespaced
        || !context.info.namespace.is_empty()
        || is_given("metadata.namespace");
    is_given("metadata.name") && has_namespace
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

/// The options of a watch.
pub struct WatchQuery {
    pub labels: LabelSelector,
    pub fields: FieldSelector,
    /// `None`: begin with the current state. Otherwise send only events after this revision;
    /// [`u64::MAX`] is the newest.
    pub after: Option<u64>,
    /// The current state must be at least this new.
    pub not_older_than: Option<u64>,
    /// The client accepts bookmarks.
    pub bookmarks: bool,
    /// Mark the end of the initial events with a bookmark.
    pub end_mark: bool,
    /// The server ends the watch after this, at most [`WATCH_TIME_MAX`].
    pub timeout: Duration,
}

/// The options of a watch.
///
/// # Errors
/// 400 or 422 when parameters are malformed or exclude each other, with the texts of
/// kube-apiserver.
pub fn watch_query(context: &HandlerContext<'_>) -> Result<WatchQuery, Status> {
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

/// Longest watch, whatever the client requests, so that an authorization does not last for years.
const WATCH_TIME_MAX: Duration = Duration::from_hours(1);

/// Watches without a requested timeout end after 30 to 60 minutes, at random, so that clients do
/// not reconnect all at once.
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

/// The options of create, update and patch; `kind` names them in errors (`CreateOptions`).
///
/// # Errors
/// 422 with all invalid parameters.
pub fn write_options(context: &HandlerContext<'_>, kind: &str) -> Result<WriteOptions, Status> {
    options_of_write(context, kind, false)
}

/// The options of a server-side apply.
///
/// # Errors
/// 422 with all invalid parameters; `fieldManager` is required.
pub fn apply_options(context: &HandlerContext<'_>) -> Result<WriteOptions, Status> {
    let mut options = options_of_write(context, "PatchOptions", true)?;
    options.is_patch = true;
    Ok(options)
}

/// The field manager: the given one, else the program in `User-Agent`.
fn manager_of(context: &HandlerContext<'_>, given: &str) -> String {
    if !given.is_empty() {
        return given.to_owned();
    }
    let agent = context.parts.headers.get(http::header::USER_AGENT);
    let agent = agent.and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    let program = agent.split('/').next().unwrap_or_default();
    program.chars().filter(|c| !c.is_control()).take(FIELD_MANAGER_LENGTH_MAX).collect()
}

fn options_of_write(
    context: &HandlerContext<'_>,
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

/// `All` is the only stage that can be requested.
fn all_of_dry_run(values: &[&str], causes: &mut Vec<Cause>) -> bool {
    if values.iter().any(|value| *value != "All") {
        causes.push(Cause::not_supported("dryRun", &json!(values), &["All"]));
    }
    !values.is_empty()
}

/// `dryRun` of a delete: from the body alone when there is one, else from the query.
///
/// # Errors
/// 422 when it is not `All`.
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

/// 422 for invalid `DeleteOptions`.
pub fn invalid_delete(causes: Vec<Cause>) -> Status {
    invalid("DeleteOptions", causes)
}
