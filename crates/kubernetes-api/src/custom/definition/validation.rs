//! Validates definitions. Pure; messages follow kube-apiserver.

use std::collections::BTreeSet;

use api_meta::names;
use api_meta::object::ObjectExt;
use api_meta::status::Cause;
use apiserver::strategy::conversion::REVIEW_VERSIONS;
use apiserver::webhook;
use serde_json::Value;
use structural_schema::schema::CAUSES_MAX;
use structural_schema::{JsonPath, Schema};

use crate::custom::names::{APPROVAL_ANNOTATION, is_established, is_protected};

const IMMUTABLE: &str = "field is immutable";
const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];

/// Validates a new definition and returns its problems, at most [`CAUSES_MAX`].
pub(super) fn create(crd: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let spec = &crd["spec"];
    let expected = format!("{}.{}", text(&spec["names"]["plural"]), text(&spec["group"]));
    if crd.name() != expected {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        causes.push(Cause::invalid("metadata.name", &crd.name().into(), detail));
    }
    specification(spec, None, &mut causes);
    if spec["preserveUnknownFields"] == true {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        causes.push(Cause::invalid("spec.preserveUnknownFields", &true.into(), detail));
    }
    let group = text(&spec["group"]);
    if is_protected(group) && crd.annotation(APPROVAL_ANNOTATION).is_none() {
        let detail = format!(
            "protected groups must have approval annotation {APPROVAL_ANNOTATION:?}, see \
             https://github.com/kubernetes/enhancements/pull/1111"
        );
        let field = format!("metadata.annotations[{APPROVAL_ANNOTATION}]");
        causes.push(Cause::required(field, &detail));
    }
    causes.extend(status(crd));
    causes.truncate(CAUSES_MAX);
    causes
}

/// Validates an update of a definition and returns its problems, at most [`CAUSES_MAX`].
pub(super) fn update(crd: &Value, old: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let (spec, before) = (&crd["spec"], &old["spec"]);
    if spec != before {
        specification(spec, Some(before), &mut causes);
    }
    let mut immutable = vec![
        ("spec.group", &spec["group"], &before["group"]),
        ("spec.names.plural", &spec["names"]["plural"], &before["names"]["plural"]),
    ];
    if is_established(&old["status"]) {
        immutable.push(("spec.scope", &spec["scope"], &before["scope"]));
        immutable.push(("spec.names.kind", &spec["names"]["kind"], &before["names"]["kind"]));
    }
    for (field, new, before) in immutable {
        if new != before {
            causes.push(Cause::invalid(field, new, IMMUTABLE));
        }
    }
    causes.extend(status(crd));
    causes.truncate(CAUSES_MAX);
    causes
}

/// Validates the status: stored versions must be among the versions, or their objects could not be
/// read any more.
pub(super) fn status(crd: &Value) -> Vec<Cause> {
    let versions = list(&crd["spec"]["versions"]);
    let stored = list(&crd["status"]["storedVersions"]);
    let field = "status.storedVersions";
    let mut causes = Vec::new();
    if stored.is_empty() {
        let detail = "must have at least one stored version";
        causes.push(Cause::invalid(field, &crd["status"]["storedVersions"], detail));
    }
    for (index, name) in stored.iter().enumerate() {
        if !versions.iter().any(|version| version["name"] == *name) {
            let version = text(name);
            let detail = format!(
                "missing from spec.versions; {version} was previously a storage version, and must \
                 remain in spec.versions until a storage migration ensures no data remains \
                 persisted in {version} and removes {version} from status.storedVersions"
            );
            causes.push(Cause::invalid(format!("{field}[{index}]"), name, &detail));
        }
    }
    let storage = versions.iter().find(|version| version["storage"] == true);
    if let Some(name) = storage.map(|version| &version["name"])
        && !stored.is_empty()
        && !stored.contains(name)
    {
        let detail = format!("must have the storage version {}", text(name));
        causes.push(Cause::invalid(field, &crd["status"]["storedVersions"], &detail));
    }
    causes
}

