//! The responses of all reviews, over a small policy.

use std::sync::Arc;

use apiserver::attributes::GROUP_AUTHENTICATED;
use apiserver::authentication::{StaticTokens, TokenChain};
use apiserver::authorization::{RbacAuthorizer, RbacKind};
use apiserver::resource::Call;
use futures::FutureExt as _;
use serde_json::{Value, json};

use super::*;

fn sources() -> ReviewSources {
    let rbac = Arc::new(RbacAuthorizer::default());
    let metadata = |name: &str| json!({"name": name, "namespace": "r1"});
    let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}]);
    rbac.put(RbacKind::Role, &json!({"metadata": metadata("rw"), "rules": rules}));
    let subject = json!({"kind": "ServiceAccount", "name": "sa1", "namespace": "r1"});
    for (name, role) in [("rw", "rw"), ("dang", "nope")] {
        let reference = json!({"kind": "Role", "name": role});
        let binding =
            json!({"metadata": metadata(name), "roleRef": reference, "subjects": [subject]});
        rbac.put(RbacKind::RoleBinding, &binding);
    }
    let paths = json!([{"verbs": ["get"], "nonResourceURLs": ["/api"]}]);
    rbac.put(RbacKind::ClusterRole, &json!({"metadata": {"name": "d"}, "rules": paths}));
    let everybody = json!({
        "metadata": {"name": "d"},
        "roleRef": {"kind": "ClusterRole", "name": "d"},
        "subjects": [{"kind": "Group", "name": GROUP_AUTHENTICATED}],
    });
    rbac.put(RbacKind::ClusterRoleBinding, &everybody);
    let tokens = StaticTokens::parse("t-ann,ann,1,ops").unwrap();
    ReviewSources {
        authorizer: rbac.clone(),
        rules: rbac,
        tokens: Arc::new(TokenChain::new(vec![Arc::new(tokens)])),
        audiences: vec!["api".to_owned()],
    }
}

fn sa1() -> UserInfo {
    let groups = ["system:serviceaccounts", "system:serviceaccounts:r1", GROUP_AUTHENTICATED];
    UserInfo::new("system:serviceaccount:r1:sa1", &groups)
}

fn post(plural: &str, body: Value) -> Result<Value, Status> {
    let resources = review_resources(&sources());
    let resource = resources.iter().find(|resource| resource.plural == plural).unwrap();
    let Backend::Computed(endpoint) = &resource.backend else { panic!("stored") };
    let call = Call {
        user: sa1(),
        verb: "create",
        namespace: if resource.namespaced { "r1".to_owned() } else { String::new() },
        name: String::new(),
        body,
        dry_run: false,
        manager: String::new(),
        force: false,
        applied: false,
    };
    let (code, review) = endpoint.call(call).now_or_never().expect("nothing to wait for")?;
    assert_eq!(code, 201);
    assert_eq!(review["kind"], resource.kind);
    assert_eq!(review["apiVersion"], resource.api_version());
    Ok(review)
}

fn status(plural: &str, spec: Value) -> Value {
    post(plural, json!({ "spec": spec })).unwrap()["status"].clone()
}

const REASON: &str =
    "RBAC: allowed by RoleBinding \"rw/r1\" of Role \"rw\" to ServiceAccount \"sa1/r1\"";
const DANGLING: &str = "role.rbac.authorization.k8s.io \"nope\" not found";

/// Responses recorded from kube-apiserver 1.36.
#[test]
fn access_reviews_respond_like_kube_apiserver() {
    let secrets = json!({"namespace": "r1", "verb": "get", "resource": "secrets"});
    let pods = json!({"namespace": "r1", "verb": "get", "resource": "pods"});
    let path = json!({"path": "/x", "verb": "get"});
    let me = "system:serviceaccount:r1:sa1";
    let allowed = json!({"allowed": true, "reason": REASON});
    let cases = [
        (
            "subjectaccessreviews",
            json!({"user": me, "resourceAttributes": secrets}),
            allowed.clone(),
        ),
        ("selfsubjectaccessreviews", json!({"resourceAttributes": secrets}), allowed.clone()),
        ("localsubjectaccessreviews", json!({"user": me, "resourceAttributes": secrets}), allowed),
        (
            "subjectaccessreviews",
            json!({"user": "bob", "resourceAttributes": secrets}),
            json!({"allowed": false}),
        ),
        (
            "selfsubjectaccessreviews",
            json!({"resourceAttributes": pods}),
            json!({"allowed": false, "reason": format!("RBAC: {DANGLING}")}),
        ),
        (
            "subjectaccessreviews",
            json!({"user": "bob", "groups": ["system:masters"], "nonResourceAttributes": path}),
            json!({"allowed": true}),
        ),
        (
            "selfsubjectaccessreviews",
            json!({"nonResourceAttributes": {"path": "/api", "verb": "get"}}),
            json!({
                "allowed": true,
                "reason": "RBAC: allowed by ClusterRoleBinding \"d\" of ClusterRole \"d\" to Group \
                           \"system:authenticated\"",
            }),
        ),
    ];
    for (plural, spec, expected) in cases {
        assert_eq!(status(plural, spec.clone()), expected, "{plural} {spec}");
    }
    let body = json!({"spec": {"user": "bob", "resourceAttributes": secrets}});
    let review = post("localsubjectaccessreviews", body.clone()).unwrap();
    assert_eq!(review["metadata"], json!({"namespace": "r1"}));
    assert_eq!(review["spec"], body["spec"]);
}

