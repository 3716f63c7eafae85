//! Texts with values of the run: `Refund {{ variables.customer }}?`. The text between the braces is
//! an expression (see [`crate::expression`]); a template has no other syntax.

use crate::expression::{Expression, Scope};
use serde_json::Value;
use std::io::{self, Write};
use tandem_schema::Meter;

/// Maximum number of values in one text.
const MAX_VALUES: usize = 16;
/// Maximum characters of one value, and of the whole text.
const MAX_VALUE_CHARS: usize = 200;
const MAX_CHARS: usize = 1_000;
/// Replaces a value that does not exist, and a value the reader must not see.
const ABSENT: &str = "–";
const MASKED: &str = "•••";

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Text(String),
    Value(Expression),
}

impl Template {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((inside, after)) = after.split_once("}}") else {
                return Err("{{ has no }}".to_owned());
            };
            let expression =
                Expression::parse(inside.trim()).map_err(|e| format!("{{{{{inside}}}}}: {e}"))?;
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            parts.push(Part::Value(expression));
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        let template = Self(parts);
        if template.expressions().count() > MAX_VALUES {
            return Err(format!("has more than {MAX_VALUES} values"));
        }
        Ok(template)
    }

    /// A text stored before templates existed may contain braces without a meaning.
    pub(crate) fn parse_or_literal(text: &str) -> Self {
        Self::parse(text).unwrap_or_else(|_| Self(vec![Part::Text(text.to_owned())]))
    }

    pub(crate) fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.0.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Value(expression) => Some(expression),
        })
    }

    /// The text for a run. `hidden` says which values its readers must not see.
    pub(crate) fn render(
        &self,
        scope: &dyn Scope,
        meter: &Meter,
        hidden: impl Fn(&Expression) -> bool,
    ) -> String {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                // The author's own text is not shortened.
                Part::Text(written) if self.0.len() == 1 => return written.clone(),
                Part::Text(written) => text.push_str(written),
                Part::Value(expression) if hidden(expression) => text.push_str(MASKED),
                Part::Value(expression) => {
                    text.push_str(&value_text(&expression.evaluate(scope, meter)));
                }
            }
        }
        shortened(&text, MAX_CHARS)
    }
}

/// A value as a person reads it in a sentence, on one line. Only as much of it is looked at as is shown.
fn value_text(value: &Value) -> String {
    let beginning;
    let text = match value {
        Value::Null => ABSENT,
        Value::String(text) => text,
        other => {
            beginning = beginning_of(other);
            &beginning
        }
    };
    // One more than is shown, so that it is known to be longer.
    let shown = text.chars().take(MAX_VALUE_CHARS + 1);
    let plain: String = shown
        .map(|c| {
            if c.is_control() || is_bidi_control(c) {
                ' '
            } else {
                c
            }
        })
        .collect();
    shortened(&plain, MAX_VALUE_CHARS)
}

/// Characters that change the direction of the text around them: a value must not reorder the
/// sentence it stands in.
fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// The first characters of a value's JSON text: at least one more than is shown, if it has them.
fn beginning_of(value: &Value) -> String {
    struct Beginning(Vec<u8>);
    impl Write for Beginning {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // A character takes at most four bytes.
            let left = (4 * (MAX_VALUE_CHARS + 1)).saturating_sub(self.0.len());
            self.0.extend(&bytes[..bytes.len().min(left)]);
            match bytes.len() <= left {
                true => Ok(bytes.len()),
                false => Err(io::ErrorKind::WriteZero.into()),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut beginning = Beginning(Vec::new());
    // It ends with an error where it is cut.
    let _ = serde_json::to_writer(&mut beginning, value);
    String::from_utf8_lossy(&beginning.0).into_owned()
}

fn shortened(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    struct Fixed(Value);

    impl Scope for Fixed {
        fn root(&self, name: &str) -> Option<Value> {
            self.0.get(name).cloned()
        }
    }

    fn rendered(text: &str) -> String {
        let scope = Fixed(
            json!({"variables": {"name": "Ada\nL", "amount": 129, "whole": 12.50,
            "long": "x".repeat(5_000), "list": [1, 2], "none": null}}),
        );
        let template = Template::parse(text).expect(text);
        template.render(&scope, &Meter::unlimited(), |e| {
            !e.read_below("secrets").is_empty()
        })
    }

    #[test]
    fn template_inserts_run_values_and_masks_hidden_ones() {
        let table = [
            ("Refund?", "Refund?"),
            (
                "Refund {{ variables.name }} {{variables.amount}} EUR?",
                "Refund Ada L 129 EUR?",
            ),
            (
                "{{ variables.list[1] }} of {{ variables.list }}",
                "2 of [1,2]",
            ),
            ("{{ variables.nobody }}/{{ variables.none }}", "–/–"),
            ("{{ variables.amount > 100 }}", "true"),
            ("{{ secrets.key }}", "•••"),
            ("one } brace { is text", "one } brace { is text"),
        ];
        for (text, expected) in table {
            assert_eq!(rendered(text), expected);
        }
    }

    #[test]
    fn values_cannot_change_the_direction_of_a_text() {
        let controls = "\u{202A}\u{202B}\u{202C}\u{202D}\u{202E}\u{2066}\u{2067}\u{2068}\u{2069}\u{200E}\u{200F}\u{061C}";
        let scope = Fixed(json!({"variables": {"name": format!("Ada{controls}")}}));
        let template = Template::parse("{{ variables.name }}129 EUR").unwrap();
        let spaces = " ".repeat(controls.chars().count());
        let expected = format!("Ada{spaces}129 EUR");
        let text = template.render(&scope, &Meter::unlimited(), |_| false);
        assert_eq!(text, expected);
    }

    #[test]
    fn rendered_text_is_truncated() {
        let text = "{{ variables.long }}".repeat(MAX_VALUES);
        assert_eq!(rendered(&text).chars().count(), MAX_CHARS + 1);
        assert!(Template::parse(&"{{ variables.long }}".repeat(MAX_VALUES + 1)).is_err());
    }

    #[test]
    fn invalid_template_is_refused_or_used_as_literal_text() {
        for text in ["{{ variables.name", "{{ }}", "{{ now() }}", "{{#if x}}"] {
            assert!(Template::parse(text).is_err(), "{text}");
            let literal = Template::parse_or_literal(text);
            let scope = Fixed(json!({}));
            assert_eq!(literal.render(&scope, &Meter::unlimited(), |_| false), text);
        }
    }
}
