//! Objects that another object uses cannot be deleted.

use serde_json::{Value, json};
use test_kit::eventually;

use super::{PASSWORD, Rest};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_credential_that_a_template_uses_cannot_be_deleted() {
    let rest = Rest::start().await;
    let admin = rest.admin().await;
    let body = json!({"name": "s3", "s3credentialConfig": {"accessKey": "a", "secretKey": "b"}});
    let made = rest.call(&admin, "POST", "/v3/cloudCredentials", body).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let credential = made.text("id");
    let body = json!({"name": "small", "cloudCredentialId": credential});
    let template = rest.call(&admin, "POST", "/v3/nodeTemplates", body).await;
    assert_eq!(template.status, 201, "{}", template.body);
    let path = format!("/v3/cloudCredentials/{credential}");
    let refused = rest.call(&admin, "DELETE", &path, Value::Null).await;
    assert_eq!((refused.status, refused.text("code").as_str()), (405, "MethodNotAllow"));
    assert!(refused.text("message").contains("is in use by node template"), "{}", refused.body);
    let path_of_template = format!("/v3/nodeTemplates/{}", template.text("id"));
    assert!(rest.call(&admin, "DELETE", &path_of_template, Value::Null).await.status < 300);
    assert!(rest.call(&admin, "DELETE", &path, Value::Null).await.status < 300);
}

/// Terraform deletes both, one right after the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_template_of_a_project_that_is_gone_can_be_deleted_at_once() {
    let rest = Rest::start().await;
    let admin = rest.admin().await;
    let rule = json!({"rule": "RunAsAny"});
    let body = json!({"name": "strict", "privileged": false, "runAsUser": rule, "seLinux": rule,
        "fsGroup": rule, "supplementalGroups": rule});
    let made = rest.call(&admin, "POST", "/v3/podSecurityPolicyTemplates", body).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let template = format!("/v3/podSecurityPolicyTemplates/{}", made.text("id"));
    let cluster = rest.call(&admin, "POST", "/v3/clusters", json!({"name": "north"})).await;
    let body = json!({"name": "shop", "clusterId": cluster.text("id")});
    let project = eventually("the project", async || {
        let project = rest.call(&admin, "POST", "/v3/projects", body.clone()).await;
        if project.status == 201 { Ok(project) } else { Err(project.body) }
    })
    .await;
    let project = format!("/v3/projects/{}", project.text("id"));
    let set = format!("{project}?action=setpodsecuritypolicytemplate");
    let body = json!({"podSecurityPolicyTemplateId": made.text("id")});
    eventually("the template is set", async || {
        let answer = rest.call(&admin, "POST", &set, body.clone()).await;
        if answer.status < 300 { Ok(()) } else { Err(answer.body) }
    })
    .await;
    let refused = rest.call(&admin, "DELETE", &template, Value::Null).await;
    assert_eq!(refused.status, 405, "{}", refused.body);
    assert!(rest.call(&admin, "DELETE", &project, Value::Null).await.status < 300);
    eventually("the end of the project", async || {
        let left = rest.get(&admin, &project).await;
        if left.status == 404 { Ok(()) } else { Err(left.body) }
    })
    .await;
    let removed = rest.call(&admin, "DELETE", &template, Value::Null).await;
    assert!(removed.status < 300, "{}", removed.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_used_credential_cannot_be_deleted_even_by_users_who_cannot_see_the_template() {
    let rest = Rest::start().await;
    let admin = rest.admin().await;
    let body = json!({"name": "s3", "s3credentialConfig": {"accessKey": "a", "secretKey": "b"}});
    let credential = rest.call(&admin, "POST", "/v3/cloudCredentials", body).await.text("id");
    let body = json!({"name": "small", "cloudCredentialId": credential});
    let template = rest.call(&admin, "POST", "/v3/nodeTemplates", body).await;
    assert_eq!(template.status, 201, "{}", template.body);
    let template = template.text("id");
    let path = format!("/v3/cloudCredentials/{credential}");
    // Ann may see and remove it, Ben only see, Cat only remove; none of them may read the template.
    let people = [("ann", &["get", "list", "delete"][..]), ("ben", &["get"]), ("cat", &["delete"])];
    for (name, verbs) in people {
        let id = rest.user(&admin, name).await;
        let metadata = json!({"name": name, "namespace": "cattle-global-data"});
        let role = json!({"metadata": metadata,
            "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": verbs}]});
        let binding = json!({"metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": id}]});
        for (plural, object) in [("roles", role), ("rolebindings", binding)] {
            let path = format!(
                "/apis/rbac.authorization.k8s.io/v1/namespaces/cattle-global-data/{plural}"
            );
            let request = http::Request::post(path).header("content-type", "application/json");
            let request = request.body(object.to_string().into_bytes()).unwrap();
            let _: Value = rest.world.admin().request(request).await.unwrap();
        }
        let token = rest.token_of(name, PASSWORD).await;
        let of_template = rest.get(&token, &format!("/v3/nodeTemplates/{template}")).await;
        assert_eq!(of_template.status, 403, "{}", of_template.body);
        let refused = rest.call(&token, "DELETE", &path, Value::Null).await;
        let message = refused.text("message");
        assert!(!message.contains(&template), "{message}");
        if verbs.contains(&"delete") {
            assert_eq!(refused.status, 405, "{name}: {}", refused.body);
            assert!(
                message.contains("is in use by a node template that is not shown to you"),
                "{message}"
            );
        } else {
            assert_eq!(refused.status, 403, "{name}: {}", refused.body);
        }
    }
    let of_template = format!("/v3/nodeTemplates/{template}");
    assert!(rest.call(&admin, "DELETE", &of_template, Value::Null).await.status < 300);
    let cat = rest.token_of("cat", PASSWORD).await;
    assert!(rest.call(&cat, "DELETE", &path, Value::Null).await.status < 300);
}
