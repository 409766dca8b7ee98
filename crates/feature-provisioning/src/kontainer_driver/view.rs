//! KontainerDriver in the REST view.

use api_management::KontainerDriver;
use feature_kit::table;
use futures::future::BoxFuture;
use http::StatusCode;
use kube::Api;
use kube::api::{Patch, PatchParams};
use rest_view::{
    Action, ActionHandler, ActionRequest, ActionResponse, ApiError, Descriptor, Presentation,
    Resource,
};
use serde_json::{Value, json};

/// Prefix of the names of drivers.
const NAME_PREFIX: &str = "kd-";

/// `kontainerDriver`, with the actions `activate` and `deactivate`.
pub fn view() -> Descriptor {
    let mut descriptor = table::descriptor("kontainerDriver");
    NAME_PREFIX.clone_into(&mut descriptor.name_prefix);
    let is_active = |driver: &Value| driver["spec"]["active"] == true;
    descriptor
        .action(
            Action::new("activate", Switch { active: true })
                .available_when(move |driver, _| !is_active(driver))
                .needs_update(),
        )
        .action(
            Action::new("deactivate", Switch { active: false })
                .available_when(move |driver, _| is_active(driver))
                .needs_update(),
        )
        .formatter(format)
        .personal(&[])
}

/// Uses a driver, or does not, with the caller's rights.
struct Switch {
    active: bool,
}

impl ActionHandler for Switch {
    fn run<'a>(
        &'a self,
        request: ActionRequest<'a>,
    ) -> BoxFuture<'a, Result<ActionResponse, ApiError>> {
        Box::pin(async move {
            let driver = request.object.ok_or_else(ApiError::no_such_id)?;
            let name = driver["metadata"]["name"].as_str().unwrap_or_default();
            let drivers: Api<KontainerDriver> = Api::all(request.context.client.clone());
            let patch = Patch::Merge(json!({"spec": {"active": self.active}}));
            drivers.patch(name, &PatchParams::default(), &patch).await?;
            Ok(ActionResponse::Empty(StatusCode::NO_CONTENT))
        })
    }
}

/// The state, and the name in the file name where users gave none.
fn format(_: &Presentation<'_>, stored: &Value, resource: &mut Resource) {
    let driver: KontainerDriver = serde_json::from_value(stored.clone()).unwrap_or_default();
    let summary = driver.summary();
    let fields = &mut resource.fields;
    if driver.spec.display_name.is_empty() && !driver.status.display_name.is_empty() {
        fields.insert("name".to_owned(), driver.status.display_name.into());
    }
    fields.insert("state".to_owned(), summary.state.into());
    fields.insert("transitioning".to_owned(), summary.transitioning.into());
    fields.insert("transitioningMessage".to_owned(), summary.message.into());
    if driver.spec.built_in {
        resource.links.remove("remove");
    }
}
