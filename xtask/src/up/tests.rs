//! Which arguments are parsed here, and which are passed on.

use clap::Parser;

use crate::{Cli, XtaskCommand};

fn passed_on(line: &[&str]) -> (bool, Vec<String>) {
    let cli = Cli::try_parse_from([&["cargo xtask", "up"], line].concat()).unwrap();
    let XtaskCommand::Up { release, arguments } = cli.command else { panic!("not `up`") };
    let arguments = arguments.into_iter().map(|one| one.into_string().unwrap()).collect();
    (release, arguments)
}

#[test]
fn flags_of_drover_up_are_passed_on_unchanged() {
    let (release, arguments) = passed_on(&["--check", "--listen", "127.0.0.1:0"]);
    assert!(!release);
    assert_eq!(arguments, ["--check", "--listen", "127.0.0.1:0"]);
    let (release, arguments) = passed_on(&["--release", "--check"]);
    assert!(release);
    assert_eq!(arguments, ["--check"]);
    assert!(passed_on(&[]).1.is_empty());
}
