//! An ended login, token or cookie does not prevent another login.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::sync::Arc;

use e2e::http::{HttpResponse, body};
use e2e::server::ADMIN_PASSWORD;
use e2e::{Server, SharedWorld, eventually};
use http::{Method, Request};
use serde_json::{Value, json};

const LOGIN: &str = "/v3-public/localProviders/local?action=login";

static SERVER: SharedWorld<Server> = SharedWorld::new();

fn server() -> Arc<Server> {
    SERVER.get(Server::start)
}

/// A request with these headers, like one of a page of the server.
fn send(method: Method, path: &str, header: (&str, &str), text: &Value) -> HttpResponse {
    let server = server();
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .header("origin", server.url())
        .header(header.0, header.1)
        .body(body(text.to_string()))
        .unwrap();
    server.anyone().unwrap().send(request).unwrap()
}

fn log_in_with(header: (&str, &str)) -> HttpResponse {
    let body = json!({"username": "admin", "password": ADMIN_PASSWORD, "responseType": "cookie"});
    send(Method::POST, LOGIN, header, &body)
}

/// A token of the administrator, and its name.
fn token(body: &Value) -> (String, String) {
    let created = server().admin().unwrap().post("/v3/tokens", body).unwrap().success().unwrap();
    let text = |field: &str| created[field].as_str().unwrap().to_owned();
    (text("token"), text("id"))
}

fn revoked() -> String {
    let (token, id) = token(&json!({"description": "to be revoked"}));
    let gone = server().admin().unwrap().delete(&format!("/v3/tokens/{id}")).unwrap();
    gone.success().unwrap();
    token
}

fn expired() -> String {
    let (token, _) = token(&json!({"description": "to expire", "ttl": 1}));
    let bearer = server().anyone().unwrap().bearer(&token);
    eventually("the token has expired", || {
        let status = bearer.get("/v3/users?me=true")?.status;
        anyhow::ensure!(status == 401, "{status}");
        Ok(())
    });
    token
}

/// Names of the cookies that the response deletes.
fn forgotten(response: &HttpResponse) -> Vec<&str> {
    let cookies =
        response.headers.get_all("set-cookie").iter().map(|value| value.to_str().unwrap());
    let ended = cookies.filter(|cookie| cookie.contains("; Max-Age=0;"));
    ended.map(|cookie| cookie.split('=').next().unwrap()).collect()
}

#[test]
fn a_login_that_has_ended_keeps_nobody_from_logging_in_again() {
    let _server = server();
    let (revoked, expired) = (revoked(), expired());
    for dead in [revoked.as_str(), &expired, "token-aaaaa:bogus", "garbled", ""] {
        for (name, value) in
            [("cookie", format!("R_SESS={dead}")), ("authorization", format!("Bearer {dead}"))]
        {
            let response = log_in_with((name, &value));
            assert!(response.status.is_success(), "{name}: {value}: {}", response.text());
            let cookies = response.headers.get_all("set-cookie").iter().count();
            assert_eq!(cookies, 3, "{name}: {value}: {:?}", response.headers);
            let providers =
                send(Method::GET, "/v3-public/authProviders", (name, &value), &json!({}));
            assert_eq!(providers.status, 200, "{name}: {value}: {}", providers.text());
        }
    }
    let two = format!("R_SESS={revoked}; R_SESS={expired}");
    assert!(log_in_with(("cookie", &two)).status.is_success());
    // A wrong password is refused, whatever the headers.
    let body = json!({"username": "admin", "password": "wrong-password"});
    let wrong = send(Method::POST, LOGIN, ("cookie", &format!("R_SESS={revoked}")), &body);
    assert_eq!((wrong.status.as_u16(), &wrong.json()["code"]), (401, &json!("Unauthorized")));
}

#[test]
fn the_cookie_of_an_ended_login_is_deleted_and_the_page_gets_the_reason() {
    let _server = server();
    let cookies = ["R_SESS", "__Host-CSRF", "CSRF"];
    let ended =
        "the login has ended: it expired, or a logout, a new password or an administrator ended it";
    let cases = [
        (expired(), "the login has expired"),
        (revoked(), ended),
        // Without the key, the response only says that the token is invalid.
        ("token-aaaaa:bogus".to_owned(), ended),
        ("garbled".to_owned(), "the login cookie cannot be read"),
    ];
    for (dead, why) in &cases {
        let cookie = format!("R_SESS={dead}");
        let view = send(Method::GET, "/v3/users?me=true", ("cookie", &cookie), &json!({}));
        assert_eq!((view.status.as_u16(), &view.json()["detail"]), (401, &json!(why)), "{dead}");
        assert_eq!(forgotten(&view), cookies, "{dead}");
        for path in ["/api/v1/namespaces", "/k8s/clusters/local/api", "/k8s/clusters/c-none/api"] {
            let native = send(Method::GET, path, ("cookie", &cookie), &json!({}));
            assert_eq!(native.status, 401, "{path}: {}", native.text());
            assert_eq!(forgotten(&native), cookies, "{path}");
        }
    }
    // Programs and requests without cookies get no deletion.
    let bearer = format!("Bearer {}", cases[0].0);
    let program = send(Method::GET, "/v3/users?me=true", ("authorization", &bearer), &json!({}));
    assert_eq!((program.status.as_u16(), forgotten(&program)), (401, Vec::new()));
    let nobody = send(Method::GET, "/v3/users?me=true", ("accept", "application/json"), &json!({}));
    assert_eq!((nobody.status.as_u16(), forgotten(&nobody)), (401, Vec::new()));
}
