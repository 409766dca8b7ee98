//! Query parameters and option bodies, checked.

use std::time::Duration;

use api_meta::fields::FieldSelector;
use api_meta::labels::LabelSelector;
use api_meta::status::{Cause, Status, StatusDetails};

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
        text => text.parse().map(Some).map_err(|_| {
            let cause = Cause::invalid("resourceVersion", &text.into(), "must be a number");
            invalid("ListOptions", vec![cause])
        }),
    }
}

/// `resourceVersion` of a GET.
pub fn get_version(query: &Query) -> Result<Version, Status> {
    let text = query.text("resourceVersion");
    match text {
        "" => Ok(Version::Latest),
        "0" => Ok(Version::Any),
        text => text.parse().map(Version::NotOlderThan).map_err(|_| {
            Status::new(500, "", format!("invalid resource version \"{text}\": not a number"))
        }),
    }
}

/// Both selectors, checked against what the resource offers.
pub fn selectors(context: &Context<'_>) -> Result<(LabelSelector, FieldSelector), Status> {
    let bad = |text: &str, error: &dyn std::fmt::Display| {
        Status::bad_request(format!("unable to parse requirement of \"{text}\": {error}"))
    };
    let text = context.query.text("labelSelector");
    let labels = LabelSelector::parse(text).map_err(|error| bad(text, &error))?;
    let text = context.query.text("fieldSelector");
    let fields = FieldSelector::parse(text).map_err(|error| bad(text, &error))?;
    for field in fields.fields() {
        check_field(&context.resource, field)?;
    }
    Ok((labels, fields))
}

fn check_field(resource: &Resource, field: &str) -> Result<(), Status> {
    let is_cluster_own =
        resource.group.is_empty() && matches!(resource.plural.as_str(), "nodes" | "namespaces");
    let known = match field {
        "metadata.name" => true,
        "metadata.namespace" => !is_cluster_own,
        other => resource.selectable_fields.iter().any(|known| known.label == other),
    };
    if known {
        return Ok(());
    }
    if resource.custom || !resource.selectable_fields.is_empty() || is_cluster_own {
        return Err(Status::bad_request(format!("field label not supported: {field}")));
    }
    Err(Status::bad_request(format!(
        "\"{field}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
    )))
}

/// The options of a list, by the matrix of version, match, limit and continue.
pub fn list_query(context: &Context<'_>) -> Result<ListQuery, Status> {
    let query = context.query;
    let (labels, fields) = selectors(context)?;
    if query.get("sendInitialEvents").is_some() {
        let text = "sendInitialEvents is forbidden for list";
        return Err(forbidden("sendInitialEvents", text));
    }
    let limit: i64 = number(query, "limit")?.unwrap_or(0);
    let limit = usize::try_from(limit).ok().filter(|limit| *limit > 0);
    let continue_token =
        Some(query.text("continue")).filter(|token| !token.is_empty()).map(str::to_owned);
    let version = parse_version(query.text("resourceVersion"))?;
    let matching = query.text("resourceVersionMatch");
    check_match(matching, version, continue_token.is_some())?;
    if continue_token.is_some() && version.is_some_and(|version| version > 0) {
        return Err(Status::bad_request(
            "specifying resource version is not allowed when using continue",
        ));
    }
    let version = match (version, matching, limit) {
        (None, _, _) => Version::Latest,
        (Some(0), _, _) => Version::Any,
        (Some(version), "Exact", _) | (Some(version), "", Some(_)) => Version::Exact(version),
        (Some(version), _, _) => Version::NotOlderThan(version),
    };
    let limit = if version == Version::Any && continue_token.is_none() { None } else { limit };
    let namespace = context.info.namespace.clone();
    Ok(ListQuery { namespace, labels, fields, version, limit, continue_token })
}

