//! Citations in Rust: in the body of a test, or in the comment above it.
//!
//! Reads lines, not syntax: the sources are formatted, so an item ends with a brace at its own
//! indentation. A file without tests may name numbers where they explain its code; that cites nothing.

use super::{Map, Test};

/// Storage checks are functions that the tests of every store call.
const BATTERY: &str = "crates/store/src/battery/";

pub(crate) fn scan(path: &str, text: &str, map: &mut Map) {
    let lines: Vec<&str> = text.lines().collect();
    // Elsewhere a number explains code.
    let has_tests = (0..lines.len()).any(|at| test_at(path, &lines, at).is_some());
    let mut modules: Vec<(usize, &str)> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        while let Some((indent, _)) = modules.last()
            && closes(line, *indent)
        {
            modules.pop();
        }
        if let Some(name) = opened_module(line) {
            modules.push((indent_of(line), name));
        }
        let Some((start, head)) = test_at(path, &lines, at) else {
            // A comment belongs to the test below it, if there is one.
            if has_tests && !leads_to_test(path, &lines, at) {
                map.stray(path, at, line);
            }
            at += 1;
            continue;
        };
        let end = end_of(&lines, head);
        let above = (0..start)
            .rev()
            .take_while(|i| is_comment(lines[*i]))
            .count();
        let inside = modules.iter().map(|(_, name)| *name);
        let name: Vec<&str> = inside.chain(function(lines[head])).collect();
        let test = Test::Rust {
            file: path.to_owned(),
            name: name.join("::"),
        };
        for text in texts(&lines[start - above..=end]) {
            map.cite(&text, &test);
        }
        at = end + 1;
    }
}

/// The first line and the `fn` line of a test that starts here.
fn test_at(path: &str, lines: &[&str], at: usize) -> Option<(usize, usize)> {
    if path.starts_with(BATTERY) && lines[at].starts_with("pub async fn ") {
        return Some((at, at));
    }
    if !is_test_attribute(lines[at]) {
        return None;
    }
    let head =
        (at + 1..lines.len()).find(|i| !is_comment(lines[*i]) && !is_attribute(lines[*i]))?;
    function(lines[head]).map(|_| (at, head))
}

fn leads_to_test(path: &str, lines: &[&str], at: usize) -> bool {
    let next = (at..lines.len()).find(|i| !is_comment(lines[*i]));
    is_comment(lines[at]) && next.is_some_and(|next| test_at(path, lines, next).is_some())
}

fn is_test_attribute(line: &str) -> bool {
    let Some(attribute) = line.trim_start().strip_prefix("#[") else {
        return false;
    };
    let name = attribute.split(['(', ']']).next().unwrap_or("");
    name == "test" || name.ends_with("::test")
}

fn is_attribute(line: &str) -> bool {
    line.trim_start().starts_with("#[")
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("//") && !line.starts_with("//!")
}

/// The lines of a test. Those of one comment are one text: what is in brackets may go on in the next line.
fn texts(lines: &[&str]) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in lines {
        let is_comment = is_comment(line);
        match texts.last_mut().filter(|_| is_open && is_comment) {
            Some(text) => {
                let rest = line.trim_start().trim_start_matches('/').trim();
                text.push(' ');
                text.push_str(rest);
            }
            None => texts.push((*line).to_owned()),
        }
        is_open = is_comment;
    }
    texts
}

/// The function name, if this line is a function header.
fn function(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let line = line.strip_prefix("async ").unwrap_or(line);
    line.strip_prefix("fn ")?.split(['(', '<']).next()
}

fn opened_module(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix("mod ")?.strip_suffix(" {")
}

fn end_of(lines: &[&str], head: usize) -> usize {
    if lines[head].ends_with("{}") {
        return head;
    }
    let indent = indent_of(lines[head]);
    let end = (head..lines.len()).find(|i| closes(lines[*i], indent));
    end.unwrap_or(lines.len() - 1)
}

fn closes(line: &str, indent: usize) -> bool {
    indent_of(line) == indent && line.trim() == "}"
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Where the test is compiled: package folder, test binary, and its full name there. Several
/// binaries run a check of the battery.
pub(crate) fn places(file: &str, name: &str) -> Vec<(String, Binary, String)> {
    let Some((package, inside)) = split(file) else {
        return Vec::new();
    };
    if let Some(topic) = file.strip_prefix(BATTERY) {
        let check = format!("{}::{name}", topic.trim_end_matches(".rs"));
        let memory = format!("battery::tests::{check}");
        return vec![
            (package.to_owned(), Binary::Unit, memory),
            (
                "crates/store-sqlite".to_owned(),
                Binary::Integration("battery".to_owned()),
                check,
            ),
        ];
    }
    let (binary, modules) = if let Some(module) = inside.strip_prefix("src/") {
        (Binary::Unit, module)
    } else if let Some(rest) = inside.strip_prefix("tests/") {
        let (target, module) = rest
            .split_once('/')
            .unwrap_or((rest.trim_end_matches(".rs"), ""));
        (Binary::Integration(target.to_owned()), module)
    } else {
        return Vec::new();
    };
    let modules = modules.trim_end_matches(".rs").split('/');
    let path: Vec<&str> = modules
        .filter(|part| !["", "lib", "main", "mod"].contains(part))
        .chain([name])
        .collect();
    vec![(package.to_owned(), binary, path.join("::"))]
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Binary {
    /// Unit tests beside the code.
    Unit,
    Integration(String),
}

/// `crates/x` and the rest of the path.
fn split(file: &str) -> Option<(&str, &str)> {
    let second = file.match_indices('/').nth(1)?.0;
    Some((&file[..second], &file[second + 1..]))
}
