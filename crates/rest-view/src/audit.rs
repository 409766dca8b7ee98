//! What stores and actions know of a request that its audit event is to say. No secrets.

use std::sync::Arc;

use api_meta::audit::AuditEvent;
use parking_lot::Mutex;

/// Collects it. Clones are of the same request.
#[derive(Clone, Debug, Default)]
pub struct AuditNotes(Arc<Mutex<Noted>>);

/// What was noted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Noted {
    /// What the request was, if it was more than any other.
    pub event: Option<AuditEvent>,
    /// Who proved to be behind it, where that was found out on the way: id and login name.
    pub user: Option<(String, String)>,
    /// Annotations, by the names of [`api_meta::audit`].
    pub annotations: Vec<(&'static str, String)>,
}

impl AuditNotes {
    /// Says what the request was. The last call counts.
    pub fn event(&self, event: AuditEvent) {
        self.0.lock().event = Some(event);
    }

    /// Says who proved to be behind a request that came without credentials.
    pub fn user(&self, id: &str, login_name: &str) {
        self.0.lock().user = Some((id.to_owned(), login_name.to_owned()));
    }

    /// Adds an annotation, by a name of [`api_meta::audit`].
    pub fn annotate(&self, name: &'static str, value: impl Into<String>) {
        self.0.lock().annotations.push((name, value.into()));
    }

    /// What was noted so far.
    pub fn noted(&self) -> Noted {
        self.0.lock().clone()
    }
}
