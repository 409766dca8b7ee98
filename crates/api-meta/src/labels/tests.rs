//! Label selectors in both their forms, and what may be a label at all.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

fn selects(selector: &str, pairs: &[(&str, &str)]) -> bool {
    LabelSelector::parse(selector).expect(selector).matches_labels(&labels(pairs))
}

#[test]
fn every_form_of_the_grammar_matches_as_upstream() {
    for (selector, with, without) in [
        ("k", true, false),
        ("!k", false, true),
        ("k=v", true, false),
        ("k==v", true, false),
        ("k!=v", false, true),
        ("k in (a, v)", true, false),
        ("k notin (v)", false, true),
        (" k = v ,", true, false),
        ("", true, true),
    ] {
        let selector = selector.trim_end_matches(',');
        assert_eq!(selects(selector, &[("k", "v")]), with, "{selector} with");
        assert_eq!(selects(selector, &[("x", "v")]), without, "{selector} without");
    }
    assert!(selects("k=", &[("k", "")]));
    assert!(!selects("k=", &[("k", "v")]));
    assert!(selects("n>1,n<5", &[("n", "3")]));
    assert!(!selects("n>1", &[("n", "x")]));
    assert!(selects("k in (,a)", &[("k", "")]));
    assert!(selects("k in ()", &[("k", "")]) && !selects("k in ()", &[("k", "v")]));
    assert!(selects("in in (in)", &[("in", "in")]));
}

#[test]
fn bad_selectors_are_refused_in_upstreams_words() {
    for (selector, message) in [
        ("a===", "unable to parse requirement: found '=', expected: identifier"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("a,", "found '', expected: identifier after ','"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("=a", "found '=', expected: !, identifier, or 'end of string'"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a in b", "unable to parse requirement: found 'b', expected: '('"),
    ] {
        assert_eq!(LabelSelector::parse(selector), Err(SelectorError(message.to_owned())));
    }
    for bad in ["a>x", "-a", "a=b%", "a in (b", "a=!b"] {
        assert!(LabelSelector::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn selectors_of_one_meaning_are_equal() {
    let canonical = LabelSelector::parse("a=1,b in (x,y)").expect("good");
    for other in ["b in (y,x,x),a==1", "a in (1),b in (x,y),a=1", " a=1 , b in ( x , y ) "] {
        let other = LabelSelector::parse(other).expect("good");
        assert_eq!(other, canonical);
        assert_eq!(other.to_string(), "a=1,b in (x,y)");
    }
}

#[test]
fn a_selector_object_selects_like_its_text() {
    let object = json!({
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "tier", "operator": "NotIn", "values": ["db"]},
            {"key": "old", "operator": "DoesNotExist"},
        ],
    });
    let selector = LabelSelector::from_object(&object).expect("good");
    assert_eq!(selector.to_string(), "app=web,!old,tier!=db");
    assert!(selector.matches_labels(&json!({"app": "web"})));
    assert!(LabelSelector::from_object(&json!({})).expect("good").is_everything());
    assert!(
        !LabelSelector::from_object(&Value::Null).expect("good").matches_labels(&json!({"a": "b"}))
    );
    let bad = json!({"matchExpressions": [{"key": "a", "operator": "Like"}]});
    assert!(LabelSelector::from_object(&bad).is_err());
    assert_eq!(
        validate_selector("spec.selector", &bad)[0].field,
        "spec.selector.matchExpressions[0].operator"
    );
}

#[test]
fn sorted_pairs_are_labels() {
    let pairs = [("a", "1"), ("b", "2")];
    assert!(LabelSelector::parse("b=2,!c").expect("good").matches_labels(&pairs[..]));
}

#[test]
fn label_and_annotation_problems_name_the_field() {
    let causes = validate_labels("metadata.labels", &json!({"a b": "c", "x": "y z"}));
    assert_eq!(causes.len(), 2);
    assert!(causes[0].message.starts_with("Invalid value: \"a b\": name part must consist"));
    assert!(causes[1].message.starts_with("Invalid value: \"y z\": a valid label must be"));
    assert!(validate_annotations("f", &json!({"UP.er/ok": "y"})).is_empty());
    let large = json!({"a": "x".repeat(ANNOTATIONS_SIZE_MAX)});
    assert_eq!(
        validate_annotations("f", &large),
        [Cause::new("FieldValueTooLong", "f", "Too long: may not be more than 262144 bytes")]
    );
}

proptest! {
    #[test]
    fn no_text_breaks_the_parser(text in ".{0,60}") {
        let _ = LabelSelector::parse(&text);
    }

    #[test]
    fn no_mix_of_tokens_breaks_the_parser(text in "[a-c=!(), <>]{0,40}") {
        let _ = LabelSelector::parse(&text);
    }

    #[test]
    fn printed_selectors_parse_to_themselves(
        text in "!?[a-c]((=|!=| in \\(x,y\\)|>|<)[0-9])?(,[d-f]=[a-z]){0,3}",
    ) {
        if let Ok(selector) = LabelSelector::parse(&text) {
            prop_assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector));
        }
    }
}
