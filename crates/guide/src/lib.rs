//! The user documentation, as HTML pages that the build script makes from `docs/`.
//!
//! [`render`] lists the files that are pages and renders them; it runs when the program is built,
//! and in tests. This module has the finished pages, without data of any server. Start at [`find`].

#[cfg(test)]
mod render;

/// A finished page.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Below [`ROOT`]: empty for the first page, else a path such as `tls` or `operations/audit`.
    pub path: &'static str,
    /// The whole document.
    pub html: &'static str,
}

/// Where the pages are served. Links between them begin with it.
pub const ROOT: &str = "/docs/";
/// Path of the style sheet, below [`ROOT`].
pub const STYLE_PATH: &str = "style.css";
/// The style sheet, CSS.
pub const STYLE: &str = include_str!("style.css");

include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// The page at a path below [`ROOT`]. Paths of files are accepted as well: `tls.md` is `tls`.
pub fn find(path: &str) -> Option<&'static Page> {
    let path = path.strip_suffix(".md").unwrap_or(path);
    let path = if path == "index" { "" } else { path };
    PAGES.iter().find(|page| page.path == path)
}

/// The document for paths without a page; in a build without a guide it says that.
pub const fn missing() -> &'static str {
    MISSING
}

/// Whether the folder of the guide existed when the program was built.
pub const fn is_built() -> bool {
    !PAGES.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_found_by_their_path_and_by_their_file() {
        assert!(is_built());
        assert!(find("").unwrap().html.contains("<h1"));
        assert_eq!(find("tls.md").unwrap().path, "tls");
        assert_eq!(find("operations/audit").unwrap().path, "operations/audit");
        assert!(find("nosuch").is_none());
        assert!(missing().contains("No such page"));
    }

    #[test]
    fn a_page_has_nothing_inline_and_nothing_of_other_hosts() {
        let documents = PAGES.iter().map(|page| page.html).chain([missing()]);
        for html in documents {
            for word in ["<script", "<style", " style=", " onclick", "src=\"http", "@import"] {
                assert!(!html.contains(word), "{word} in {html}");
            }
            assert_eq!(html.matches("<h1").count(), 1, "{html}");
            assert_eq!(html.matches("<link").count(), 2, "{html}");
        }
        assert!(!STYLE.contains("url("), "the style loads nothing");
    }
}