fn specification(spec: &Value, before: Option<&Value>, causes: &mut Vec<Cause>) {
    group(spec, causes);
    validate_enum("spec.scope", &spec["scope"], &["Cluster", "Namespaced"], causes);
    versions(spec, causes);
    kind_names(&spec["names"], causes);
    contents(spec, before, causes);
    conversion(spec, causes);
}

/// The fields in messages have the names of Kubernetes' internal types.
fn conversion(spec: &Value, causes: &mut Vec<Cause>) {
    let conversion = &spec["conversion"];
    let (field, strategy) = ("spec.conversion.strategy", &conversion["strategy"]);
    validate_enum(field, strategy, &["None", "Webhook"], causes);
    let client_field = "spec.conversion.webhookClientConfig";
    let versions_field = "spec.conversion.conversionReviewVersions";
    let client = &conversion["webhook"]["clientConfig"];
    let versions = &conversion["webhook"]["conversionReviewVersions"];
    if strategy == "Webhook" {
        if client.is_null() {
            let detail = "required when strategy is set to Webhook";
            causes.push(Cause::required(client_field, detail));
        } else {
            webhook::validate(client, client_field, causes);
        }
        review_versions(versions, versions_field, causes);
        return;
    }
    let detail = "should not be set when strategy is not set to Webhook";
    if !client.is_null() {
        causes.push(Cause::forbidden(client_field, detail));
    }
    if !list(versions).is_empty() {
        causes.push(Cause::forbidden(versions_field, detail));
    }
}

fn review_versions(versions: &Value, field: &str, causes: &mut Vec<Cause>) {
    let given = list(versions);
    if given.is_empty() {
        causes.push(Cause::required(field, ""));
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, version) in given.iter().enumerate() {
        let field = format!("{field}[{index}]");
        if !seen.insert(text(version)) {
            causes.push(Cause::invalid(field, version, "duplicate version"));
            continue;
        }
        for problem in names::dns1035_label(text(version)) {
            causes.push(Cause::invalid(field.clone(), version, &problem));
        }
    }
    if !REVIEW_VERSIONS.iter().any(|known| seen.contains(known)) {
        let detail = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
        causes.push(Cause::invalid(field, versions, &detail));
    }
}

fn group(spec: &Value, causes: &mut Vec<Cause>) {
    let (field, value) = ("spec.group", &spec["group"]);
    let name = text(value);
    let problems = names::dns1123_subdomain(name);
    if name.is_empty() {
        causes.push(Cause::required(field, ""));
    } else if !problems.is_empty() {
        causes.push(Cause::invalid(field, value, &problems.join(",")));
    } else if !name.contains('.') {
        causes.push(Cause::invalid(field, value, "should be a domain with at least one dot"));
    }
}

fn kind_names(names: &Value, causes: &mut Vec<Cause>) {
    let mut name = |key: &str, value: &Value, mixed: bool| {
        let field = format!("spec.names.{key}");
        let given = text(value);
        if given.is_empty() {
            causes.push(Cause::required(field, ""));
            return;
        }
        let lower = given.to_lowercase();
        let problems = names::dns1035_label(if mixed { &lower } else { given });
        if !problems.is_empty() {
            let problems = problems.join(",");
            let detail = match mixed {
                true => format!("may have mixed case, but should otherwise match: {problems}"),
                false => problems,
            };
            causes.push(Cause::invalid(field, value, &detail));
        }
    };
    name("plural", &names["plural"], false);
    if !names["singular"].is_null() {
        name("singular", &names["singular"], false);
    }
    name("kind", &names["kind"], true);
    if !text(&names["kind"]).is_empty() {
        name("listKind", &names["listKind"], true);
    }
    for key in ["shortNames", "categories"] {
        for (index, value) in list(&names[key]).iter().enumerate() {
            name(&format!("{key}[{index}]"), value, false);
        }
    }
    if !text(&names["kind"]).is_empty() && names["kind"] == names["listKind"] {
        let detail = "kind and listKind may not be the same";
        causes.push(Cause::invalid("spec.names.listKind", &names["listKind"], detail));
    }
}

