//! Owners that need rights, when the plugin is enabled. The texts are those of kube-apiserver with
//! the plugin OwnerReferencesPermissionEnforcement.

use serde_json::{Value, json};

use super::side::{MAPS, Side};

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";

async fn grant(side: &Side, user: &str, rules: Value) {
    side.make("POST", ROLES, json!({"metadata": {"name": user}, "rules": rules})).await;
    let binding = json!({"metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]});
    side.make("POST", BINDINGS, binding).await;
}

/// A map with an owner of this kind, whose deletion it blocks or not.
fn owned(name: &str, uid: &Value, (api_version, kind): (&str, &str), blocks: bool) -> Value {
    json!({"metadata": {"name": name, "ownerReferences": [{"apiVersion": api_version,
        "kind": kind, "name": "owner", "uid": uid,
        "blockOwnerDeletion": blocks}]}})
}

pub async fn run(side: &Side, guarded: bool) {
    let maps =
        |verbs: Value| json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs});
    let writes = || maps(json!(["create", "get", "patch", "update"]));
    grant(side, "writer", json!([writes()])).await;
    grant(side, "deleter", json!([writes(), maps(json!(["delete"]))])).await;
    let finalizes = json!({"apiGroups": ["apps"], "resources": ["deployments/finalizers"],
        "resourceNames": ["owner"], "verbs": ["update"]});
    grant(side, "finalizer", json!([writes(), maps(json!(["delete"])), finalizes])).await;
    let (map, deployment) = (("v1", "ConfigMap"), ("apps/v1", "Deployment"));
    side.make("POST", MAPS, json!({"metadata": {"name": "free"}})).await;
    // An object with a missing owner would be collected.
    let owner = side.make("POST", MAPS, json!({"metadata": {"name": "owner"}})).await;
    let uid = &owner["metadata"]["uid"];
    let owned = |name: &str, kind: (&str, &str), blocks: bool| owned(name, uid, kind, blocks);
    let forbidden = |name: &str, why: &str| {
        Some(format!("configmaps \"{name}\" is forbidden: cannot set {why}"))
    };
    let undeletable = "an ownerRef on a resource you can't delete: , <nil>";
    let unfinalizable = "blockOwnerDeletion if an ownerReference refers to a resource you can't set \
                         finalizers on: , <nil>";
    let unknown = "blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion \
                   no.such/v1 Kind Thing: no matches for kind \"Thing\" in version \"no.such/v1\"";
    let free = format!("{MAPS}/free");
    let place = free.as_str();
    for (user, method, path, body, refusal) in [
        // A creator could have omitted the owner.
        ("writer", "POST", MAPS, owned("made", map, false), None),
        ("writer", "PUT", place, owned("free", map, false), forbidden("free", undeletable)),
        ("deleter", "PUT", place, owned("free", map, false), None),
        // An existing owner needs no rights.
        ("writer", "PUT", place, owned("free", map, false), None),
        ("deleter", "PUT", place, owned("free", map, true), forbidden("free", unfinalizable)),
        (
            "writer",
            "POST",
            MAPS,
            owned("blocks", deployment, true),
            forbidden("blocks", unfinalizable),
        ),
        ("finalizer", "POST", MAPS, owned("finalized", deployment, true), None),
        (
            "finalizer",
            "POST",
            MAPS,
            owned("lost", ("no.such/v1", "Thing"), true),
            forbidden("lost", unknown),
        ),
        (
            "writer",
            "PUT",
            place,
            json!({"metadata": {"name": "free"}}),
            forbidden("free", undeletable),
        ),
    ] {
        let response = side.send_as(user, method, path, body.clone()).await;
        match refusal.filter(|_| guarded) {
            Some(text) => {
                assert_eq!(
                    (response.code, response.message()),
                    (403, text.as_str()),
                    "{user}: {body}"
                )
            }
            None => assert!(response.code < 300, "{user}: {body}: {}", response.body),
        }
    }
}
