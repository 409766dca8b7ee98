//! Field selectors: what parses, what matches, what is refused.

use proptest::prelude::*;

use super::*;

fn selects(selector: &str, value: &'static str) -> bool {
    let selector = FieldSelector::parse(selector).expect("good");
    selector.matches(|field| if field == "f" { value } else { "" })
}

#[test]
fn terms_are_equal_or_not_equal() {
    assert!(selects("f=v", "v"));
    assert!(selects("f==v", "v"));
    assert!(!selects("f!=v", "v"));
    assert!(selects("f!=v,g=", "w"));
    assert!(!selects("g=x", "v"));
    assert!(selects("f=a\\,b\\=c\\\\", "a,b=c\\"));
}

#[test]
fn what_is_no_term_is_refused() {
    assert_eq!(
        FieldSelector::parse("foo"),
        Err(SelectorError("invalid selector: 'foo'; can't understand 'foo'".to_owned()))
    );
    assert!(FieldSelector::parse("a=b\\x").is_err());
    assert!(FieldSelector::parse("a=b=c").is_err());
    assert!(FieldSelector::parse("a=\\").is_err());
}

#[test]
fn the_required_name_is_found() {
    let selector = FieldSelector::parse("metadata.name=x,metadata.namespace!=y").expect("good");
    assert_eq!(selector.required("metadata.name"), Some("x"));
    assert_eq!(selector.required("metadata.namespace"), None);
    assert_eq!(selector.fields().collect::<Vec<_>>(), ["metadata.name", "metadata.namespace"]);
}

proptest! {
    #[test]
    fn no_text_breaks_the_parser(text in ".{0,60}") {
        if let Ok(selector) = FieldSelector::parse(&text) {
            prop_assert_eq!(FieldSelector::parse(&selector.to_string()), Ok(selector));
        }
    }
    #[test]
    fn no_mix_of_operators_breaks_the_parser(text in "[ab=!,\\\\]{0,20}") {
        if let Ok(selector) = FieldSelector::parse(&text) {
            prop_assert_eq!(FieldSelector::parse(&selector.to_string()), Ok(selector));
        }
    }
}
