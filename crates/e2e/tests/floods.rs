//! Floods of unauthenticated clients: their memory is bounded, and logged-in users are not
//! affected.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use e2e::flood::{Flood, Sizes};
use e2e::measure::{Samples, memory};
use e2e::server::ADMIN_PASSWORD;
use e2e::wait::pace;
use e2e::{Client, Guarantee, Protocol, Server, eventually, no_second_try};
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const LOGIN: &str = "/v3-public/localProviders/local?action=login";

fn address(host: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 9, host))
}

/// The status of a login from an address.
async fn login(client: &Client, name: &str, password: &str) -> (u16, Option<String>) {
    let body = json!({"username": name, "password": password}).to_string();
    let request = Request::post(LOGIN)
        .header("content-type", "application/json")
        .body(Full::new(body.into()).boxed_unsync())
        .unwrap();
    let response = client.connect().await.unwrap().send(request).await.unwrap();
    let retry_after = response.headers.get("retry-after");
    (response.status.as_u16(), retry_after.map(|value| value.to_str().unwrap().to_owned()))
}

#[test]
fn sixty_long_login_names_leave_no_memory_behind() {
    let server = Server::start().unwrap();
    let process = server.process_id().unwrap();
    let anyone = server.anyone().unwrap();
    let guess = |length: usize| {
        let body = json!({"username": "n".repeat(length), "password": "wrong"});
        anyone.post(LOGIN, &body).unwrap().status.as_u16()
    };
    assert_eq!(guess(60_000), 422);
    let before = memory(process).unwrap();
    for n in 0..60 {
        // Over the limit of a name, and over that of a body.
        assert_eq!(guess(60_000 + n), 422);
        assert_eq!(guess(2_000_000 + n), 413);
    }
    let grown = memory(process).unwrap() - before;
    assert!(grown < 20.0, "{grown} MB");
    // None of them counts as a failure of this address.
    assert_eq!(guess(20), 401);
}

#[test]
fn a_flood_of_wrong_logins_does_not_keep_the_administrator_out() {
    no_second_try(Guarantee::Rights);
    let server = Server::start().unwrap();
    let anyone = server.anyone().unwrap();
    e2e::http::runtime().block_on(async {
        let home = anyone.from(address(1));
        assert_eq!(login(&home, "admin", ADMIN_PASSWORD).await.0, 201);
        let mut guesses = tokio::task::JoinSet::new();
        for n in 0..300_u16 {
            let from = anyone.from(address(10 + (n % 100) as u8));
            guesses.spawn(async move { login(&from, "admin", &format!("wrong-{n}")).await });
        }
        let mut owner = Vec::new();
        while guesses.len() > 20 {
            owner.push(login(&home, "admin", ADMIN_PASSWORD).await.0);
            while guesses.try_join_next().is_some() {}
        }
        assert!(owner.iter().all(|status| *status == 201), "{owner:?}");
        for guess in guesses.join_all().await {
            assert!(matches!(guess.0, 401 | 429 | 503), "{guess:?}");
            assert_eq!(guess.0 != 401, guess.1.is_some(), "says when to try again: {guess:?}");
        }
        assert_eq!(login(&home, "admin", ADMIN_PASSWORD).await.0, 201);
        // Failures are counted per address, and this address has none.
        let (status, retry_after) = loop {
            let guess = login(&anyone.from(address(10)), "admin", "wrong").await;
            if guess.0 != 401 {
                break guess;
            }
        };
        assert_eq!(status, 429);
        assert!(retry_after.is_some());
    });
}

#[test]
fn twelve_jobs_that_log_in_at_once_all_get_in() {
    let server = Server::start().unwrap();
    let jobs = server.anyone().unwrap().from(address(2));
    let logins = (0..12).map(|_| {
        let jobs = jobs.clone();
        async move { login(&jobs, "admin", ADMIN_PASSWORD).await.0 }
    });
    let statuses = e2e::http::runtime().block_on(futures::future::join_all(logins));
    assert_eq!(statuses, [201; 12]);
}

#[test]
fn wrong_logins_as_a_user_id_do_not_keep_that_user_from_a_new_password() {
    no_second_try(Guarantee::Rights);
    let server = Server::start().unwrap();
    let token = server.login("admin", ADMIN_PASSWORD).unwrap();
    let admin = server.anyone().unwrap().bearer(&token);
    let me = admin.get("/v3/users?me=true").unwrap().success().unwrap();
    let id = me["data"][0]["id"].as_str().unwrap();
    let anyone = server.anyone().unwrap();
    for n in 0..7 {
        let body = json!({"username": id, "password": format!("wrong-{n}")});
        anyone.post(LOGIN, &body).unwrap();
    }
    let body = json!({"currentPassword": ADMIN_PASSWORD, "newPassword": "another-long-password"});
    admin.post("/v3/users?action=changepassword", &body).unwrap().success().unwrap();
}

#[test]
fn no_byte_of_a_body_is_buffered_for_a_stranger_on_a_path_that_is_not_public() {
    no_second_try(Guarantee::Rights);
    let server = Server::start().unwrap();
    let anyone = server.anyone().unwrap();
    let text = "POST /v3/users HTTP/1.1\r\nHost: drover\r\nContent-Type: application/json\r\n\
                Content-Length: 2000000\r\n\r\n{";
    let since = Instant::now();
    let response = anyone.exchange(text.as_bytes()).unwrap();
    assert!(response.starts_with("HTTP/1.1 401"), "{response}");
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    // A request that is sent in one write gets a response, not a reset.
    for size in [10, 100_000] {
        let response = anyone.call(Method::POST, "/v3/users", vec![b' '; size]).unwrap();
        assert_eq!(response.status, 401, "{}", response.text());
    }
    let large = anyone.call(Method::POST, LOGIN, vec![b' '; 65 * 1024]).unwrap();
    assert_eq!(large.status, 413, "{}", large.text());
}

