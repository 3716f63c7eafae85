//! Finds the name that was probably intended.

/// The candidate most similar to `name`, if any is similar.
pub fn nearest<'a>(name: &str, among: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let ranked = among
        .into_iter()
        .map(|known| (distance(name, known), known));
    let (edits, known) = ranked.min()?;
    // A third of the letters may differ; with more it is another word.
    let shorter = name.chars().count().min(known.chars().count());
    (edits <= shorter.div_ceil(3).clamp(1, 3)).then_some(known)
}

/// Number of edits that turn one name into the other, ignoring case.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.to_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_finds_typos_but_not_unrelated_names() {
        let names = ["title", "requiredApprovals", "ms", "timeoutMs"];
        let table = [
            ("requiredApproval", Some("requiredApprovals")),
            ("RequiredApprovals", Some("requiredApprovals")),
            ("titel", Some("title")),
            ("timeoutMS", Some("timeoutMs")),
            ("approvers", None),
            ("", None),
            // Two letters too many are more than a third of the shorter name.
            ("abms", None),
        ];
        for (name, meant) in table {
            assert_eq!(nearest(name, names), meant, "{name}");
        }
    }
}
