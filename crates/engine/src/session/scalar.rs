//! A text as the scalar that a JSON Schema wants.

use super::{Language, normalize};
use serde_json::{Number, Value};
use unicode_normalization::UnicodeNormalization;

/// Digits and separators of one number.
const MAX_NUMBER_CHARS: usize = 40;
/// Values of one `enum` that are compared.
const MAX_ENUM: usize = 1_000;
/// Whole numbers that a JSON number represents exactly.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScalarType {
    Integer,
    Number,
    Boolean,
    Text,
    List,
}

/// The types a schema names, most specific first: text is always possible and comes last.
pub(super) fn types(schema: &Value) -> Vec<ScalarType> {
    let named = |name: &str| match &schema["type"] {
        Value::String(one) => one == name,
        Value::Array(several) => several.iter().any(|one| one == name),
        _ => false,
    };
    let known = [
        ("integer", ScalarType::Integer),
        ("number", ScalarType::Number),
        ("boolean", ScalarType::Boolean),
        ("array", ScalarType::List),
        ("string", ScalarType::Text),
    ];
    let found = known.into_iter().filter(|(name, _)| named(name));
    found.map(|(_, scalar)| scalar).collect()
}

/// What a text can mean, in the order in which it should be tried. The caller validates.
pub(super) fn coerce(
    text: &str,
    schema: &Value,
    language: Language,
    boolean: impl Fn(&str) -> Option<bool>,
) -> Vec<Value> {
    let text = text.trim();
    if let Some(allowed) = schema["enum"].as_array() {
        let found = allowed
            .iter()
            .take(MAX_ENUM)
            .find(|value| names(value, text, language));
        return found.cloned().into_iter().collect();
    }
    if let Some(only) = schema.get("const") {
        return names(only, text, language)
            .then(|| only.clone())
            .into_iter()
            .collect();
    }
    let read = types(schema).into_iter().filter_map(|scalar| match scalar {
        ScalarType::Integer => number(text, language)
            .filter(|n| n.fract() == 0.0)
            .map(json_number),
        ScalarType::Number => number(text, language).map(json_number),
        ScalarType::Boolean => boolean(text).map(Value::Bool),
        ScalarType::Text => Some(Value::String(text.to_owned())),
        ScalarType::List => None,
    });
    read.collect()
}

/// Whether a text names a value of an `enum`.
fn names(value: &Value, text: &str, language: Language) -> bool {
    match value {
        Value::String(name) => {
            name == text || normalize::normalized(name) == normalize::normalized(text)
        }
        Value::Number(n) => number(text, language).is_some_and(|read| n.as_f64() == Some(read)),
        Value::Bool(flag) => text.eq_ignore_ascii_case(if *flag { "true" } else { "false" }),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

fn json_number(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < MAX_EXACT {
        return Value::from(number as i64);
    }
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

/// Whether a language writes `12,5`. Where it does not, a comma groups thousands.
fn uses_decimal_comma(language: Language) -> bool {
    match language {
        Language::De
        | Language::Es
        | Language::Fr
        | Language::Id
        | Language::It
        | Language::Nl
        | Language::Pl
        | Language::Pt
        | Language::Ru
        | Language::Uk
        | Language::Vi => true,
        Language::Auto
        | Language::En
        | Language::Hi
        | Language::Ja
        | Language::Ko
        | Language::Zh => false,
    }
}

/// A number as people write it: `1.234,56`, `1,234.56`, `12,5`, `1 000`.
pub(super) fn number(text: &str, language: Language) -> Option<f64> {
    let plain: String = text.nfkc().take(MAX_NUMBER_CHARS + 1).collect();
    let plain = plain.trim();
    if plain.chars().count() > MAX_NUMBER_CHARS {
        return None;
    }
    let (sign, digits) = match plain.strip_prefix(['-', '\u{2212}']) {
        Some(rest) => ("-", rest),
        None => ("", plain.strip_prefix('+').unwrap_or(plain)),
    };
    let digits: String = match digits.contains(char::is_whitespace) {
        true => without_groups(digits, char::is_whitespace)?,
        false => digits.to_owned(),
    };
    let mark = decimal_mark(&digits, language);
    let (whole, fraction) = match mark.and_then(|mark| digits.rsplit_once(mark)) {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (digits.as_str(), None),
    };
    let whole = match whole.contains(['.', ',']) {
        true => without_groups(whole, |c| matches!(c, '.' | ','))?,
        false => whole.to_owned(),
    };
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_digits(&whole) || !fraction.is_none_or(is_digits) {
        return None;
    }
    format!("{sign}{whole}.{}", fraction.unwrap_or("0"))
        .parse()
        .ok()
}

/// Which of the separators begins the fraction.
fn decimal_mark(digits: &str, language: Language) -> Option<char> {
    let marks: Vec<(usize, char)> = digits
        .char_indices()
        .filter(|(_, c)| matches!(c, '.' | ','))
        .collect();
    let (at, last) = *marks.last()?;
    if marks.iter().any(|(_, mark)| *mark != last) {
        return Some(last);
    }
    if marks.len() > 1 {
        return None;
    }
    let own = if uses_decimal_comma(language) {
        ','
    } else {
        '.'
    };
    let groups = digits.len() - at - 1 == 3 && (1..=3).contains(&at) && !digits.starts_with('0');
    (last == own || !groups).then_some(last)
}

/// Removes separators between groups of three digits.
fn without_groups(digits: &str, separator: impl Fn(char) -> bool) -> Option<String> {
    let mut parts = digits.split(separator);
    let mut joined = parts
        .next()
        .filter(|first| (1..=3).contains(&first.len()))?
        .to_owned();
    for (i, part) in parts.enumerate() {
        // Only the last group may carry a fraction.
        let group = part.split(['.', ',']).next().unwrap_or(part);
        if group.len() != 3 || i > MAX_NUMBER_CHARS {
            return None;
        }
        joined.push_str(part);
    }
    Some(joined)
}
