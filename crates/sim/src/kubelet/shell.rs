//! A shell that executes nothing. It has built-in commands about its container, and says that it is
//! simulated wherever a user could think otherwise. Pure: words in, text out.

pub mod syntax;
#[cfg(test)]
mod tests;

use jiff::Timestamp;

use super::container::Container;
use syntax::{Joint, ShellCommand};

/// Exit code of an unknown command.
const NOT_FOUND: u8 = 127;
/// Exit code of a line that cannot be parsed, and of wrong arguments.
const MISUSE: u8 = 2;
/// Process id that the shell reports for itself.
const SHELL_PID: u32 = 7;

/// Greeting of an interactive shell.
pub const BANNER: &str = "This container is simulated: no command is executed. \
                          \"help\" lists what this shell knows.\n";

/// Names of programs that start the shell itself.
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

/// The output of a command, and what follows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandOutput {
    pub output: String,
    pub errors: String,
    pub code: u8,
    pub then: Then,
}

/// What the console does after a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Then {
    #[default]
    Next,
    /// The shell ends, with the command's code.
    Exit,
    /// Copies the input to the output, until its end.
    CopyInput,
}

/// A program to run in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContainerProgram {
    /// A shell that reads its input.
    Shell,
    /// A shell with a script.
    Script(String),
    /// One command without a shell around it.
    Command(Vec<String>),
}

impl ContainerProgram {
    /// Parses the words of `kubectl exec … -- WORDS`.
    pub fn of(words: Vec<String>) -> Self {
        let is_shell = words.first().is_some_and(|word| SHELLS.contains(&base_name(word)));
        if !is_shell {
            return Self::Command(words);
        }
        let options = words[1..].iter().take_while(|word| word.starts_with('-'));
        // `-c` may be combined with other options: `sh -ec '…'`.
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

/// A shell of one container.
pub struct Shell<'a> {
    container: &'a Container,
    last_code: u8,
}

impl<'a> Shell<'a> {
    /// A shell that has run nothing yet.
    pub fn new(container: &'a Container) -> Self {
        Self { container, last_code: 0 }
    }

    /// The exit code of the last command, 0 before the first.
    pub fn last_code(&self) -> u8 {
        self.last_code
    }

    /// The commands of a line or a script.
    ///
    /// # Errors
    /// The script has unsupported syntax; the error is the output of the line.
    pub fn parse(&mut self, script: &str) -> Result<Vec<(Joint, ShellCommand)>, CommandOutput> {
        syntax::parse(script).map_err(|problem| {
            self.last_code = MISUSE;
            let errors =
                format!("sh: {problem}: this container is simulated, and so is its shell\n");
            CommandOutput { errors, code: MISUSE, ..CommandOutput::default() }
        })
    }

    /// Whether a command runs after the one before it.
    pub fn runs(&self, joint: Joint) -> bool {
        match joint {
            Joint::Always => true,
            Joint::AfterSuccess => self.last_code == 0,
            Joint::AfterFailure => self.last_code != 0,
        }
    }

    /// Runs a command of a script, with its variables replaced.
    pub fn run(&mut self, command: &ShellCommand, now: Timestamp) -> CommandOutput {
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

    /// Runs a command without replacing variables.
    pub fn run_words(&mut self, words: &[String], now: Timestamp) -> CommandOutput {
        let Some((name, arguments)) = words.split_first() else { return CommandOutput::default() };
        let ran = self.built_in(name, arguments, now);
        self.last_code = ran.code;
        ran
    }

    fn built_in(&self, name: &str, arguments: &[String], now: Timestamp) -> CommandOutput {
        let container = self.container;
        match base_name(name) {
            "cat" => self.cat(arguments),
            "date" => success(now.strftime("%a %b %e %H:%M:%S UTC %Y\n").to_string()),
            "echo" => echo(arguments),
            "env" => success(self.environment()),
            "exit" => self.exit(arguments),
            "false" => CommandOutput { code: 1, ..CommandOutput::default() },
            "help" => success(help()),
            "hostname" => success(format!("{}\n", container.pod)),
            "ls" => self.list(arguments),
            "printenv" => self.print_environment(arguments),
            "ps" => success(self.processes()),
            "pwd" => success(format!("{}\n", container.working_directory)),
            "true" | ":" => CommandOutput::default(),
            "whoami" => success(format!("{}\n", container.user)),
            _ => {
                let known: Vec<&str> = BUILT_INS.iter().map(|(name, _)| *name).collect();
                failure(
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

    fn print_environment(&self, arguments: &[String]) -> CommandOutput {
        match arguments {
            [] => success(self.environment()),
            [name, ..] => match self.variable(name) {
                Some(value) => success(format!("{value}\n")),
                None => CommandOutput { code: 1, ..CommandOutput::default() },
            },
        }
    }

    fn exit(&self, arguments: &[String]) -> CommandOutput {
        let ran = match arguments.first().map(|code| (code, code.parse::<i64>())) {
            None => CommandOutput { code: self.last_code, ..CommandOutput::default() },
            // Like the system: the last eight bits.
            Some((_, Ok(code))) => {
                CommandOutput { code: code.to_le_bytes()[0], ..CommandOutput::default() }
            }
            Some((text, Err(_))) => failure(MISUSE, format!("exit: \"{text}\" is no number\n")),
        };
        CommandOutput { then: Then::Exit, ..ran }
    }

    /// Name and content of all files.
    fn files(&self) -> [(&'static str, String); 3] {
        let Container { pod, image, .. } = self.container;
        [
            ("/etc/hostname", format!("{pod}\n")),
            ("/etc/hosts", format!("127.0.0.1\tlocalhost\n127.0.0.1\t{pod}\n")),
            ("/etc/os-release", format!("ID=simulated\nPRETTY_NAME=\"simulated {image}\"\n")),
        ]
    }

    fn cat(&self, arguments: &[String]) -> CommandOutput {
        if arguments.iter().all(|argument| argument == "-") {
            return CommandOutput { then: Then::CopyInput, ..CommandOutput::default() };
        }
        let mut ran = CommandOutput::default();
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

    fn list(&self, arguments: &[String]) -> CommandOutput {
        let mut paths = arguments.iter().filter(|argument| !argument.starts_with('-'));
        let path = self.absolute(paths.next().map_or(".", String::as_str));
        let files = self.files();
        if files.iter().any(|(known, _)| *known == path) {
            return success(format!("{path}\n"));
        }
        let folder = if path == "/" { path.clone() } else { format!("{path}/") };
        let mut names: Vec<&str> = files
            .iter()
            .filter_map(|(known, _)| known.strip_prefix(folder.as_str())?.split('/').next())
            .collect();
        names.dedup();
        if names.is_empty() && path != self.container.working_directory {
            let text = format!("ls: {path}: no such directory in a simulated container\n");
            return failure(1, text);
        }
        success(names.iter().map(|name| format!("{name}\n")).collect())
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

fn success(output: String) -> CommandOutput {
    CommandOutput { output, ..CommandOutput::default() }
}

fn failure(code: u8, errors: String) -> CommandOutput {
    CommandOutput { errors, code, ..CommandOutput::default() }
}

fn echo(arguments: &[String]) -> CommandOutput {
    match arguments.split_first() {
        Some((option, rest)) if option == "-n" => success(rest.join(" ")),
        _ => success(format!("{}\n", arguments.join(" "))),
    }
}

fn help() -> String {
    let lines = BUILT_INS.iter().map(|(name, what)| format!("  {name:<10} {what}\n"));
    format!("{BANNER}{}", lines.collect::<String>())
}
