//! For tests: how SQLite executes a statement.

use rusqlite::{Connection, Result};

/// Checks that a statement scans no table and sorts nothing, and that one of its steps searches by
/// these columns.
pub(crate) fn assert_searches(sql: &str, by: &str) {
    let connection = Connection::open_in_memory().unwrap();
    for script in crate::migrations::SCRIPTS {
        connection.execute_batch(script).unwrap();
    }
    let mut plan = connection
        .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
        .unwrap();
    let steps: Result<Vec<String>> = plan.raw_query().mapped(|row| row.get(3)).collect();
    let text = steps.unwrap().join("\n");
    assert!(text.contains(by), "{sql}\n{text}");
    assert!(!text.contains("TEMP B-TREE"), "{sql}\n{text}");
    let scans = |line: &&str| line.contains("SCAN") && !line.contains("VIRTUAL TABLE");
    let scans: Vec<&str> = text.lines().filter(scans).collect();
    assert!(scans.is_empty(), "{sql}\n{text}");
}
