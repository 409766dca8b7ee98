//! Times as the API writes them, and ages as kubectl shows them.

use proptest::prelude::*;

use super::*;

#[test]
fn times_become_utc() {
    assert_eq!(canonical("2026-01-01T02:00:00+02:00").as_deref(), Some("2026-01-01T00:00:00Z"));
    assert_eq!(canonical("2026-01-01T00:00:00.9Z").as_deref(), Some("2026-01-01T00:00:00Z"));
    for bad in ["2026-01-01", "2026-01-01 00:00:00Z", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00"]
    {
        assert_eq!(canonical(bad), None, "{bad}");
    }
}

#[test]
fn micro_times_have_six_digits() {
    let good = canonical_micro("2026-01-01T01:00:00.123456+01:00");
    assert_eq!(good.as_deref(), Ok("2026-01-01T00:00:00.123456Z"));
    assert_eq!(
        canonical_micro("2026-01-01T00:00:00Z").expect_err("no fraction"),
        "parsing time \"2026-01-01T00:00:00Z\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot \
         parse \"Z\" as \".000000\""
    );
    assert_eq!(
        canonical_micro("2026-01-01").expect_err("no time"),
        "parsing time \"2026-01-01\" as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"\" \
         as \"T\""
    );
    assert!(canonical_micro("2026-01-01T00:00:00.123456789Z").is_err());
}

#[test]
fn ages_read_as_in_kubectl() {
    for (seconds, text) in [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (700, "11m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 120, "3h2m"),
        (47 * 3600, "47h"),
        (49 * 3600, "2d1h"),
        (9 * 86400, "9d"),
        (800 * 86400, "2y70d"),
        (-5, "<invalid>"),
    ] {
        assert_eq!(human_duration(seconds), text);
    }
}

proptest! {
    #[test]
    fn no_text_breaks_a_parser(text in ".{0,40}") {
        let _ = parse_problem(&text);
        let _ = canonical_micro(&text);
    }

    #[test]
    fn micro_times_round_trip(micros in 0_i64..4_000_000_000_000_000) {
        let text = format_micros(micros);
        prop_assert_eq!(canonical_micro(&text), Ok(text));
    }
}
