//! Images of a few bytes, parsed like runtimes do.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::GzDecoder;
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::archive::{Archive, Description};
use super::{AGENT, SERVER, binary, layer, name, pack, time};

const BINARY: &[u8] = b"no program, but bytes";

fn description() -> Description {
    Description {
        name: "registry.example:5000/team/agent:1.2".parse().unwrap(),
        architecture: "arm64",
        time: Timestamp::from_second(86_400).unwrap(),
        revision: Some("0123abc".to_owned()),
    }
}

fn build_archive() -> Archive {
    let description = description();
    pack(&AGENT, &description, BINARY).unwrap()
}

struct TarEntry {
    bytes: Vec<u8>,
    mode: u32,
    owner: (u64, u64),
    time: u64,
}

fn entries(tar: &[u8]) -> BTreeMap<String, TarEntry> {
    let mut archive = tar::Archive::new(tar);
    let read = |entry: std::io::Result<tar::Entry<'_, &[u8]>>| {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().display().to_string();
        let header = entry.header();
        let owner = (header.uid().unwrap(), header.gid().unwrap());
        let (mode, time) = (header.mode().unwrap(), header.mtime().unwrap());
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        (path, TarEntry { bytes, mode, owner, time })
    };
    archive.entries().unwrap().map(read).collect()
}

struct Image {
    files: BTreeMap<String, TarEntry>,
}

impl Image {
    fn json(&self, path: &str) -> Value {
        serde_json::from_slice(&self.files[path].bytes).unwrap()
    }

    /// The blob of a descriptor, after a check of its size and digest.
    fn blob(&self, descriptor: &Value) -> &[u8] {
        let digest = descriptor["digest"].as_str().unwrap();
        let bytes = &self.files[&format!("blobs/{}", digest.replace(':', "/"))].bytes;
        assert_eq!(descriptor["size"], bytes.len());
        assert_eq!(digest, sha256(bytes));
        bytes
    }
}

fn sha256(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let (one, other) = (build_archive(), build_archive());
    assert_eq!(one.digest, other.digest);
    assert_eq!(one.bytes, other.bytes);
}

