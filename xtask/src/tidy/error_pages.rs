//! Every error code has a page, and every page is linked.

use super::Findings;
use super::tracked::Tracked;
use std::collections::BTreeMap;

const PAGES: &str = "docs/errors/";
const INDEX: &str = "docs/errors/README.md";
/// Where HTTP statuses and their codes are listed: `problem.rs` and the files in `problem/`.
const PROBLEMS: &str = "crates/api/src/problem";

pub(super) fn check(files: &Tracked, findings: &mut Findings) {
    let index = files.find(INDEX).map_or("", |file| &file.text);
    if index.is_empty() {
        findings.error(INDEX, "is missing");
    }
    for file in files.ending(".md") {
        let page = file.path.strip_prefix(PAGES);
        if let Some(page) = page.filter(|page| *page != "README.md")
            && !index.contains(&format!("]({page})"))
        {
            findings.error(INDEX, format!("does not link {page}"));
        }
    }
    for (code, place) in codes(files) {
        if files.find(&format!("{PAGES}{code}.md")).is_none() {
            findings.error(
                &place,
                format!("the code {code} has no page {PAGES}{code}.md"),
            );
        }
    }
}

/// Error codes in the sources, with the first file that contains each.
fn codes(files: &Tracked) -> BTreeMap<String, String> {
    let mut codes = BTreeMap::new();
    for file in files.ending(".rs") {
        let shipped = file.path.starts_with("crates/") && file.path.contains("/src/");
        if !shipped || file.path.contains("test") {
            continue;
        }
        let found = if file.path.starts_with(PROBLEMS) {
            listed(&file.text)
        } else {
            raised(&file.text)
        };
        for code in found {
            codes.entry(code).or_insert_with(|| file.path.clone());
        }
    }
    codes
}

/// In the list of problems: every literal with the shape of a code. A single word counts only
/// directly after a status.
fn listed(text: &str) -> Vec<String> {
    let parts: Vec<&str> = text.split('"').collect();
    let literals = parts.iter().zip(parts.iter().skip(1)).step_by(2);
    literals
        .filter(|(before, literal)| {
            is_code(literal) && (literal.contains('_') || follows_status(before))
        })
        .map(|(_, literal)| (*literal).to_owned())
        .collect()
}

fn follows_status(before: &str) -> bool {
    let argument = before.trim_end().strip_suffix(',').unwrap_or("");
    let last = argument.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':');
    last.take(1).any(|word| word.starts_with("StatusCode::"))
}

/// In other files: the codes that runs and nodes fail with.
fn raised(text: &str) -> Vec<String> {
    text.split("ErrorInfo::new(")
        .skip(1)
        .filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next())
        .filter(|code| is_code(code))
        .map(str::to_owned)
        .collect()
}

fn is_code(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_where_they_are_named() {
        let problems = r#"Self::new(StatusCode::FORBIDDEN, "forbidden", message)
            .with("scope", "key")
            let code = "key_expired"; format!("no {what}")"#;
        assert_eq!(listed(problems), ["forbidden", "key_expired"]);
        let elsewhere = "ErrorInfo::new(\n    \"run_timeout\",\n) ErrorInfo::new(code, text)";
        assert_eq!(raised(elsewhere), ["run_timeout"]);
    }
}
