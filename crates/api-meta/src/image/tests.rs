//! References as users and registries write them.

use super::ImageReference;

fn parse(text: &str) -> ImageReference {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn what_runtimes_fill_in_is_filled_in() {
    let digest = "0123456789abcdef0123456789abcdef";
    for (text, canonical) in [
        ("agent", "docker.io/library/agent:latest"),
        ("drover-agent:0.1.0", "docker.io/library/drover-agent:0.1.0"),
        ("team/agent:1", "docker.io/team/agent:1"),
        ("docker.io/agent:1", "docker.io/library/agent:1"),
        ("localhost/agent:1", "localhost/agent:1"),
        ("localhost:5000/agent", "localhost:5000/agent:latest"),
        ("registry.example:5000/a/b_c/d--e:v1.2-x", "registry.example:5000/a/b_c/d--e:v1.2-x"),
        ("[::1]:5000/agent:1", "[::1]:5000/agent:1"),
        (&format!("a.example/agent@sha256:{digest}"), &format!("a.example/agent@sha256:{digest}")),
        (&format!("a/b:1@sha256:{digest}"), &format!("docker.io/a/b:1@sha256:{digest}")),
    ] {
        assert_eq!(parse(text).canonical(), canonical);
        assert_eq!(parse(text).to_string(), text);
    }
}

#[test]
fn only_a_reference_without_registry_takes_another() {
    let moved = |text: &str| parse(text).in_registry("mirror.example").to_string();
    assert_eq!(moved("drover-agent:1"), "mirror.example/drover-agent:1");
    assert_eq!(moved("team/agent:1"), "mirror.example/team/agent:1");
    assert_eq!(moved("own.example/agent:1"), "own.example/agent:1");
}

#[test]
fn what_no_runtime_takes_is_refused() {
    let long = format!("{}/agent", "a".repeat(256));
    for text in [
        "",
        " ",
        "Agent",
        "agent:",
        "agent:ä",
        "agent:.1",
        "a//b",
        "/agent",
        "agent/",
        "-agent",
        "a___b",
        "a..b",
        "agent@sha256:12",
        "agent@0123456789abcdef0123456789abcdef",
        "a b:1",
        "https://registry.example/agent",
        "-x.example/agent",
        "a.example:port/agent",
        &long,
        &format!("agent:{}", "1".repeat(129)),
    ] {
        let refused = text.parse::<ImageReference>();
        assert!(refused.is_err(), "{text:?} was taken");
    }
}
