//! Links that are served: what `GET <resource>/<name>` answers.

use std::sync::Arc;

use serde_json::Value;

use crate::types::action::{ActionHandler, Available};
use crate::types::context::Caller;

/// A named view of one resource, such as its YAML.
#[derive(Clone)]
pub struct Link {
    /// As `links` has it; in URLs it is lower-cased.
    pub name: String,
    /// Gets the object and no input, and must change nothing.
    pub handler: Arc<dyn ActionHandler>,
    /// `None`: always.
    pub available: Option<Available>,
}

impl Link {
    pub fn new(name: &str, handler: impl ActionHandler) -> Self {
        Self { name: name.to_owned(), handler: Arc::new(handler), available: None }
    }
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
    /// The last part of its path.
    pub(crate) fn segment(&self) -> String {
        self.name.to_lowercase()
    }
}
