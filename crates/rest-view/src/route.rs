//! What a path names: a version, and in it the schemas, a collection or a resource.

use std::sync::Arc;

use crate::openapi;
use crate::types::context::Inside;
use crate::types::descriptor::Descriptor;
use crate::types::registry::{ApiVersion, Registry};
use crate::types::urls::{Urls, decode};

/// Letters that a version's last segment may have too many (`/v3/cluster` serves `/v3/clusters`).
const PLURAL_SUFFIX_MAX: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentForm {
    Json,
    Yaml,
}

impl DocumentForm {
    /// `openapi.json`, `openapi.yaml`.
    fn of_name(name: &str) -> Option<Self> {
        match name.strip_prefix(openapi::STEM)? {
            ".json" => Some(Self::Json),
            ".yaml" => Some(Self::Yaml),
            _ => None,
        }
    }
}

#[derive(Clone)]
pub enum Target {
    /// The version itself.
    Root,
    Schemas,
    Schema(String),
    /// The OpenAPI document of the version.
    Document(DocumentForm),
    /// The change feed.
    Subscribe,
    Collection(Arc<Descriptor>),
    Resource {
        descriptor: Arc<Descriptor>,
        id: String,
    },
    Link {
        descriptor: Arc<Descriptor>,
        id: String,
        link: String,
    },
    /// No such type.
    Unknown(String),
}

#[derive(Clone)]
pub struct Route {
    /// The version that the types of the request belong to.
    pub version: ApiVersion,
    /// Path below which the caller finds the schemas of what this path is about.
    pub schemas_path: String,
    /// Narrowed to what belongs to this resource.
    pub inside: Option<Inside>,
    pub target: Target,
}

impl Route {
    /// Links of what this path answers.
    pub(crate) fn urls(&self, urls: Urls) -> Urls {
        match &self.inside {
            Some(inside) if self.version.parent_type.is_some() => {
                urls.inside(&self.version.path, &inside.id)
            }
            _ => urls,
        }
    }
    /// Whether the path is about one resource with a sub-context, the one with id `bound`, or about
    /// something inside it. What is public is open to everybody.
    pub fn is_within(&self, registry: &Registry, bound: &str) -> bool {
        match (&self.inside, &self.target) {
            _ if self.version.public => true,
            (Some(inside), _) => inside.id == bound,
            (None, Target::Resource { descriptor, id } | Target::Link { descriptor, id, .. }) => {
                let inside = registry.version_inside(&self.version.path, &descriptor.id);
                id == bound && inside.is_some()
            }
            _ => false,
        }
    }
}

/// `None`: no version has this path.
pub fn route(registry: &Registry, path: &str) -> Option<Route> {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let versions = registry.versions().iter().filter_map(|version| {
        let depth = matches(version, &segments)?;
        Some((depth, version))
    });
    let (depth, version) = versions.max_by_key(|(depth, _)| *depth)?;
    let rest: Vec<String> = segments[depth..].iter().map(|s| decode(s, false)).collect();
    match &version.parent_type {
        None => Some(plain(registry, version, &rest)),
        Some(parent) => inside(registry, version, parent, segments[depth - 1], &rest),
    }
}

/// Number of segments that the version takes.
fn matches(version: &ApiVersion, segments: &[&str]) -> Option<usize> {
    let own: Vec<&str> = version.path.split('/').filter(|s| !s.is_empty()).collect();
    if own.len() > segments.len() {
        return None;
    }
    let (last, way) = own.split_last()?;
    let found = segments[own.len() - 1];
    let last_fits = match version.parent_type {
        None => found == *last,
        Some(_) => {
            let has_prefix = found.get(..last.len()).is_some_and(|s| s.eq_ignore_ascii_case(last));
            has_prefix && found.len() - last.len() <= PLURAL_SUFFIX_MAX
        }
    };
    (segments[..way.len()] == *way && last_fits).then_some(own.len())
}

fn plain(registry: &Registry, version: &ApiVersion, rest: &[String]) -> Route {
    let document = match rest {
        [name] => DocumentForm::of_name(name),
        _ => None,
    };
    let target = match document {
        Some(form) => Target::Document(form),
        None => target(registry, &version.path, rest),
    };
    Route { version: version.clone(), schemas_path: version.path.clone(), inside: None, target }
}

fn target(registry: &Registry, version: &str, rest: &[String]) -> Target {
    match rest {
        [] => Target::Root,
        [one] if one == "schemas" || one == "schema" => Target::Schemas,
        [one, id, ..] if one == "schemas" || one == "schema" => Target::Schema(id.clone()),
        [one, ..] if one == "subscribe" => Target::Subscribe,
        [name, rest @ ..] => match (registry.find(version, name), rest) {
            (None, _) => Target::Unknown(name.clone()),
            (Some(found), []) => Target::Collection(found.clone()),
            (Some(found), [id]) => Target::Resource { descriptor: found.clone(), id: id.clone() },
            (Some(found), [id, link, ..]) => {
                Target::Link { descriptor: found.clone(), id: id.clone(), link: link.clone() }
            }
        },
    }
}

/// `/v3/clusters/…`: the type itself, one of its resources, or something inside one.
fn inside(
    registry: &Registry,
    version: &ApiVersion,
    parent: &str,
    segment: &str,
    rest: &[String],
) -> Option<Route> {
    let (parent_path, _) = version.path.rsplit_once('/')?;
    let outer = registry.version(parent_path)?;
    let here = |schemas_path: String, inside: Option<String>, target: Target| Route {
        version: version.clone(),
        schemas_path,
        inside: inside.map(|id| Inside { kind: parent.to_owned(), id }),
        target,
    };
    let outside = |schemas_path: String, inside: Option<String>, target: Target| Route {
        version: outer.clone(),
        schemas_path,
        inside: inside.map(|id| Inside { kind: parent.to_owned(), id }),
        target,
    };
    let own = |id: &str| format!("{parent_path}/{segment}/{id}");
    match rest {
        // A type whose name only begins alike (`clusteralerts`) is told apart by its length.
        [] => Some(outside(
            outer.path.clone(),
            None,
            target(registry, &outer.path, &[segment.to_owned()]),
        )),
        [one, more @ ..] if one == "schemas" => {
            let target = more.first().map_or(Target::Schemas, |id| Target::Schema(id.clone()));
            Some(here(version.path.clone(), None, target))
        }
        [id] => {
            let words = [segment.to_owned(), id.clone()];
            Some(outside(own(id), None, target(registry, &outer.path, &words)))
        }
        [id, more @ ..] => {
            let inner = target(registry, &version.path, more);
            if !matches!(inner, Target::Unknown(_)) {
                return Some(here(own(id), Some(id.clone()), inner));
            }
            let outer_target = target(registry, &outer.path, more);
            if matches!(outer_target, Target::Unknown(_)) {
                let words = [&[segment.to_owned(), id.clone()], more].concat();
                return Some(outside(own(id), None, target(registry, &outer.path, &words)));
            }
            Some(outside(own(id), Some(id.clone()), outer_target))
        }
    }
}
