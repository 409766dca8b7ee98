//! ServiceAccount: stored unchanged. Its tokens have an endpoint of their own.

use apiserver::kind::Kind;

/// The kind ServiceAccount of the core group: namespaced.
pub fn kind() -> Kind {
    Kind {
        short_names: &["sa"],
        ..Kind::new("", "serviceaccounts", "serviceaccount", "ServiceAccount").deleted_as_object()
    }
}
