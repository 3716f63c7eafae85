//! Finds the JSON in an answer that should have been JSON only. A strict parse comes first; then
//! the known ways in which models wrap JSON, each with a limit.

use serde_json::Value;
use tandem_record::{MAX_NESTING, RecoveryPath, nests_deeper};

/// Maximum number of start positions of an object that are tried.
const MAX_STARTS: usize = 32;

/// The value, and how it was found if it was not the whole answer.
pub(super) type Found = (Value, Option<(RecoveryPath, u64)>);

pub(super) fn parse(text: &str) -> Option<Found> {
    if let Some(value) = read(text) {
        return Some((value, None));
    }
    let fenced = fences(text).find_map(|(offset, inner)| {
        let value = read(inner)?;
        Some((value, Some((RecoveryPath::MarkdownFence, offset as u64))))
    });
    fenced.or_else(|| {
        objects(text).find_map(|(offset, inner)| {
            let value = read(inner)?;
            Some((value, Some((RecoveryPath::BraceWalker, offset as u64))))
        })
    })
}

/// Parses JSON that can be stored; text nested too deeply counts as invalid.
fn read(text: &str) -> Option<Value> {
    if nests_deeper(text.as_bytes(), MAX_NESTING) {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// The texts between code fences, without the language after the first fence, from top to bottom.
fn fences(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        let open = rest + text[rest..].find("```")? + 3;
        let begin = open + text[open..].find('\n')? + 1;
        let close = begin + text[begin..].find("```")?;
        rest = close + 3;
        Some((begin, &text[begin..close]))
    })
    .take(MAX_STARTS)
}

/// Texts from an opening brace to its closing brace, from top to bottom.
fn objects(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let starts = text.match_indices('{').map(|(at, _)| at);
    starts.take(MAX_STARTS).filter_map(|start| {
        let length = balanced(&text[start..])?;
        Some((start, &text[start..start + length]))
    })
}

/// The length of the object at the beginning of the text.
fn balanced(text: &str) -> Option<usize> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' if !in_string => depth += 1,
            b'}' if !in_string => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}
