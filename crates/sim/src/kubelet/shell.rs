//! A shell that executes nothing: it has built-in commands about the container that it is in, and
//! says that it is simulated wherever somebody may think otherwise. Pure: words in, text out.

pub mod syntax;
#[cfg(test)]
mod tests;

use jiff::Timestamp;

use super::container::Container;
use syntax::{Command, Joint};

/// Exit code of a command that there is not.
const NOT_FOUND: u8 = 127;
/// Exit code of a line that cannot be understood, and of wrong arguments.
const MISUSE: u8 = 2;
/// Process id that the shell says it has.
const SHELL_PID: u32 = 7;

/// Said where a shell is opened.
pub const BANNER: &str = "This container is simulated: no command is executed. \
                          \"help\" lists what this shell knows.\n";

/// Names under which the shell itself is run.
const SHELLS: [&str; 4] = ["sh", "bash", "ash", "dash"];
const BUILT_INS: [(&str, &str); 14] = [
    ("cat", "show a file of \"ls /etc\", or what is typed"),
    ("date", "show the time"),
    ("echo", "show its arguments"),
    ("env", "show the environment"),
    ("exit", "leave, with an exit code"),
    ("false", "fail"),
    ("help", "show this"),
    ("hostname", "show the pod's name"),
    ("ls", "show what is in a directory"),
    ("printenv", "show the environment, or one variable"),
    ("ps", "show the processes that would run"),
    ("pwd", "show the working directory"),
    ("true", "succeed"),
    ("whoami", "show the user"),
];

/// What a command did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    pub output: String,
    pub errors: String,
    pub code: u8,
    pub then: Then,
}

/// What comes after a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Then {
    #[default]
    Next,
    /// The shell ends, with the command's code.
    Exit,
    /// What is typed is to be shown, until its end.
    CopyInput,
}

/// What is to be run in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// A shell that reads its input.
    Shell,
    /// A shell with a script.
    Script(String),
    /// One command without a shell around it.
    Command(Vec<String>),
}

impl Program {
    /// By the words of `kubectl exec … -- WORDS`.
    pub fn of(words: Vec<String>) -> Self {
        let is_shell = words.first().is_some_and(|word| SHELLS.contains(&base_name(word)));
        if !is_shell {
            return Self::Command(words);
        }
        let options = words[1..].iter().take_while(|word| word.starts_with('-'));
        // `-c` may stand among others: `sh -ec '…'`.
        let script = options.clone().position(|option| option.ends_with('c'));
        match script.and_then(|at| words.get(at + 2)) {
            Some(script) => Self::Script(script.clone()),
            None => Self::Shell,
        }
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

pub struct Shell<'a> {
    container: &'a Container,
    last_code: u8,
}

impl<'a> Shell<'a> {
    pub fn new(container: &'a Container) -> Self {
        Self { container, last_code: 0 }
    }

    pub fn last_code(&self) -> u8 {
        self.last_code
    }

    /// The commands of a line or a script.
    ///
    /// # Errors
    /// What it has that this shell does not know, as the outcome of the line.
    pub fn parse(&mut self, script: &str) -> Result<Vec<(Joint, Command)>, Ran> {
        syntax::parse(script).map_err(|problem| {
            self.last_code = MISUSE;
            let errors =
                format!("sh: {problem}: this container is simulated, and so is its shell\n");
            Ran { errors, code: MISUSE, ..Ran::default() }
        })
    }

    /// Whether a command is run after the one before it.
    pub fn runs(&self, joint: Joint) -> bool {
        match joint {
            Joint::Always => true,
            Joint::AfterSuccess => self.last_code == 0,
            Joint::AfterFailure => self.last_code != 0,
        }
    }

    /// Runs a command of a script, with its variables replaced.
    pub fn run(&mut self, command: &Command, now: Timestamp) -> Ran {
        let value = |name: &str| match name {
            "?" => self.last_code.to_string(),
            "$" => SHELL_PID.to_string(),
            name => self.variable(name).unwrap_or_default().to_owned(),
        };
        let words = command.expand(&value);
        let mut ran = self.run_words(&words, now);
        if command.to_errors {
            ran.errors.push_str(&std::mem::take(&mut ran.output));
        }
        ran
    }

    /// Runs a command as it is.
    pub fn run_words(&mut self, words: &[String], now: Timestamp) -> Ran {
        let Some((name, arguments)) = words.split_first() else { return Ran::default() };
        let ran = self.built_in(name, arguments, now);
        self.last_code = ran.code;
        ran
    }

