//! Problems of an expression with their positions, shown like CEL tools do.

use std::fmt;

use crate::limits::ERRORS_MAX;

/// A problem at one position of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileProblem {
    /// Characters before the position.
    pub at: u32,
    pub message: String,
}

/// All reasons why an expression cannot be compiled. `Display` is that of cel-go: for each problem
/// a line with the position, the source line, and a mark below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    source: String,
    problems: Vec<CompileProblem>,
    /// The failure of a constant part, when nothing else is wrong.
    constant: Option<String>,
    /// Inputs that the expression uses, if its types are right.
    uses: Vec<&'static str>,
}

impl std::error::Error for CompileError {}

impl CompileError {
    pub(crate) fn new(source: &str, mut problems: Vec<CompileProblem>) -> Self {
        problems.sort_by_key(|problem| problem.at);
        Self { source: source.to_owned(), problems, constant: None, uses: Vec::new() }
    }
    /// The evaluation of a constant part failed.
    pub(crate) fn constant(source: &str, error: String, uses: Vec<&'static str>) -> Self {
        Self { source: source.to_owned(), problems: Vec::new(), constant: Some(error), uses }
    }
    /// Whether the expression uses the input; false when that is not known.
    pub fn uses(&self, name: &str) -> bool {
        self.uses.contains(&name)
    }
    /// The problems in the order of their positions.
    pub fn problems(&self) -> &[CompileProblem] {
        &self.problems
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(error) = &self.constant {
            return write!(f, "program instantiation failed: {error}");
        }
        f.write_str("compilation failed: ")?;
        for (index, problem) in self.problems.iter().take(ERRORS_MAX).enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            let (line, column, text) = locate(&self.source, problem.at as usize);
            write!(f, "ERROR: <input>:{line}:{}: {}", column + 1, problem.message)?;
            let text = text.replace('\t', " ");
            write!(f, "\n | {text}\n | ")?;
            let mut wide = text.chars().map(|c| c.len_utf8() > 1);
            for is_wide in wide.by_ref().take(column) {
                f.write_str(if is_wide { "\u{ff0e}" } else { "." })?;
            }
            f.write_str(if wide.next() == Some(true) { "\u{ff3e}" } else { "^" })?;
        }
        let more = self.problems.len().saturating_sub(ERRORS_MAX);
        if more > 0 {
            write!(f, "\n{more} more errors were truncated")?;
        }
        Ok(())
    }
}

/// Line from 1, column from 0, and the text of the line.
fn locate(source: &str, at: usize) -> (usize, usize, &str) {
    let mut before = 0;
    let mut number = 1;
    let mut lines = source.split('\n').peekable();
    while let Some(line) = lines.next() {
        let length = line.chars().count();
        if at <= before + length || lines.peek().is_none() {
            return (number, at.saturating_sub(before), line);
        }
        before += length + 1;
        number += 1;
    }
    (1, at, source)
}
