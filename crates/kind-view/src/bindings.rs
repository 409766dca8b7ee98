//! In which namespaces of a cluster a caller may have rights that nobody gave through Drover: where
//! a RoleBinding names them or one of their groups.
//!
//! The bindings come from an index. They only say where it is worth to look; the cluster decides
//! what the caller may see there.

use std::collections::BTreeSet;
use std::time::Duration;

use rest_view::store::call;
use rest_view::{ApiError, Context, KubeResource, Visible};
use serde_json::{Value, json};

use crate::field_path::FieldPath;
use crate::index::KindIndexes;
use crate::path::Place;
use crate::query::Query;
use crate::table::take;

const GROUP: &str = "rbac.authorization.k8s.io";
/// The longest wait for the index of bindings.
const INDEX_WAIT_MAX: Duration = Duration::from_secs(5);
/// Namespaces in which is looked, at most.
const NAMESPACES_MAX: usize = 200;
/// Versions of the review, newest first: 1.28, 1.27, 1.26.
const REVIEW_VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

/// Who the caller is in the cluster.
struct Subject {
    user: String,
    groups: Vec<String>,
}

/// The namespaces whose bindings name the caller, at most [`NAMESPACES_MAX`]. Empty for clusters
/// that cannot say who the caller is there, and those whose bindings cannot be indexed.
///
/// # Errors
/// The cluster does not respond.
pub async fn namespaces(
    context: &Context<'_>,
    place: &Place,
    indexes: &KindIndexes,
) -> Result<BTreeSet<String>, ApiError> {
    let Place::Cluster(cluster) = place else { return Ok(BTreeSet::new()) };
    let bindings = KubeResource::new(GROUP, "v1", "rolebindings", "RoleBinding", true);
    let key = (cluster.clone(), bindings);
    if !indexes.request(&key) || !indexes.wait_for(&key, INDEX_WAIT_MAX).await {
        return Ok(BTreeSet::new());
    }
    let Some(subject) = Subject::of(context).await? else { return Ok(BTreeSet::new()) };
    let everything = || async { Ok(vec![Visible::Everything]) };
    let query = subject.bindings();
    let read = indexes.head(&key, &query, &Value::Null, everything).await?;
    let found = read.map(|read| read.head.found).unwrap_or_default();
    let is_bound = |binding: &Value| {
        let subjects = binding["subjects"].as_array();
        subjects.is_some_and(|subjects| subjects.iter().any(|other| subject.is(other)))
    };
    let bound = found.into_iter().map(|found| found.row.unpack()).filter(is_bound);
    let namespace = |binding: Value| binding["metadata"]["namespace"].as_str().map(str::to_owned);
    Ok(bound.filter_map(namespace).take(NAMESPACES_MAX).collect())
}

impl Subject {
    async fn of(context: &Context<'_>) -> Result<Option<Self>, ApiError> {
        for version in REVIEW_VERSIONS {
            let api = format!("authentication.k8s.io/{version}");
            let path = format!("/apis/{api}/selfsubjectreviews");
            let review = json!({"apiVersion": api, "kind": "SelfSubjectReview"});
            match call(context, "POST", &path, Some(&review)).await {
                Ok(mut review) => {
                    let mut user = take(&mut take(&mut review, "status"), "userInfo");
                    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                    let groups = take(&mut user, "groups");
                    return Ok(Some(Self {
                        user: text(&user["username"]),
                        groups: groups.as_array().into_iter().flatten().map(text).collect(),
                    }));
                }
                Err(error) if error.is_not_found() || error.is_forbidden() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Selects the bindings that have one of the names among their subjects, of any kind.
    fn bindings(&self) -> Query {
        let names = self.groups.iter().chain([&self.user]).cloned();
        Query::with_one_of(FieldPath::of(&["subjects", "name"]), names.collect())
    }

    fn is(&self, other: &Value) -> bool {
        let name = other["name"].as_str().unwrap_or_default();
        match other["kind"].as_str() {
            Some("User") => name == self.user,
            Some("Group") => self.groups.iter().any(|group| group == name),
            _ => false,
        }
    }
}
