//! The image of a layer: an OCI image layout in a tar file, which also contains the index for
//! `docker load`.
//!
//! Source: OCI image specification 1.1 (image-layout, config, manifest, annotations); the name for
//! containerd is the annotation that `ctr images import` reads.

use anyhow::Result;
use api_meta::image::ImageReference;
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::ImageProgram;
use super::layer::Layer;
use super::timeless::TimelessTar;

/// An unprivileged user, by the convention of images without users. A number, so that
/// `runAsNonRoot` can be checked without a user list.
pub const USER_ID: u64 = 65_532;
const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";
const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const BLOBS: &str = "blobs/sha256/";
const FILE_MODE: u32 = 0o644;

/// The metadata of an image.
pub struct Description {
    /// With a tag, and without a digest, which is unknown before the build.
    pub name: ImageReference,
    /// In the names of OCI images.
    pub architecture: &'static str,
    pub time: Timestamp,
    /// The commit.
    pub revision: Option<String>,
}

/// A whole image.
pub struct Archive {
    pub bytes: Vec<u8>,
    /// Digest of the manifest, by which registries and runtimes identify the image.
    pub digest: String,
}

struct Blob {
    digest: String,
    bytes: Vec<u8>,
}

impl Blob {
    fn new(bytes: Vec<u8>) -> Self {
        Self { digest: digest(&bytes), bytes }
    }

    fn json(value: &Value) -> Self {
        Self::new(value.to_string().into_bytes())
    }

    fn descriptor(&self, kind: &str) -> Value {
        json!({"mediaType": kind, "digest": self.digest, "size": self.bytes.len()})
    }

    fn path(&self) -> String {
        format!("{BLOBS}{}", self.digest.trim_start_matches("sha256:"))
    }
}

fn digest(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

pub fn archive(
    program: &ImageProgram,
    description: &Description,
    layer: &Layer,
) -> Result<Archive> {
    let labels = labels(program, description);
    let config = Blob::json(&config(program, description, layer, &labels));
    let compressed = Blob::new(layer.compressed.clone());
    let manifest = Blob::json(&json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": config.descriptor(CONFIG_TYPE),
        "layers": [compressed.descriptor(LAYER_TYPE)],
        "annotations": labels,
    }));
    let docker = json!([{
        "Config": config.path(),
        "RepoTags": [description.name.to_string()],
        "Layers": [compressed.path()],
    }]);

    let mut tar = TimelessTar::new(description.time);
    for (path, content) in [
        ("oci-layout", &json!({"imageLayoutVersion": "1.0.0"})),
        ("index.json", &index(description, &manifest)),
        ("manifest.json", &docker),
    ] {
        tar.file(path, FILE_MODE, content.to_string().as_bytes())?;
    }
    for folder in ["blobs/", BLOBS] {
        tar.folder(folder)?;
    }
    for blob in [&manifest, &config, &compressed] {
        tar.file(&blob.path(), FILE_MODE, &blob.bytes)?;
    }
    Ok(Archive { bytes: tar.finish()?, digest: manifest.digest })
}

fn config(
    program: &ImageProgram,
    description: &Description,
    layer: &Layer,
    labels: &Value,
) -> Value {
    let created = description.time.to_string();
    let mut run = json!({
        "User": format!("{USER_ID}:{USER_ID}"),
        "Entrypoint": [format!("/{}", program.binary)],
        "WorkingDir": "/",
        "Labels": labels,
    });
    if !program.arguments.is_empty() {
        run["Cmd"] = json!(program.arguments);
    }
    if let Some(port) = program.port {
        run["ExposedPorts"] = json!({format!("{port}/tcp"): {}});
    }
    if let Some(data) = program.data {
        run["Volumes"] = json!({format!("/{data}"): {}});
    }
    json!({
        "created": created,
        "architecture": description.architecture,
        "os": "linux",
        "config": run,
        "rootfs": {"type": "layers", "diff_ids": [digest(&layer.tar)]},
        "history": [{"created": created, "created_by": "cargo xtask image"}],
    })
}

fn labels(program: &ImageProgram, description: &Description) -> Value {
    let mut labels = json!({
        "org.opencontainers.image.title": program.binary,
        "org.opencontainers.image.description": program.description,
        "org.opencontainers.image.version": env!("CARGO_PKG_VERSION"),
        "org.opencontainers.image.licenses": program.licenses,
        "org.opencontainers.image.created": description.time.to_string(),
    });
    if let Some(revision) = &description.revision {
        labels["org.opencontainers.image.revision"] = revision.as_str().into();
    }
    labels
}

fn index(description: &Description, manifest: &Blob) -> Value {
    let mut entry = manifest.descriptor(MANIFEST_TYPE);
    entry["platform"] = json!({"architecture": description.architecture, "os": "linux"});
    // Runtimes store images by their full name; `io.containerd.image.name` is used unchanged.
    entry["annotations"] = json!({
        "io.containerd.image.name": description.name.canonical(),
        "org.opencontainers.image.ref.name": description.name.tag(),
    });
    json!({"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [entry]})
}
