//! Setting in the REST view: `value` is the one that holds, whoever gave it.

use api_management::setting as names;
use feature_kit::rbac::{role_ref, subject};
use feature_kit::{Seed, SeedMode, table};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule};
use kube::api::ObjectMeta;
use rest_view::{ApiError, Descriptor, Presentation, Resource};
use serde_json::{Map, Value};

/// Settings that anybody may read without a login: clients need them to log in.
const PUBLIC: &[&str] = &[
    names::CACERTS,
    names::FIRST_LOGIN,
    "ui-banners",
    "ui-brand",
    "ui-default-landing",
    "ui-favicon",
    "ui-issues",
    "ui-pl",
];
const PUBLIC_ROLE: &str = "drover:public-settings";

/// The type `setting` under `/v3`.
pub fn view() -> Descriptor {
    table::descriptor("setting")
        .public_ids(PUBLIC)
        .validator(validate)
        .formatter(format)
        .personal(&[])
}

/// The right to read the public ones, for everybody.
pub fn public_rights() -> [Seed; 2] {
    let metadata = ObjectMeta { name: Some(PUBLIC_ROLE.to_owned()), ..ObjectMeta::default() };
    let rule = PolicyRule {
        api_groups: Some(vec![api_management::GROUP.to_owned()]),
        resources: Some(vec!["settings".to_owned()]),
        resource_names: Some(PUBLIC.iter().map(|&name| name.to_owned()).collect()),
        verbs: vec!["get".to_owned()],
        ..PolicyRule::default()
    };
    let groups = ["system:authenticated", "system:unauthenticated"];
    let role = ClusterRole {
        metadata: metadata.clone(),
        rules: Some(vec![rule]),
        ..ClusterRole::default()
    };
    let binding = ClusterRoleBinding {
        metadata,
        role_ref: role_ref("ClusterRole", PUBLIC_ROLE),
        subjects: Some(groups.map(|group| subject("Group", group)).to_vec()),
    };
    [Seed::cluster_scoped(SeedMode::Keep, role), Seed::cluster_scoped(SeedMode::Keep, binding)]
}

fn is_fixed(name: &str, source: &str) -> bool {
    name == names::CACERTS || source == names::SOURCE_ENV
}

fn validate(
    _: &Presentation<'_>,
    input: &Map<String, Value>,
    stored: Option<&Value>,
) -> Result<(), ApiError> {
    let (method, name, source) = match stored {
        Some(stored) => ("PUT", &stored["metadata"]["name"], &stored["source"]),
        None => ("POST", input.get("name").unwrap_or(&Value::Null), &Value::Null),
    };
    let name = name.as_str().unwrap_or_default();
    if is_fixed(name, source.as_str().unwrap_or_default()) {
        let mut error = ApiError::method_not_allowed(method);
        error.message = format!("setting \"{name}\" is readOnly: it follows the server");
        return Err(error);
    }
    Ok(())
}

fn format(_: &Presentation<'_>, stored: &Value, resource: &mut Resource) {
    let text = |field: &str| stored[field].as_str().unwrap_or_default().to_owned();
    if text("value").is_empty() {
        resource.fields.insert("value".to_owned(), text("default").into());
    }
    if is_fixed(&resource.id, &text("source")) {
        resource.links.remove("update");
        resource.links.remove("remove");
    }
}

#[cfg(test)]
mod tests {
    use feature_kit::view::api_versions;
    use rest_view::{Caller, RestView, Urls};
    use serde_json::json;

    use super::*;

    fn present(stored: &Value) -> Value {
        let view = RestView::new(api_versions(), [view()]);
        let urls = Urls::new("https://drover.example");
        let now = "2024-01-01T00:00:00Z".parse().unwrap();
        view.present("setting", stored, &Caller::user("u-1"), &urls, now).unwrap()
    }

    #[test]
    fn the_value_shown_is_the_one_that_holds() {
        let setting = json!({
            "metadata": {"name": "ui-pl", "creationTimestamp": "2024-01-01T00:00:00Z"},
            "value": "", "default": "drover", "customized": false, "source": "default",
        });
        insta::assert_json_snapshot!(present(&setting));
        let mut set = setting.clone();
        set["value"] = "mine".into();
        assert_eq!(present(&set)["value"], "mine");
    }

    #[test]
    fn what_follows_the_server_offers_no_update() {
        for (name, source, offered) in
            [("ui-pl", "default", true), ("ui-pl", "env", false), ("cacerts", "default", false)]
        {
            let setting = json!({"metadata": {"name": name}, "source": source});
            let links = &present(&setting)["links"];
            assert_eq!(links.get("update").is_some(), offered, "{name} {source}");
        }
    }
}
