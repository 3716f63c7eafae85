//! Database files as earlier releases left them.

use std::path::Path;

/// A file of an earlier schema version, with these rows in it.
pub(crate) fn of_version(version: usize, path: &Path, rows: &str) {
    const SCRIPTS: [&str; 14] = [
        include_str!("../../src/schema/1.sql"),
        include_str!("../../src/schema/2.sql"),
        include_str!("../../src/schema/3.sql"),
        include_str!("../../src/schema/4.sql"),
        include_str!("../../src/schema/5.sql"),
        include_str!("../../src/schema/6.sql"),
        include_str!("../../src/schema/7.sql"),
        include_str!("../../src/schema/8.sql"),
        include_str!("../../src/schema/9.sql"),
        include_str!("../../src/schema/10.sql"),
        include_str!("../../src/schema/11.sql"),
        include_str!("../../src/schema/12.sql"),
        include_str!("../../src/schema/13.sql"),
        include_str!("../../src/schema/14.sql"),
    ];
    let file = rusqlite::Connection::open(path).unwrap();
    for script in &SCRIPTS[..version] {
        file.execute_batch(script).unwrap();
    }
    file.pragma_update(None, "application_id", 0x544E_444D)
        .unwrap();
    file.pragma_update(None, "user_version", version as i64)
        .unwrap();
    file.execute_batch(rows).unwrap();
}
