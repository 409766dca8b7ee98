//! ServiceAccount: stored as it is. Tokens are an endpoint of their own.

use apiserver::kind::Kind;

pub fn kind() -> Kind {
    Kind {
        short_names: &["sa"],
        ..Kind::new("", "serviceaccounts", "serviceaccount", "ServiceAccount").deleted_as_object()
    }
}
