//! Edits made before an approval: the changed places, before and after.

use maud::{Markup, html};
use serde_json::Value;

/// Maximum number of changes shown.
const MAX_CHANGES: usize = 50;
const MAX_DEPTH: usize = 6;
const MAX_CHARS: usize = 400;

/// A path, and its value before and after; `None` if it did not exist.
type Change<'a> = (String, Option<&'a Value>, Option<&'a Value>);

/// A table of the differences between two values.
pub(crate) fn table(before: &Value, after: &Value) -> Markup {
    let mut changes = Vec::new();
    differing(String::new(), Some(before), Some(after), 0, &mut changes);
    let more = changes.len() > MAX_CHANGES;
    changes.truncate(MAX_CHANGES);
    html! {
        section.changes.pad aria-label="Changes" {
            h3 { "Changed before it was accepted" }
            @if changes.is_empty() {
                p.hint { "Accepted with changes, but nothing differs." }
            } @else {
                table {
                    thead { tr { th scope="col" { "What" } th scope="col" { "Before" } th scope="col" { "After" } } }
                    tbody {
                        @for (place, before, after) in &changes {
                            tr {
                                th scope="row" { (name(place)) }
                                td { @match before { Some(value) => del { (display_text(value)) }, None => span.hint { "–" } } }
                                td { @match after { Some(value) => ins { (display_text(value)) }, None => span.hint { "–" } } }
                            }
                        }
                    }
                }
            }
            @if more { p.hint { "More places differ than are shown." } }
        }
    }
}

fn differing<'a>(
    place: String,
    before: Option<&'a Value>,
    after: Option<&'a Value>,
    depth: usize,
    found: &mut Vec<Change<'a>>,
) {
    if before == after || found.len() > MAX_CHANGES {
        return;
    }
    match (before, after) {
        (Some(Value::Object(old)), Some(Value::Object(new))) if depth < MAX_DEPTH => {
            let added = new.keys().filter(|key| !old.contains_key(*key));
            for key in old.keys().chain(added) {
                let place = format!("{place}/{key}");
                differing(place, old.get(key), new.get(key), depth + 1, found);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) if depth < MAX_DEPTH => {
            for i in 0..old.len().max(new.len()) {
                let place = format!("{place}/{i}");
                differing(place, old.get(i), new.get(i), depth + 1, found);
            }
        }
        _ => found.push((place, before, after)),
    }
}

/// `/lines/0/price` in a readable form.
fn name(place: &str) -> String {
    match place.strip_prefix('/') {
        Some(place) => place.replace('/', " › "),
        None => "all of it".to_owned(),
    }
}

fn display_text(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match text.char_indices().nth(MAX_CHARS) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn table_lists_only_changed_paths() {
        let before = json!({"amount": 129, "to": {"name": "Ada", "vip": true}, "lines": [1, 2]});
        let after = json!({"amount": 7, "to": {"name": "Ada"}, "lines": [1, 3, 4]});
        let html = table(&before, &after).into_string();
        for part in [
            "<th scope=\"row\">amount</th><td><del>129</del></td><td><ins>7</ins></td>",
            "<th scope=\"row\">to › vip</th><td><del>true</del></td>",
            "<th scope=\"row\">lines › 1</th><td><del>2</del></td><td><ins>3</ins></td>",
            "<th scope=\"row\">lines › 2</th>",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(!html.contains("Ada"), "{html}");
        let whole = table(&json!("<b>"), &json!({"a": 1})).into_string();
        assert!(
            whole.contains("all of it") && whole.contains("&lt;b&gt;"),
            "{whole}"
        );
    }
}
