//! Quantities: their canonical text, their order, what is none.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn canonical_text(text: &str) -> String {
    text.parse::<Quantity>().expect(text).to_string()
}

#[test]
fn quantities_print_canonically() {
    for (given, canonical) in [
        ("0", "0"),
        ("1000m", "1"),
        ("0.5", "500m"),
        ("1500m", "1500m"),
        ("12000", "12k"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1e3", "1e3"),
        ("1E3", "1e3"),
        ("12345e-1", "1234500e-3"),
        ("100Mi", "100Mi"),
        ("-2k", "-2k"),
        ("+1", "1"),
        (".5", "500m"),
        ("5.", "5"),
        ("0.0000000001", "1n"),
        ("1E", "1E"),
        ("1024", "1024"),
        ("1025Ki", "1025Ki"),
    ] {
        assert_eq!(canonical_text(given), canonical, "{given}");
    }
    assert_eq!(canonical(&json!(2)).as_deref(), Some("2"));
    assert_eq!(canonical(&json!(0.5)).as_deref(), Some("500m"));
    assert_eq!(canonical(&json!([])), None);
}

#[test]
fn what_is_no_quantity_is_refused() {
    for bad in ["", "-", "1x", "1.2.3", "Ki", "1 Ki", "1e", "1ki", ".", "e3"] {
        assert_eq!(bad.parse::<Quantity>(), Err(QuantityError), "{bad}");
    }
}

#[test]
fn quantities_compare_by_value() {
    let quantity = |text: &str| text.parse::<Quantity>().expect(text);
    assert_eq!(quantity("1000m"), quantity("1"));
    assert!(quantity("1Ki") > quantity("1k"));
    assert_eq!(quantity("1.1").value(), 2);
    assert_eq!(quantity("-1.1").value(), -1);
    assert_eq!(quantity("250m").milli_value(), 250);
    assert_eq!(quantity("1Gi").plus(&quantity("1Gi")).to_string(), "2Gi");
}

proptest! {
    #[test]
    fn no_text_breaks_the_parser(
        text in "[-+]?[0-9.]{0,45}[eEinumkKMGTP]{0,2}[-+]?[0-9]{0,12}|.{0,30}",
    ) {
        if let Ok(quantity) = text.parse::<Quantity>() {
            let _ = (quantity.to_string(), quantity.value(), quantity.milli_value());
        }
    }

    #[test]
    fn the_canonical_form_is_stable(
        number in 0_u32..2_000_000, suffix in "|n|u|m|k|M|G|Ki|Mi|Gi|Ti|e3|e-3",
    ) {
        let once = canonical_text(&format!("{number}{suffix}"));
        prop_assert_eq!(canonical_text(&once), once.clone());
        let given: Quantity = format!("{number}{suffix}").parse().expect("good");
        prop_assert_eq!(given, once.parse::<Quantity>().expect("good"));
    }
}
