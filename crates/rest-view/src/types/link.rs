//! Links that the view serves: what `GET <resource>/<name>` returns.

use std::sync::Arc;

use serde_json::Value;

use crate::types::action::{ActionHandler, Available};
use crate::types::context::Caller;

/// A named view of one resource, such as its YAML.
#[derive(Clone)]
pub struct Link {
    /// As `links` lists it; in URLs it is lower-cased.
    pub name: String,
    /// Receives the object and no input. Must not change anything.
    pub handler: Arc<dyn ActionHandler>,
    /// `None`: always.
    pub available: Option<Available>,
}

impl Link {
    /// A link that is always available.
    pub fn new(name: &str, handler: impl ActionHandler) -> Self {
        Self { name: name.to_owned(), handler: Arc::new(handler), available: None }
    }
    /// Serves the link only while `available` returns `true` for the stored object and the caller.
    /// Otherwise the link is not listed, and a request for it is a 404.
    pub fn available_when(
        mut self,
        available: impl Fn(&Value, &Caller) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.available = Some(Arc::new(available));
        self
    }
    pub(crate) fn is_available(&self, object: &Value, caller: &Caller) -> bool {
        self.available.as_ref().is_none_or(|available| available(object, caller))
    }
    /// The last segment of its path.
    pub(crate) fn segment(&self) -> String {
        self.name.to_lowercase()
    }
}
