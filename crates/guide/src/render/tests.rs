//! Links of the documents lead somewhere, where the sources are read and in the pages.

use std::path::{Path, PathBuf};

use super::*;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn guide() -> Guide {
    Guide::read(&docs()).unwrap()
}

#[test]
fn every_listed_file_is_there_and_every_file_of_the_guide_is_listed() {
    let guide = guide();
    let listed: usize = SECTIONS.iter().map(|(_, files)| files.len()).sum();
    assert_eq!(guide.documents.len(), listed);
    for entry in fs::read_dir(docs().join(GUIDE)).unwrap() {
        let file = format!("{GUIDE}{}", entry.unwrap().file_name().display());
        assert!(guide.documents.iter().any(|document| document.file == file), "{file}");
    }
}

#[test]
fn the_pages_of_the_program_are_those_of_the_sources() {
    let rendered = guide().pages();
    assert_eq!(rendered.len(), crate::PAGES.len());
    for (page, built) in rendered.iter().zip(crate::PAGES) {
        assert_eq!((page.path.as_str(), page.html.as_str()), (built.path, built.html));
    }
    // What the build follows for changes is all that there is.
    for (_, files) in SECTIONS {
        assert!(files.iter().all(|file| FOLDERS.iter().any(|folder| file.starts_with(folder))));
    }
}

#[test]
fn every_link_and_anchor_leads_somewhere() {
    let guide = guide();
    let mut broken = Vec::new();
    for document in &guide.documents {
        for link in guide.content(document).links {
            if link.contains("://") {
                continue;
            }
            let (file, anchor) = split(&link);
            let file = if file.is_empty() {
                document.file.to_owned()
            } else {
                resolve(document.file, file)
            };
            if !docs().join(&file).exists() {
                broken.push(format!("{}: {link}: no such file", document.file));
            }
            let target = guide.documents.iter().find(|document| document.file == file);
            let Some((target, anchor)) = target.zip(anchor) else { continue };
            if !guide.content(target).anchors.iter().any(|one| one == anchor) {
                broken.push(format!("{}: {link}: no such heading", document.file));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn links_become_paths_and_those_to_other_files_become_text() {
    let document = Document {
        section: "Guide",
        file: "guide/tls.md",
        title: "TLS".to_owned(),
        markdown:
            "[a](install.md#run-it-as-a-service) [b](../operations/audit.md) [c](../adr/0001.md) \
                   [d](https://example.com/) [e](#here) [f](index.md)\n"
                .to_owned(),
    };
    let html = guide().content(&document).html;
    let expected = "<p><a href=\"/docs/install#run-it-as-a-service\">a</a> <a href=\"/docs/operations/audit\">b</a> c \
                    <a href=\"https://example.com/\">d</a> <a href=\"#here\">e</a> <a href=\"/docs/\">f</a></p>\n";
    assert_eq!(html, expected);
}

#[test]
fn options_in_a_sentence_are_not_torn_apart_at_their_dashes() {
    assert_eq!(code("drover login"), "<code>drover login</code>");
    let expected = "<code>drover role grant <span>--cluster</span> C <span>&lt;x-y</span></code>";
    assert_eq!(code("drover role grant --cluster C <x-y"), expected);
}

#[test]
fn headings_get_the_anchors_that_forges_give_them() {
    let mut anchors = Anchors::default();
    for (heading, anchor) in [
        ("The server's address", "the-servers-address"),
        ("`--trusted-proxies`", "--trusted-proxies"),
        ("The API: curl, Go", "the-api-curl-go"),
        ("Pods", "pods"),
        ("Pods", "pods-1"),
    ] {
        assert_eq!(anchors.add(heading), anchor);
    }
}

#[test]
fn a_build_without_the_guide_says_so() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("operations")).unwrap();
    fs::write(folder.path().join("operations/audit.md"), "# Audit\n").unwrap();
    let guide = Guide::read(folder.path()).unwrap();
    assert!(guide.pages().is_empty());
    assert!(guide.missing().contains("No guide in this program"));
}