#[test]
fn every_blob_matches_its_descriptor_and_the_config_is_the_agents() {
    let archive = build_archive();
    let image = Image { files: entries(&archive.bytes) };
    assert_eq!(image.json("oci-layout"), json!({"imageLayoutVersion": "1.0.0"}));
    let index = image.json("index.json");
    let entry = &index["manifests"][0];
    assert_eq!(entry["digest"], archive.digest);
    assert_eq!(entry["platform"], json!({"architecture": "arm64", "os": "linux"}));
    assert_eq!(
        entry["annotations"],
        json!({
            "io.containerd.image.name": "registry.example:5000/team/agent:1.2",
            "org.opencontainers.image.ref.name": "1.2",
        })
    );

    let manifest: Value = serde_json::from_slice(image.blob(entry)).unwrap();
    let config: Value = serde_json::from_slice(image.blob(&manifest["config"])).unwrap();
    assert_eq!((&config["architecture"], &config["os"]), (&json!("arm64"), &json!("linux")));
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!(config["config"]["Entrypoint"], json!(["/drover-agent"]));
    assert_eq!(config["created"], "1970-01-02T00:00:00Z");
    let labels = &config["config"]["Labels"];
    assert_eq!(labels, &manifest["annotations"]);
    assert_eq!(labels["org.opencontainers.image.title"], "drover-agent");
    assert_eq!(labels["org.opencontainers.image.version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(labels["org.opencontainers.image.revision"], "0123abc");

    let layers = manifest["layers"].as_array().unwrap();
    let mut layer = Vec::new();
    GzDecoder::new(image.blob(&layers[0])).read_to_end(&mut layer).unwrap();
    assert_eq!(config["rootfs"]["diff_ids"], json!([sha256(&layer)]));
}

#[test]
fn the_index_for_docker_names_the_same_files() {
    let image = Image { files: entries(&build_archive().bytes) };
    let docker = image.json("manifest.json");
    assert_eq!(docker[0]["RepoTags"], json!(["registry.example:5000/team/agent:1.2"]));
    let manifest: Value =
        serde_json::from_slice(image.blob(&image.json("index.json")["manifests"][0])).unwrap();
    let path = |descriptor: &Value| {
        format!("blobs/{}", descriptor["digest"].as_str().unwrap().replace(':', "/"))
    };
    assert_eq!(docker[0]["Config"], path(&manifest["config"]));
    assert_eq!(docker[0]["Layers"], json!([path(&manifest["layers"][0])]));
}

#[test]
fn the_file_system_has_only_the_agent_and_authorities_and_is_read_only() {
    let layer = layer::layer(&AGENT, BINARY, Timestamp::from_second(7).unwrap()).unwrap();
    let files = entries(&layer.tar);
    let certificates = "etc/ssl/certs/ca-certificates.crt";
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    let folders = ["etc/ssl/", "etc/ssl/certs/"];
    assert_eq!(
        names,
        ["drover-agent", "etc/", "etc/nsswitch.conf", folders[0], folders[1], certificates]
    );
    for (path, entry) in &files {
        assert_eq!((entry.owner, entry.time), ((0, 0), 7), "{path}");
        assert_eq!(entry.mode & 0o022, 0, "{path} is writable for others");
    }
    assert_eq!(files["drover-agent"].bytes, BINARY);
    assert_eq!(files["drover-agent"].mode, 0o555);
    let pem = String::from_utf8(files[certificates].bytes.clone()).unwrap();
    let count = pem.matches("-----BEGIN CERTIFICATE-----\n").count();
    assert_eq!(count, webpki_root_certs::TLS_SERVER_ROOT_CERTS.len());
    assert!(count > 100 && pem.lines().all(|line| line.len() <= 64));
}

#[test]
fn the_server_s_image_has_a_folder_that_its_user_alone_can_write() {
    let archive = pack(&SERVER, &description(), BINARY).unwrap();
    let image = Image { files: entries(&archive.bytes) };
    let entry = &image.json("index.json")["manifests"][0];
    let manifest: Value = serde_json::from_slice(image.blob(entry)).unwrap();
    let config: Value = serde_json::from_slice(image.blob(&manifest["config"])).unwrap();
    let run = &config["config"];
    assert_eq!((&run["Entrypoint"], &run["Cmd"]), (&json!(["/drover"]), &json!(["server"])));
    assert_eq!(run["ExposedPorts"], json!({"8443/tcp": {}}));
    assert_eq!(run["Volumes"], json!({"/var/lib/drover": {}}));
    let mut layer = Vec::new();
    GzDecoder::new(image.blob(&manifest["layers"][0])).read_to_end(&mut layer).unwrap();
    let files = entries(&layer);
    let data = &files["var/lib/drover/"];
    assert_eq!((data.mode, data.owner), (0o700, (65_532, 65_532)));
    assert_eq!((files["var/"].owner, files["drover"].owner), ((0, 0), (0, 0)));
}

#[test]
fn names_without_a_tag_or_with_a_digest_are_refused() {
    assert_eq!(name(&AGENT, None).unwrap().tag(), Some(env!("CARGO_PKG_VERSION")));
    let digest = "sha256:0123456789abcdef0123456789abcdef";
    for wrong in ["agent", "Agent:1", &format!("agent:1@{digest}")] {
        let refused = name(&AGENT, Some(wrong)).unwrap_err();
        assert!(format!("{refused:#}").contains(wrong), "{refused:#}");
    }
}

#[test]
fn times_come_from_the_variable_or_are_the_epoch() {
    assert_eq!(time(None).unwrap(), Timestamp::UNIX_EPOCH);
    assert_eq!(time(Some("60")).unwrap().as_second(), 60);
    for wrong in ["-1", "today", "99999999999999"] {
        assert!(time(Some(wrong)).is_err(), "{wrong}");
    }
}

#[test]
fn only_static_binaries_of_known_processors_get_into_an_image() {
    assert_eq!(binary::architecture("x86_64-unknown-linux-gnu").unwrap(), "amd64");
    assert_eq!(binary::architecture("aarch64-unknown-linux-musl").unwrap(), "arm64");
    for other in ["x86_64-apple-darwin", "riscv64gc-unknown-linux-gnu", "amd64"] {
        assert!(binary::architecture(other).is_err(), "{other}");
    }
    // This test program is linked dynamically, with a loader and the C library.
    let dynamic = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let refused = binary::check_is_static(&dynamic).unwrap_err();
    assert!(refused.to_string().contains("dynamically"), "{refused}");
}
