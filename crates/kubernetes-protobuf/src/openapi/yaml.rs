//! JSON values as YAML, formatted like Go's `yaml.v3` by default.
//!
//! Blocks are indented by four columns, no line is folded, and text is plain if it parses as the
//! same text. Readers of the documents accept any YAML. This format makes the bytes equal to those
//! of an API server, so that they can be compared.

mod scalar;

use serde_json::Value;

use scalar::{Style, escape, is_break, is_space_or_break};

/// Columns of one level of indentation. The `- ` of an item counts as one column.
const INDENT: usize = 4;
const ITEM_INDENT: usize = 2;
/// Longest simple key, in bytes. Longer keys are written after a question mark.
const SIMPLE_KEY_BYTES_MAX: usize = 128;

/// Formats a value as a document, which ends with a line break.
pub fn write(value: &Value) -> String {
    let mut writer =
        YamlWriter { text: String::new(), column: 0, after_space: true, only_indented: true };
    writer.node(value, NodePosition { indent: None, in_item: false });
    writer.indent(0);
    writer.text
}

/// The position of a node.
#[derive(Clone, Copy)]
struct NodePosition {
    /// Column of the enclosing collection; `None` at the root.
    indent: Option<usize>,
    /// Whether the enclosing collection is a list.
    in_item: bool,
}

impl NodePosition {
    /// The column of the node's contents. `root` is their column at the root.
    fn deeper(self, root: usize) -> usize {
        match self.indent {
            None => root,
            Some(indent) if self.in_item => indent + ITEM_INDENT,
            Some(indent) => (indent / INDENT + 1) * INDENT,
        }
    }
}

struct YamlWriter {
    text: String,
    /// Number of characters in the current line.
    column: usize,
    /// Whether the next token needs no space before it.
    after_space: bool,
    /// Whether the line has only spaces and item marks.
    only_indented: bool,
}

impl YamlWriter {
    fn put(&mut self, character: char) {
        self.text.push(character);
        self.column += 1;
    }

    fn put_break(&mut self, character: char) {
        self.text.push(character);
        self.column = 0;
        self.only_indented = true;
    }

    /// Moves to this column. Starts a new line unless the current one is still empty up to the
    /// column.
    fn indent(&mut self, column: usize) {
        let full = self.column > column || self.column == column && !self.after_space;
        if !self.only_indented || full {
            self.put_break('\n');
        }
        while self.column < column {
            self.put(' ');
        }
        self.after_space = true;
    }

    fn space(&mut self) {
        if !self.after_space {
            self.put(' ');
        }
    }

    /// Writes a mark of the syntax.
    fn mark(&mut self, mark: char) {
        self.put(mark);
        self.after_space = false;
        self.only_indented = false;
    }

    /// Writes a mark after which a nested collection may begin on the same line.
    fn mark_of_block(&mut self, mark: char) {
        let only_indented = self.only_indented;
        self.space();
        self.mark(mark);
        self.only_indented = only_indented;
    }

    fn node(&mut self, value: &Value, place: NodePosition) {
        match value {
            Value::Array(items) if items.is_empty() => self.plain("[]"),
            Value::Object(map) if map.is_empty() => self.plain("{}"),
            Value::Array(items) => {
                let column = place.deeper(0);
                for item in items {
                    self.indent(column);
                    self.mark_of_block('-');
                    self.node(item, NodePosition { indent: Some(column), in_item: true });
                }
            }
            Value::Object(map) => {
                let column = place.deeper(0);
                let inside = NodePosition { indent: Some(column), in_item: false };
                for (key, value) in map {
                    self.indent(column);
                    self.key(key, inside);
                    self.node(value, inside);
                }
            }
            Value::String(text) => self.string(text, place.deeper(INDENT), Style::of(text)),
            // Numbers stay as they are written.
            other => self.plain(&other.to_string()),
        }
    }

    fn key(&mut self, key: &str, inside: NodePosition) {
        if key.len() <= SIMPLE_KEY_BYTES_MAX && !key.contains(is_break) {
            self.string(key, 0, Style::of(key));
            self.mark(':');
        } else {
            self.mark_of_block('?');
            self.string(key, inside.deeper(INDENT), Style::of(key));
            self.indent(inside.indent.unwrap_or_default());
            self.mark_of_block(':');
        }
    }

    fn plain(&mut self, text: &str) {
        self.space();
        text.chars().for_each(|character| self.put(character));
        self.after_space = false;
        self.only_indented = false;
    }

    /// `column`: the indentation of continuation lines.
    fn string(&mut self, text: &str, column: usize, style: Style) {
        match style {
            Style::Plain => self.plain(text),
            Style::SingleQuoted => {
                self.space();
                self.mark('\'');
                self.lines(&text.replace('\'', "''"), column, false);
                self.mark('\'');
            }
            Style::DoubleQuoted => self.plain(&format!("\"{}\"", escape(text))),
            Style::Literal => {
                self.space();
                self.mark('|');
                if text.starts_with(is_space_or_break) {
                    self.text.push_str(&INDENT.to_string());
                }
                let mut from_end = text.chars().rev();
                let (last, before) = (from_end.next(), from_end.next());
                match (last.is_some_and(is_break), before.is_none_or(is_break)) {
                    (false, _) => self.text.push('-'),
                    (true, true) => self.text.push('+'),
                    (true, false) => {}
                }
                self.put_break('\n');
                self.after_space = true;
                self.lines(text, column, true);
            }
        }
    }

    /// Text with its line breaks. `broken`: it begins on a new line.
    fn lines(&mut self, text: &str, column: usize, mut broken: bool) {
        for character in text.chars() {
            if is_break(character) {
                self.put_break(character);
            } else {
                if broken {
                    self.indent(column);
                }
                self.put(character);
                self.only_indented = false;
            }
            broken = is_break(character);
        }
    }
}
