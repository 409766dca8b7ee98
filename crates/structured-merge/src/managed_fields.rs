//! `metadata.managedFields`: entries with times and field sets, and the two types of write as an
//! API server does them, from the stored object to the one to be stored.

mod apply;
mod entries;
mod write;

pub use apply::{Applied, ApplyError, LAST_APPLIED};
pub use entries::{EntryError, ManagedFields};
pub use write::{UPDATE_MANAGERS_MAX, Write};
