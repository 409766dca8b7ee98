//! The actions of a node, each as the caller: `cordon` and `uncordon` say whether new pods may come
//! to it, `drain` and `stopDrain` whether those that are there have to go.

use futures::future::BoxFuture;
use http::StatusCode;
use rest_view::{Action, ActionHandler, ActionRequest, ActionResponse, ApiError, Key};
use serde_json::Value;

use super::change::Change;
use super::drain::Drainer;
use super::drain::condition::says_draining;
use super::drain::plan::Options;
use super::drain::task::Task;
use super::store::{NodeStore, client_of, joined_name, require};

/// Whether the scheduler leaves the node out.
pub fn is_cordoned(stored: &Value) -> bool {
    stored["status"]["internalNodeSpec"]["unschedulable"] == true
}

struct Cordon {
    store: NodeStore,
    unschedulable: bool,
}

impl ActionHandler for Cordon {
    fn run<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<ActionResponse, ApiError>> {
        Box::pin(async move {
            let node = request.object.ok_or_else(ApiError::no_such_id)?;
            let change = Change::cordon(self.unschedulable);
            self.store.change(request.context, node, &change).await?;
            Ok(ActionResponse::Empty(StatusCode::OK))
        })
    }
}

struct Drain {
    store: NodeStore,
    drainer: Drainer,
}

impl ActionHandler for Drain {
    fn run<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<ActionResponse, ApiError>> {
        Box::pin(async move {
            let node = request.object.ok_or_else(ApiError::no_such_id)?;
            let context = request.context;
            require(context, "update", node).await?;
            let (options, name) = (Options::of(&request.input), joined_name(node)?);
            let cluster = client_of(context, node);
            let task = Task::new(context.caller, node, name, cluster, options);
            task.require_eviction().await?;
            if let Some(text) = task.refusal().await? {
                let text = format!("nothing was evicted: {text}");
                return Err(ApiError::new(422, "InvalidState", text));
            }
            self.store.change(context, node, &Change::cordon(true)).await?;
            self.drainer.start(task).await?;
            Ok(ActionResponse::Empty(StatusCode::OK))
        })
    }
}

struct StopDrain {
    drainer: Drainer,
}

impl ActionHandler for StopDrain {
    fn run<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<ActionResponse, ApiError>> {
        Box::pin(async move {
            let node = request.object.ok_or_else(ApiError::no_such_id)?;
            require(request.context, "update", node).await?;
            self.drainer.stop(&Key::of(node)).await?;
            Ok(ActionResponse::Empty(StatusCode::OK))
        })
    }
}

/// All four, of which a node is offered those that change it.
pub fn actions(store: &NodeStore, drainer: &Drainer) -> [Action; 4] {
    let cordon = |unschedulable| Cordon { store: store.clone(), unschedulable };
    let drain = Drain { store: store.clone(), drainer: drainer.clone() };
    let stop = StopDrain { drainer: drainer.clone() };
    let actions = [
        Action::new("cordon", cordon(true)).available_when(|node, _| !is_cordoned(node)),
        Action::new("uncordon", cordon(false))
            .available_when(|node, _| is_cordoned(node) && !says_draining(node)),
        Action::new("drain", drain)
            .input("nodeDrainInput")
            .available_when(|node, _| !says_draining(node)),
        Action::new("stopDrain", stop).available_when(|node, _| says_draining(node)),
    ];
    actions.map(Action::needs_update)
}
