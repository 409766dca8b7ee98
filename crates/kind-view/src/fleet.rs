//! One list over several clusters: those that the caller may see, or some of them. A cluster that
//! does not answer is named, and does not keep the others waiting for longer than
//! [`CLUSTER_TIME_MAX`].

use std::time::Duration;

use futures::StreamExt;
use rest_view::store::client_below;
use rest_view::{ApiError, Context, KubeResource, KubeStore, ListScope, Store};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::discovery::Discovery;
use crate::index::KindIndexes;
use crate::kinds::ServedKind;
use crate::list::{Budget, ListRow, Listed, Listing};
use crate::path::{LOCAL, Place};
use crate::query::{Beyond, Found, Query};

/// Clusters that are read at once.
const CLUSTERS_AT_ONCE: usize = 32;
/// The longest wait for one cluster.
pub const CLUSTER_TIME_MAX: Duration = Duration::from_secs(10);
/// For all clusters.
const ALL: &str = "*";

/// A cluster, as people know it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NamedCluster {
    id: String,
    name: String,
}

impl NamedCluster {
    /// As objects have it at `metadata.cluster`.
    fn shown(&self) -> Value {
        json!({"id": self.id, "name": self.name})
    }
}

/// A cluster that serves the type.
pub struct Member {
    pub place: Place,
    pub kind: ServedKind,
    /// What its objects have at `metadata.cluster`.
    pub cluster: Value,
}

/// An object of one of the clusters.
pub struct FleetRow {
    /// Position of its cluster in [`Fleet::members`].
    pub member: usize,
    pub row: ListRow,
}

/// What the clusters returned.
#[derive(Default)]
pub struct Fleet {
    pub members: Vec<Member>,
    pub found: Vec<Found<FleetRow>>,
    pub beyond: Beyond,
    pub columns: Vec<Value>,
    /// The clusters that did not answer, and why.
    pub unavailable: Vec<Value>,
}

/// A list over several clusters.
pub struct FleetList<'a> {
    /// Acts as the caller in the management API and in clusters.
    pub context: &'a Context<'a>,
    pub discovery: &'a Discovery,
    /// The resource whose objects are the clusters.
    pub clusters: &'a KubeResource,
    pub query: &'a Query,
    pub budget: &'a Budget,
    pub indexes: Option<&'a KindIndexes>,
}

impl FleetList<'_> {
    /// Reads the objects of the type. `selection`: `*`, or ids or names of clusters, separated by
    /// commas.
    ///
    /// # Errors
    /// 400 for a cluster that the caller does not see, 413 when there is too much to read.
    pub async fn read(
        &self,
        selection: &str,
        kind: &str,
        namespace: Option<&str>,
    ) -> Result<Fleet, ApiError> {
        let clusters = selected(self.visible().await?, selection)?;
        let read = |cluster: NamedCluster| async move {
            let reading = self.read_cluster(&cluster, kind, namespace);
            let late = || {
                let text = format!("no response within {} s", CLUSTER_TIME_MAX.as_secs());
                ApiError::cluster_unavailable(text)
            };
            let read = timeout(CLUSTER_TIME_MAX, reading).await;
            (cluster, read.unwrap_or_else(|_| Err(late())))
        };
        let mut results = futures::stream::iter(clusters.into_iter().map(read))
            .buffer_unordered(CLUSTERS_AT_ONCE);
        let mut fleet = Fleet::default();
        while let Some((cluster, result)) = results.next().await {
            match result {
                Ok(Some((member, listed))) => fleet.add(member, listed),
                // It does not serve the type.
                Ok(None) => {}
                Err(error) if error.status == 413 || error.status == 400 => return Err(error),
                Err(error) => fleet.unavailable.push(json!({
                    "id": cluster.id, "name": cluster.name, "code": error.code,
                    "status": error.status, "message": error.message,
                })),
            }
        }
        // Clusters answer in any order.
        fleet.unavailable.sort_by_key(|cluster| cluster["id"].to_string());
        Ok(fleet)
    }

    async fn visible(&self) -> Result<Vec<NamedCluster>, ApiError> {
        let store = KubeStore::new(self.clusters.clone());
        let stored = store.list(self.context, &ListScope::default()).await?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let named = stored.iter().map(|cluster| NamedCluster {
            id: text(&cluster["metadata"]["name"]),
            name: text(&cluster["spec"]["displayName"]),
        });
        Ok(named.collect())
    }

    /// The objects of one cluster; `None` when it does not serve the type.
    async fn read_cluster(
        &self,
        cluster: &NamedCluster,
        kind: &str,
        namespace: Option<&str>,
    ) -> Result<Option<(Member, Listed)>, ApiError> {
        let place = match cluster.id.as_str() {
            LOCAL => Place::Management,
            id => Place::Cluster(id.to_owned()),
        };
        let client = client_below(self.context.client, place.api_root());
        let context = self.context.through(&client);
        let kinds = self.discovery.kinds(&context, &place).await?;
        let Some(kind) = kinds.find(kind).filter(|kind| kind.offers("list")).cloned() else {
            return Ok(None);
        };
        let listing = Listing {
            context: &context,
            place: &place,
            kind: &kind,
            namespace: namespace.filter(|_| kind.resource.namespaced),
            query: self.query,
            cluster: cluster.shown(),
            budget: self.budget,
            indexes: self.indexes,
        };
        let listed = listing.read().await?;
        Ok(Some((Member { place, kind, cluster: cluster.shown() }, listed)))
    }
}

impl Fleet {
    fn add(&mut self, member: Member, listed: Listed) {
        let index = self.members.len();
        self.members.push(member);
        if self.columns.is_empty() {
            self.columns = listed.columns;
        }
        self.beyond.count += listed.beyond.count;
        let found = listed.found.into_iter();
        self.found.extend(found.map(|found| found.map(|row| FleetRow { member: index, row })));
    }
}

/// The requested clusters, by id or name.
fn selected(visible: Vec<NamedCluster>, selection: &str) -> Result<Vec<NamedCluster>, ApiError> {
    if selection == ALL {
        return Ok(visible);
    }
    let find = |word: &str| {
        let found = visible.iter().find(|cluster| cluster.id == word);
        let found = found.or_else(|| visible.iter().find(|cluster| cluster.name == word));
        found.cloned().ok_or_else(|| {
            let text = format!(
                "parameter clusters: there is no cluster \"{word}\" that you may see; * stands \
                 for all"
            );
            ApiError::new(400, "InvalidParameter", text).field("clusters")
        })
    };
    let mut found: Vec<NamedCluster> = selection.split(',').map(find).collect::<Result<_, _>>()?;
    found.sort_by(|a, b| a.id.cmp(&b.id));
    found.dedup();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_selected_by_id_and_name() {
        let cluster = |id: &str, name: &str| NamedCluster { id: id.into(), name: name.into() };
        let all = vec![cluster("c-a", "north"), cluster("c-b", "south")];
        let ids = |selection: &str| -> Vec<String> {
            let found = selected(all.clone(), selection).unwrap();
            found.into_iter().map(|cluster| cluster.id).collect()
        };
        assert_eq!(ids("*"), ["c-a", "c-b"]);
        assert_eq!(ids("south,c-a,c-b"), ["c-a", "c-b"]);
        assert_eq!(selected(all.clone(), "west").unwrap_err().status, 400);
        assert_eq!(selected(all, "").unwrap_err().status, 400);
    }
}
