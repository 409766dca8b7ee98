//! `cargo xtask contract`: regenerates the committed code of the contract of cluster drivers from
//! its file: in Rust for the server and for drivers, in Go for the drivers of the testbed.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use prost::Message as _;
use prost_types::FileDescriptorSet;
use prost_types::compiler::{CodeGeneratorRequest, CodeGeneratorResponse};

use crate::workspace;

const FILE: &str = "driver.proto";
const RUST_FILE: &str = "src/generated/types.rs";
/// The programs that generate Go, as the module of the testbed pins them.
const GO_PLUGINS: [&str; 2] = ["protoc-gen-go", "protoc-gen-go-grpc"];
/// Without the folders of the package's path.
const GO_PARAMETER: &str = "module=drover.io/driver";

pub fn run() -> Result<()> {
    for (path, code) in generate()? {
        let failed = || format!("cannot write '{}'", path.display());
        fs::create_dir_all(path.parent().with_context(failed)?).with_context(failed)?;
        fs::write(&path, code).with_context(failed)?;
    }
    Ok(())
}

/// The files of all languages, with their contents.
fn generate() -> Result<Vec<(PathBuf, String)>> {
    let files = protox::compile([FILE], [contract().join("proto")])
        .context("the contract is no valid protobuf")?;
    let mut generated = vec![(contract().join(RUST_FILE), generate_rust(files.clone())?)];
    for plugin in GO_PLUGINS {
        for file in generate_go(plugin, &files)?.file {
            generated.push((go_module().join(file.name()), file.content().to_owned()));
        }
    }
    Ok(generated)
}

fn contract() -> PathBuf {
    workspace::root().join("crates/driver-contract")
}

fn go_module() -> PathBuf {
    workspace::root().join("testbed/driver")
}

/// The messages, the client and the server.
fn generate_rust(files: FileDescriptorSet) -> Result<String> {
    let folder = tempfile::tempdir()?;
    tonic_prost_build::configure()
        .build_transport(false)
        .out_dir(folder.path())
        .compile_fds(files)
        .context("cannot generate the code of the contract")?;
    Ok(fs::read_to_string(folder.path().join("types.rs"))?)
}

/// Runs a plugin of the protocol compiler.
fn generate_go(plugin: &str, files: &FileDescriptorSet) -> Result<CodeGeneratorResponse> {
    let request = CodeGeneratorRequest {
        file_to_generate: vec![FILE.to_owned()],
        parameter: Some(GO_PARAMETER.to_owned()),
        proto_file: files.file.clone(),
        compiler_version: None,
    };
    let mut program = Command::new("go")
        .args(["tool", plugin])
        .current_dir(go_module())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start go")?;
    let mut input = program.stdin.take().context("the program has no input")?;
    input.write_all(&request.encode_to_vec())?;
    drop(input);
    let output = program.wait_with_output()?;
    ensure!(output.status.success(), "{plugin} failed");
    let response = CodeGeneratorResponse::decode(output.stdout.as_slice())?;
    ensure!(response.error.is_none(), "{plugin}: {}", response.error());
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_code_is_that_of_the_contract() {
        for (path, code) in generate().unwrap() {
            assert!(
                fs::read_to_string(&path).unwrap() == code,
                "{FILE} has changed since '{}' was generated: run `cargo xtask contract`",
                path.display()
            );
        }
    }
}
