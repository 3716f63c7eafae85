//! Secrets in pieces: texts of one value that give a secret when they are put together.
//!
//! Two ways of putting together count: one text after the other as the document has them, however
//! short the pieces; and in any order, because members of an object have none, with pieces long
//! enough not to be met by chance. Names of members are no texts.

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;
use std::ops::Range;

/// Shorter pieces are all over every document.
const MIN_PIECE: usize = 4;
/// Times one secret is looked for again, each time one more of it was masked.
const MAX_ROUNDS: usize = 64;

/// Takes the pieces of each secret, given with its id, out of a value. Whether any were there.
pub(crate) fn mask<'a>(
    value: &mut Value,
    secrets: impl Iterator<Item = (&'a str, &'a str)>,
) -> bool {
    let mut texts = Vec::new();
    each_text(value, &mut |text| texts.push(text.clone()));
    let mut found = false;
    for (secret, id) in secrets {
        let mark = format!("[REDACTED:{id}]");
        for _ in 0..MAX_ROUNDS {
            let pieces = in_order(&texts, secret).or_else(|| in_any_order(&texts, secret));
            let Some(pieces) = pieces else { break };
            for (text, range) in pieces {
                texts[text].replace_range(range, &mark);
            }
            found = true;
        }
    }
    if found {
        let mut texts = texts.into_iter();
        each_text(value, &mut |text| {
            *text = texts.next().expect("as many as were read");
        });
    }
    found
}

/// Tells at a glance, from the JSON text alone, whether a look at the texts is worth its cost. Never
/// says no to texts that give a secret in the order they have there, or in another.
#[derive(Clone)]
pub(crate) struct Glance {
    whole: AhoCorasick,
    /// Whether there is any of `ends` at all. Nearly always there is none, and this is quicker to
    /// say so.
    any_end: AhoCorasick,
    /// Beginning and end of each secret, one after the other.
    ends: AhoCorasick,
    secrets: usize,
}

impl Glance {
    /// For secrets as they are escaped in JSON; `None` when there is none to look for.
    pub(crate) fn new<'a>(escaped: impl Iterator<Item = &'a str>) -> Option<Self> {
        let ends = |secret: &'a str| {
            let (head, _) = secret.char_indices().nth(MIN_PIECE)?;
            let (tail, _) = secret.char_indices().nth_back(MIN_PIECE - 1)?;
            Some((secret, [&secret[..head], &secret[tail..]]))
        };
        let (whole, ends): (Vec<&str>, Vec<[&str; 2]>) = escaped.filter_map(ends).unzip();
        if whole.is_empty() {
            return None;
        }
        // Who only asks whether there is a match may be answered many bytes at a time.
        let quick = |patterns: &[&str]| {
            let builder = &mut AhoCorasick::builder();
            builder.match_kind(MatchKind::LeftmostFirst).build(patterns)
        };
        Some(Self {
            secrets: whole.len(),
            whole: quick(&whole).ok()?,
            any_end: quick(ends.as_flattened()).ok()?,
            ends: AhoCorasick::new(ends.as_flattened()).ok()?,
        })
    }

    /// Whether one of the secrets stands there in one piece.
    pub(crate) fn is_whole(&self, text: &str) -> bool {
        self.whole.is_match(text)
    }

    pub(crate) fn may_be_split(&self, json: &str) -> bool {
        self.is_whole(&joined(json)) || self.has_both_ends(json)
    }

    fn has_both_ends(&self, json: &str) -> bool {
        if !self.any_end.is_match(json) {
            return false;
        }
        let mut seen = Vec::new();
        for found in self.ends.find_overlapping_iter(json) {
            seen.resize(self.secrets, [false; 2]);
            let end = found.pattern().as_usize();
            seen[end / 2][end % 2] = true;
        }
        seen.contains(&[true; 2])
    }
}

/// The texts of a JSON document, one after the other, as they are escaped.
fn joined(json: &str) -> String {
    let mut joined = String::with_capacity(json.len());
    let bytes = json.as_bytes();
    let mut open = None;
    let mut at = 0;
    // Byte by byte: a quote comes every few of them, so there is nothing to skip over.
    while at < bytes.len() {
        match (bytes[at], open) {
            // Whatever is escaped is no end.
            (b'\\', _) => at += 1,
            (b'"', None) => open = Some(at + 1),
            (b'"', Some(begin)) => {
                open = None;
                if bytes.get(at + 1) != Some(&b':') {
                    joined.push_str(&json[begin..at]);
                }
            }
            _ => {}
        }
        at += 1;
    }
    joined
}

