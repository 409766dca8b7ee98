//! Rights to approve and sign certificate requests.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::side::{Side, TestResponse};
use super::wait;

type Outcomes = Vec<(String, TestResponse)>;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
const OWN_SIGNER: &str = "example.com/signer";
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// The users, their rights on the signer, and its name. All may write the subresources.
const USERS: [(&str, &[&str], &str); 4] = [
    ("named", &["approve", "sign"], "example.com/signer"),
    ("domain", &["approve", "sign"], "example.com/*"),
    ("elsewhere", &["approve", "sign"], "example.org/*"),
    ("other-verb", &["attest"], "example.com/signer"),
];

/// The same certificate request on both servers.
static QUESTIONS: LazyLock<[String; 2]> =
    LazyLock::new(|| ["devs", "system:masters"].map(question_of));

fn question_of(organization: &str) -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::default();
    parameters.distinguished_name.push(rcgen::DnType::CommonName, "jane");
    parameters.distinguished_name.push(rcgen::DnType::OrganizationName, organization);
    STANDARD.encode(parameters.serialize_request(&key).unwrap().pem().unwrap())
}

fn request(name: &str, signer: &str, question: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "request": question, "signerName": signer, "usages": ["client auth"]}})
}

async fn grant(side: &Side, user: &str, verbs: &[&str], signer: &str) {
    let group = "certificates.k8s.io";
    let rules = json!([
        {"apiGroups": [group], "resources": ["certificatesigningrequests"], "verbs": ["create"]},
        {"apiGroups": [group], "verbs": ["update"],
            "resources": ["certificatesigningrequests/approval", "certificatesigningrequests/status"]},
        {"apiGroups": [group], "resources": ["signers"], "resourceNames": [signer], "verbs": verbs},
    ]);
    let name = format!("csr-{user}");
    let role = json!({"metadata": {"name": name}, "rules": rules});
    side.make("POST", ROLES, role).await;
    let binding = json!({"metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]});
    side.make("POST", BINDINGS, binding).await;
    wait::until("the role holds", async || {
        let review = json!({"spec": {"user": user, "resourceAttributes": {
            "group": group, "resource": "certificatesigningrequests", "verb": "create"}}});
        side.make("POST", REVIEWS, review).await["status"]["allowed"] == true
    })
    .await;
}

pub async fn run(side: &Side) -> Outcomes {
    let mut outcomes = Outcomes::new();
    for (user, verbs, signer) in USERS {
        grant(side, user, verbs, signer).await;
    }
    let [plain, masters] = QUESTIONS.each_ref();
    for (name, signer, question) in [
        ("plain", OWN_SIGNER, plain),
        ("masters-of-another", OWN_SIGNER, masters),
        ("client", CLIENT_SIGNER, plain),
        ("masters", CLIENT_SIGNER, masters),
    ] {
        let response =
            side.send_as("named", "POST", REQUESTS, request(name, signer, question)).await;
        outcomes.push((format!("create {name}"), response));
    }
    for (user, ..) in USERS {
        for (part, state) in [
            (
                "approval",
                json!({"conditions": [{"type": "Approved", "status": "True", "reason": "r",
                "message": "m", "lastUpdateTime": "2026-01-01T00:00:00Z",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]}),
            ),
            // A write without changes still needs the right to approve.
            ("approval", json!({})),
            (
                "status",
                json!({"conditions": [{"type": "Failed", "status": "True", "reason": "r",
                "message": "m", "lastUpdateTime": "2026-01-01T00:00:00Z",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]}),
            ),
            ("status", json!({})),
        ] {
            let mut body = side.make("GET", &format!("{REQUESTS}/plain"), Value::Null).await;
            body["status"] = state.clone();
            let path = format!("{REQUESTS}/plain/{part}?dryRun=All");
            let response = side.send_as(user, "PUT", &path, body).await;
            outcomes.push((format!("{user} writes {part} {state}"), response));
        }
    }
    outcomes
}

/// The expected results, independent of the other server.
pub fn check(outcomes: &Outcomes) {
    for (case, response) in outcomes {
        let refused = case == "create masters"
            || case.starts_with("elsewhere writes approval")
            || case.starts_with("other-verb writes approval")
            || (case.starts_with("elsewhere writes status")
                || case.starts_with("other-verb writes status"))
                && case.contains("Failed");
        assert_eq!(response.code == 403, refused, "{case}: {}", response.body);
        assert!(refused || response.code < 300, "{case}: {}", response.body);
    }
}
