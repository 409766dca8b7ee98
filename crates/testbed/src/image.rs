//! Container images made from files, without a registry and without a daemon: an OCI image layout
//! in a tar file, which container runtimes import.
//!
//! Source: OCI image specification 1.1 (image-layout, config, manifest); the annotation with the
//! whole name is the one that containerd's import looks for.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

use crate::command::run;
use crate::{Binaries, Error, Program};

/// An image on every [`crate::RealNode`]: `/bin/sh` and some 270 usual programs. No libraries.
pub const TOOLBOX_IMAGE: &str = "drover.test/toolbox:1";
/// The image of the process that holds the namespaces of every pod.
pub(crate) const PAUSE_IMAGE: &str = "drover.test/pause:1";

const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";

/// An image of one layer, in which root owns all files.
pub struct Image {
    name: String,
    entrypoint: Vec<String>,
    layer: Builder<Vec<u8>>,
}

impl Image {
    /// An empty image; `name` is fully qualified, such as `drover.test/web:1`.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), entrypoint: Vec::new(), layer: Builder::new(Vec::new()) }
    }

    /// The command of pods that name none.
    #[must_use]
    pub fn entrypoint(mut self, words: &[&str]) -> Self {
        self.entrypoint = words.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// Adds a file that every user may execute, with the contents of `source`.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn program(mut self, path: &str, source: &Path) -> Result<Self, Error> {
        let contents = fs::read(source).map_err(Error::file("read", source))?;
        let mut header = header(EntryType::Regular, 0o755, contents.len());
        self.layer
            .append_data(&mut header, path, &contents[..])
            .map_err(Error::file("add to an image", path))?;
        Ok(self)
    }

    /// Adds an empty folder with `mode`.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn folder(mut self, path: &str, mode: u32) -> Result<Self, Error> {
        let mut header = header(EntryType::Directory, mode, 0);
        self.layer
            .append_data(&mut header, path, &[][..])
            .map_err(Error::file("add to an image", path))?;
        Ok(self)
    }

    /// Adds a symbolic link.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn link(mut self, path: &str, target: &str) -> Result<Self, Error> {
        let mut header = header(EntryType::Symlink, 0o777, 0);
        self.layer
            .append_link(&mut header, path, target)
            .map_err(Error::file("add to an image", path))?;
        Ok(self)
    }

    /// Writes the archive.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn write(self, archive: &Path) -> Result<(), Error> {
        let failed = || Error::file("write", archive);
        let layer = Blob::new(self.layer.into_inner().map_err(failed())?);
        let config = Blob::json(&json!({
            "architecture": architecture(),
            "os": "linux",
            "config": {"Entrypoint": self.entrypoint, "Env": ["PATH=/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [layer.digest]},
        }));
        let manifest = Blob::json(&json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": config.descriptor("application/vnd.oci.image.config.v1+json"),
            "layers": [layer.descriptor("application/vnd.oci.image.layer.v1.tar")],
        }));
        let mut entry = manifest.descriptor(MANIFEST_TYPE);
        entry["annotations"] = json!({"io.containerd.image.name": self.name});
        let index = json!({"schemaVersion": 2, "manifests": [entry]});

        let mut tar = Builder::new(Vec::new());
        let layout = json!({"imageLayoutVersion": "1.0.0"}).to_string();
        let mut files =
            vec![("oci-layout".to_owned(), layout), ("index.json".to_owned(), index.to_string())]
                .into_iter()
                .map(|(path, text)| (path, text.into_bytes()))
                .collect::<Vec<_>>();
        files.extend([layer, config, manifest].map(|blob| (blob.path(), blob.bytes)));
        for (path, bytes) in files {
            let mut header = header(EntryType::Regular, 0o644, bytes.len());
            tar.append_data(&mut header, path, &bytes[..]).map_err(failed())?;
        }
        let bytes = tar.into_inner().map_err(failed())?;
        fs::File::create(archive).and_then(|mut file| file.write_all(&bytes)).map_err(failed())
    }
}

/// Writes the image of every pod's first process.
pub(crate) fn write_pause(binaries: &Binaries, archive: &Path) -> Result<(), Error> {
    let program = binaries.path(Program::Pause)?;
    Image::new(PAUSE_IMAGE).program("pause", &program)?.entrypoint(&["/pause"]).write(archive)
}

/// Writes the image [`TOOLBOX_IMAGE`].
pub(crate) fn write_toolbox(binaries: &Binaries, archive: &Path) -> Result<(), Error> {
    let busybox = binaries.path(Program::Busybox)?;
    let names = run(Command::new(&busybox).arg("--list"))?;
    let mut image = Image::new(TOOLBOX_IMAGE)
        .folder("tmp/", 0o1777)?
        .folder("bin/", 0o755)?
        .program("bin/busybox", &busybox)?;
    for name in names.lines().filter(|&name| name != "busybox") {
        image = image.link(&format!("bin/{name}"), "busybox")?;
    }
    image.entrypoint(&["/bin/sh"]).write(archive)
}

struct Blob {
    digest: String,
    bytes: Vec<u8>,
}

impl Blob {
    fn new(bytes: Vec<u8>) -> Self {
        let hash = Sha256::digest(&bytes);
        let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { digest: format!("sha256:{hex}"), bytes }
    }

    fn json(value: &Value) -> Self {
        Self::new(value.to_string().into_bytes())
    }

    fn descriptor(&self, kind: &str) -> Value {
        json!({"mediaType": kind, "digest": self.digest, "size": self.bytes.len()})
    }

    fn path(&self) -> String {
        format!("blobs/{}", self.digest.replace(':', "/"))
    }
}

fn header(kind: EntryType, mode: u32, size: usize) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(size as u64);
    header
}

/// This machine's architecture, as images name it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
