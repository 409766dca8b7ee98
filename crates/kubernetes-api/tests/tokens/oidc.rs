//! Tokens of an OpenID Connect provider.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use apiserver::authentication::bearer::TOKEN_SIZE_MAX;
use apiserver::authentication::oidc::{Algorithm, KEY_FETCH_PAUSE};
use apiserver::authentication::{OidcConfig, OidcTokens};
use http::Method;
use serde_json::{Value, json};

use super::World;
use super::provider::{Provider, Signer, encode};
use super::wait::until;

fn config(provider: &Provider) -> OidcConfig {
    OidcConfig {
        issuer_url: provider.issuer(),
        client_id: "drover".to_owned(),
        username_claim: "sub".to_owned(),
        username_prefix: Some("oidc:".to_owned()),
        groups_claim: Some("groups".to_owned()),
        groups_prefix: "oidc:".to_owned(),
        required_claims: BTreeMap::new(),
        algorithms: ["RS256", "ES256"].map(|name| Algorithm::from_name(name).unwrap()).to_vec(),
        key_fetch_pause: KEY_FETCH_PAUSE,
        ca_pem: provider.ca_pem.clone().into_bytes(),
    }
}

async fn world(config: OidcConfig) -> World {
    World::start(vec![Arc::new(OidcTokens::new(config).unwrap())]).await
}

/// Valid claims, changed by `change`; its nulls remove claims.
fn claims(provider: &Provider, change: Value) -> Value {
    let now = jiff::Timestamp::now().as_second();
    let mut claims = json!({
        "iss": provider.issuer(), "aud": "drover", "sub": "ann", "exp": now + 600, "iat": now,
    });
    for (claim, value) in change.as_object().unwrap() {
        claims[claim] = value.clone();
    }
    claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    claims
}

#[tokio::test]
async fn claims_become_a_user_and_its_groups() {
    let provider = Provider::start().await;
    provider.publish(vec![("r", Signer::rsa()), ("e", Signer::ecdsa())]);
    let world = world(config(&provider)).await;
    let more = json!({"groups": ["dev", "ops"], "jti": "j1", "aud": ["other", "drover"]});
    let user = world.who(&provider.token("r", &claims(&provider, more))).await.unwrap();
    assert_eq!(user["username"], "oidc:ann");
    assert_eq!(user["groups"], json!(["oidc:dev", "oidc:ops", "system:authenticated"]));
    let extra = json!({"authentication.kubernetes.io/credential-id": ["JTI=j1"]});
    assert_eq!(user["extra"], extra);
    let one = claims(&provider, json!({"groups": "dev"}));
    let user = world.who(&provider.token("e", &one)).await.unwrap();
    assert_eq!(user["groups"], json!(["oidc:dev", "system:authenticated"]));
    assert_eq!(provider.key_fetches(), 1);

    // Its rights are those of its prefixed name.
    let token = provider.token("r", &claims(&provider, json!({})));
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    let response = world.send(Method::GET, "/api/v1/nodes", &headers, Value::Null).await;
    let text = response.body["message"].as_str().unwrap();
    assert!(response.code == 403 && text.contains("User \"oidc:ann\" cannot list"), "{text}");
}

#[tokio::test]
async fn an_invalid_token_authenticates_nobody() {
    let provider = Provider::start().await;
    provider.publish(vec![("r", Signer::rsa())]);
    let world = world(config(&provider)).await;
    let now = jiff::Timestamp::now().as_second();
    let good = claims(&provider, json!({}));
    assert!(world.who(&provider.token("r", &good)).await.is_some());
    let bad = [
        json!({"exp": now - 1}),
        json!({"exp": null}),
        json!({"exp": "tomorrow"}),
        json!({"nbf": now + 60}),
        json!({"nbf": "now"}),
        json!({"aud": "other"}),
        json!({"aud": ["other"]}),
        json!({"aud": null}),
        json!({"iss": "https://evil.example.com"}),
        json!({"iss": format!("{}/", provider.issuer())}),
        json!({"sub": null}),
        json!({"sub": ""}),
        json!({"sub": 7}),
        json!({"groups": [1]}),
        json!({"groups": {"a": 1}}),
    ];
    for change in bad {
        let token = provider.token("r", &claims(&provider, change.clone()));
        assert_eq!(world.who(&token).await, None, "{change}");
    }
    // Signed with other keys, unsigned, with the public key as a secret, or changed after signing.
    assert_eq!(world.who(&Signer::rsa().sign("r", &good)).await, None);
    assert_eq!(world.who(&Signer::ecdsa().sign("r", &good)).await, None);
    for algorithm in ["none", "None", "HS256", "RS384", "ES256"] {
        assert_eq!(world.who(&Signer::rsa().sign_as(algorithm, "r", &good)).await, None);
    }
    let head = encode(json!({"alg": "none"}).to_string());
    let unsigned = format!("{head}.{}.", encode(good.to_string()));
    assert_eq!(world.who(&unsigned).await, None);
    let token = provider.token("r", &good);
    let parts: Vec<&str> = token.split('.').collect();
    let other = encode(claims(&provider, json!({"sub": "root"})).to_string());
    assert_eq!(world.who(&format!("{}.{other}.{}", parts[0], parts[2])).await, None);
    assert_eq!(world.who(&format!("{}.{}.", parts[0], parts[1])).await, None);
    assert!(provider.key_fetches() <= 2, "made-up tokens make no requests");
}