    fn built_in(&self, name: &str, arguments: &[String], now: Timestamp) -> Ran {
        let container = self.container;
        match base_name(name) {
            "cat" => self.cat(arguments),
            "date" => said(now.strftime("%a %b %e %H:%M:%S UTC %Y\n").to_string()),
            "echo" => echo(arguments),
            "env" => said(self.environment()),
            "exit" => self.exit(arguments),
            "false" => Ran { code: 1, ..Ran::default() },
            "help" => said(help()),
            "hostname" => said(format!("{}\n", container.pod)),
            "ls" => self.list(arguments),
            "printenv" => self.print_environment(arguments),
            "ps" => said(self.processes()),
            "pwd" => said(format!("{}\n", container.working_directory)),
            "true" | ":" => Ran::default(),
            "whoami" => said(format!("{}\n", container.user)),
            _ => {
                let known: Vec<&str> = BUILT_INS.iter().map(|(name, _)| *name).collect();
                failed(
                    NOT_FOUND,
                    format!(
                        "{name}: not found: container \"{}\" is simulated and executes nothing; it \
                     knows {}\n",
                        container.name,
                        known.join(", ")
                    ),
                )
            }
        }
    }

    fn variable(&self, name: &str) -> Option<&str> {
        let mut all = self.container.environment.iter().rev();
        all.find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn environment(&self) -> String {
        let all = &self.container.environment;
        all.iter().map(|(name, value)| format!("{name}={value}\n")).collect()
    }

    fn print_environment(&self, arguments: &[String]) -> Ran {
        match arguments {
            [] => said(self.environment()),
            [name, ..] => match self.variable(name) {
                Some(value) => said(format!("{value}\n")),
                None => Ran { code: 1, ..Ran::default() },
            },
        }
    }

    fn exit(&self, arguments: &[String]) -> Ran {
        let ran = match arguments.first().map(|code| (code, code.parse::<i64>())) {
            None => Ran { code: self.last_code, ..Ran::default() },
            // As the system takes it: its last eight bits.
            Some((_, Ok(code))) => Ran { code: code.to_le_bytes()[0], ..Ran::default() },
            Some((text, Err(_))) => failed(MISUSE, format!("exit: \"{text}\" is no number\n")),
        };
        Ran { then: Then::Exit, ..ran }
    }

    /// Name and content of the files that there are.
    fn files(&self) -> [(&'static str, String); 3] {
        let Container { pod, image, .. } = self.container;
        [
            ("/etc/hostname", format!("{pod}\n")),
            ("/etc/hosts", format!("127.0.0.1\tlocalhost\n127.0.0.1\t{pod}\n")),
            ("/etc/os-release", format!("ID=simulated\nPRETTY_NAME=\"simulated {image}\"\n")),
        ]
    }

    fn cat(&self, arguments: &[String]) -> Ran {
        if arguments.iter().all(|argument| argument == "-") {
            return Ran { then: Then::CopyInput, ..Ran::default() };
        }
        let mut ran = Ran::default();
        for path in arguments {
            match self.files().into_iter().find(|(known, _)| *known == self.absolute(path)) {
                Some((_, content)) => ran.output.push_str(&content),
                None => {
                    ran.errors
                        .push_str(&format!("cat: {path}: no such file in a simulated container\n"));
                    ran.code = 1;
                }
            }
        }
        ran
    }

    fn list(&self, arguments: &[String]) -> Ran {
        let mut paths = arguments.iter().filter(|argument| !argument.starts_with('-'));
        let path = self.absolute(paths.next().map_or(".", String::as_str));
        let files = self.files();
        if files.iter().any(|(known, _)| *known == path) {
            return said(format!("{path}\n"));
        }
        let folder = if path == "/" { path.clone() } else { format!("{path}/") };
        let mut names: Vec<&str> = files
            .iter()
            .filter_map(|(known, _)| known.strip_prefix(folder.as_str())?.split('/').next())
            .collect();
        names.dedup();
        if names.is_empty() && path != self.container.working_directory {
            let text = format!("ls: {path}: no such directory in a simulated container\n");
            return failed(1, text);
        }
        said(names.iter().map(|name| format!("{name}\n")).collect())
    }

    /// A path from the root, without `.` and slashes at its end.
    fn absolute(&self, path: &str) -> String {
        let directory = self.container.working_directory.as_str();
        let from = if path.starts_with('/') { "" } else { directory };
        let steps: Vec<&str> = from
            .split('/')
            .chain(path.split('/'))
            .filter(|step| !matches!(*step, "" | "."))
            .collect();
        format!("/{}", steps.join("/"))
    }

    fn processes(&self) -> String {
        let Container { user, .. } = self.container;
        let program = self.container.program();
        format!(
            "PID   USER     COMMAND\n    1 {user:<8} {program} (simulated)\n{SHELL_PID:>5} \
             {user:<8} sh (simulated)\n"
        )
    }
}

fn said(output: String) -> Ran {
    Ran { output, ..Ran::default() }
}

fn failed(code: u8, errors: String) -> Ran {
    Ran { errors, code, ..Ran::default() }
}

fn echo(arguments: &[String]) -> Ran {
    match arguments.split_first() {
        Some((option, rest)) if option == "-n" => said(rest.join(" ")),
        _ => said(format!("{}\n", arguments.join(" "))),
    }
}

fn help() -> String {
    let lines = BUILT_INS.iter().map(|(name, what)| format!("  {name:<10} {what}\n"));
    format!("{BANNER}{}", lines.collect::<String>())
}
