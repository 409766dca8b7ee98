//! OpenAPI documents: v3, one document for each group and version, and v2, one document for all.
//!
//! The types come from [`crate::schemas`]. The hash of a document is computed from its inputs, so
//! the index and all "not modified" responses make no document. Documents are made on demand, each
//! in the requested encoding, and cached compressed, within a limit; parsed trees are not cached.

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
use kubernetes_protobuf::openapi::{self as protobuf, OpenApiVersion};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha512};

use crate::aggregation::{ApiServiceTable, merge_v2};
use crate::catalog::Catalog;
use crate::discovery;
use crate::resource::Resource;
use crate::schemas;

/// Bytes of compressed documents that are cached.
const CACHED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Changes when the same inputs lead to other documents: part of every hash.
const LAYOUT_VERSION: &str = "4";

/// Makes the OpenAPI documents of one server, and caches them.
pub struct OpenApi {
    /// `1.36`.
    version: String,
    cache: Mutex<VecDeque<Arc<Document>>>,
    cached_bytes_max: usize,
}

/// The encoding of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Json,
    /// The messages of gnostic.
    Protobuf,
}

impl Encoding {
    /// The media type of documents of this version of OpenAPI.
    pub fn media_type(self, version: OpenApiVersion) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => version.media_type(),
        }
    }
}

/// A document in one encoding.
pub struct Document {
    /// Upper-case hexadecimal, 128 digits: the ETag without quotes, and the `hash` of its URL. It
    /// is the same in both encodings.
    pub hash: String,
    /// Of the encoding and the version of OpenAPI.
    pub media_type: &'static str,
    gzipped: Bytes,
}

impl Document {
    fn new(hash: String, version: OpenApiVersion, encoding: Encoding, value: &Value) -> Self {
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
    /// The document, compressed by gzip.
    pub fn gzipped(&self) -> Bytes {
        self.gzipped.clone()
    }
    /// The document, decompressed at each call.
    pub fn plain(&self) -> Bytes {
        let mut plain = Vec::with_capacity(self.gzipped.len() * 8);
        let mut decoder = GzDecoder::new(self.gzipped.as_ref());
        decoder.read_to_end(&mut plain).expect("compressed by new()");
        plain.into()
    }
}

/// The subject of a path below `/openapi/v3/`.
enum DocumentSubject<'a> {
    Version {
        group: &'a str,
        version: &'a str,
    },
    /// A discovery document or `/version`.
    Plain,
}

impl OpenApi {
    /// `git_version` is that of `/version`: `v1.36.3`. Documents name its major and minor version.
    pub fn new(git_version: &str) -> Self {
        let (major, minor) = discovery::version_numbers(git_version);
        Self {
            version: format!("{major}.{minor}"),
            cache: Mutex::default(),
            cached_bytes_max: CACHED_BYTES_MAX,
        }
    }

    /// The document at `/openapi/v3`: the paths of all other documents with their hashes, those of
    /// aggregated APIs included.
    pub fn index(&self, catalog: &Catalog, table: &ApiServiceTable) -> Bytes {
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
        let remote = table.remotes().filter_map(|(api, remote)| {
            let hash = remote.published.v3_hash.clone()?;
            Some((api.path().trim_start_matches('/').to_owned(), hash))
        });
        let entries: Map<String, Value> = own
            .chain(remote)
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
        if let DocumentSubject::Version { group, version } = subject {
            for resource in catalog.resources(group, version) {
                describe(resource, &mut digest);
            }
        }
        Some(discovery::hex(&digest.finalize()))
    }

    /// The document at `/openapi/v3/<path>`; `None` when there is none. Takes up to some ten
    /// milliseconds: call it outside the async threads.
    pub fn v3(&self, catalog: &Catalog, path: &str, encoding: Encoding) -> Option<Arc<Document>> {
        let hash = self.v3_hash(catalog, path)?;
        Some(self.get_or_make(hash, OpenApiVersion::V3, encoding, || {
            match subject(catalog, path) {
                Some(DocumentSubject::Version { group, version }) => {
                    self.version_document(catalog, group, version)
                }
                _ => self.plain_document(path),
            }
        }))
    }

    /// The hash of the document at `/openapi/v2`.
    pub fn v2_hash(&self, catalog: &Catalog, table: &ApiServiceTable) -> String {
        let mut digest = self.digest("v2");
        for resource in catalog.all() {
            describe(resource, &mut digest);
        }
        for (_, remote) in table.remotes() {
            digest.update(remote.published.v2.as_deref().unwrap_or_default());
        }
        discovery::hex(&digest.finalize())
    }

    /// The document at `/openapi/v2`, those of aggregated APIs merged in. Can take a tenth of a
    /// second: call it outside the async threads.
    pub fn v2(
        &self,
        catalog: &Catalog,
        table: &ApiServiceTable,
        encoding: Encoding,
    ) -> Arc<Document> {
        self.get_or_make(self.v2_hash(catalog, table), OpenApiVersion::V2, encoding, || {
            let mut paths = Map::new();
            for group in catalog.groups() {
                for version in catalog.versions(group) {
                    let (path, entry) = paths::version_path(group, version);
                    paths.insert(path, entry);
                }
            }
            catalog.all().for_each(|resource| paths.extend(paths::resource_paths(resource)));
            let components = schemas::components(catalog.all().map(|resource| &**resource));
            let mut document = v2::document(self.info(), paths, components);
            for (_, remote) in table.remotes() {
                let part = remote.published.v2.as_deref().map(serde_json::from_slice::<Value>);
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
        digest.update(format!("{LAYOUT_VERSION}\n{}\n{path}\n", self.version));
        digest
    }

    fn get_or_make(
        &self,
        hash: String,
        version: OpenApiVersion,
        encoding: Encoding,
        make: impl FnOnce() -> Value,
    ) -> Arc<Document> {
        let key = (hash.as_str(), encoding.media_type(version));
        let is_match = |document: &&Arc<Document>| (&*document.hash, document.media_type) == key;
        let found = self.cache.lock().iter().find(is_match).cloned();
        if let Some(document) = found {
            return document;
        }
        // Made outside the lock: two callers may do the same work, but none waits for the document
        // of another.
        let document = Arc::new(Document::new(hash, version, encoding, &make()));
        let mut cache = self.cache.lock();
        cache.push_back(document.clone());
        let size =
            |cache: &VecDeque<Arc<Document>>| cache.iter().map(|d| d.gzipped.len()).sum::<usize>();
        while size(&cache) > self.cached_bytes_max {
            cache.pop_front();
        }
        document
    }

    fn version_document(&self, catalog: &Catalog, group: &str, version: &str) -> Value {
        let mut paths = Map::new();
        let (path, entry) = paths::version_path(group, version);
        paths.insert(path, entry);
        for resource in catalog.resources(group, version) {
            paths.extend(paths::resource_paths(resource));
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

fn subject<'a>(catalog: &Catalog, path: &'a str) -> Option<DocumentSubject<'a>> {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["api" | "apis" | "version"] => Some(DocumentSubject::Plain),
        ["apis", group] if !group.is_empty() && catalog.has_group(group) => {
            Some(DocumentSubject::Plain)
        }
        ["api", version] if catalog.has_version("", version) => {
            Some(DocumentSubject::Version { group: "", version })
        }
        ["apis", group, version] if !group.is_empty() && catalog.has_version(group, version) => {
            Some(DocumentSubject::Version { group, version })
        }
        _ => None,
    }
}

/// Adds everything of a resource that its documents depend on to the digest.
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
