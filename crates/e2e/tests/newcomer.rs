//! The README's first journey, in its own words: nothing, a first cluster, a second one, a second
//! user, logs of a pod.

#![allow(clippy::unwrap_used, reason = "the steps of a test fail as the test does")]

use std::fmt::Write as _;
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use e2e::programs;
use e2e::wait::within;
use testbed::{Binaries, Process, Program};

const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
/// The address of the README's server; a test uses a free port instead.
const URL: &str = "https://localhost:8443";
/// The password that the user types at the prompt.
const PASSWORD: &str = "mia-has-a-password";
/// A step on a busy machine, without optimizations.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

/// The commands of each shell block of the README, without comments.
fn blocks() -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(README).unwrap();
    let blocks = text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let command = |line: &str| line.split(" #").next().unwrap().trim().to_owned();
    blocks.map(|block| block.lines().map(command).collect()).collect()
}

/// An empty home folder, and the shell that runs the README's commands there.
struct Newcomer {
    home: tempfile::TempDir,
    url: String,
}

impl Newcomer {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let held = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("https://localhost:{}", held.local_addr().unwrap().port());
        std::os::unix::fs::symlink(programs::drover().unwrap(), home.path().join("drover"))
            .unwrap();
        Self { home, url }
    }

    fn shell(&self, line: &str) -> Command {
        let path = std::env::var("PATH").unwrap();
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &line.replace(URL, &self.url)])
            .current_dir(self.home.path())
            .env_clear()
            .env("HOME", self.home.path())
            .env("PATH", format!("{}:{path}", self.home.path().display()))
            .env("DROVER_KUBECTL", Binaries::locate().path(Program::Kubectl).unwrap())
            .env("DROVER_USER_PASSWORD", PASSWORD)
            .env("DROVER_PASSWORD", PASSWORD)
            .stdin(Stdio::null());
        shell
    }

    /// Starts `line`, and waits until its output has one of `words`.
    fn start(&self, name: &str, line: &str, words: &str) -> Process {
        let log = self.home.path().join(format!("{name}.log"));
        let line = format!("exec {line}");
        let mut started = Process::start(name, &self.shell(&line), &log).unwrap();
        within(STEP_TIMEOUT, words, || {
            ensure!(started.exit_status().is_none(), "it ended: {}", started.log_tail());
            let said = std::fs::read_to_string(&log)?;
            said.contains(words).then_some(()).context(said)
        });
        started
    }
}

fn said(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err))
}

#[test]
fn the_first_journey_goes_as_the_readme_says() {
    let blocks = blocks();
    let [first, second, third] = &blocks[..] else { panic!("other blocks: {blocks:?}") };
    assert_eq!(first[0], "cargo xtask up", "{first:?}");
    let newcomer = Newcomer::new();
    let mut times = String::new();
    let mut timed = |what: &str, began: Instant| {
        writeln!(times, "{:8.2} s  {what}", began.elapsed().as_secs_f64()).unwrap();
    };

    let all = Instant::now();
    // The program that the README's command runs after the build.
    let address = newcomer.url.replace("https://localhost", "127.0.0.1");
    let _up = newcomer.start(
        "up",
        &format!("drover up --listen {address}"),
        "The commands are logged in",
    );
    timed("drover up: the first cluster is active", all);
    let began = Instant::now();
    let _second = newcomer.start("sim", &second[0], "admin.kubeconfig");
    timed(&second[0], began);

    let (denied, steps) = third.split_last().unwrap();
    let mut responses = Vec::new();
    for line in steps {
        let began = Instant::now();
        let output = newcomer.shell(line).output().unwrap();
        timed(line, began);
        assert!(output.status.success(), "{line}: {}", said(&output));
        responses.push(said(&output));
    }
    timed("the whole journey", all);
    let [import, .., pods, logs] = &responses[..] else { panic!("{steps:?}") };
    assert!(import.contains("cluster active"), "{import}");
    assert!(pods.contains("cattle-cluster-agent") && pods.contains("Running"), "{pods}");
    assert!(logs.contains("connected"), "{logs}");

    let refused = newcomer.shell(denied).output().unwrap();
    assert!(!refused.status.success(), "{}", said(&refused));
    assert!(
        said(&refused).contains("no cluster has the name or id \"demo\""),
        "{}",
        said(&refused)
    );
    println!("{times}");
}
