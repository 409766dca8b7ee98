//! Actions: what `POST …?action=NAME` runs, on one resource or on a collection.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::StatusCode;
use serde_json::{Map, Value};

use crate::error::ApiError;
use crate::types::context::{Caller, Context};
use crate::types::descriptor::Descriptor;

/// Whether an action or a link is offered on an object to a caller now. Decides only what the
/// resource lists and whether a request is dispatched; it grants no rights.
pub type Available = Arc<dyn Fn(&Value, &Caller) -> bool + Send + Sync>;

/// A named action with the types of its input and output.
#[derive(Clone)]
pub struct Action {
    /// As `actions` lists it; requests may spell it in any case.
    pub name: String,
    /// Type id of the body, checked before the handler runs.
    pub input: Option<String>,
    /// Type id of the response body, for schemas and OpenAPI. Not checked.
    pub output: Option<String>,
    /// Runs the action once the input is checked.
    pub handler: Arc<dyn ActionHandler>,
    /// `None`: always.
    pub available: Option<Available>,
    /// Listed only for callers who may update the object. The handler must still check the caller's
    /// rights.
    pub needs_update: bool,
}

impl Action {
    /// An action without input and output types that is always available.
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
    /// Checks the request body against the embedded type `id` before the handler runs.
    pub fn input(mut self, id: &str) -> Self {
        self.input = Some(id.to_owned());
        self
    }
    /// Declares the embedded type `id`, or `collection`, as the type of the response.
    pub fn output(mut self, id: &str) -> Self {
        self.output = Some(id.to_owned());
        self
    }
    /// Offers the action only while `available` returns `true` for the stored object and the
    /// caller. Otherwise the action is not listed, and a request for it is a 404
    /// `ActionNotAvailable`.
    pub fn available_when(
        mut self,
        available: impl Fn(&Value, &Caller) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.available = Some(Arc::new(available));
        self
    }
    /// Lists the action only for callers who may update the object.
    pub fn needs_update(mut self) -> Self {
        self.needs_update = true;
        self
    }
    pub(crate) fn is_available(&self, object: &Value, caller: &Caller) -> bool {
        self.available.as_ref().is_none_or(|available| available(object, caller))
    }
}

/// Runs an action, or produces what a link serves.
pub trait ActionHandler: Send + Sync + 'static {
    /// Runs the action for one request.
    ///
    /// For a resource action, `request.object` was read with the caller's rights, so the caller may
    /// see it. Whether the caller may *change* something is for the handler to check, best by using
    /// `request.context.client`.
    ///
    /// # Errors
    /// Any [`ApiError`]; the caller receives it as it is.
    fn run<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<ActionResponse, ApiError>>;
}

/// One request for an action or a link.
pub struct ActionRequest<'a> {
    /// The caller, their client, and the query.
    pub context: &'a Context<'a>,
    /// The type that has the action.
    pub descriptor: &'a Descriptor,
    /// The stored object; `None` for a collection action.
    pub object: Option<&'a Value>,
    /// Checked against the input type of the action; the whole body where the action has none.
    pub input: Map<String, Value>,
}

/// What an action responds with.
pub enum ActionResponse {
    /// This status without a body.
    Empty(StatusCode),
    /// A stored object of the action's own kind, shown as a resource.
    Object(Value),
    /// Like `Object`, with additional fields that are not stored.
    ObjectWith(Value, Map<String, Value>),
    /// Stored objects of the action's own kind, shown as a collection on one page.
    Objects(Vec<Value>),
    /// A value of an embedded type: `type` and `baseType` are added.
    Struct { status: StatusCode, id: String, fields: Map<String, Value> },
    /// A response with headers of its own (cookies).
    Raw(http::Response<Bytes>),
}

impl ActionResponse {
    /// 200 with a value of an embedded type.
    pub fn value(id: &str, fields: Map<String, Value>) -> Self {
        Self::Struct { status: StatusCode::OK, id: id.to_owned(), fields }
    }
}

impl<F> ActionHandler for F
where
    F: for<'a> Fn(ActionRequest<'a>) -> BoxFuture<'a, Result<ActionResponse, ApiError>>
        + Send
        + Sync
        + 'static,
{
    fn run<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<ActionResponse, ApiError>> {
        self(request)
    }
}
