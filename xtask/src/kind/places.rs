//! The places of a kind: the files of its parts, and the lines that name it.
//!
//! Everything is read from the text of files, so that nothing has to be registered here: a kind is
//! a struct with `kind!` or a table in `api-management`; its parts are in modules with its name. A
//! part in a module of another kind is not found.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use regex::Regex;

const API: &str = "crates/api-management";
/// The state of each type under `/v3`.
const TYPES_PAGE: &str = "docs/compat/management-types.md";
/// The rights of each role on each type under `/v3`.
const RIGHTS_PAGE: &str = "docs/reference/permissions.md";
const WRITE_RIGHTS: &str = "DROVER_WRITE_PERMISSIONS=1 cargo test -p test-kit --test permissions";
/// Where places are searched, beside the features.
const FOLDERS: [&str; 5] = [
    API,
    "crates/cli/src/commands",
    "crates/e2e/tests",
    "crates/test-kit/tests",
    "ui/src/features",
];
/// Endings of the files that are read.
const ENDINGS: [&str; 3] = ["rs", "tsx", "txt"];

/// One sort of places.
pub struct Place {
    pub name: &'static str,
    /// The places of a kind: paths below the root, some with a line.
    pub find: fn(&Files, &Kind) -> Vec<String>,
}

/// In the order of the work on a new kind.
pub const PLACES: [Place; 10] = [
    Place { name: "schema", find: schema },
    Place { name: "feature", find: feature },
    Place { name: "admission", find: |files, kind| with(files, kind, r"\bAdmit for ") },
    Place { name: "view", find: |files, kind| with(files, kind, r"\bfn views?\(") },
    Place { name: "reconcilers", find: |files, kind| with(files, kind, r"\bReconcile for ") },
    Place { name: "tests", find: tests },
    Place { name: "commands", find: commands },
    Place { name: "pages", find: pages },
    Place { name: "docs", find: docs },
    Place { name: "rights", find: rights },
];

/// The texts of files, by their paths below the root.
pub struct Files(BTreeMap<String, String>);

impl Files {
    /// Reads the files in which kinds have places. A folder that does not exist has none.
    ///
    /// # Errors
    /// A file cannot be read as UTF-8.
    pub fn read(root: &Path) -> Result<Self> {
        let mut files = Self(BTreeMap::new());
        let mut folders: Vec<String> = FOLDERS.map(str::to_owned).into();
        folders.extend(features(root));
        for folder in folders {
            files.enter(root, &folder)?;
        }
        for page in [TYPES_PAGE, RIGHTS_PAGE] {
            if root.join(page).is_file() {
                files.add(root, page)?;
            }
        }
        Ok(files)
    }

