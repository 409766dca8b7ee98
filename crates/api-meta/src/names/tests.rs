//! The grammars of names, and the words in which a bad one is refused.

use proptest::prelude::*;

use super::*;

#[test]
fn a_subdomain_is_refused_in_upstreams_words() {
    assert!(dns1123_subdomain("a-b.c1").is_empty());
    let problems = dns1123_subdomain("Bad_Name");
    assert_eq!(problems.len(), 1);
    assert!(problems[0].starts_with("a lowercase RFC 1123 subdomain must consist of lower case"));
    assert!(
        problems[0]
            .ends_with("'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")
    );
    assert_eq!(dns1123_subdomain(&"a".repeat(254)), ["must be no more than 253 bytes"]);
}

#[test]
fn a_dot_in_a_label_has_its_own_message() {
    assert_eq!(dns1123_label("a.b"), ["must not contain dots"]);
    assert!(dns1123_label("a_b")[0].contains("'my-name',  or '123-abc'"));
    assert_eq!(dns1035_label("1a").len(), 1);
    assert!(dns1035_label("a1").is_empty());
}

#[test]
fn a_path_segment_only_forbids_what_breaks_paths() {
    assert!(path_segment("system:a.b/c".split('/').next().expect("first"), false).is_empty());
    assert_eq!(path_segment("a%b", false), ["may not contain '%'"]);
    assert_eq!(path_segment("..", false), ["may not be '..'"]);
}

#[test]
fn a_qualified_name_has_at_most_one_prefix() {
    assert!(qualified_name("example.com/My.Name_1").is_empty());
    assert!(qualified_name("a b")[0].starts_with("name part must consist of alphanumeric"));
    assert_eq!(qualified_name("/x"), ["prefix part must be non-empty"]);
    assert!(qualified_name("a/b/c")[0].contains("with an optional DNS subdomain prefix"));
    assert_eq!(qualified_name("a/")[0], "name part must be non-empty");
}

#[test]
fn a_prefix_may_end_in_a_dash_but_not_in_a_dot() {
    assert!(NameRule::Dns1123Subdomain.check_prefix("gen-").is_empty());
    assert_eq!(NameRule::Dns1123Subdomain.check_prefix("a.").len(), 1);
    assert!(NameRule::PathSegment.check_prefix("..").is_empty());
}

#[test]
fn generated_names_cut_a_long_base() {
    let name = generate_name(&"g".repeat(80), [0, 1, 2, 3, 255]);
    assert_eq!(name.len(), 63);
    assert!(name.ends_with("gbcdfq"), "{name}");
}

proptest! {
    #[test]
    fn generated_names_of_good_prefixes_are_good(
        base in "[a-z]([-a-z0-9]{0,70}[a-z0-9])?-?", random in any::<[u8; SUFFIX_LENGTH]>(),
    ) {
        prop_assert!(NameRule::Dns1123Label.check(&generate_name(&base, random)).is_empty());
    }

    #[test]
    fn no_text_breaks_a_check(text in ".*", random in any::<[u8; SUFFIX_LENGTH]>()) {
        for rule in [NameRule::Dns1123Subdomain, NameRule::Dns1123Label, NameRule::Dns1035Label,
                     NameRule::PathSegment] {
            rule.check(&text);
            rule.check_prefix(&text);
        }
        qualified_name(&text);
        label_value(&text);
        config_key(&text);
        port_name(&text);
        generate_name(&text, random);
    }
}