fn each_text(value: &mut Value, visit: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter_mut().for_each(|v| each_text(v, visit)),
        Value::Object(members) => members.values_mut().for_each(|v| each_text(v, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Parts of texts by the place of the text, none twice.
type Pieces = Vec<(usize, Range<usize>)>;

fn in_order(texts: &[String], secret: &str) -> Option<Pieces> {
    let whole: String = texts.concat();
    let mut from = 0;
    while let Some(found) = whole[from..].find(secret) {
        let range = from + found..from + found + secret.len();
        let mut begin = 0;
        let mut pieces = Vec::new();
        for (place, text) in texts.iter().enumerate() {
            let end = begin + text.len();
            let (first, last) = (range.start.max(begin), range.end.min(end));
            if first < last {
                pieces.push((place, first - begin..last - begin));
            }
            begin = end;
        }
        if pieces.len() > 1 {
            return Some(pieces);
        }
        from = range.end;
    }
    None
}

/// A text that ends with the secret's beginning, texts that are what follows, and one that begins
/// with its end.
fn in_any_order(texts: &[String], secret: &str) -> Option<Pieces> {
    let cuts: Vec<usize> = secret.char_indices().map(|(at, _)| at).collect();
    if cuts.len() < 2 * MIN_PIECE {
        return None;
    }
    let (first, last) = (cuts[MIN_PIECE], cuts[cuts.len() - MIN_PIECE]);
    // How the secret can be had up to a place.
    let mut had: Vec<Option<Pieces>> = vec![None; secret.len()];
    for cut in cuts
        .iter()
        .copied()
        .filter(|cut| (first..=last).contains(cut))
    {
        let head = &secret[..cut];
        let ends = |text: &&String| text.ends_with(head);
        had[cut] = texts.iter().position(|text| ends(&text)).map(|place| {
            let length = texts[place].len();
            vec![(place, length - head.len()..length)]
        });
    }
    for cut in cuts {
        let Some(pieces) = had[cut].clone() else {
            continue;
        };
        let rest = &secret[cut..];
        let free = |place: usize| pieces.iter().all(|(used, _)| *used != place);
        for (place, text) in texts.iter().enumerate().filter(|(place, _)| free(*place)) {
            let mut longer = pieces.clone();
            if text.starts_with(rest) && cut <= last {
                longer.push((place, 0..rest.len()));
                return Some(longer);
            }
            let next = cut + text.len();
            let long = text.chars().nth(MIN_PIECE - 1).is_some();
            if long && next <= last && rest.starts_with(text.as_str()) && had[next].is_none() {
                longer.push((place, 0..text.len()));
                had[next] = Some(longer);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SECRET: &str = "hunter2-hunter2";

    fn masked(mut value: Value) -> Option<Value> {
        let guess = Glance::new(std::iter::once(SECRET))
            .unwrap()
            .may_be_split(&value.to_string());
        let found = mask(&mut value, std::iter::once((SECRET, "db")));
        assert!(guess || !found, "the guess was wrong about {value}");
        found.then_some(value)
    }

    #[test]
    fn pieces_are_found_wherever_they_lie() {
        let mark = "[REDACTED:db]";
        for (value, clean) in [
            (json!(["hunter2-", "hunter2"]), json!([mark, mark])),
            (
                json!([["it is hunter"], [[{"a": "2-hun"}]], "ter2, is it not"]),
                json!([[format!("it is {mark}")], [[{"a": mark}]], format!("{mark}, is it not")]),
            ),
            (
                json!(
                    "hunter2-hunter2"
                        .chars()
                        .map(String::from)
                        .collect::<Vec<_>>()
                ),
                json!(vec![mark; 15]),
            ),
            (
                json!(["hun", 7, null, "ter2-hunter2"]),
                json!([mark, 7, null, mark]),
            ),
            // Members have no order; what their author wrote first may come last.
            (
                json!({"b": "hunter2-", "a": "hunter2"}),
                json!({"b": mark, "a": mark}),
            ),
            (
                json!({"c": "x hunt", "b": "er2-", "a": "hunter2 x"}),
                json!({"c": format!("x {mark}"), "b": mark, "a": format!("{mark} x")}),
            ),
            (
                json!(["hunter2-", "hunter2", "hunter2-", "hunter2"]),
                json!([mark, mark, mark, mark]),
            ),
        ] {
            let shown = value.to_string();
            assert_eq!(masked(value), Some(clean), "{shown}");
        }
    }

    #[test]
    fn what_is_no_secret_is_left_alone() {
        for value in [
            json!(["hun", "x", "ter2-hunter2"]),
            json!({"hunter2-": "hunter2"}),
            json!(["hunter2", "hunter2"]),
            json!({"b": "hun", "a": "ter2-hunter2"}),
            json!({"a": "hunter2-hunter2"}),
            json!(["hunter2-"]),
            json!([]),
        ] {
            let shown = value.to_string();
            assert_eq!(masked(value), None, "{shown}");
        }
    }

    #[test]
    fn signs_that_json_escapes_are_no_hiding_place() {
        let secret = "a\"b\\c\nd-żółw";
        let mut value = json!(["a\"b\\", "c\nd-ż", "ółw"]);
        let escaped = json!(secret).to_string();
        let escaped = std::iter::once(escaped.trim_matches('"'));
        assert!(
            Glance::new(escaped)
                .unwrap()
                .may_be_split(&value.to_string())
        );
        assert!(mask(&mut value, std::iter::once((secret, "q"))));
        assert_eq!(value, json!(vec!["[REDACTED:q]"; 3]));
    }
}