#[test]
fn ambiguous_requests_are_refused_at_the_entry_point() {
    no_second_try(Guarantee::Rights);
    let server = Server::start().unwrap();
    let admin = server.admin().unwrap();
    let token = server.login("admin", ADMIN_PASSWORD).unwrap();
    for path in ["/ping", "/v3/users", "/api/v1/namespaces", "/k8s/clusters/c-none/api/v1/pods"] {
        for (head, body) in [
            ("GET {} HTTP/1.1\r\nHost: drover\nAuthorization: {t}\r\n\r\n", ""),
            ("GET {} HTTP/1.1\nHost: drover\r\n\r\n", ""),
            (
                "POST {} HTTP/1.1\r\nHost: drover\r\nAuthorization: {t}\r\nContent-Length: 5\r\n\
              Transfer-Encoding: chunked\r\n\r\n",
                "0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            ),
            (
                "POST {} HTTP/1.1\r\nHost: drover\r\nAuthorization: {t}\r\n\
              Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n",
                "0\r\n\r\n",
            ),
        ] {
            let bearer = format!("Bearer {token}");
            let text = head.replace("{}", path).replace("{t}", &bearer) + body;
            let response = admin.exchange(text.as_bytes()).unwrap();
            assert!(response.starts_with("HTTP/1.1 400"), "{text:?}: {response}");
        }
    }
    // Two pipelined requests, a chunked body, and an upgrade work as before.
    let pair = "GET /ping HTTP/1.1\r\nHost: a\r\n\r\nGET /ping HTTP/1.1\r\nHost: a\r\n\
                Connection: close\r\n\r\n";
    assert!(admin.exchange(pair.as_bytes()).unwrap().contains("pong"));
    let chunked = format!(
        "POST {LOGIN} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n\
         Transfer-Encoding: chunked\r\n\r\n3;x=y\r\n{{\r\n\r\n1\r\n}}\r\n0\r\n\r\n"
    );
    let response = admin.exchange(chunked.as_bytes()).unwrap();
    assert!(response.starts_with("HTTP/1.1 401"), "{response}");
}

#[test]
fn silent_connections_of_one_address_make_room_for_another_of_it() {
    let server = Server::start().unwrap();
    let crowd = server.anyone().unwrap().from(address(3));
    e2e::http::runtime().block_on(async {
        let mut silent = Vec::new();
        for _ in 0..512 {
            silent.push(crowd.handshake().await.unwrap());
        }
        pace(Duration::from_secs(1)).await;
        assert_eq!(login(&crowd, "admin", ADMIN_PASSWORD).await.0, 201);
        let mut oldest = silent.remove(0);
        let read = tokio::time::timeout(Duration::from_secs(10), oldest.read_u8()).await;
        assert!(read.unwrap().is_err(), "the oldest was closed");
        silent[0].write_all(b"GET /ping HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        assert_eq!(silent[0].read_u8().await.unwrap(), b'H', "the next was not");
    });
    let admin = server.admin().unwrap();
    eventually("an operator sees the flood", || {
        let text = admin.get("/metrics")?.text();
        let metric = "drover_rejected_total{limit=\"connections\"}";
        let line = text.lines().find(|line| line.starts_with(metric));
        anyhow::ensure!(line.is_some_and(|line| !line.ends_with(" 0")), "{line:?}");
        Ok(())
    });
}

#[test]
fn many_streams_of_an_unauthenticated_client_on_one_connection_are_rejected() {
    let server = Server::start().unwrap();
    let anyone = server.anyone().unwrap();
    // Requests without their bodies remain open.
    let statuses = e2e::flood::open_streams(&anyone.over(Protocol::Http2), 130).unwrap();
    assert!(statuses.iter().all(|status| *status == 503), "{statuses:?}");
    assert!(statuses.len() >= 30, "{}", statuses.len());
}

/// The full measurement is `cargo xtask bench flood`.
#[test]
fn a_flood_from_a_hundred_addresses_takes_bounded_memory_and_nobody_notices() {
    no_second_try(Guarantee::Rights);
    let server = Server::start().unwrap();
    let process = server.process_id().unwrap();
    let home = server.anyone().unwrap().from(address(4));
    let token = server.login("admin", ADMIN_PASSWORD).unwrap();
    let admin = home.bearer(&token);
    let sizes = Sizes {
        addresses: 100,
        silent: 400,
        slow_heads: 100,
        slow_bodies: 100,
        logins_per_second: 20,
    };
    let before = memory(process).unwrap();
    let (samples, most) = e2e::http::runtime().block_on(async {
        assert_eq!(login(&home, "admin", ADMIN_PASSWORD).await.0, 201);
        let _flood = Flood::begin(&server.anyone().unwrap(), sizes).unwrap();
        let mut connection = admin.connect().await.unwrap();
        let (mut samples, mut most) = (Samples::default(), 0.0_f64);
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(10) {
            let began = Instant::now();
            connection.measure("/v3/users").await.unwrap();
            samples.push(began.elapsed());
            most = most.max(memory(process).unwrap());
            pace(Duration::from_millis(20)).await;
        }
        assert_eq!(login(&home, "admin", ADMIN_PASSWORD).await.0, 201);
        // A new connection of another client is accepted, too.
        assert_eq!(login(&home.from(address(5)), "nobody", "wrong").await.0, 401);
        (samples, most)
    });
    let p99 = samples.percentile(99);
    println!("p99 {p99:.0} ms; {before:.0} MB before, {most:.0} MB at most");
    assert!(most - before < 150.0, "{before} MB before, {most} MB in the flood");
    assert!(p99 < 2_000.0, "{p99} ms");
}
