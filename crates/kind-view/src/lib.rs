//! The `/v1` view: the objects of every kind that a cluster serves, of the management API and,
//! below `/k8s/clusters/<id>`, of each cluster; custom resources too.
//!
//! The crate knows no kind, but for namespaces and bindings, which say where callers have rights:
//! [`discovery`] requests them from the cluster. An object is shown as it
//! is stored, with an id, links and a state. Lists are filtered, sorted and cut into pages here,
//! which the Kubernetes API cannot do.
//!
//! Everything is read and written as the caller, through a `kube::Client` that acts as them, so the
//! cluster decides what the caller may do. What a caller may list is found out first; then only
//! that is read, or taken from the [`index`] of a large kind.
//!
//! [`fleet`] is one list over several clusters. [`subscribe`] is the other half: a WebSocket that
//! reports what changes.
//!
//! The path of a request: [`view`] → [`path`] → [`discovery`] → [`list`] or [`object`]. Start
//! reading at [`KindView::handle`]. The rules of the wire format, each with its test, are in
//! `docs/compat/kind-view.md`.

mod bindings;
mod counts;
mod discovery;
mod field_path;
mod fleet;
pub mod index;
mod kinds;
mod list;
mod object;
mod path;
mod query;
mod rights;
mod schema;
mod subscribe;
mod table;
mod view;
mod write;

pub use index::{ClusterReader, KindIndexes};
pub use path::{Place, is_subscription, place_of};
pub use query::{Query, Selection, Sortable};
pub use view::KindView;