/// Texts recorded from kube-apiserver 1.36.
#[test]
fn access_reviews_need_one_subject_and_one_kind_of_attributes() {
    let resource = json!({"verb": "get"});
    let path = json!({"path": "/x", "verb": "get"});
    let cases = [
        (
            "subjectaccessreviews",
            json!({"user": "bob", "resourceAttributes": resource, "nonResourceAttributes": path}),
            "spec.nonResourceAttributes: Invalid value: {\"Path\":\"/x\",\"Verb\":\"get\"}: \
             cannot be \
             specified in combination with resourceAttributes",
        ),
        (
            "subjectaccessreviews",
            json!({"user": "bob"}),
            "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or \
             resourceAttributes must be specified",
        ),
        (
            "subjectaccessreviews",
            json!({"resourceAttributes": resource}),
            "spec.user: Invalid value: \"\": at least one of user or group must be specified",
        ),
        (
            "localsubjectaccessreviews",
            json!({"user": "bob", "resourceAttributes": {"namespace": "other", "verb": "get"}}),
            "spec.resourceAttributes.namespace: Invalid value: \"other\": must match \
             metadata.namespace",
        ),
    ];
    for (plural, spec, expected) in cases {
        let status = post(plural, json!({ "spec": spec })).unwrap_err();
        assert_eq!(status.message, format!(".authorization.k8s.io \"\" is invalid: {expected}"));
        assert_eq!(status.code, 422);
    }
}

#[test]
fn a_rules_review_lists_the_rules_of_the_requester() {
    let body = json!({"spec": {"namespace": "r1"}});
    let review = post("selfsubjectrulesreviews", body).unwrap();
    assert_eq!(review["spec"], json!({}));
    assert_eq!(
        review["status"],
        json!({
            "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}],
            "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/api"]}],
            "incomplete": false,
            "evaluationError": DANGLING,
        })
    );
    let refused = post("selfsubjectrulesreviews", json!({"spec": {}})).unwrap_err();
    assert_eq!((refused.code, refused.message.as_str()), (400, "no namespace on request"));
}

#[test]
fn a_token_review_returns_the_identity_of_the_token() {
    assert_eq!(
        status("tokenreviews", json!({"token": "t-ann"})),
        json!({
            "authenticated": true,
            "user": {"username": "ann", "uid": "1", "groups": ["ops", "system:authenticated"]},
            "audiences": ["api"],
        })
    );
    assert_eq!(
        status("tokenreviews", json!({"token": "garbage"})),
        json!({"user": {}, "error": "invalid bearer token"})
    );
    let refused = post("tokenreviews", json!({"spec": {}})).unwrap_err();
    assert_eq!(refused.message, "token is required for TokenReview in authentication");
    assert_eq!(refused.code, 400);
}

#[test]
fn a_self_subject_review_returns_the_identity_of_the_requester() {
    let review = post("selfsubjectreviews", json!({})).unwrap();
    assert_eq!(
        review["status"]["userInfo"],
        json!({"username": "system:serviceaccount:r1:sa1", "groups": sa1().groups})
    );
    assert!(review["metadata"]["creationTimestamp"].is_string());
}

#[test]
fn a_review_of_another_type_is_rejected() {
    for body in [json!({"kind": "Pod"}), json!({"apiVersion": "v1"}), json!([]), json!("x")] {
        assert_eq!(post("selfsubjectreviews", body).unwrap_err().code, 400);
    }
    assert!(post("selfsubjectreviews", Value::Null).is_ok());
}
