//! Suggests the known name that an unknown one probably means. Objects, types and settings all use
//! this.

/// A third of the letters may be wrong, but never more than this.
const WRONG_LETTERS_MAX: usize = 3;

/// The closest of the known names, whatever its case; none if all differ too much. Two letters
/// in the wrong order count as one mistake.
pub fn closest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    let distance_max = (typed.chars().count() / 3).clamp(1, WRONG_LETTERS_MAX);
    let with_distance = known.into_iter().filter(|name| !name.is_empty()).map(|name| {
        let distance = strsim::osa_distance(&typed, &name.to_lowercase());
        (distance, name)
    });
    let near = with_distance.filter(|(distance, _)| *distance <= distance_max);
    near.min().map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistyped_name_suggests_the_closest_known_one() {
        let known = ["demo", "delta", "maria", "cluster-member", "cluster-owner", "cluster"];
        for (typed, expected) in [
            ("dmeo", Some("demo")),
            ("maira", Some("maria")),
            ("cluster-membr", Some("cluster-member")),
            ("clster", Some("cluster")),
            ("Clutser", Some("cluster")),
            ("DEMO", Some("demo")),
            ("kubernetes", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(closest(typed, known), expected, "{typed}");
        }
        assert_eq!(closest("a", [""]), None);
    }
}
