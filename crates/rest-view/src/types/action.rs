//! Actions: what `POST …?action=NAME` runs, on one resource or on a collection.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::StatusCode;
use serde_json::{Map, Value};

use crate::error::ApiError;
use crate::types::context::{Caller, Context};
use crate::types::descriptor::Descriptor;

/// Whether an action is offered on an object now; decides what the resource's `actions` lists.
pub type Available = Arc<dyn Fn(&Value, &Caller) -> bool + Send + Sync>;

/// A named action with the types of its input and output.
#[derive(Clone)]
pub struct Action {
    pub name: String,
    /// Type id of the body, checked before the handler runs.
    pub input: Option<String>,
    pub output: Option<String>,
    pub handler: Arc<dyn ActionHandler>,
    /// `None`: always.
    pub available: Option<Available>,
    /// Only shown to who may update the object. Whether they may is still the handler's to find out.
    pub needs_update: bool,
}

impl Action {
    pub fn new(name: &str, handler: impl ActionHandler) -> Self {
        Self {
            name: name.to_owned(),
            input: None,
            output: None,
            handler: Arc::new(handler),
            available: None,
            needs_update: false,
        }
    }
    pub fn input(mut self, id: &str) -> Self {
        self.input = Some(id.to_owned());
        self
    }
    pub fn output(mut self, id: &str) -> Self {
        self.output = Some(id.to_owned());
        self
    }
    pub fn available_when(
        mut self,
        available: impl Fn(&Value, &Caller) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.available = Some(Arc::new(available));
        self
    }
    /// Shows the action only to who may update the object.
    pub fn needs_update(mut self) -> Self {
        self.needs_update = true;
        self
    }
    pub(crate) fn is_available(&self, object: &Value, caller: &Caller) -> bool {
        self.available.as_ref().is_none_or(|available| available(object, caller))
    }
}

/// Runs an action.
pub trait ActionHandler: Send + Sync + 'static {
    /// For a resource action, `request.object` was read with the caller's rights: the caller may
    /// see it. Whether the caller may *change* something is the handler's to find out, best by
    /// using `request.context.client`.
    fn run<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<ActionAnswer, ApiError>>;
}

pub struct ActionRequest<'a> {
    pub context: &'a Context<'a>,
    pub descriptor: &'a Descriptor,
    /// The stored object; `None` for a collection action.
    pub object: Option<&'a Value>,
    /// Checked against the action's input type; everything that was sent when it has none.
    pub input: Map<String, Value>,
}

/// What an action answers.
pub enum ActionAnswer {
    Empty(StatusCode),
    /// A stored object of the action's own kind, shown as a resource.
    Object(Value),
    /// As `Object`, with fields that are about the action and not stored.
    ObjectWith(Value, Map<String, Value>),
    /// Stored objects of the action's own kind, shown as a collection on one page.
    Objects(Vec<Value>),
    /// A value of an embedded type: `type` and `baseType` are added.
    Struct {
        status: StatusCode,
        id: String,
        fields: Map<String, Value>,
    },
    /// An answer with headers of its own (cookies).
    Raw(http::Response<Bytes>),
}

impl ActionAnswer {
    /// 200 with a value of an embedded type.
    pub fn value(id: &str, fields: Map<String, Value>) -> Self {
        Self::Struct { status: StatusCode::OK, id: id.to_owned(), fields }
    }
}

impl<F> ActionHandler for F
where
    F: for<'a> Fn(ActionRequest<'a>) -> BoxFuture<'a, Result<ActionAnswer, ApiError>>
        + Send
        + Sync
        + 'static,
{
    fn run<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<ActionAnswer, ApiError>> {
        self(request)
    }
}
