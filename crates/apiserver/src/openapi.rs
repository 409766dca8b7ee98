//! Schemas as clients read them: OpenAPI v3, one document for each group and version, and v2, one
//! for all.
//!
//! The types come from [`crate::schemas`]. A document's hash is taken from what it is made of, so the index and all "not
//! modified" answers make no document. Documents are made on demand, each in the encoding that is
//! asked for, and kept compressed, within a limit; parsed trees are not kept.

mod paths;
#[cfg(test)]
mod tests;
mod v2;

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::sync::Arc;

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use kubernetes_protobuf::openapi::{self as protobuf, Version};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha512};

use crate::aggregation::{Table, merge_v2};
use crate::catalog::Catalog;
use crate::discovery;
use crate::resource::Resource;
use crate::schemas;

/// Compressed documents kept at once.
const KEPT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Changes when documents made of the same things come out differently.
const FORM: &str = "4";

/// Makes documents and keeps some.
pub struct OpenApi {
    /// `1.36`.
    version: String,
    kept: Mutex<VecDeque<Arc<Document>>>,
    kept_bytes_max: usize,
}

/// How a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Json,
    /// The messages of gnostic.
    Protobuf,
}

impl Encoding {
    /// The media type of documents of this version of OpenAPI.
    pub fn media_type(self, version: Version) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => version.media_type(),
        }
    }
}

/// A finished document.
pub struct Document {
    /// Upper-case hexadecimal, 128 digits: the ETag without quotes, and the `hash` of its URL. It
    /// is the same in both encodings.
    pub hash: String,
    pub media_type: &'static str,
    gzipped: Bytes,
}

impl Document {
    fn new(hash: String, version: Version, encoding: Encoding, value: &Value) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        match encoding {
            Encoding::Json => serde_json::to_writer(&mut encoder, value).map_err(Into::into),
            Encoding::Protobuf => encoder.write_all(&protobuf::encode(version, value)),
        }
        .and_then(|()| encoder.flush())
        .expect("writing to memory does not fail");
        let gzipped = encoder.finish().expect("writing to memory does not fail").into();
        Self { hash, media_type: encoding.media_type(version), gzipped }
    }
    pub fn gzipped(&self) -> Bytes {
        self.gzipped.clone()
    }
    pub fn plain(&self) -> Bytes {
        let mut plain = Vec::with_capacity(self.gzipped.len() * 8);
        let mut decoder = GzDecoder::new(self.gzipped.as_ref());
        decoder.read_to_end(&mut plain).expect("compressed by new()");
        plain.into()
    }
}

/// What a path below `/openapi/v3/` is about.
enum Subject<'a> {
    Version {
        group: &'a str,
        version: &'a str,
    },
    /// A discovery document or `/version`.
    Plain,
}

impl OpenApi {
    /// `git_version` is what `/version` says: `v1.36.3`.
    pub fn new(git_version: &str) -> Self {
        let (major, minor) = discovery::version_numbers(git_version);
        Self {
            version: format!("{major}.{minor}"),
            kept: Mutex::default(),
            kept_bytes_max: KEPT_BYTES_MAX,
        }
    }

    /// The document at `/openapi/v3`: where all others are, each with its hash.
    pub fn index(&self, catalog: &Catalog, table: &Table) -> Bytes {
        let mut paths = vec!["api".to_owned(), "apis".to_owned(), "version".to_owned()];
        for group in catalog.groups() {
            if !group.is_empty() {
                paths.push(format!("apis/{group}"));
            }
            let versions = catalog.versions(group).into_iter();
            paths.extend(versions.map(|v| paths::root(group, v).trim_matches('/').to_owned()));
        }
        let own = paths.into_iter().filter_map(|path| {
            let hash = self.v3_hash(catalog, &path)?;
            Some((path, hash))
        });
        let elsewhere = table.remotes().filter_map(|(api, elsewhere)| {
            let hash = elsewhere.published.v3_hash.clone()?;
            Some((api.path().trim_start_matches('/').to_owned(), hash))
        });
        let entries: Map<String, Value> = own
            .chain(elsewhere)
            .map(|(path, hash)| {
                let url = format!("/openapi/v3/{path}?hash={hash}");
                (path, json!({"serverRelativeURL": url}))
            })
            .collect();
        json!({"paths": entries}).to_string().into()
    }

    /// The hash of the document at `/openapi/v3/<path>`; `None` when there is none.
    pub fn v3_hash(&self, catalog: &Catalog, path: &str) -> Option<String> {
        let subject = subject(catalog, path)?;
        let mut digest = self.digest(path);
        if let Subject::Version { group, version } = subject {
            for resource in catalog.resources(group, version) {
                describe(resource, &mut digest);
            }
        }
        Some(discovery::hex(&digest.finalize()))
    }

    /// The document at `/openapi/v3/<path>`. Takes up to some ten milliseconds: call it off the
    /// async threads.
    pub fn v3(&self, catalog: &Catalog, path: &str, encoding: Encoding) -> Option<Arc<Document>> {
        let hash = self.v3_hash(catalog, path)?;
        Some(self.keep(hash, Version::V3, encoding, || match subject(catalog, path) {
            Some(Subject::Version { group, version }) => {
                self.version_document(catalog, group, version)
            }
            _ => self.plain_document(path),
        }))
    }

