//! `/healthz`, `/livez` and `/readyz`, as a whole and by single checks.

use http::{Response, StatusCode};

use crate::body::respond::{self, Body};
use crate::request::Query;

/// Where a server is in its life, as far as those who send requests must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Readiness {
    Starting,
    Ready,
    /// It still answers, and will not for long.
    Ending,
}

impl Readiness {
    /// Of the number that it is.
    pub fn from_number(number: u8) -> Self {
        [Self::Starting, Self::Ready, Self::Ending][usize::from(number.min(2))]
    }
}

/// One thing that must hold.
struct Check {
    name: &'static str,
    /// What does not hold.
    problem: Option<&'static str>,
}

/// The answer at a path below the three endpoints; `None` for other paths. `query` may ask for every check (`verbose`)
/// or leave some out (`exclude`).
pub fn answer(path: &str, query: &Query, readiness: Readiness) -> Option<Response<Body>> {
    let (endpoint, single) = match path.strip_prefix('/')?.split_once('/') {
        Some((endpoint, single)) => (endpoint, Some(single)),
        None => (&path[1..], None),
    };
    let ping = Check { name: "ping", problem: None };
    let checks = match endpoint {
        "healthz" | "livez" => vec![ping],
        "readyz" => {
            let unless = |bad, text| (readiness == bad).then_some(text);
            let startup = unless(Readiness::Starting, "the server is still starting");
            let shutdown = unless(Readiness::Ending, "the server is shutting down");
            vec![
                ping,
                Check { name: "startup", problem: startup },
                Check { name: "shutdown", problem: shutdown },
            ]
        }
        _ => return None,
    };
    Some(match single {
        None => all(endpoint, checks, query),
        Some(name) => match checks.into_iter().find(|check| check.name == name) {
            None => respond::not_found(),
            Some(Check { problem: None, .. }) => respond::text(StatusCode::OK, "ok"),
            Some(Check { problem: Some(problem), .. }) => failed(format!("{problem}\n")),
        },
    })
}

fn all(endpoint: &str, checks: Vec<Check>, query: &Query) -> Response<Body> {
    let mut unknown: Vec<&str> = query.all("exclude").collect();
    let (mut lines, mut whole) = (String::new(), true);
    for Check { name, problem } in checks {
        let excluded = unknown.contains(&name);
        unknown.retain(|asked| *asked != name);
        lines += &match problem {
            _ if excluded => format!("[+]{name} excluded: ok\n"),
            None => format!("[+]{name} ok\n"),
            Some(problem) => format!("[-]{name} failed: {problem}\n"),
        };
        whole &= excluded || problem.is_none();
    }
    if !unknown.is_empty() {
        let names: Vec<String> = unknown.iter().map(|name| format!("{name:?}")).collect();
        let names = names.join(",");
        lines += &format!("warn: some health checks cannot be excluded: no matches for {names}\n");
    }
    if !whole {
        return failed(format!("{lines}{endpoint} check failed\n"));
    }
    if query.get("verbose").is_none() {
        return respond::text(StatusCode::OK, "ok");
    }
    respond::text(StatusCode::OK, format!("{lines}{endpoint} check passed\n"))
}

fn failed(text: String) -> Response<Body> {
    respond::text(StatusCode::INTERNAL_SERVER_ERROR, text)
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[track_caller]
    fn ask(path: &str, query: &str, ready: bool) -> (u16, String) {
        ask_in(path, query, if ready { Readiness::Ready } else { Readiness::Starting })
    }

    #[track_caller]
    fn ask_in(path: &str, query: &str, readiness: Readiness) -> (u16, String) {
        let response = answer(path, &Query::parse(Some(query)), readiness).expect("a health path");
        let status = response.status().as_u16();
        let body = futures::executor::block_on(response.into_body().collect()).unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[test]
    fn a_server_that_is_ready_says_ok_and_what_it_looked_at() {
        for path in ["/healthz", "/livez", "/readyz", "/livez/ping", "/readyz/startup"] {
            assert_eq!(ask(path, "", true), (200, "ok".to_owned()), "{path}");
        }
        let verbose = "[+]ping ok\n[+]startup ok\n[+]shutdown ok\nreadyz check passed\n";
        assert_eq!(ask("/readyz", "verbose", true), (200, verbose.to_owned()));
    }

    #[test]
    fn a_server_that_starts_lives_and_says_what_it_waits_for() {
        assert_eq!(ask("/livez", "", false), (200, "ok".to_owned()));
        let reason = "the server is still starting\n";
        let whole =
            format!("[+]ping ok\n[-]startup failed: {reason}[+]shutdown ok\nreadyz check failed\n");
        assert_eq!(ask("/readyz", "", false), (500, whole));
        assert_eq!(ask("/readyz/startup", "", false), (500, reason.to_owned()));
        assert_eq!(ask("/readyz", "exclude=startup", false), (200, "ok".to_owned()));
    }

    #[test]
    fn a_server_that_ends_lives_and_takes_no_new_work() {
        assert_eq!(ask_in("/livez", "", Readiness::Ending), (200, "ok".to_owned()));
        let reason = "the server is shutting down\n".to_owned();
        assert_eq!(ask_in("/readyz/shutdown", "", Readiness::Ending), (500, reason));
        assert_eq!(ask_in("/readyz", "", Readiness::Ending).0, 500);
    }

    #[test]
    fn checks_that_are_not_there_are_named() {
        assert_eq!(ask("/readyz/nosuch", "", true).0, 404);
        assert_eq!(ask("/healthz/", "", true).0, 404);
        let warned = "[+]ping excluded: ok\nwarn: some health checks cannot be excluded: no matches \
                      for \"nosuch\"\nlivez check passed\n";
        let asked = ask("/livez", "verbose&exclude=ping&exclude=nosuch", true);
        assert_eq!(asked, (200, warned.to_owned()));
        assert!(answer("/version", &Query::default(), Readiness::Ready).is_none());
    }
}
