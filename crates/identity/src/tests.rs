//! Tokens, passwords, credentials, throttling.

use futures::FutureExt;
use http::HeaderMap;
use http::header::{AUTHORIZATION, COOKIE};
use proptest::prelude::*;

use crate::browser::{CSRF_HEADER, CsrfToken, login_cookies, logout_cookies};
use crate::credential::{PresentedCredential, TokenSource, read_credential};
use crate::cross_site::{CrossSite, Origin, check_anonymous, check_cookie};
use crate::password::{
    HASHES_WAITING_MAX, Lane, PasswordError, Passwords, generate_password, is_outdated,
    password_problem,
};
use crate::secret::Secret;
use crate::token::{KEY_LENGTH, TokenKey, generate_key, hash_key, verify_key};

fn headers(pairs: &[(http::HeaderName, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in pairs {
        map.append(name, value.parse().unwrap());
    }
    map
}

#[test]
fn a_key_matches_its_hash_and_no_other() {
    let (one, two) = (generate_key(), generate_key());
    assert_eq!(one.expose().len(), KEY_LENGTH);
    let stored = hash_key(&one);
    assert!(verify_key(&stored, &one));
    assert!(!verify_key(&stored, &two));
    assert!(!stored.contains(one.expose()));
    assert_ne!(stored, hash_key(&one), "salted");
    assert!(!verify_key(one.expose(), &one), "a key in plain text is no hash");
}

#[test]
fn every_form_of_a_credential_is_read() {
    let bearer = headers(&[(AUTHORIZATION, "bEaReR token-a:key")]);
    let basic = headers(&[(AUTHORIZATION, "Basic dG9rZW4tYTprZXk=")]);
    let cookie = headers(&[(COOKIE, "x=1; R_SESS=token-a:key; CSRF=2")]);
    for (map, source) in
        [(bearer, TokenSource::Header), (basic, TokenSource::Header), (cookie, TokenSource::Cookie)]
    {
        let PresentedCredential::Token(found) = read_credential(&map) else { panic!("{map:?}") };
        assert_eq!(found.token.expose(), "token-a:key");
        assert_eq!(found.source, source);
    }
}

#[test]
fn a_doubled_credential_is_ambiguous_and_a_header_wins_over_the_cookie() {
    let doubled = headers(&[(AUTHORIZATION, "Bearer a:b"), (AUTHORIZATION, "Bearer c:d")]);
    assert!(matches!(read_credential(&doubled), PresentedCredential::Ambiguous));
    let cookies = headers(&[(COOKIE, "R_SESS=a:b; R_SESS=c:d")]);
    assert!(matches!(read_credential(&cookies), PresentedCredential::Ambiguous));
    let both = headers(&[(AUTHORIZATION, "Bearer eyJ.x.y"), (COOKIE, "R_SESS=a:b")]);
    assert!(matches!(read_credential(&both), PresentedCredential::Foreign));
}

#[test]
fn secrets_do_not_show_in_debug_output() {
    let token = TokenKey::parse("token-a:verysecret").unwrap();
    assert!(!format!("{token:?}").contains("verysecret"));
}

async fn verify(passwords: &Passwords, stored: Option<String>, password: &str) -> bool {
    let place = passwords.acquire_slot(Lane::Stranger).await.unwrap();
    place.verify(stored, Secret::new(password)).await.unwrap()
}

#[tokio::test]
async fn a_password_matches_its_hash_and_nobody_matches_no_hash() {
    let passwords = Passwords::default();
    let stored = passwords.hash(Secret::new("correct horse")).await.unwrap();
    assert!(stored.starts_with("$argon2id$"));
    assert!(verify(&passwords, Some(stored.clone()), "correct horse").await);
    assert!(!verify(&passwords, Some(stored), "wrong horse").await);
    assert!(!verify(&passwords, None, "correct horse").await);
    assert!(!verify(&passwords, Some("nonsense".to_owned()), "x").await);
}

#[test]
fn a_bad_new_password_is_refused_with_the_rule() {
    let problem = |text: &str| password_problem(&Secret::new(text), "administrator", 12);
    assert!(problem("short").unwrap().contains("12"));
    assert!(problem("administrator").unwrap().contains("login name"));
    assert_eq!(problem("long enough to do"), None);
}

#[test]
fn a_credential_that_is_no_drover_token_is_foreign() {
    for text in [
        "Bearer Token:k",
        "Bearer ../x:k",
        "Bearer a/b:k",
        "Bearer :k",
        "Bearer a:",
        "Bearer a:b c",
        "Bearer a:b, Bearer c:d",
        "Basic bm8gY29sb24=",
        "Basic ?",
        "Negotiate x",
        "Bearer",
        "",
    ] {
        let map = headers(&[(AUTHORIZATION, text), (COOKIE, "R_SESS=a:b")]);
        assert!(matches!(read_credential(&map), PresentedCredential::Foreign), "{text}");
    }
    let same = headers(&[(COOKIE, "R_SESS=a:b"), (COOKIE, "R_SESS=a:b")]);
    assert!(
        matches!(read_credential(&same), PresentedCredential::Token(_)),
        "the cookie of two paths"
    );
    let none = headers(&[(COOKIE, "r_sess=a:b; XR_SESS=a:b")]);
    assert!(matches!(read_credential(&none), PresentedCredential::Nothing));
}

#[test]
fn a_stored_hash_of_another_server_holds() {
    // printf '\x01\x02ab' | openssl dgst -sha256 -binary | base64
    let stored = "$2:AQI:NhCMIlfmnMVjg6cIJnxCC9Fu4nUP6vXoaQ+zQVm9Jhs";
    assert!(verify_key(stored, &Secret::new("ab")));
    assert!(!verify_key(stored, &Secret::new("ac")));
}

#[tokio::test]
async fn a_stored_password_hash_is_not_trusted_blindly() {
    let passwords = Passwords::default();
    let fresh = passwords.hash(generate_password()).await.unwrap();
    assert!(!is_outdated(&fresh), "{fresh}");
    let parameters = [
        "argon2i$v=19$m=8,t=1,p=1",
        "argon2id$v=19$m=4194304,t=1,p=1",
        "argon2id$v=19$m=8,t=4000,p=1",
        "argon2id$v=19$m=8,t=1,p=1",
    ];
    for parameters in parameters {
        let stored = format!("${parameters}$c29tZXNhbHQ$aGFzaGhhc2hoYXNoaGFzaA");
        assert!(!verify(&passwords, Some(stored.clone()), "password").await);
        assert!(is_outdated(&stored));
    }
}

#[tokio::test]
async fn a_full_queue_of_strangers_is_no_wrong_password_and_does_not_delay_known_callers() {
    let passwords = Passwords::default();
    let held = passwords.acquire_slot(Lane::Stranger).await.unwrap();
    let mut queue: Vec<_> =
        (0..HASHES_WAITING_MAX).map(|_| Box::pin(passwords.acquire_slot(Lane::Stranger))).collect();
    let mut pending = || queue.iter_mut().all(|one| one.as_mut().now_or_never().is_none());
    assert!(pending());
    let refused = passwords.acquire_slot(Lane::Stranger).now_or_never();
    assert!(matches!(refused, Some(Err(PasswordError::Busy))), "the one too many, at once");
    assert!(passwords.acquire_slot(Lane::Known).now_or_never().is_some_and(|place| place.is_ok()));
    drop((held, queue));
    assert!(!verify(&passwords, None, "x").await, "there is room again");
}

proptest! {
    #[test]
    fn any_header_is_read_without_a_panic(text in "[ -~]{0,300}") {
        if let Ok(value) = text.parse() {
            let mut map = HeaderMap::new();
            map.insert(AUTHORIZATION, value);
            let _ = read_credential(&map);
        }
    }

    #[test]
    fn any_stored_text_is_compared_without_a_panic(stored in ".{0,80}") {
        prop_assert!(!verify_key(&stored, &Secret::new("key")) || stored.starts_with("$2:"));
    }
}

fn own_origins() -> Vec<Origin> {
    let known = ["https://drover.example/behind/a/proxy", "http://LAN.example:8080"];
    known.iter().filter_map(|url| Origin::parse(url)).collect()
}

#[test]
fn only_pages_of_our_own_change_anything_with_a_cookie() {
    type Headers<'a> = &'a [(&'a str, &'a str)];
    const OWN: &str = "https://drover.example";
    // What the browser says of the page, and whether it may write, open a stream, log in.
    let cases: &[(Headers<'_>, [bool; 3])] = &[
        (&[], [false, false, true]),
        (&[("origin", OWN)], [true; 3]),
        (&[("origin", "https://DROVER.example:443")], [true; 3]),
        (&[("origin", "http://lan.example:8080")], [true; 3]),
        (&[("origin", OWN), ("sec-fetch-site", "same-origin")], [true; 3]),
        (&[("sec-fetch-site", "same-origin")], [true, false, true]),
        (&[("sec-fetch-site", "none")], [true, false, true]),
        (&[("sec-fetch-site", "same-site")], [false; 3]),
        (&[("sec-fetch-site", "cross-site")], [false; 3]),
        (&[("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")], [false; 3]),
        (&[("origin", OWN), ("sec-fetch-site", "same-site")], [false; 3]),
        (&[("origin", "https://evil.example")], [false; 3]),
        (&[("origin", "https://evil.example"), ("sec-fetch-site", "same-origin")], [false; 3]),
        (&[("origin", "https://wiki.drover.example")], [false; 3]),
        (&[("origin", "https://drover.example.evil.example")], [false; 3]),
        (&[("origin", "https://drover.example:8443")], [false; 3]),
        (&[("origin", "http://drover.example")], [false; 3]),
        (&[("origin", "http://lan.example")], [false; 3]),
        (&[("origin", "null")], [false; 3]),
        (&[("origin", "")], [false; 3]),
        (&[("origin", OWN), ("origin", "https://evil.example")], [false; 3]),
    ];
    let request = |method: &str, upgrade: bool, named: &[(&str, &str)]| {
        let mut request = http::Request::builder().method(method);
        if upgrade {
            request = request.header("upgrade", "websocket");
        }
        named
            .iter()
            .fold(request, |request, (name, value)| request.header(*name, *value))
            .body(())
            .unwrap()
    };
    let own = own_origins();
    for (named, [write, stream, login]) in cases {
        for method in ["POST", "PUT", "PATCH", "DELETE", "TRACE", "PURGE"] {
            let request = request(method, false, named);
            assert_eq!(check_cookie(&request, &own).is_ok(), *write, "{method} {named:?}");
            assert_eq!(check_anonymous(&request, &own).is_ok(), *login, "{method} {named:?}");
        }
        for (method, upgrade) in [("GET", true), ("POST", true), ("CONNECT", false)] {
            let request = request(method, upgrade, named);
            assert_eq!(check_cookie(&request, &own).is_ok(), *stream, "{method} {named:?}");
        }
        for method in ["GET", "HEAD", "OPTIONS"] {
            assert_eq!(check_cookie(&request(method, false, named), &own), Ok(()), "{named:?}");
        }
    }
    let foreign = request("POST", false, &[("origin", "https://evil.example")]);
    let refused = CrossSite::Foreign("https://evil.example".to_owned());
    assert_eq!(check_cookie(&foreign, &own), Err(refused));
}

#[test]
fn the_value_that_pages_repeat_belongs_to_one_login() {
    let key = |text: &str| TokenKey::parse(text).unwrap();
    let token = CsrfToken::of(&key("token-a:one"));
    let cookies: Vec<String> =
        login_cookies(&key("token-a:one")).iter().map(|c| c.to_str().unwrap().to_owned()).collect();
    let [login, host_only, plain] = cookies.as_slice() else { panic!("{cookies:?}") };
    assert_eq!(login, "R_SESS=token-a:one; Path=/; Secure; HttpOnly; SameSite=Lax");
    let value = &host_only["__Host-CSRF=".len()..][..32];
    assert!(value.bytes().all(|byte| byte.is_ascii_hexdigit()), "{value}");
    assert_eq!(*host_only, format!("__Host-CSRF={value}; Path=/; Secure; SameSite=Lax"));
    assert_eq!(*plain, format!("CSRF={value}; Path=/; Secure; SameSite=Lax"));

    let name = http::HeaderName::from_static(CSRF_HEADER);
    assert!(token.is_repeated(&headers(&[(name.clone(), value)])));
    for sent in [&[][..], &[(name.clone(), "evil")], &[(name.clone(), value), (name, value)]] {
        assert!(!token.is_repeated(&headers(sent)), "{sent:?}");
    }
    for other in ["token-a:two", "token-b:one"] {
        let cookies = CsrfToken::of(&key(other)).missing_cookies(&HeaderMap::new());
        assert!(!cookies[0].to_str().unwrap().contains(value), "{other}");
    }
    let known = format!("CSRF=evil; __Host-CSRF={value}; CSRF={value}");
    assert!(token.missing_cookies(&headers(&[(COOKIE, &known)])).is_empty());
    let tossed = headers(&[(COOKIE, "CSRF=evil; __Host-CSRF=")]);
    assert_eq!(token.missing_cookies(&tossed).len(), 2);
    assert!(!format!("{token:?}").contains(value));
    for cookie in logout_cookies() {
        assert!(cookie.to_str().unwrap().contains("=; Path=/; Max-Age=0; Secure"), "{cookie:?}");
    }
}
