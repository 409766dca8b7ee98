//! Templates of `-o jsonpath=…`, with the syntax of kubectl: text, `{.path}`, `{"text"}` and
//! `{range .path}…{end}`. [`JsonPath`] defines the paths.

use serde_json::Value;
use structural_schema::JsonPath;

/// A parsed template.
#[derive(Clone, Debug, PartialEq)]
pub struct Template(Vec<TemplatePart>);

#[derive(Clone, Debug, PartialEq)]
enum TemplatePart {
    Text(String),
    Path(JsonPath),
    Range(JsonPath, Vec<TemplatePart>),
}

impl Template {
    /// Parses a template. Without braces it is one path: `.name` and `{.name}` are the same.
    ///
    /// # Errors
    /// The part of the template that cannot be parsed, and why.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("a template is missing, such as {.name}".to_owned());
        }
        if !text.contains('{') {
            return path(text).map(|path| Self(vec![TemplatePart::Path(path)]));
        }
        let mut parser = TemplateParser { rest: text };
        let parts = parser.parts(false)?;
        Ok(Self(parts))
    }

    /// Renders the template for `value`. Absent fields are empty text.
    pub fn render(&self, value: &Value) -> String {
        let mut out = String::new();
        render(&self.0, value, &mut out);
        out
    }
}

fn render(parts: &[TemplatePart], value: &Value, out: &mut String) {
    for part in parts {
        match part {
            TemplatePart::Text(text) => out.push_str(text),
            TemplatePart::Path(path) => {
                let found: Vec<String> = path.find(value).into_iter().map(plain).collect();
                out.push_str(&found.join(" "));
            }
            TemplatePart::Range(path, body) => {
                for item in path.find(value) {
                    // A path to a list means its items, as in kubectl.
                    match item {
                        Value::Array(items) => items.iter().for_each(|i| render(body, i, out)),
                        item => render(body, item, out),
                    }
                }
            }
        }
    }
}

/// Text unchanged, everything else as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// `@`, `$` and `.` alone are the value itself.
fn path(text: &str) -> Result<JsonPath, String> {
    let text = text.trim();
    let relative = text.strip_prefix(['@', '$']).unwrap_or(text);
    let relative = if relative == "." { "" } else { relative };
    JsonPath::parse(relative).map_err(|error| format!("path \"{text}\": {error}"))
}

struct TemplateParser<'a> {
    rest: &'a str,
}

impl TemplateParser<'_> {
    /// Parses up to the end of the template, or with `in_range` up to `{end}`.
    fn parts(&mut self, in_range: bool) -> Result<Vec<TemplatePart>, String> {
        let mut parts = Vec::new();
        loop {
            let (text, more) = match self.rest.split_once('{') {
                Some((text, more)) => (text, Some(more)),
                None => (self.rest, None),
            };
            if !text.is_empty() {
                parts.push(TemplatePart::Text(text.to_owned()));
            }
            let Some(more) = more else {
                return if in_range { Err("{range} without {end}".to_owned()) } else { Ok(parts) };
            };
            let length = closing_brace(more).ok_or_else(|| format!("no '}}' after \"{more}\""))?;
            let inside = more[..length].trim();
            self.rest = &more[length + 1..];
            match inside {
                "end" if in_range => return Ok(parts),
                "end" => return Err("{end} without {range}".to_owned()),
                _ => parts.push(self.part(inside)?),
            }
        }
    }

    fn part(&mut self, inside: &str) -> Result<TemplatePart, String> {
        if let Some(over) = inside.strip_prefix("range ") {
            let over = path(over)?;
            return Ok(TemplatePart::Range(over, self.parts(true)?));
        }
        match inside.chars().next() {
            Some(quote @ ('"' | '\'')) => literal(inside, quote).map(TemplatePart::Text),
            _ => path(inside).map(TemplatePart::Path),
        }
    }
}

/// The offset of the brace that ends an expression; braces in quotes do not count.
fn closing_brace(text: &str) -> Option<usize> {
    let (mut quote, mut escaped) = (None, false);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (_, '\\') => escaped = true,
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '}') => return Some(at),
            (None, _) => {}
        }
    }
    None
}

/// Quoted text with the escapes `\n`, `\t`, `\r`, and `\` before any other character.
fn literal(quoted: &str, quote: char) -> Result<String, String> {
    let wrong = || format!("unterminated text {quoted}");
    let inner = quoted.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    let mut chars = inner.ok_or_else(wrong)?.chars();
    let mut out = String::new();
    while let Some(c) = chars.next() {
        let c = match c {
            '\\' => match chars.next().ok_or_else(wrong)? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                other => other,
            },
            plain => plain,
        };
        out.push(c);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn render_sample(template: &str) -> String {
        let value = json!([
            {"name": "north", "nodes": 3, "labels": {"a.b": "x"}, "state": "active"},
            {"name": "south", "nodes": null, "ready": true, "state": "waiting"},
        ]);
        Template::parse(template).unwrap().render(&value)
    }

    #[test]
    fn templates_follow_the_syntax_of_kubectl() {
        for (template, expected) in [
            ("{[*].name}", "north south"),
            ("[*].name", "north south"),
            ("{[0].nodes} nodes{\"\\n\"}", "3 nodes\n"),
            ("{[0].labels}", r#"{"a.b":"x"}"#),
            ("{[0].labels['a.b']}", "x"),
            ("{[1].nodes}{[7].name}{.absent}", ""),
            ("{range [*]}{.name}{'\\t'}{.state}{\"\\n\"}{end}", "north\tactive\nsouth\twaiting\n"),
            ("{range @}{.name};{end}", "north;south;"),
            ("{[?(@.state==\"waiting\")].name}", "south"),
            ("{\"}\"}{[-1].ready}", "}true"),
        ] {
            assert_eq!(render_sample(template), expected, "{template}");
        }
    }

    #[test]
    fn invalid_templates_name_the_error() {
        for (template, said) in [
            ("", "missing"),
            ("{.name", "no '}'"),
            ("{range .a}x", "without {end}"),
            ("x{end}", "without {range}"),
            ("{\"text}", "no '}'"),
            ("{.name[}", "path \".name[\""),
        ] {
            let error = Template::parse(template).expect_err(template);
            assert!(error.contains(said), "{template}: {error}");
        }
    }
}
