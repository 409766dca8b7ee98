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
/// The programs that generate Go, as the module of the testbed pins them.
const GO_PLUGINS: [&str; 2] = ["protoc-gen-go", "protoc-gen-go-grpc"];
/// Without the folders of the package's path.
const GO_PARAMETER: &str = "module=drover.io/driver";

pub fn run() -> Result<()> {
    let files = parse()?;
    fs::write(committed(), generate_rust(files.clone())?)
        .context("cannot write the code of the contract")?;
    let module = workspace::root().join("testbed/driver");
    for plugin in GO_PLUGINS {
        for file in generate_go(plugin, &files)?.file {
            let path = module.join(file.name());
            fs::create_dir_all(path.parent().context("a file without a folder")?)?;
            fs::write(path, file.content())?;
        }
    }
    Ok(())
}

fn folder() -> PathBuf {
    workspace::root().join("crates/driver-contract")
}

fn committed() -> PathBuf {
    folder().join("src/generated/types.rs")
}

fn parse() -> Result<FileDescriptorSet> {
    protox::compile([FILE], [folder().join("proto")]).context("the contract is no valid protobuf")
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
        .current_dir(workspace::root().join("testbed/driver"))
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
        let committed = fs::read_to_string(committed()).unwrap();
        assert!(
            committed == generate_rust(parse().unwrap()).unwrap(),
            "{FILE} has changed: run `cargo xtask contract`"
        );
    }
}
