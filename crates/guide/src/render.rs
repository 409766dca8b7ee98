//! Renders Markdown as pages: which files are pages, in which order, and how their links are
//! rewritten.
//!
//! Runs in the build script and in tests. Files retain their paths below `docs/`, so that links
//! between them also work in the sources. In a page, a link to another page becomes its path, and a
//! link to a file that is no page becomes plain text.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use pulldown_cmark::{Alignment, CowStr, Event, Options, Parser, Tag, TagEnd, html};

/// The folders with pages.
pub const FOLDERS: [&str; 3] = ["guide", "operations", "reference"];
/// The pages: title in the navigation, and files below `docs/`, in order.
const SECTIONS: [(&str, &[&str]); 3] = [
    (
        "Guide",
        &[
            "guide/index.md",
            "guide/quick-start.md",
            "guide/install.md",
            "guide/tls.md",
            "guide/proxy.md",
            "guide/upgrade.md",
            "guide/backup.md",
            "guide/users-and-roles.md",
            "guide/workloads.md",
            "guide/quotas.md",
            "guide/isolation.md",
            "guide/pod-security.md",
            "guide/directories.md",
            "guide/open-id-connect.md",
            "guide/github.md",
            "guide/google.md",
            "guide/microsoft.md",
            "guide/api.md",
            "guide/cluster-drivers.md",
            "guide/write-a-driver.md",
            "guide/troubleshooting.md",
        ],
    ),
    (
        "Operations",
        &[
            "operations/importing.md",
            "operations/backup.md",
            "operations/encryption.md",
            "operations/audit.md",
            "operations/metrics.md",
            "operations/limits.md",
            "operations/simulating.md",
        ],
    ),
    ("Reference", &["reference/cli.md"]),
];
/// The part of the paths of files in the first section that page paths leave out.
const GUIDE: &str = "guide/";
const ROOT: &str = "/docs/";
const TEMPLATE: &str = include_str!("render/template.html");
const PRODUCT: &str = "Drover";

/// All documents, as Markdown.
pub struct Guide {
    documents: Vec<Document>,
}

struct Document {
    section: &'static str,
    file: &'static str,
    title: String,
    markdown: String,
}

/// A finished page.
pub struct Rendered {
    pub path: String,
    pub html: String,
}

impl Guide {
    /// Reads the files that exist. Without the first page of the guide the result is empty.
    ///
    /// # Errors
    /// A file exists and cannot be read.
    pub fn read(docs: &Path) -> io::Result<Self> {
        let mut documents = Vec::new();
        for (section, files) in SECTIONS {
            for file in files {
                match fs::read_to_string(docs.join(file)) {
                    Ok(markdown) => documents.push(Document {
                        section,
                        file,
                        title: title(&markdown),
                        markdown,
                    }),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
        }
        if documents.first().is_none_or(|first| first.file != SECTIONS[0].1[0]) {
            documents.clear();
        }
        Ok(Self { documents })
    }

    /// All pages, in the order of the navigation.
    pub fn pages(&self) -> Vec<Rendered> {
        let all = self.documents.iter().enumerate();
        let page = |(index, document): (usize, &Document)| Rendered {
            path: path(document.file),
            html: self.page(index, document),
        };
        all.map(page).collect()
    }

    /// The document for paths without a page.
    pub fn missing(&self) -> String {
        let (title, text) = if self.documents.is_empty() {
            (
                "No guide in this program",
                "It was built without the folder <code>docs/guide</code> of its sources.",
            )
        } else {
            (
                "No such page",
                "The guide has no page at this address. <a href=\"/docs/\">Its first page</a> lists all.",
            )
        };
        let content = format!("<h1>{title}</h1>\n<p>{text}</p>");
        self.document(title, &self.navigation(None), &content, "")
    }

    fn page(&self, index: usize, document: &Document) -> String {
        let content = self.content(document).html;
        let next = self.documents.get(index + 1).map(|next| {
            let (href, title) = (href(next.file, None), escaped(&next.title));
            format!("<p class=\"next\">Next: <a href=\"{href}\">{title}</a></p>")
        });
        let navigation = self.navigation(Some(document.file));
        self.document(&document.title, &navigation, &content, &next.unwrap_or_default())
    }

    fn document(&self, title: &str, navigation: &str, content: &str, next: &str) -> String {
        // The content last: placeholders in it are not replaced.
        TEMPLATE
            .replace("{title}", &format!("{} · {PRODUCT}", escaped(title)))
            .replace("{navigation}", navigation)
            .replace("{next}", next)
            .replace("{content}", content)
    }

    fn navigation(&self, present: Option<&str>) -> String {
        let mut text = String::new();
        for (section, _) in SECTIONS {
            let documents = self.documents.iter().filter(|document| document.section == section);
            let entries: Vec<String> = documents
                .map(|document| {
                    let mark =
                        if present == Some(document.file) { " aria-current=\"page\"" } else { "" };
                    let (href, title) = (href(document.file, None), escaped(&document.title));
                    format!("<li><a href=\"{href}\"{mark}>{title}</a></li>")
                })
                .collect();
            if !entries.is_empty() {
                let _ = write!(text, "<h2>{section}</h2>\n<ul>\n{}\n</ul>\n", entries.join("\n"));
            }
        }
        text
    }

    fn content(&self, document: &Document) -> Content {
        let mut anchors = Anchors::default();
        let mut links = Vec::new();
        let mut events = Vec::new();
        // Whether each open link has a target.
        let mut open = Vec::new();
        let all: Vec<Event<'_>> = parser(&document.markdown).collect();
        for (index, event) in all.iter().enumerate() {
            match event {
                Event::Start(Tag::Heading { level, .. }) => {
                    let id = anchors.add(&heading_text(&all[index + 1..]));
                    events.push(Event::Html(format!("<{level} id=\"{id}\">").into()));
                }
                Event::Start(Tag::Table(columns)) => {
                    // Reachable by keys: it scrolls where the window is narrow. Columns that are
                    // aligned would have styles inline.
                    let frame =
                        "<div class=\"table\" role=\"group\" aria-label=\"Table\" tabindex=\"0\">";
                    events.push(Event::Html(frame.into()));
                    let columns = vec![Alignment::None; columns.len()];
                    events.push(Event::Start(Tag::Table(columns)));
                }
                Event::End(TagEnd::Table) => {
                    events.push(event.clone());
                    events.push(Event::Html("</div>".into()));
                }
                Event::Code(text) => events.push(Event::Html(code(text).into())),
                Event::Start(Tag::CodeBlock(_)) => {
                    events.push(Event::Html("<pre tabindex=\"0\"><code>".into()));
                }
                Event::End(TagEnd::CodeBlock) => {
                    events.push(Event::Html("</code></pre>\n".into()));
                }
                Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                    let target = self.target(document.file, dest_url);
                    links.push(dest_url.to_string());
                    open.push(target.is_some());
                    if let Some(target) = target {
                        let (dest_url, title, id) =
                            (CowStr::from(target), title.clone(), id.clone());
                        let link = Tag::Link { link_type: *link_type, dest_url, title, id };
                        events.push(Event::Start(link));
                    }
                }
                Event::End(TagEnd::Link) => {
                    if open.pop() == Some(true) {
                        events.push(event.clone());
                    }
                }
                _ => events.push(event.clone()),
            }
        }
        let mut text = String::new();
        html::push_html(&mut text, events.into_iter());
        Content { html: text, anchors: anchors.0.into_keys().collect(), links }
    }

    /// The target of a link in a page; `None` when its file is no page.
    fn target(&self, from: &str, link: &str) -> Option<String> {
        if link.contains("://") || link.starts_with('#') {
            return Some(link.to_owned());
        }
        let (file, anchor) = split(link);
        let file = resolve(from, file);
        let known = self.documents.iter().any(|document| document.file == file);
        known.then(|| href(&file, anchor))
    }
}

/// The text of a document as HTML, and what tests check of it.
struct Content {
    html: String,
    #[cfg_attr(not(test), expect(dead_code, reason = "for the check of links"))]
    anchors: Vec<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "for the check of links"))]
    links: Vec<String>,
}

