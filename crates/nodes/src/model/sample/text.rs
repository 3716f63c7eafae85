//! A text a schema accepts: of the length it wants, and matching its pattern where that is a plain
//! regular expression.

use super::at_least;
use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Map, Value};

/// Repetitions that are tried to make a text long enough.
const MAX_REPEATS: u32 = 64;
/// Bytes of a text made from a pattern.
const MAX_BYTES: usize = 4_096;

pub(super) fn sample(fields: &Map<String, Value>, variant: usize) -> String {
    let least = usize::try_from(at_least(fields, "minLength")).unwrap_or(0);
    let most = fields.get("maxLength").and_then(Value::as_u64);
    let most = most.map_or(usize::MAX, |most| {
        usize::try_from(most).unwrap_or(usize::MAX)
    });
    let pattern = fields.get("pattern").and_then(Value::as_str);
    if let Some(matching) = pattern.and_then(|p| from_pattern(p, (least, most), variant)) {
        return matching;
    }
    let suffix = match variant {
        0 => String::new(),
        n => n.to_string(),
    };
    let length = least.max(suffix.len()).max(1).min(most);
    let filling = length.saturating_sub(suffix.len());
    let filled = "x".repeat(filling) + &suffix;
    filled.chars().take(most).collect()
}

/// A text the pattern matches, of a length within the bounds where repetitions allow it.
fn from_pattern(pattern: &str, (least, most): (usize, usize), variant: usize) -> Option<String> {
    let parsed = regex_syntax::parse(pattern).ok()?;
    let write = |extra: u32| {
        let mut text = Text {
            written: String::new(),
            extra,
            variant,
        };
        text.write(&parsed).then_some(text.written)
    };
    let fits = |text: &String| (least..=most).contains(&text.chars().count());
    let longer = (0..MAX_REPEATS).filter_map(write).find(fits);
    longer.or_else(|| write(0))
}

struct Text {
    written: String,
    /// Repetitions beyond the fewest.
    extra: u32,
    /// What is left of the variant; every choice takes its share.
    variant: usize,
}

impl Text {
    /// Whether it could be written.
    fn write(&mut self, hir: &Hir) -> bool {
        if self.written.len() > MAX_BYTES {
            return false;
        }
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => true,
            HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
                Ok(text) => {
                    self.written.push_str(text);
                    true
                }
                Err(_) => false,
            },
            HirKind::Class(class) => match self.choose(class) {
                Some(c) => {
                    self.written.push(c);
                    true
                }
                None => false,
            },
            HirKind::Repetition(repetition) => {
                let wanted = repetition.min.saturating_add(self.extra);
                let times = repetition.max.map_or(wanted, |max| wanted.min(max));
                (0..times).all(|_| self.write(&repetition.sub))
            }
            HirKind::Capture(capture) => self.write(&capture.sub),
            HirKind::Concat(parts) => parts.iter().all(|part| self.write(part)),
            HirKind::Alternation(choices) => {
                let chosen = self.variant % choices.len();
                self.variant /= choices.len();
                self.write(&choices[chosen])
            }
        }
    }

    /// A character of a class, a printable one where there is one.
    fn choose(&mut self, class: &Class) -> Option<char> {
        let readable = |c: &char| c.is_ascii_alphanumeric();
        let printable = |c: &char| c.is_ascii_graphic();
        let members = |wanted: &dyn Fn(&char) -> bool| -> Vec<char> {
            let ascii = (0..128_u8).map(char::from);
            ascii.filter(|c| contains(class, *c) && wanted(c)).collect()
        };
        let mut choices = members(&readable);
        if choices.is_empty() {
            choices = members(&printable);
        }
        if choices.is_empty() {
            return first(class);
        }
        let chosen = choices[self.variant % choices.len()];
        self.variant /= choices.len();
        Some(chosen)
    }
}

fn contains(class: &Class, c: char) -> bool {
    match class {
        Class::Unicode(class) => class.iter().any(|r| (r.start()..=r.end()).contains(&c)),
        Class::Bytes(class) => {
            let mut ranges = class.iter();
            ranges.any(|r| (char::from(r.start())..=char::from(r.end())).contains(&c))
        }
    }
}

fn first(class: &Class) -> Option<char> {
    match class {
        Class::Unicode(class) => class.iter().next().map(|r| r.start()),
        Class::Bytes(class) => class.iter().next().map(|r| char::from(r.start())),
    }
}
