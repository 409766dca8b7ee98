//! Tests of the types of the trait.

use proptest::prelude::*;

use super::prefix_end;

#[test]
fn the_end_of_a_prefix_skips_code_points_that_are_no_characters() {
    assert_eq!(prefix_end("/a/"), "/a0");
    assert_eq!(prefix_end("\u{d7ff}"), "\u{e000}");
    assert_eq!(prefix_end("a\u{10ffff}"), "b");
}

proptest! {
    #[test]
    fn keys_of_a_prefix_lie_between_it_and_its_end(prefix in "\\PC{1,4}", key in "\\PC{0,6}") {
        let end = prefix_end(&prefix);
        let inside = |key: &str| key >= prefix.as_str() && key < end.as_str();
        let joined = format!("{prefix}{key}");
        prop_assert!(inside(&joined));
        prop_assert_eq!(inside(&key), key.starts_with(&prefix));
    }
}
