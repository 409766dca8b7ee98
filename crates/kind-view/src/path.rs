//! What a path names: a place, and in it the schemas, a collection or an object.

use rest_view::urls::{decode, encode};

/// Path of the view in the management API.
const ROOT: &str = "/v1";
/// Path prefix of clusters.
const CLUSTERS: &str = "/k8s/clusters/";
const SUBSCRIBE: &str = "subscribe";
/// The management API itself, as a cluster.
pub const LOCAL: &str = "local";

/// Whose kinds a path is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The management API.
    Management,
    /// The downstream cluster of this id.
    Cluster(String),
}

impl Place {
    /// What precedes the paths of the Kubernetes API of the place.
    pub fn api_root(&self) -> String {
        match self {
            Self::Management => String::new(),
            Self::Cluster(id) => format!("{CLUSTERS}{}", encode(id)),
        }
    }
    /// The path of the view of the place.
    pub fn view_root(&self) -> String {
        format!("{}{ROOT}", self.api_root())
    }
    /// The cluster that credentials must be good for.
    pub fn cluster(&self) -> &str {
        match self {
            Self::Management => LOCAL,
            Self::Cluster(id) => id,
        }
    }
}

/// The place of a path of this view; `None` for all other paths.
pub fn place_of(path: &str) -> Option<Place> {
    split(path).map(|(place, _)| place)
}

/// Whether requests for the path are for [`KindView::subscribe`](crate::KindView::subscribe).
pub fn is_subscription(path: &str) -> bool {
    parse(path).is_some_and(|(_, target)| target == Target::Subscribe)
}

/// What a path names in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Root,
    Schemas,
    Schema(String),
    /// How many objects of each type there are.
    Counts,
    /// The WebSocket on which types are followed.
    Subscribe,
    /// All objects of a type.
    Collection {
        kind: String,
    },
    /// An object without namespace, or the objects of one namespace: the scope of the type decides.
    NameOrNamespace {
        kind: String,
        name: String,
    },
    /// An object in a namespace, or a link of an object without one.
    Object {
        kind: String,
        namespace: String,
        name: String,
    },
    /// More segments than anything has.
    Unknown,
}

/// The place of a path, and what it names there. `None`: not a path of this view.
pub fn parse(path: &str) -> Option<(Place, Target)> {
    let (place, rest) = split(path)?;
    let segments: Vec<String> =
        rest.split('/').filter(|part| !part.is_empty()).map(|part| decode(part, false)).collect();
    let target = match segments.as_slice() {
        [] => Target::Root,
        [one] if is_schema(one) => Target::Schemas,
        [one, id] if is_schema(one) => Target::Schema(id.clone()),
        [one] if one == SUBSCRIBE => Target::Subscribe,
        [one] | [one, _] if is_count(one) => Target::Counts,
        [kind] => Target::Collection { kind: kind.clone() },
        [kind, name] => Target::NameOrNamespace { kind: kind.clone(), name: name.clone() },
        [kind, namespace, name] => {
            Target::Object { kind: kind.clone(), namespace: namespace.clone(), name: name.clone() }
        }
        _ => Target::Unknown,
    };
    Some((place, target))
}

fn is_count(word: &str) -> bool {
    word == "counts" || word == "count"
}

fn is_schema(word: &str) -> bool {
    word == "schemas" || word == "schema"
}

fn split(path: &str) -> Option<(Place, &str)> {
    let (place, rest) = match path.strip_prefix(CLUSTERS) {
        None => (Place::Management, path),
        Some(below) => {
            let (id, _) = below.split_once('/')?;
            let place = match id {
                "" => return None,
                LOCAL => Place::Management,
                id => Place::Cluster(decode(id, false)),
            };
            (place, &below[id.len()..])
        }
    };
    let rest = rest.strip_prefix(ROOT)?;
    (rest.is_empty() || rest.starts_with('/')).then_some((place, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_place_and_what_is_in_it() {
        let pods = Target::Collection { kind: "pods".into() };
        assert_eq!(parse("/v1/pods"), Some((Place::Management, pods.clone())));
        assert_eq!(parse("/k8s/clusters/local/v1/pods/"), Some((Place::Management, pods.clone())));
        let (place, target) = parse("/k8s/clusters/c-abcde/v1/pods").unwrap();
        assert_eq!((place.view_root().as_str(), target), ("/k8s/clusters/c-abcde/v1", pods));
        for other in ["/v10/pods", "/v3/v1", "/k8s/clusters/c-abcde/api/v1", "/k8s/clusters//v1"] {
            assert_eq!(parse(other), None, "{other}");
        }
    }

    #[test]
    fn segments_are_decoded_after_they_are_split() {
        let (_, target) = parse("/v1/secret/a%2Fb/c").unwrap();
        let object =
            Target::Object { kind: "secret".into(), namespace: "a/b".into(), name: "c".into() };
        assert_eq!(target, object);
        assert_eq!(parse("/v1/schemas/pod").unwrap().1, Target::Schema("pod".into()));
        assert_eq!(parse("/v1/a/b/c/d").unwrap().1, Target::Unknown);
        assert!(
            is_subscription("/v1/subscribe") && is_subscription("/k8s/clusters/c/v1/subscribe")
        );
        assert!(!is_subscription("/v1/subscribe/a") && !is_subscription("/v3/subscribe"));
    }
}