    /// The hash of the document at `/openapi/v2`.
    pub fn v2_hash(&self, catalog: &Catalog, table: &Table) -> String {
        let mut digest = self.digest("v2");
        for resource in catalog.all() {
            describe(resource, &mut digest);
        }
        for (_, elsewhere) in table.remotes() {
            digest.update(elsewhere.published.v2.as_deref().unwrap_or_default());
        }
        discovery::hex(&digest.finalize())
    }

    /// The document at `/openapi/v2`. Can take a tenth of a second: call it off the async threads.
    pub fn v2(&self, catalog: &Catalog, table: &Table, encoding: Encoding) -> Arc<Document> {
        self.keep(self.v2_hash(catalog, table), Version::V2, encoding, || {
            let mut paths = Map::new();
            for group in catalog.groups() {
                for version in catalog.versions(group) {
                    let (path, entry) = paths::of_version(group, version);
                    paths.insert(path, entry);
                }
            }
            catalog.all().for_each(|resource| paths.extend(paths::of_resource(resource)));
            let components = schemas::components(catalog.all().map(|resource| &**resource));
            let mut document = v2::document(self.info(), paths, components);
            for (_, elsewhere) in table.remotes() {
                let part = elsewhere.published.v2.as_deref().map(serde_json::from_slice::<Value>);
                if let Some(Ok(part)) = part {
                    merge_v2(&mut document, &part);
                }
            }
            document
        })
    }

    fn info(&self) -> Value {
        json!({"title": "Kubernetes", "version": self.version})
    }

    fn digest(&self, path: &str) -> Sha512 {
        let mut digest = Sha512::new();
        digest.update(format!("{FORM}\n{}\n{path}\n", self.version));
        digest
    }

    fn keep(
        &self,
        hash: String,
        version: Version,
        encoding: Encoding,
        make: impl FnOnce() -> Value,
    ) -> Arc<Document> {
        let asked = (hash.as_str(), encoding.media_type(version));
        let is_asked = |document: &&Arc<Document>| (&*document.hash, document.media_type) == asked;
        let found = self.kept.lock().iter().find(is_asked).cloned();
        if let Some(document) = found {
            return document;
        }
        // Made outside the lock: two callers may do the same work, none waits for another's
        // document.
        let document = Arc::new(Document::new(hash, version, encoding, &make()));
        let mut kept = self.kept.lock();
        kept.push_back(document.clone());
        let size =
            |kept: &VecDeque<Arc<Document>>| kept.iter().map(|d| d.gzipped.len()).sum::<usize>();
        while size(&kept) > self.kept_bytes_max {
            kept.pop_front();
        }
        document
    }

    fn version_document(&self, catalog: &Catalog, group: &str, version: &str) -> Value {
        let mut paths = Map::new();
        let (path, entry) = paths::of_version(group, version);
        paths.insert(path, entry);
        for resource in catalog.resources(group, version) {
            paths.extend(paths::of_resource(resource));
        }
        let resources = catalog.resources(group, version).map(|resource| &**resource);
        json!({
            "openapi": "3.0.0", "info": self.info(), "paths": paths,
            "components": {"schemas": schemas::components(resources)},
        })
    }

    fn plain_document(&self, path: &str) -> Value {
        let entry = json!({"get": {
            "description": "get available resources",
            "responses": {"200": {"description": "OK"}, "401": {"description": "Unauthorized"}},
        }});
        let paths = Map::from_iter([(format!("/{path}/"), entry)]);
        json!({"openapi": "3.0.0", "info": self.info(), "paths": paths})
    }
}

fn subject<'a>(catalog: &Catalog, path: &'a str) -> Option<Subject<'a>> {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["api" | "apis" | "version"] => Some(Subject::Plain),
        ["apis", group] if !group.is_empty() && catalog.has_group(group) => Some(Subject::Plain),
        ["api", version] if catalog.has_version("", version) => {
            Some(Subject::Version { group: "", version })
        }
        ["apis", group, version] if !group.is_empty() && catalog.has_version(group, version) => {
            Some(Subject::Version { group, version })
        }
        _ => None,
    }
}

/// Everything of a resource that its documents depend on.
fn describe(resource: &Resource, digest: &mut Sha512) {
    let subresources: Vec<_> =
        resource.subresources.iter().map(|sub| (sub.name, &sub.verbs, sub.gvk)).collect();
    let offered = resource.selectable_fields.iter().filter(|field| field.offered);
    let offered = offered.map(|field| &field.label);
    let text = format!(
        "{:?}\n",
        (
            (&resource.group, &resource.version, &resource.plural, &resource.kind),
            (&resource.list_kind, resource.namespaced, resource.custom),
            (&resource.verbs, subresources),
            resource.strategy.published_schema().map(|schema| schema.digest()),
            offered.collect::<Vec<_>>(),
        )
    );
    digest.update(text);
}
