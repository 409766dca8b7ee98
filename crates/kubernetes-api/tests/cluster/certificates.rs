//! Requests for certificates: who may request, approve and sign.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};

use super::{World, message};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

fn request_of(organization: &str) -> String {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::default();
    parameters.distinguished_name.push(rcgen::DnType::CommonName, "jane");
    parameters.distinguished_name.push(rcgen::DnType::OrganizationName, organization);
    STANDARD.encode(parameters.serialize_request(&key).unwrap().pem().unwrap())
}

fn certificate_request(name: &str, organization: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "request": request_of(organization), "signerName": CLIENT_SIGNER,
            "usages": ["client auth"], "username": "somebody-else", "groups": ["x"],
        },
    })
}

fn condition(kind: &str) -> Value {
    json!({"type": kind, "status": "True", "reason": "r", "message": "m"})
}

#[tokio::test]
async fn a_certificate_request_names_its_requester_and_needs_rights_to_approve_and_sign() {
    let world = World::start().await;
    let group = "certificates.k8s.io";
    let on = |verb: &str, resource: &str| json!({"apiGroups": [group], "resources": [resource], "verbs": [verb]});
    world.grant("bob", on("create", "certificatesigningrequests")).await;
    let (code, made) =
        world.send("bob", Method::POST, REQUESTS, certificate_request("jane", "devs")).await;
    assert_eq!(code, 201, "{made}");
    let spec = &made["spec"];
    assert_eq!(spec["username"], "bob");
    assert_eq!(spec["uid"], "7");
    assert_eq!(spec["groups"], json!(["devs", "system:authenticated"]));

    // A request never changes, and nobody may request a certificate of the group `system:masters`.
    let mut changed = made.clone();
    changed["spec"]["username"] = "root".into();
    changed["metadata"]["labels"] = json!({"seen": "yes"});
    let path = format!("{REQUESTS}/jane");
    let kept = world.root(Method::PUT, &path, changed).await;
    assert_eq!((&kept["spec"], &kept["metadata"]["labels"]), (spec, &json!({"seen": "yes"})));
    let master = certificate_request("master", "system:masters");
    let (code, returned) = world.send("root", Method::POST, REQUESTS, master).await;
    let expected = format!(
        "certificatesigningrequests.{group} \"master\" is forbidden: use of {CLIENT_SIGNER} signer \
         with system:masters group is not allowed"
    );
    assert_eq!((code, message(&returned)), (403, expected.as_str()));

    // Ann may write approvals, but first needs rights on the signer.
    world.grant("ann", on("update", "certificatesigningrequests/approval")).await;
    let approval = format!("{path}/approval");
    let mut approved = kept.clone();
    approved["status"]["conditions"] = json!([condition("Approved")]);
    approved["status"]["certificate"] = "YQ==".into();
    let (code, returned) = world.send("ann", Method::PUT, &approval, approved.clone()).await;
    let expected = format!(
        "certificatesigningrequests.{group} \"jane\" is forbidden: user not permitted to approve \
         requests with signerName \"{CLIENT_SIGNER}\""
    );
    assert_eq!((code, message(&returned)), (403, expected.as_str()));
    let trusted = json!({
        "apiGroups": [group], "resources": ["signers"], "verbs": ["approve"],
        "resourceNames": ["kubernetes.io/*"],
    });
    world.grant("ann", trusted).await;
    let (code, written) = world.send("ann", Method::PUT, &approval, approved).await;
    assert_eq!(code, 200, "{written}");
    let first = &written["status"]["conditions"][0];
    assert_eq!(first["type"], "Approved");
    assert!(first["lastUpdateTime"].is_string() && first["lastTransitionTime"].is_string());
    assert!(written["status"]["certificate"].is_null(), "only a signer writes it: {written}");

    // An approval cannot be reverted, and excludes a denial.
    let mut denied = written.clone();
    denied["status"]["conditions"] = json!([first, condition("Denied")]);
    let (code, returned) = world.send("root", Method::PUT, &approval, denied).await;
    assert_eq!(code, 422);
    assert!(message(&returned).ends_with("Approved and Denied conditions are mutually exclusive"));
    let mut withdrawn = written.clone();
    withdrawn["status"] = json!({});
    let (code, returned) = world.send("root", Method::PUT, &approval, withdrawn).await;
    assert_eq!(code, 422);
    assert!(
        message(&returned).ends_with("updates may not remove a condition of type \"Approved\"")
    );

    // A signer needs rights too. It writes a certificate once.
    world.grant("bob", on("update", "certificatesigningrequests/status")).await;
    let authority = rcgen::KeyPair::generate().unwrap();
    let own = rcgen::CertificateParams::default().self_signed(&authority).unwrap().pem();
    let mut issued = written.clone();
    issued["status"]["certificate"] = STANDARD.encode(own).into();
    let status = format!("{path}/status");
    let (code, returned) = world.send("bob", Method::PUT, &status, issued.clone()).await;
    assert_eq!(code, 403);
    assert!(message(&returned).contains("user not permitted to sign requests"), "{returned}");
    let mut garbled = written.clone();
    garbled["status"]["certificate"] = "YQ==".into();
    let (code, returned) = world.send("root", Method::PUT, &status, garbled).await;
    assert_eq!(code, 422);
    assert!(
        message(&returned).ends_with("must contain at least one CERTIFICATE PEM block"),
        "{returned}"
    );
    let issued = world.root(Method::PUT, &status, issued).await;
    let mut again = issued.clone();
    let twice = rcgen::CertificateParams::default().self_signed(&authority).unwrap().pem();
    again["status"]["certificate"] = STANDARD.encode(twice).into();
    let (code, returned) = world.send("root", Method::PUT, &status, again).await;
    assert_eq!(code, 422);
    assert!(message(&returned).ends_with("updates may not modify existing certificate content"));
    let selected = format!("{REQUESTS}?fieldSelector=spec.signerName%3D{CLIENT_SIGNER}");
    assert_eq!(world.get(&selected).await["items"][0]["metadata"]["name"], "jane");
}