fn versions(spec: &Value, causes: &mut Vec<Cause>) {
    let versions = list(&spec["versions"]);
    let field = "spec.versions";
    let storage = versions.iter().filter(|version| version["storage"] == true).count();
    // Messages contain the names only, since versions can be a megabyte.
    let names: Value = versions.iter().map(|version| version["name"].clone()).collect();
    if storage != 1 {
        let detail = "must have exactly one version marked as storage version";
        causes.push(Cause::invalid(field, &names, detail));
    }
    let unique: BTreeSet<&str> = versions.iter().map(|version| text(&version["name"])).collect();
    if unique.len() != versions.len() {
        causes.push(Cause::invalid(field, &names, "must contain unique version names"));
    }
    for (index, entry) in versions.iter().enumerate() {
        version(entry, &format!("{field}[{index}]"), causes);
    }
}

fn version(version: &Value, path: &str, causes: &mut Vec<Cause>) {
    let problems = names::dns1035_label(text(&version["name"]));
    if !problems.is_empty() {
        let field = format!("{path}.name");
        causes.push(Cause::invalid(field, &version["name"], &problems.join(",")));
    }
    if version["schema"]["openAPIV3Schema"].is_null() {
        causes.push(Cause::required(format!("{path}.schema.openAPIV3Schema"), ""));
    }
    if let warning @ Value::String(_) = &version["deprecationWarning"] {
        let field = format!("{path}.deprecationWarning");
        if version["deprecated"] != true {
            let detail = "can only be set for deprecated versions";
            causes.push(Cause::invalid(field, warning, detail));
        } else if text(warning).len() > 256 {
            causes.push(Cause::too_long(field, 256));
        }
    }
}

/// Validates the schemas, subresources, columns and fields of versions. What all versions have in
/// common is reported with the fields of the API before versions had their own, like in Kubernetes.
fn contents(spec: &Value, before: Option<&Value>, causes: &mut Vec<Cause>) {
    let versions = list(&spec["versions"]);
    let each = |key: &str, common_field: &str, check: &mut dyn FnMut(&Value, &str)| {
        let Some(first) = versions.first() else {
            return;
        };
        if versions.iter().all(|version| version[key] == first[key]) {
            return check(first, &format!("spec.{common_field}"));
        }
        for (index, version) in versions.iter().enumerate() {
            check(version, &format!("spec.versions[{index}].{key}"));
        }
    };
    each("schema", "validation", &mut |version, path| {
        let schema = &version["schema"]["openAPIV3Schema"];
        if schema.is_null() {
            return;
        }
        let mut served = before.into_iter().flat_map(|before| list(&before["versions"]));
        let served = served.find(|served| served["name"] == version["name"]);
        let served = served.map(|served| &served["schema"]["openAPIV3Schema"]);
        let path = format!("{path}.openAPIV3Schema");
        causes.extend(structural_schema::check_update(schema, &path, served));
    });
    each("subresources", "subresources", &mut |version, path| {
        if let scale @ Value::Object(_) = &version["subresources"]["scale"] {
            scale_paths(scale, &format!("{path}.scale"), causes);
        }
    });
    let columns = "additionalPrinterColumns";
    each(columns, columns, &mut |version, path| {
        for (index, column) in list(&version[columns]).iter().enumerate() {
            printer_column(column, &format!("{path}[{index}]"), causes);
        }
    });
    each("selectableFields", "selectableFields", &mut |version, path| {
        selectable_fields(version, path, causes);
    });
    let has_defaults = |version: &Value| {
        let schema = Schema::compile(&version["schema"]["openAPIV3Schema"]);
        schema.is_ok_and(|schema| schema.has_defaults())
    };
    if spec["preserveUnknownFields"] == true && versions.iter().any(has_defaults) {
        let detail = "must be false in order to use defaults in the schema";
        causes.push(Cause::invalid("spec.preserveUnknownFields", &true.into(), detail));
    }
}

