//! Catalogs: repositories of charts, for all clusters, for one cluster, and for one project.

use rest_view::{ApiError, Presentation};
use serde_json::{Map, Value};

/// The types.
pub const TYPES: [&str; 3] = ["catalog", "clusterCatalog", "projectCatalog"];

/// Refuses URLs with line breaks, also percent-encoded: they would begin another line where the URL
/// is used.
pub fn check(
    _: &Presentation<'_>,
    input: &Map<String, Value>,
    _: Option<&Value>,
) -> Result<(), ApiError> {
    let url = input.get("url").and_then(Value::as_str).unwrap_or_default();
    if !breaks_lines(url) {
        return Ok(());
    }
    Err(ApiError::invalid_field("InvalidFormat", "url", "Invalid characters in catalog URL"))
}

fn breaks_lines(url: &str) -> bool {
    let lower = url.to_ascii_lowercase();
    url.chars().any(char::is_control) || ["%0a", "%0d"].iter().any(|code| lower.contains(code))
}

#[cfg(test)]
mod tests {
    use super::breaks_lines;

    #[test]
    fn a_url_has_no_line_breaks() {
        for (url, refused) in [
            ("https://github.com/%0dx%0A/c.git", true),
            ("https://a.example/\nx", true),
            ("https://a.example/c%20d.git", false),
        ] {
            assert_eq!(breaks_lines(url), refused, "{url}");
        }
    }
}
