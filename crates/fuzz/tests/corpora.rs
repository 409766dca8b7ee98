//! Replays the corpora, and runs the targets on extremely nested input.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fuzz::{FuzzTarget, TARGETS};

/// Levels of nesting at which no target may overflow the stack.
const LEVELS: usize = 10_000;
/// The stack size of a thread of the server.
const STACK_BYTES: usize = 2 * 1024 * 1024;
/// Upper bound of the time for any input, in any build.
const TIME_MAX: Duration = Duration::from_secs(20);

fn corpus(target: &FuzzTarget) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    let files = std::fs::read_dir(&folder);
    let files = files.unwrap_or_else(|error| panic!("'{}': {error}", folder.display()));
    files.map(|file| file.unwrap().path()).collect()
}

/// Runs a target like the server: on a stack of that size.
fn run(target: FuzzTarget, what: String, input: Vec<u8>) {
    let since = Instant::now();
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let ended = thread.spawn(move || (target.run)(&input)).unwrap().join();
    assert!(ended.is_ok(), "{}: {what}", target.name);
    assert!(since.elapsed() < TIME_MAX, "{}: {what} took {:?}", target.name, since.elapsed());
}

#[test]
fn every_corpus_file_passes() {
    for target in TARGETS {
        let files = corpus(&target);
        assert!(!files.is_empty(), "{} has no corpus", target.name);
        for file in files {
            run(target, file.display().to_string(), std::fs::read(&file).unwrap());
        }
    }
}

#[test]
fn nothing_overflows_the_stack_ten_thousand_levels_deep() {
    let nests: [(&str, &str, &str); 12] = [
        ("[", "1", "]"),
        (r#"{"a":"#, "1", "}"),
        (r#"[{"a":"#, "1", "}]"),
        ("(", "1", ")"),
        ("!", "true", ""),
        ("-", "1", ""),
        ("- ", "a", ""),
        ("{a: ", "b", "}"),
        ("self.list.all(x, ", "true", ")"),
        ("true ? ", "1", " : 2"),
        (r#"{"f:a":"#, "{}", "}"),
        (r#"{"type":"object","properties":{"a":"#, "{}", "}}"),
    ];
    for target in TARGETS {
        for (open, middle, close) in nests {
            let nest = format!("{}{middle}{}", open.repeat(LEVELS), close.repeat(LEVELS));
            // In either part of an input that has two, or in both.
            for text in
                [format!("{nest}\n{{}}"), format!("{{}}\n{nest}"), format!("{nest}\n{nest}")]
            {
                run(target, format!("{LEVELS} times {open}{close}"), text.into_bytes());
            }
        }
    }
}

/// Messages nested in messages, as deep as their length fields allow.
#[test]
fn nothing_overflows_the_stack_in_nested_messages() {
    for tag in [0x0a, 0x12, 0x1a, 0x22, 0x2a, 0x7a] {
        let mut message = Vec::new();
        for _ in 0..LEVELS {
            let mut outer = vec![tag];
            let mut length = message.len();
            while length >= 0x80 {
                outer.push((length & 0x7f) as u8 | 0x80);
                length >>= 7;
            }
            outer.push(length as u8);
            outer.append(&mut message);
            message = outer;
        }
        let body = [b"k8s\0".as_slice(), &message].concat();
        for target in TARGETS {
            run(target, format!("{LEVELS} messages of tag {tag}"), body.clone());
        }
    }
}