fn printer_column(column: &Value, path: &str, causes: &mut Vec<Cause>) {
    if text(&column["name"]).is_empty() {
        causes.push(Cause::required(format!("{path}.name"), ""));
    }
    validate_enum(&format!("{path}.type"), &column["type"], &COLUMN_TYPES, causes);
    let field = format!("{path}.jsonPath");
    match column["jsonPath"].as_str() {
        None | Some("") => causes.push(Cause::required(field, "")),
        Some(text) => {
            if let Err(error) = JsonPath::parse(text) {
                let detail = format!("is an invalid path: {error}");
                causes.push(Cause::invalid(field, &column["jsonPath"], &detail));
            }
        }
    }
}

fn selectable_fields(version: &Value, path: &str, causes: &mut Vec<Cause>) {
    let fields = list(&version["selectableFields"]);
    if fields.is_empty() {
        return;
    }
    let schema = &version["schema"]["openAPIV3Schema"];
    if schema.is_null() {
        let detail = match path.starts_with("spec.versions") {
            true => "may only be set when `version.schema.openAPIV3Schema` is not included",
            false => "may only be set when validations.schema is included",
        };
        causes.push(Cause::invalid(path, &"".into(), detail));
        return;
    }
    const FIELDS_MAX: usize = 8;
    causes.extend(Cause::too_many(path, fields.len(), FIELDS_MAX));
    let Ok(schema) = Schema::compile(schema) else {
        return;
    };
    for (index, field) in fields.iter().enumerate() {
        let field_path = format!("{path}[{index}].jsonPath");
        let value = &field["jsonPath"];
        let names = value.as_str().and_then(|text| JsonPath::parse(text).ok()?.fields());
        match (value.as_str(), names) {
            (None | Some(""), _) => causes.push(Cause::required(field_path, "")),
            (_, Some(names)) if names.first().is_some_and(|name| name == "metadata") => {
                causes.push(Cause::invalid(
                    field_path,
                    value,
                    "must not point to fields in metadata",
                ));
            }
            (_, Some(names)) => match schema.type_at(&names) {
                Some("string" | "integer" | "boolean") => {}
                Some(_) => {
                    let detail = "must point to a field of type string, boolean or integer. Enum \
                                  string fields and strings with formats are allowed.";
                    causes.push(Cause::invalid(field_path, value, detail));
                }
                None => {
                    let detail = "is an invalid path: does not refer to a valid field";
                    causes.push(Cause::invalid(field_path, value, detail));
                }
            },
            (_, None) => {
                let detail = "is an invalid path: must be a simple json path of fields";
                causes.push(Cause::invalid(field_path, value, detail));
            }
        }
    }
}

fn scale_paths(scale: &Value, path: &str, causes: &mut Vec<Cause>) {
    let rules = [
        ("specReplicasPath", &["spec"][..], true),
        ("statusReplicasPath", &["status"], true),
        ("labelSelectorPath", &["spec", "status"], false),
    ];
    for (key, roots, required) in rules {
        let field = format!("{path}.{key}");
        let value = &scale[key];
        let given = text(value);
        if given.is_empty() {
            if required {
                causes.push(Cause::required(field, ""));
            }
            continue;
        }
        let names = JsonPath::parse(given).ok().and_then(|path| path.fields());
        match names.filter(|_| given.starts_with('.')) {
            None => causes.push(Cause::invalid(field, value, "should be a json path without [")),
            Some(names) => {
                let inside = names.len() > 1 && roots.contains(&names[0].as_str());
                if !inside {
                    let roots = roots.iter().map(|root| format!(".{root}")).collect::<Vec<_>>();
                    let detail = format!("should be a json path under {}", roots.join(" or "));
                    causes.push(Cause::invalid(field, value, &detail));
                }
            }
        }
    }
}

/// Validates that a field has one of the supported values; an absent one is "required".
fn validate_enum(field: &str, value: &Value, supported: &[&str], causes: &mut Vec<Cause>) {
    let given = text(value);
    if given.is_empty() {
        causes.push(Cause::required(field, ""));
    } else if !supported.contains(&given) {
        causes.push(Cause::not_supported(field, value, supported));
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
