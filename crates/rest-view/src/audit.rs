//! What stores and actions add to the audit event of a request. No secrets.

use std::sync::Arc;

use api_meta::audit::AuditEvent;
use parking_lot::Mutex;

/// Collects notes for the audit event of one request. Clones share the notes.
#[derive(Clone, Debug, Default)]
pub struct AuditNotes(Arc<Mutex<Noted>>);

/// The notes of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Noted {
    /// The kind of request, if it was a special one.
    pub event: Option<AuditEvent>,
    /// The user that the request came from, if it was identified during the request: id and
    /// login name.
    pub user: Option<(String, String)>,
    /// Annotations, by the names in [`api_meta::audit`].
    pub annotations: Vec<(&'static str, String)>,
}

impl AuditNotes {
    /// Records the kind of the request. The last call wins.
    pub fn event(&self, event: AuditEvent) {
        self.0.lock().event = Some(event);
    }

    /// Records the user of a request that came without credentials (a login).
    pub fn user(&self, id: &str, login_name: &str) {
        self.0.lock().user = Some((id.to_owned(), login_name.to_owned()));
    }

    /// Adds an annotation, by a name in [`api_meta::audit`].
    pub fn annotate(&self, name: &'static str, value: impl Into<String>) {
        self.0.lock().annotations.push((name, value.into()));
    }

    /// The notes so far.
    pub fn snapshot(&self) -> Noted {
        self.0.lock().clone()
    }
}
