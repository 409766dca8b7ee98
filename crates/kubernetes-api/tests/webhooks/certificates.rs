//! Who may approve and sign requests for certificates.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::side::{Answer, Side};
use super::wait;

type Outcomes = Vec<(String, Answer)>;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
const OWN_SIGNER: &str = "example.com/signer";
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// Who may what with which signer. All may write the subresources.
const USERS: [(&str, &[&str], &str); 4] = [
    ("named", &["approve", "sign"], "example.com/signer"),
    ("domain", &["approve", "sign"], "example.com/*"),
    ("elsewhere", &["approve", "sign"], "example.org/*"),
    ("other-verb", &["attest"], "example.com/signer"),
];

/// The same question on both sides.
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
        let answer = side.send_as("named", "POST", REQUESTS, request(name, signer, question)).await;
        outcomes.push((format!("create {name}"), answer));
    }
    for (user, ..) in USERS {
        for (part, state) in [
            (
                "approval",
                json!({"conditions": [{"type": "Approved", "status": "True", "reason": "r",
                "message": "m", "lastUpdateTime": "2026-01-01T00:00:00Z",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]}),
            ),
            // Nothing changes, and yet only approvers may write it.
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
            let answer = side.send_as(user, "PUT", &path, body).await;
            outcomes.push((format!("{user} writes {part} {state}"), answer));
        }
    }
    outcomes
}

/// What must be so, whatever another server says.
pub fn check(outcomes: &Outcomes) {
    for (case, answer) in outcomes {
        let refused = case == "create masters"
            || case.starts_with("elsewhere writes approval")
            || case.starts_with("other-verb writes approval")
            || (case.starts_with("elsewhere writes status")
                || case.starts_with("other-verb writes status"))
                && case.contains("Failed");
        assert_eq!(answer.code == 403, refused, "{case}: {}", answer.body);
        assert!(refused || answer.code < 300, "{case}: {}", answer.body);
    }
}