#[tokio::test]
async fn a_token_of_the_provider_with_a_critical_header_or_too_many_bytes_is_refused() {
    let provider = Provider::start().await;
    provider.publish(vec![("r", Signer::rsa())]);
    let world = world(config(&provider)).await;
    let good = claims(&provider, json!({}));
    let signed = |head: Value| provider.token_with("r", &head, &good);
    assert!(world.who(&signed(json!({"alg": "RS256", "b64": true}))).await.is_some());
    for crit in [json!(["b64"]), json!(["exp"]), json!([])] {
        let head = json!({"alg": "RS256", "kid": "r", "b64": true, "crit": crit});
        assert_eq!(world.who(&signed(head)).await, None, "{crit}");
    }

    // A review is not limited by the size of a header.
    let review = async |padding: usize| {
        let claims = claims(&provider, json!({"padding": "a".repeat(padding)}));
        let token = provider.token("r", &claims);
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "spec": {"token": token},
        });
        let path = "/apis/authentication.k8s.io/v1/tokenreviews";
        let response = world.root(Method::POST, path, review).await;
        (token.len() <= TOKEN_SIZE_MAX, response["status"]["authenticated"] == true)
    };
    assert_eq!(review(8 * 1024).await, (true, true));
    assert_eq!(review(TOKEN_SIZE_MAX).await, (false, false));
}

#[tokio::test]
async fn new_keys_of_the_provider_are_fetched_when_a_token_names_one() {
    let provider = Provider::start().await;
    provider.publish(vec![("old", Signer::ecdsa())]);
    let pause = Duration::from_millis(300);
    let world = world(OidcConfig { key_fetch_pause: pause, ..config(&provider) }).await;
    let claims = claims(&provider, json!({}));
    assert!(world.who(&provider.token("old", &claims)).await.is_some());
    provider.publish(vec![("new", Signer::rsa())]);
    let new = provider.token("new", &claims);
    // Perhaps not at once: unknown key identifiers must not cause requests.
    until("the new key is fetched", async || world.who(&new).await.is_some()).await;
    assert_eq!(provider.key_fetches(), 2);
    assert_eq!(world.who(&Signer::ecdsa().sign("old", &claims)).await, None);
}

#[tokio::test]
async fn a_provider_with_another_issuer_is_not_trusted() {
    let provider = Provider::start().await;
    provider.publish(vec![("r", Signer::rsa())]);
    provider.claim_issuer(&provider.url("/other"));
    let world = world(config(&provider)).await;
    assert_eq!(world.who(&provider.token("r", &claims(&provider, json!({})))).await, None);
    assert_eq!(provider.key_fetches(), 0);
}

#[tokio::test]
async fn e_mail_addresses_must_be_verified_and_claims_as_required() {
    let provider = Provider::start().await;
    provider.publish(vec![("r", Signer::rsa())]);
    let required = [("tenant".to_owned(), "red".to_owned())];
    let world = world(OidcConfig {
        username_claim: "email".to_owned(),
        username_prefix: None,
        required_claims: required.into_iter().collect(),
        ..config(&provider)
    })
    .await;
    let who = async |change: Value| {
        let mut all = json!({"email": "ann@example.com", "tenant": "red"});
        for (claim, value) in change.as_object().unwrap() {
            all[claim] = value.clone();
        }
        let user = world.who(&provider.token("r", &claims(&provider, all))).await;
        user.map(|user| user["username"].as_str().unwrap().to_owned())
    };
    assert_eq!(who(json!({})).await.as_deref(), Some("ann@example.com"));
    assert!(who(json!({"email_verified": true})).await.is_some());
    for change in [
        json!({"email_verified": false}),
        json!({"email_verified": "true"}),
        json!({"tenant": "blue"}),
        json!({"tenant": null}),
        json!({"tenant": ["red"]}),
    ] {
        assert_eq!(who(change.clone()).await, None, "{change}");
    }
}

#[test]
fn settings_that_cannot_be_used_name_their_flag() {
    let usable = OidcConfig {
        issuer_url: "https://issuer.example.com".to_owned(),
        client_id: "drover".to_owned(),
        username_claim: "sub".to_owned(),
        username_prefix: None,
        groups_claim: None,
        groups_prefix: String::new(),
        required_claims: BTreeMap::new(),
        algorithms: vec![Algorithm::from_name("RS256").unwrap()],
        key_fetch_pause: KEY_FETCH_PAUSE,
        ca_pem: b"no certificate".to_vec(),
    };
    let refused = |config: OidcConfig| OidcTokens::new(config).err().unwrap().to_string();
    assert!(refused(usable.clone()).contains("unable to load root certificates"));
    let issuer = |url: &str| refused(OidcConfig { issuer_url: url.to_owned(), ..usable.clone() });
    for url in ["http://issuer.example.com", "issuer", "https://", "https://a/?q", "https://a/#f"] {
        assert!(issuer(url).contains("oidc-issuer-url"), "{url}");
    }
    assert!(refused(OidcConfig { client_id: String::new(), ..usable.clone() }).contains("client"));
    assert!(refused(OidcConfig { algorithms: Vec::new(), ..usable }).contains("signing-algs"));
}
