//! What a path names: a version, and in it the schemas, a collection or a resource.

use std::sync::Arc;

use crate::openapi;
use crate::types::context::Inside;
use crate::types::descriptor::Descriptor;
use crate::types::registry::{ApiVersion, Registry};
use crate::types::urls::{Urls, decode};

/// Additional letters that the last segment of a version may have (`/v3/cluster` serves
/// `/v3/clusters`).
const PLURAL_SUFFIX_MAX: usize = 2;

/// Format of an OpenAPI document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentFormat {
    Json,
    Yaml,
}

impl DocumentFormat {
    /// From `openapi.json` or `openapi.yaml`.
    fn of_name(name: &str) -> Option<Self> {
        match name.strip_prefix(openapi::STEM)? {
            ".json" => Some(Self::Json),
            ".yaml" => Some(Self::Yaml),
            _ => None,
        }
    }
}

/// What a path names within its version.
#[derive(Clone)]
pub enum RouteTarget {
    /// The version itself.
    Root,
    Schemas,
    Schema(String),
    /// The OpenAPI document of the version.
    Document(DocumentFormat),
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

/// A path, resolved.
#[derive(Clone)]
pub struct Route {
    /// The version that the types of the request belong to.
    pub version: ApiVersion,
    /// Path below which the caller finds the schemas for this path.
    pub schemas_path: String,
    /// Only what belongs to this resource.
    pub inside: Option<Inside>,
    /// What the path names.
    pub target: RouteTarget,
}

impl Route {
    /// The URLs for links in the response to this path.
    pub(crate) fn urls(&self, urls: Urls) -> Urls {
        match &self.inside {
            Some(inside) if self.version.parent_type.is_some() => {
                urls.inside(&self.version.path, &inside.id)
            }
            _ => urls,
        }
    }
    /// Whether the path is that of the resource with a sub-context with id `bound`, or inside it.
    /// Public versions count as inside.
    pub fn is_within(&self, registry: &Registry, bound: &str) -> bool {
        match (&self.inside, &self.target) {
            _ if self.version.public => true,
            (Some(inside), _) => inside.id == bound,
            (
                None,
                RouteTarget::Resource { descriptor, id } | RouteTarget::Link { descriptor, id, .. },
            ) => {
                let inside = registry.version_inside(&self.version.path, &descriptor.id);
                id == bound && inside.is_some()
            }
            _ => false,
        }
    }
}

/// Resolves a path. `None`: no version has this path.
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

/// Number of path segments that the version takes.
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
        [name] => DocumentFormat::of_name(name),
        _ => None,
    };
    let target = match document {
        Some(format) => RouteTarget::Document(format),
        None => target(registry, &version.path, rest),
    };
    Route { version: version.clone(), schemas_path: version.path.clone(), inside: None, target }
}

fn target(registry: &Registry, version: &str, rest: &[String]) -> RouteTarget {
    match rest {
        [] => RouteTarget::Root,
        [one] if one == "schemas" || one == "schema" => RouteTarget::Schemas,
        [one, id, ..] if one == "schemas" || one == "schema" => RouteTarget::Schema(id.clone()),
        [one, ..] if one == "subscribe" => RouteTarget::Subscribe,
        [name, rest @ ..] => match (registry.find(version, name), rest) {
            (None, _) => RouteTarget::Unknown(name.clone()),
            (Some(found), []) => RouteTarget::Collection(found.clone()),
            (Some(found), [id]) => {
                RouteTarget::Resource { descriptor: found.clone(), id: id.clone() }
            }
            (Some(found), [id, link, ..]) => {
                RouteTarget::Link { descriptor: found.clone(), id: id.clone(), link: link.clone() }
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
    let here = |schemas_path: String, inside: Option<String>, target: RouteTarget| Route {
        version: version.clone(),
        schemas_path,
        inside: inside.map(|id| Inside { kind: parent.to_owned(), id }),
        target,
    };
    let outside = |schemas_path: String, inside: Option<String>, target: RouteTarget| Route {
        version: outer.clone(),
        schemas_path,
        inside: inside.map(|id| Inside { kind: parent.to_owned(), id }),
        target,
    };
    let own = |id: &str| format!("{parent_path}/{segment}/{id}");
    match rest {
        // Its length distinguishes a type whose name only begins the same (`clusteralerts`).
        [] => Some(outside(
            outer.path.clone(),
            None,
            target(registry, &outer.path, &[segment.to_owned()]),
        )),
        [one, more @ ..] if one == "schemas" => {
            let target =
                more.first().map_or(RouteTarget::Schemas, |id| RouteTarget::Schema(id.clone()));
            Some(here(version.path.clone(), None, target))
        }
        [id] => {
            let words = [segment.to_owned(), id.clone()];
            Some(outside(own(id), None, target(registry, &outer.path, &words)))
        }
        [id, more @ ..] => {
            let inner = target(registry, &version.path, more);
            if !matches!(inner, RouteTarget::Unknown(_)) {
                return Some(here(own(id), Some(id.clone()), inner));
            }
            let outer_target = target(registry, &outer.path, more);
            if matches!(outer_target, RouteTarget::Unknown(_)) {
                let words = [&[segment.to_owned(), id.clone()], more].concat();
                return Some(outside(own(id), None, target(registry, &outer.path, &words)));
            }
            Some(outside(own(id), Some(id.clone()), outer_target))
        }
    }
}
