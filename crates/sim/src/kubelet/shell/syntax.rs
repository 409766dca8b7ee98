//! The supported part of a shell's language: quotes, variables, `;`, `&&`, `||`, comments, and
//! output that is redirected to the errors. Everything else is refused by name.

/// How a command follows the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joint {
    Always,
    AfterSuccess,
    AfterFailure,
}

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
enum WordPart {
    Text(String),
    Variable(String),
}

/// A parsed command that was not run yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellCommand {
    words: Vec<Vec<WordPart>>,
    /// `>&2`: its output is written to the errors.
    pub to_errors: bool,
}

impl ShellCommand {
    /// Its words; `value` gives those of variables.
    pub fn expand(&self, value: &dyn Fn(&str) -> String) -> Vec<String> {
        let part = |part: &WordPart| match part {
            WordPart::Text(text) => text.clone(),
            WordPart::Variable(name) => value(name),
        };
        self.words.iter().map(|parts| parts.iter().map(part).collect()).collect()
    }
}

/// The commands of a script.
///
/// # Errors
/// The unsupported syntax: `'|' is not supported`.
pub fn parse(script: &str) -> Result<Vec<(Joint, ShellCommand)>, String> {
    let mut parser = ScriptParser {
        rest: script.chars().collect::<Vec<_>>().into_iter().peekable(),
        commands: Vec::new(),
        joint: Joint::Always,
        command: ShellCommand::default(),
        word: None,
    };
    parser.run()?;
    Ok(parser.commands)
}

struct ScriptParser {
    rest: std::iter::Peekable<std::vec::IntoIter<char>>,
    commands: Vec<(Joint, ShellCommand)>,
    joint: Joint,
    command: ShellCommand,
    /// The unfinished word.
    word: Option<Vec<WordPart>>,
}

impl ScriptParser {
    fn run(&mut self) -> Result<(), String> {
        while let Some(next) = self.rest.next() {
            match next {
                '\'' => self.single_quoted()?,
                '"' => self.double_quoted()?,
                '\\' => match self.rest.next() {
                    Some('\n') | None => {}
                    Some(escaped) => self.push(escaped),
                },
                '$' => self.variable()?,
                ' ' | '\t' | '\r' => self.end_word(),
                ';' | '\n' => self.end_command(Joint::Always),
                '&' if self.rest.next_if_eq(&'&').is_some() => {
                    self.end_command(Joint::AfterSuccess);
                }
                '|' if self.rest.next_if_eq(&'|').is_some() => {
                    self.end_command(Joint::AfterFailure);
                }
                '#' if self.word.is_none() => {
                    while self.rest.next_if(|next| *next != '\n').is_some() {}
                }
                '>' => self.redirect()?,
                '&' | '|' | '<' | '`' | '(' | ')' => {
                    return Err(format!("'{next}' is not supported"));
                }
                other => self.push(other),
            }
        }
        self.end_command(Joint::Always);
        Ok(())
    }

    /// `>&2`, also as `1>&2`.
    fn redirect(&mut self) -> Result<(), String> {
        let is_output = self.word.as_deref() == Some(&[WordPart::Text("1".to_owned())]);
        let target = (self.rest.next_if_eq(&'&').is_some(), self.rest.next_if_eq(&'2').is_some());
        if target != (true, true) || !(is_output || self.word.is_none()) {
            return Err("'>' is not supported, but for '>&2'".to_owned());
        }
        self.word = None;
        self.command.to_errors = true;
        Ok(())
    }

    fn push(&mut self, next: char) {
        let word = self.word.get_or_insert_default();
        match word.last_mut() {
            Some(WordPart::Text(text)) => text.push(next),
            _ => word.push(WordPart::Text(next.to_string())),
        }
    }

    fn single_quoted(&mut self) -> Result<(), String> {
        self.word.get_or_insert_default();
        loop {
            match self.rest.next() {
                Some('\'') => return Ok(()),
                Some(next) => self.push(next),
                None => return Err("a quote is not closed".to_owned()),
            }
        }
    }

    fn double_quoted(&mut self) -> Result<(), String> {
        self.word.get_or_insert_default();
        loop {
            match self.rest.next() {
                Some('"') => return Ok(()),
                Some('$') => self.variable()?,
                Some('`') => return Err("'`' is not supported".to_owned()),
                Some('\\') => match self.rest.next() {
                    Some(escaped @ ('"' | '\\' | '$' | '`')) => self.push(escaped),
                    Some(other) => {
                        self.push('\\');
                        self.push(other);
                    }
                    None => self.push('\\'),
                },
                Some(next) => self.push(next),
                None => return Err("a quote is not closed".to_owned()),
            }
        }
    }

    /// `$NAME`, `${NAME}`, `$?`, `$$`; a lone `$` is one.
    fn variable(&mut self) -> Result<(), String> {
        let mut name = String::new();
        if self.rest.next_if_eq(&'{').is_some() {
            loop {
                match self.rest.next() {
                    Some('}') => break,
                    Some(next) if next == '_' || next.is_ascii_alphanumeric() => name.push(next),
                    _ => return Err("'${' is supported with a plain name alone".to_owned()),
                }
            }
        } else if self.rest.peek() == Some(&'(') {
            return Err("'$(' is not supported".to_owned());
        } else if let Some(special) = self.rest.next_if(|next| matches!(next, '?' | '$')) {
            name.push(special);
        } else {
            let is_named = |next: &char| *next == '_' || next.is_ascii_alphanumeric();
            while let Some(next) = self.rest.next_if(is_named) {
                name.push(next);
            }
        }
        if name.is_empty() {
            self.push('$');
        } else {
            self.word.get_or_insert_default().push(WordPart::Variable(name));
        }
        Ok(())
    }

    fn end_word(&mut self) {
        self.command.words.extend(self.word.take());
    }

    fn end_command(&mut self, following: Joint) {
        self.end_word();
        let command = std::mem::take(&mut self.command);
        if !command.words.is_empty() {
            self.commands.push((self.joint, command));
        }
        self.joint = following;
    }
}