/// The ids of the headings of a document, and how often each occurred.
#[derive(Default)]
struct Anchors(BTreeMap<String, u32>);

impl Anchors {
    /// Ids like those of code forges: lower case, blanks as dashes, without other punctuation; a
    /// repeated id gets a number.
    fn add(&mut self, heading: &str) -> String {
        let heading = heading.to_lowercase();
        let retained = heading.chars().filter_map(|one| match one {
            ' ' | '-' => Some('-'),
            '_' => Some('_'),
            one if one.is_alphanumeric() => Some(one),
            _ => None,
        });
        let slug: String = retained.collect();
        let count = self.0.get(&slug).copied().unwrap_or_default();
        self.0.insert(slug.clone(), count + 1);
        if count == 0 {
            return slug;
        }
        let numbered = format!("{slug}-{count}");
        self.0.insert(numbered.clone(), 1);
        numbered
    }
}

/// Code within a sentence. Words with dashes are marked: browsers would otherwise break lines after
/// each dash, and an option that is split is misread.
fn code(text: &str) -> String {
    let words = text.split(' ').map(|word| match word.contains('-') {
        true => format!("<span>{}</span>", escaped(word)),
        false => escaped(word),
    });
    format!("<code>{}</code>", words.collect::<Vec<_>>().join(" "))
}

fn parser(markdown: &str) -> Parser<'_> {
    Parser::new_ext(markdown, Options::ENABLE_TABLES)
}

fn heading_text(following: &[Event<'_>]) -> String {
    let inside =
        following.iter().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    let text = inside.filter_map(|event| match event {
        Event::Text(text) | Event::Code(text) => Some(text.as_ref()),
        _ => None,
    });
    text.collect()
}

/// The text of the first heading.
fn title(markdown: &str) -> String {
    let events: Vec<Event<'_>> = parser(markdown).collect();
    let start = events.iter().position(|event| matches!(event, Event::Start(Tag::Heading { .. })));
    start.map(|start| heading_text(&events[start + 1..])).unwrap_or_default()
}

/// The path of a page below `/docs/`.
fn path(file: &str) -> String {
    let path = file.strip_prefix(GUIDE).unwrap_or(file);
    let path = path.strip_suffix(".md").unwrap_or(path);
    if path == "index" { String::new() } else { path.to_owned() }
}

fn href(file: &str, anchor: Option<&str>) -> String {
    let anchor = anchor.map(|anchor| format!("#{anchor}")).unwrap_or_default();
    format!("{ROOT}{}{anchor}", path(file))
}

fn split(link: &str) -> (&str, Option<&str>) {
    match link.split_once('#') {
        Some((file, anchor)) => (file, Some(anchor)),
        None => (link, None),
    }
}

/// The path below `docs/` of a relative link in a file.
fn resolve(from: &str, link: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "." | "" => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    parts.join("/")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
// The build script reads this file from another folder.
#[path = "render/tests.rs"]
mod tests;