    fn enter(&mut self, root: &Path, folder: &str) -> Result<()> {
        for name in names(&root.join(folder)) {
            let path = format!("{folder}/{name}");
            if root.join(&path).is_dir() {
                self.enter(root, &path)?;
            } else if path.rsplit_once('.').is_some_and(|(_, end)| ENDINGS.contains(&end)) {
                self.add(root, &path)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, root: &Path, path: &str) -> Result<()> {
        let text = std::fs::read_to_string(root.join(path));
        let text = text.with_context(|| format!("cannot read '{path}' as UTF-8"))?;
        self.0.insert(path.to_owned(), text);
        Ok(())
    }

    /// All kinds, by their stems.
    pub fn kinds(&self) -> Vec<Kind> {
        let mut kinds = BTreeMap::new();
        for (path, names) in self.matches(&format!("^{API}/src/([a-z_]+)\\.rs$"), STRUCT) {
            let kind: &mut Kind = kinds.entry(path[1].to_owned()).or_default();
            kind.structure = Some(names[1].to_owned());
        }
        for (path, names) in self.matches(&format!("^{API}/types/([a-z0-9_]+)\\.txt$"), TYPE) {
            let kind: &mut Kind = kinds.entry(path[1].to_owned()).or_default();
            let is_offered = !self.0[&path[0]].contains("\nmethods none\n");
            let (id, plural) = (names[1].to_owned(), names[2].to_owned());
            kind.table = Some(Table { id, plural, is_offered });
        }
        kinds.into_iter().map(|(stem, kind)| Kind { stem, ..kind }).collect()
    }

    /// The groups of path and text, for files where both match.
    fn matches(&self, paths: &str, texts: &str) -> Vec<(Vec<String>, Vec<String>)> {
        let (paths, texts) = (pattern(paths), pattern(texts));
        let found = self.0.iter().filter_map(|(path, text)| {
            Some((groups(&paths.captures(path)?), groups(&texts.captures(text)?)))
        });
        found.collect()
    }

    /// The paths that match, of files whose text matches.
    fn paths(&self, paths: &str, texts: &str) -> Vec<String> {
        self.matches(paths, texts).into_iter().map(|(mut path, _)| path.swap_remove(0)).collect()
    }

    /// Where texts match, as `path:line`.
    fn lines(&self, paths: &str, texts: &str) -> Vec<String> {
        let (paths, texts) = (pattern(paths), pattern(texts));
        let mut lines = Vec::new();
        for (path, text) in self.0.iter().filter(|(path, _)| paths.is_match(path)) {
            lines.extend(texts.find_iter(text).map(|found| {
                let line = text[..found.start()].matches('\n').count() + 1;
                format!("{path}:{line}")
            }));
        }
        lines
    }

    fn contains(&self, path: &str, part: &str) -> bool {
        self.0.get(path).is_some_and(|text| text.contains(part))
    }
}

/// The kind of a struct.
const STRUCT: &str = r"(?m)^kind!\(\s*(\w+)";
/// Id and plural of a table.
const TYPE: &str = r"(?m)^type (\w+) (\w+)$";
/// Sources of features, without tests.
const FEATURE: &str = r"^crates/feature-[a-z-]+/src/(?:[a-z_]+/)*[a-z_]+\.rs$";

/// A kind of the management API. Types under `/v3` that are stored in another kind count as kinds.
#[derive(Default)]
pub struct Kind {
    /// Snake-case singular: the stem of its files.
    pub stem: String,
    /// Name of the struct, for code that acts on objects of the kind.
    structure: Option<String>,
    table: Option<Table>,
}

/// What a table says of its type under `/v3`.
struct Table {
    id: String,
    plural: String,
    /// Whether requests can reach objects of the type.
    is_offered: bool,
}

impl Kind {
    /// Whether `name` is the kind's name in any spelling: `role-template`, `RoleTemplate`.
    pub fn is_named(&self, name: &str) -> bool {
        let letters = |text: &str| text.replace(['-', '_'], "").to_lowercase();
        letters(&self.stem) == letters(name)
    }

    /// The file that describes its objects: the table, or the struct of a kind without one.
    pub fn schema_file(&self) -> String {
        let Self { stem, .. } = self;
        match self.table {
            Some(_) => format!("{API}/types/{stem}.txt"),
            None => format!("{API}/src/{stem}.rs"),
        }
    }

    /// What it lacks of what every kind has: a schema that is listed, a feature, and, when it is
    /// offered under `/v3`, a row of rights. Other places are optional.
    pub fn problems(&self, files: &Files) -> Vec<String> {
        let mut problems = self.unlisted_schemas(files);
        problems.extend(self.missing_feature(files));
        problems.extend(self.missing_rights(files));
        problems
    }

    fn unlisted_schemas(&self, files: &Files) -> Vec<String> {
        let Self { stem, .. } = self;
        let mut problems = Vec::new();
        let mut require = |list: &str, entry: &str, text: &str| {
            let list = format!("{API}/src/{list}");
            if !files.contains(&list, text) {
                problems.push(format!("kind '{stem}' is not listed: add {entry} in {list}"));
            }
        };
        if let Some(name) = &self.structure {
            require("lib.rs", &format!("'{name}' to STRUCTS"), &format!("{name}::KIND,"));
        }
        if self.table.is_some() {
            require("types.rs", &format!("'{stem}' to TYPES"), &format!("\"{stem}\""));
        }
        problems
    }

    fn missing_feature(&self, files: &Files) -> Option<String> {
        let step = match &self.structure {
            Some(name) => format!("add `KindRules::of::<{name}>()` to the `feature()` of"),
            None => format!("add a module '{}.rs' to", self.stem),
        };
        let is_missing = registrations(files, self).is_empty();
        let text = || format!("kind '{}' has no feature: {step} a crate feature-*", self.stem);
        is_missing.then(text)
    }

    fn missing_rights(&self, files: &Files) -> Option<String> {
        let is_offered = self.table.as_ref().is_some_and(|table| table.is_offered);
        (is_offered && rights(files, self).is_empty()).then(|| {
            let Self { stem, .. } = self;
            format!("kind '{stem}' has no row in {RIGHTS_PAGE}: `{WRITE_RIGHTS}` writes it")
        })
    }

    /// The pattern of paths below `folder` of modules with its name, singular or plural.
    fn modules(&self, folder: &str) -> String {
        let Self { stem, .. } = self;
        let plural = self.table.as_ref().map_or_else(|| format!("{stem}s"), |it| snake(&it.plural));
        format!(r"^{folder}/(?:{stem}|{plural})(?:\.rs|/.+\.rs)$")
    }
}

fn schema(_: &Files, kind: &Kind) -> Vec<String> {
    let mut found = Vec::new();
    if kind.structure.is_some() {
        found.push(format!("{API}/src/{}.rs", kind.stem));
    }
    if kind.table.is_some() {
        found.push(kind.schema_file());
    }
    found
}

/// Where features name it, and the modules with its name.
fn feature(files: &Files, kind: &Kind) -> Vec<String> {
    let mut found = registrations(files, kind);
    if kind.structure.is_some() {
        found.extend(with(files, kind, ""));
    }
    found
}

/// Where the feature of the kind takes it up. A type without a struct may have a module, be named,
/// or be one of all that a feature reads from the tables.
fn registrations(files: &Files, kind: &Kind) -> Vec<String> {
    let line = match (&kind.structure, &kind.table) {
        (Some(name), _) => format!(r"KindRules::of::<{name}>|\.kind::<{name}>"),
        (None, Some(table)) => format!(r#"\btypes::tables\(\)|"{}""#, table.id),
        (None, None) => return Vec::new(),
    };
    let mut found = files.lines(FEATURE, &line);
    found.retain(|line| !is_test(line));
    if kind.structure.is_none() {
        found.extend(with(files, kind, ""));
    }
    found
}

/// The modules of the kind in features whose text matches.
fn with(files: &Files, kind: &Kind, text: &str) -> Vec<String> {
    let mut found = files.paths(&kind.modules("crates/feature-[a-z-]+/src"), text);
    found.retain(|path| !is_test(path));
    found
}

/// Modules of the kind with tests, and test programs with its name.
fn tests(files: &Files, kind: &Kind) -> Vec<String> {
    let test = r"#\[(?:tokio::)?test\b";
    let mut found = files.paths(&kind.modules(&format!("{API}/src")), test);
    found.extend(files.paths(&kind.modules("crates/feature-[a-z-]+/src"), test));
    found.extend(files.paths(&kind.modules("crates/(?:test-kit|e2e)/tests"), test));
    found
}

/// The files of `drover`'s commands with its name, and those that request its collection.
fn commands(files: &Files, kind: &Kind) -> Vec<String> {
    let folder = "crates/cli/src/commands";
    let mut found = files.paths(&kind.modules(folder), "");
    if let Some(table) = &kind.table {
        let request = format!(r#"(?:\.\w+\(|\(&?api, |&str = )"(?i:{})""#, table.plural);
        found.extend(files.paths(&format!("^{folder}/.+"), &request));
    }
    found.retain(|path| !is_test(path));
    found.sort();
    found.dedup();
    found
}

/// The pages in the folder of its plural, and pages with its plural in their name.
fn pages(files: &Files, kind: &Kind) -> Vec<String> {
    let Some(table) = &kind.table else { return Vec::new() };
    let plural = &table.plural;
    let folder = "^ui/src/features";
    files.paths(&format!(r"{folder}/(?:{plural}/\w+|\w+/(?i:{plural}))Page\.tsx$"), "")
}

fn docs(files: &Files, kind: &Kind) -> Vec<String> {
    row(files, kind, TYPES_PAGE, "")
}

fn rights(files: &Files, kind: &Kind) -> Vec<String> {
    // The second cell has the offered requests; a role may have the name of a type.
    row(files, kind, RIGHTS_PAGE, r" [lgcud]+ \|")
}

/// The row of the type in the table of a page; `next` matches the cells after its name.
fn row(files: &Files, kind: &Kind, page: &str, next: &str) -> Vec<String> {
    let id = kind.table.as_ref().map(|table| &table.id);
    id.map(|id| files.lines(page, &format!(r"(?m)^\| {id} \|{next}"))).unwrap_or_default()
}

/// The source folders of the features.
fn features(root: &Path) -> Vec<String> {
    let crates = names(&root.join("crates")).into_iter();
    let features = crates.map(|name| format!("crates/{name}")).filter(|folder| {
        let manifest = std::fs::read_to_string(root.join(folder).join("Cargo.toml"));
        manifest.is_ok_and(|text| text.contains("floor = \"feature\""))
    });
    features.map(|folder| format!("{folder}/src")).collect()
}

/// The names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Whether a module in `src`, with or without a line, has only tests.
fn is_test(path: &str) -> bool {
    path.contains("/tests.rs") || path.contains("/tests/")
}

/// `node_pools` of `nodePools`.
fn snake(camel: &str) -> String {
    let mut snake = String::new();
    for letter in camel.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

fn groups(captures: &regex::Captures<'_>) -> Vec<String> {
    captures.iter().flatten().map(|group| group.as_str().to_owned()).collect()
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the parts of the pattern are names of kinds and constants")
}
