//! The actions `cordon` and `uncordon`: whether new pods may come to a node, set as the caller.

use futures::future::BoxFuture;
use http::StatusCode;
use rest_view::{Action, ActionAnswer, ActionHandler, ActionRequest, ApiError};
use serde_json::Value;

use super::change::Change;
use super::store::NodeStore;

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
    ) -> BoxFuture<'a, Result<ActionAnswer, ApiError>> {
        Box::pin(async move {
            let node = request.object.ok_or_else(ApiError::no_such_id)?;
            let change = Change::cordon(self.unschedulable);
            self.store.change(request.context, node, &change).await?;
            Ok(ActionAnswer::Empty(StatusCode::OK))
        })
    }
}

/// Both actions, of which a node is offered the one that changes it.
pub fn actions(store: &NodeStore) -> [Action; 2] {
    let cordon = |unschedulable| Cordon { store: store.clone(), unschedulable };
    [
        Action::new("cordon", cordon(true)).available_when(|node, _| !is_cordoned(node)),
        Action::new("uncordon", cordon(false)).available_when(|node, _| is_cordoned(node)),
    ]
}