fn check_match(matching: &str, version: Option<u64>, continued: bool) -> Result<(), Status> {
    let field = "resourceVersionMatch";
    match matching {
        "" => Ok(()),
        "Exact" | "NotOlderThan" if continued => {
            Err(forbidden(field, "resourceVersionMatch is forbidden when continue is provided"))
        }
        "Exact" | "NotOlderThan" if version.is_none() => Err(forbidden(
            field,
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
        )),
        "Exact" if version == Some(0) => Err(forbidden(
            field,
            "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        )),
        "Exact" | "NotOlderThan" => Ok(()),
        other => {
            let supported = ["Exact", "NotOlderThan", ""];
            let cause = Cause::not_supported(field, &other.into(), &supported);
            Err(invalid("ListOptions", vec![cause]))
        }
    }
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
    let bookmarks = query.flag("allowWatchBookmarks");
    let initial = query.get("sendInitialEvents").map(|text| text != "false" && text != "0");
    match (initial, matching) {
        (None, "") | (Some(_), "NotOlderThan") => {}
        (None, _) => {
            let text = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is \
                        provided";
            return Err(forbidden("resourceVersionMatch", text));
        }
        (Some(_), "") => {
            let text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            return Err(forbidden("resourceVersionMatch", text));
        }
        (Some(_), other) => {
            let cause =
                Cause::not_supported("resourceVersionMatch", &other.into(), &["NotOlderThan"]);
            return Err(invalid("ListOptions", vec![cause]));
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

/// Watches without a wish end after 30 to 60 minutes, spread out so that clients do not come back at once.
fn watch_timeout(query: &Query) -> Result<Duration, Status> {
    let seconds: i64 = number(query, "timeoutSeconds")?.unwrap_or(0);
    match u64::try_from(seconds) {
        Ok(seconds) if seconds > 0 => Ok(Duration::from_secs(seconds)),
        _ => Ok(Duration::from_secs(rand::random_range(1800..3600))),
    }
}

fn number(query: &Query, key: &str) -> Result<Option<i64>, Status> {
    match query.text(key) {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| {
            Status::bad_request(format!("the query parameter {key}={text} is not a number"))
        }),
    }
}

/// The options of create, update and patch.
pub fn write_options(context: &Context<'_>, kind: &str) -> Result<WriteOptions, Status> {
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
    if manager.chars().any(char::is_control) {
        let text = "should only contain printable characters";
        causes.push(Cause::invalid("fieldManager", &manager.into(), text));
    }
    if query.get("force").is_some() {
        causes.push(Cause::forbidden("force", "may not be specified for non-apply patch"));
    }
    if !causes.is_empty() {
        return Err(invalid(kind, causes));
    }
    Ok(WriteOptions {
        user: context.user.clone(),
        dry_run,
        field_validation,
        duplicates: Vec::new(),
        is_patch: false,
    })
}

fn dry_run(query: &Query, causes: &mut Vec<Cause>) -> bool {
    let mut all = false;
    for value in query.all("dryRun").filter(|value| !value.is_empty()) {
        if value == "All" {
            all = true;
        } else {
            causes.push(Cause::not_supported("dryRun", &value.into(), &["All"]));
        }
    }
    all
}

/// `dryRun` of a delete, from the query or, when there is a body, from it alone.
pub fn delete_dry_run(query: &Query, body: Option<&serde_json::Value>) -> Result<bool, Status> {
    let mut causes = Vec::new();
    let all = match body {
        None => dry_run(query, &mut causes),
        Some(body) => {
            let values = body["dryRun"].as_array().cloned().unwrap_or_default();
            for value in values.iter().filter(|value| *value != "All") {
                causes.push(Cause::not_supported("dryRun", value, &["All"]));
            }
            values.iter().any(|value| value == "All")
        }
    };
    if causes.is_empty() { Ok(all) } else { Err(invalid("DeleteOptions", causes)) }
}

/// An invalid `DeleteOptions`.
pub fn invalid_delete(causes: Vec<Cause>) -> Status {
    invalid("DeleteOptions", causes)
}
