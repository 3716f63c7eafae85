//! Finding the JSON in an answer that should have been nothing else. Strict first; then the ways
//! models are known to wrap it, each bounded.

use serde_json::Value;
use tandem_record::{MAX_NESTING, RecoveryPath, nests_deeper};

/// Places an object may begin at that are tried before giving up.
const MAX_STARTS: usize = 32;

/// What was found, and how, if it was not the whole answer.
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

/// JSON that can be kept: what nests too deep for that is as good as none.
fn read(text: &str) -> Option<Value> {
    if nests_deeper(text.as_bytes(), MAX_NESTING) {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// What lies between fences, without the language that may follow the first, top to bottom.
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

/// Stretches from an opening brace to the one that closes it, top to bottom.
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
