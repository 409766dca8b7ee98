//! Compares with Go: the published types of Kubernetes and their own encoders, which run as a
//! program.

use std::io::Write;
use std::process::{Command, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use testbed::{Binaries, Program};

use super::filled::Filler;
use crate::{decode, encode, kinds};

fn go_client(argument: &str) -> Command {
    let mut command = Command::new(Binaries::locate().path(Program::GoClient).unwrap());
    command.arg(argument);
    command
}

#[test]
fn the_table_matches_the_go_types() {
    let output = go_client("schema").output().unwrap();
    assert!(output.status.success());
    let written = String::from_utf8(output.stdout).unwrap();
    assert!(
        written == include_str!("../schema.txt"),
        "write src/schema.txt with `go-client schema`"
    );
}

#[test]
fn go_encodes_and_decodes_every_kind_to_the_same_bytes_and_json() {
    let mut objects = Vec::new();
    for kind in kinds() {
        objects.extend((1..6).map(|seed| Filler::everything(seed).object(kind)));
        objects.extend((1..40).map(|seed| Filler::some(seed * 7919).object(kind)));
    }
    let mut go = go_client("transcode");
    let mut go = go.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = go.stdin.take().unwrap();
    let lines: String = objects.iter().map(|object| format!("{object}\n")).collect();
    let feed = std::thread::spawn(move || stdin.write_all(lines.as_bytes()).unwrap());
    let output = go.wait_with_output().unwrap();
    feed.join().unwrap();
    let answers: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), objects.len());
    for (object, answer) in objects.iter().zip(answers) {
        assert_eq!(answer["error"], Value::Null, "{object}");
        let expected = STANDARD.decode(answer["protobuf"].as_str().unwrap()).unwrap();
        let own = encode(object.to_string().as_bytes()).unwrap();
        assert!(own == expected, "other bytes of {object}\n{}\n{}", hex(&own), hex(&expected));
        assert_eq!(decode(&expected, None).unwrap(), answer["json"], "other JSON of {object}");
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}
