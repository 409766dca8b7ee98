//! Flags that a cluster driver declares: `drover cluster create NAME --driver X --node-count 3`.
//! The command line cannot know them, since each driver has its own. So they are rewritten, before
//! the line is parsed, into the flag that it knows: `--option node-count=3`.

use std::ffi::OsString;

use clap::{Arg, ArgAction, Command};

/// The flag that every option of a driver can be given with.
const OPTION: &str = "--option";
/// Commands that take options of drivers.
const COMMANDS: [&str; 2] = ["create", "update"];

/// The line with the flags of drivers rewritten. `program`: what parses it next. A flag that
/// `program` does not know is a driver's; its value is the next word, unless that is a flag too:
/// then the value is `true`.
pub fn separate(line: impl IntoIterator<Item = OsString>, program: &Command) -> Vec<OsString> {
    let line: Vec<OsString> = line.into_iter().collect();
    let words: Vec<&str> = line.iter().map(|word| word.to_str().unwrap_or_default()).collect();
    let command = match words.as_slice() {
        [_, "cluster", command, ..] if COMMANDS.contains(command) => *command,
        _ => return line,
    };
    let names_driver = |word: &&str| *word == "--driver" || word.starts_with("--driver=");
    let known = program.find_subcommand("cluster").and_then(|one| one.find_subcommand(command));
    let Some(known) = known.filter(|_| command == "update" || words.iter().any(names_driver))
    else {
        // Without a driver an unknown flag is a mistake.
        return line;
    };
    let mut separated = line[..3].to_vec();
    let mut rest = 3;
    while let Some(word) = words.get(rest) {
        rest += 1;
        if *word == "--" {
            separated.extend_from_slice(&line[rest - 1..]);
            break;
        }
        let Some(flag) = word.strip_prefix("--") else {
            separated.push(line[rest - 1].clone());
            continue;
        };
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (flag, None),
        };
        if let Some(argument) = argument(known, name) {
            separated.push(line[rest - 1].clone());
            if takes_value(argument) && value.is_none() {
                separated.extend(line.get(rest).cloned());
                rest += 1;
            }
            continue;
        }
        let next = words.get(rest).filter(|next| value.is_none() && !is_flag(next));
        rest += usize::from(next.is_some());
        let value = value.or(next.copied()).unwrap_or("true");
        separated.push(OPTION.into());
        separated.push(format!("{name}={value}").into());
    }
    separated
}

fn is_flag(word: &str) -> bool {
    word.starts_with('-') && word.parse::<f64>().is_err()
}

fn argument<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    let is_named = |argument: &&Arg| {
        let aliases = argument.get_all_aliases().unwrap_or_default();
        argument.get_long() == Some(name) || aliases.contains(&name)
    };
    command.get_arguments().find(is_named)
}

fn takes_value(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Set | ArgAction::Append)
}

#[cfg(test)]
mod tests {
    use clap::Subcommand as _;

    use super::*;
    use crate::CliArgs;

    fn separated(line: &str) -> String {
        let mut program = CliArgs::augment_subcommands(Command::new("drover"));
        program.build();
        let words = separate(line.split(' ').map(OsString::from), &program);
        words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn flags_that_only_the_driver_knows_become_options() {
        for (line, expected) in [
            (
                "drover cluster create a --driver x --node-count 3 --wait --private --zone=b -l k=v",
                "drover cluster create a --driver x --option node-count=3 --wait --option \
                 private=true --option zone=b -l k=v",
            ),
            (
                "drover cluster create --driver=x --offset -5 --timeout 3m a",
                "drover cluster create --driver=x --option offset=-5 --timeout 3m a",
            ),
            (
                "drover cluster update a --node-count 4 --option b=c --help",
                "drover cluster update a --option node-count=4 --option b=c --help",
            ),
            ("drover cluster update a -- --b", "drover cluster update a -- --b"),
        ] {
            assert_eq!(separated(line), expected);
        }
        for line in [
            "drover cluster create a --node-count 3",
            "drover cluster ls --driver x --node-count 3",
            "drover cluster",
            "drover",
        ] {
            assert_eq!(separated(line), line);
        }
    }
}
