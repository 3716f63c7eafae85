//! Which mutants are tested.

use std::collections::{BTreeMap, BTreeSet, HashMap};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mutant {
    /// As `cargo-mutants` prints it: `FILE:LINE:COLUMN: CHANGE`.
    pub(super) name: String,
    pub(super) file: String,
    pub(super) line: usize,
    /// `FILE: CHANGE`, and ` #2` for the second one that reads the same. It stays when lines move.
    pub(super) key: String,
}

/// Derives the keys of all mutants of a package, in the order of the source.
pub(super) fn identify<'a>(names: impl Iterator<Item = &'a str>) -> Result<Vec<Mutant>, String> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let identified = names.map(|name| {
        let unexpected = || format!("cargo mutants names a mutant {name:?}, without its place");
        let (place, change) = name.split_once(": ").ok_or_else(unexpected)?;
        let mut place = place.splitn(3, ':');
        let file = place.next().ok_or_else(unexpected)?;
        let line = place.next().and_then(|line| line.parse().ok());
        let line = line.ok_or_else(unexpected)?;
        let mut key = format!("{file}: {change}");
        let times = seen.entry(key.clone()).or_default();
        *times += 1;
        if *times > 1 {
            key = format!("{key} #{times}");
        }
        Ok(Mutant {
            name: name.to_owned(),
            file: file.to_owned(),
            line,
            key,
        })
    });
    identified.collect()
}

/// The `count` mutants that come first when all are sorted by the hash of seed and key.
pub(super) fn choose(mut mutants: Vec<Mutant>, seed: u64, count: usize) -> Vec<Mutant> {
    mutants.sort_by_cached_key(|mutant| (hash(seed, &mutant.key), mutant.key.clone()));
    mutants.truncate(count);
    mutants
}

/// FNV-1a, mixed so that all bits depend on all characters. Unlike the standard library's hash it never
/// changes.
fn hash(seed: u64, key: &str) -> u64 {
    let bytes = seed.to_le_bytes().into_iter().chain(key.bytes());
    let sum = bytes.fold(0xcbf2_9ce4_8422_2325, |sum: u64, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mixed = (sum ^ (sum >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed ^ (mixed >> 32)
}

/// A configuration of `cargo-mutants` that selects these mutants, and others that [`diff`] leaves out.
pub(super) fn config(mutants: &[Mutant]) -> String {
    let patterns = mutants.iter().map(|mutant| {
        let pattern = format!("^{}$", escape(&mutant.name));
        // A JSON string is a TOML string.
        format!("    {},\n", serde_json::Value::from(pattern))
    });
    format!("examine_re = [\n{}]\n", patterns.collect::<String>())
}

/// A change that adds the lines of these mutants. `cargo-mutants` 27.1 selects deletions of a field by their line
/// only, not by their name. `source` returns the text of a file.
pub(super) fn diff(
    mutants: &[Mutant],
    source: impl Fn(&str) -> Result<String, String>,
) -> Result<String, String> {
    let mut files: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    for mutant in mutants {
        files.entry(&mutant.file).or_default().insert(mutant.line);
    }
    let mut diff = String::new();
    for (file, lines) in files {
        let text = source(file)?;
        diff.push_str(&format!("--- a/{file}\n+++ b/{file}\n"));
        for (earlier, line) in lines.into_iter().enumerate() {
            let content = text.lines().nth(line - 1).unwrap_or_default();
            let before = line - 1 - earlier;
            diff.push_str(&format!("@@ -{before},0 +{line},1 @@\n+{content}\n"));
        }
    }
    Ok(diff)
}

/// Escapes a text for a regular expression.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if r"\.+*?()|[]{}^$#&-~/".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}
