//! The OpenAPI document of a version: the contents of the schemas, in the format that generators of
//! clients read.
//!
//! The document contains what the list of schemas contains and nothing else, so that whoever may
//! read the one may read the other. [`schemas`] makes components of types, [`paths`] makes
//! operations of methods and actions. Types inside resources (`/v3/clusters/<id>/…`) are listed
//! beside those of the version itself, with names that begin with the type that contains them.
//!
//! Format: OpenAPI 3.0.3, the version that most generators read.

mod paths;
mod schemas;

use serde_json::{Map, Value, json};

use crate::schema::reachable;
use crate::types::registry::{ApiVersion, Registry};
use crate::types::urls::Urls;

const OPENAPI: &str = "3.0.3";
/// File name of a document, without the extension that selects its format.
pub(crate) const STEM: &str = "openapi";
/// The cookie of a browser's login. The caller of this crate reads its credentials.
const LOGIN_COOKIE: &str = "R_SESS";

/// The document of `version` and of the versions inside its resources.
pub(crate) fn document(registry: &Registry, version: &ApiVersion, urls: &Urls) -> Value {
    let outer = VersionPart::new(registry, version, "", version.path.clone());
    let mut parts = vec![];
    for inner in registry.versions() {
        let Some(parent) = &inner.parent_type else { continue };
        if registry.version_inside(&version.path, parent) != Some(inner) {
            continue;
        }
        let Some(around) = registry.find(&version.path, parent) else { continue };
        let root = format!("{}/{}/{{{parent}}}", version.path, around.plural);
        let prefix = format!("In{}", capitalised(parent));
        parts.push((VersionPart::new(registry, inner, &prefix, root), parent));
    }
    let mut components = Components::new(version.public);
    let mut paths = Map::new();
    outer.describe(&mut components, &mut paths);
    for (inner, parent) in &parts {
        inner.describe(&mut components, &mut paths);
        inner.describe_narrowed(&outer, parent, &mut components, &mut paths);
    }
    let mut document = json!({
        "openapi": OPENAPI,
        "info": {
            "title": format!("Management API, {}", version.path),
            "version": version.version,
            "description": INTRODUCTION,
        },
        "servers": [{"url": server(urls)}],
        "paths": paths,
        "components": components.into_value(),
    });
    if !version.public {
        document["security"] = json!([{"bearer": []}, {"basic": []}, {"session": [], "csrf": []}]);
    }
    document
}

const INTRODUCTION: &str = "Resources with links and actions. Types and fields are what the list of \
schemas says; a resource's own `links` and `actions` say what can be done with it now, and which of it the \
caller may do shows in the answer. Names in paths may be written in any case, and in the singular.\n\n\
Operations that the query tells apart are one here: a POST with `action` runs the action of that name, \
and each takes one of the bodies that are listed.\n\n\
`NAMECreate` is the type NAME as a create takes it, with what it must have. A PUT takes the type itself, \
merges what is sent, and ignores what cannot be changed.";

/// The prefix under which the caller reaches the server.
fn server(urls: &Urls) -> String {
    let below = urls.base().splitn(4, '/').nth(3).unwrap_or_default();
    format!("/{below}")
}

/// The types of one version.
struct VersionPart<'a> {
    registry: &'a Registry,
    version: &'a ApiVersion,
    /// Prefix of the names of its components.
    prefix: String,
    /// Path of its types, with parameters in braces.
    root: String,
    /// Ids of its types and embedded types.
    ids: Vec<String>,
    /// Embedded types with a field that a create must send.
    demanding: Vec<String>,
}

impl<'a> VersionPart<'a> {
    fn new(registry: &'a Registry, version: &'a ApiVersion, prefix: &str, root: String) -> Self {
        let ids = reachable(registry, &version.path).into_iter().collect();
        let demanding = schemas::demanding(registry, &version.path);
        Self { registry, version, prefix: prefix.to_owned(), root, ids, demanding }
    }

    /// Name of the component of a type.
    fn name(&self, id: &str) -> String {
        format!("{}{}", self.prefix, capitalised(id))
    }

    fn describe(&self, components: &mut Components, paths: &mut Map<String, Value>) {
        self.add_schemas(components);
        self.add_paths(components, paths);
    }
}

/// What operations and schemas refer to.
struct Components {
    schemas: Map<String, Value>,
    parameters: Map<String, Value>,
    public: bool,
}

impl Components {
    fn new(public: bool) -> Self {
        Self { schemas: schemas::of_every_version(), parameters: paths::parameters(), public }
    }

    fn into_value(self) -> Value {
        let mut out = json!({
            "schemas": self.schemas,
            "parameters": self.parameters,
            "responses": {"Error": {
                "description": "Refused, or failed.",
                "content": json_content(reference("Error")),
            }},
        });
        if !self.public {
            out["securitySchemes"] = security_schemes();
        }
        out
    }
}

fn security_schemes() -> Value {
    json!({
        "bearer": {"type": "http", "scheme": "bearer", "description": "A token, `name:key`."},
        "basic": {
            "type": "http",
            "scheme": "basic",
            "description": "A token: its name as the user, its key as the password.",
        },
        "session": {
            "type": "apiKey", "in": "cookie", "name": LOGIN_COOKIE,
            "description": "What a login in a browser leaves there.",
        },
        "csrf": {
            "type": "apiKey", "in": "header", "name": "X-API-CSRF",
            "description": "The value of the cookie `CSRF`, which browsers must repeat in requests \
                that are no GET.",
        },
    })
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn json_content(schema: Value) -> Value {
    json!({"application/json": {"schema": schema}})
}

fn capitalised(id: &str) -> String {
    let mut letters = id.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
