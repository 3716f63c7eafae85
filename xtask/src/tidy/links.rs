//! Links between files of this repository have an existing target.

use super::Findings;
use super::tracked::Tracked;
use crate::process::root;
use std::path::Path;

pub(super) fn check(files: &Tracked, findings: &mut Findings) {
    let root = root();
    for file in files.ending(".md") {
        let folder = Path::new(&file.path).parent().unwrap_or(Path::new(""));
        for (number, target) in links(&file.text) {
            let path = target.split('#').next().unwrap_or("");
            if path.is_empty() || path.contains("://") || path.starts_with("mailto:") {
                continue;
            }
            if !root.join(folder).join(path).exists() {
                let place = format!("{}:{number}", file.path);
                findings.error(&place, format!("links to {path}, which is not there"));
            }
        }
    }
}

/// Targets of `[text](target)` outside code, with their line.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for rest in prose.split("](").skip(1) {
            if let Some((target, _)) = rest.split_once(')') {
                let target = target.split(' ').next().unwrap_or("");
                found.push((number, target.to_owned()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_in_code_are_not_links() {
        let text = "See [a](a.md#x) and `[b](b.md)`.\n```\n[c](c.md)\n```\n[d](d.md \"title\")";
        let found = links(text);
        assert_eq!(found, [(1, "a.md#x".to_owned()), (5, "d.md".to_owned())]);
    }
}
