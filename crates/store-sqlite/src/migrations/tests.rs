use super::*;

fn run(scripts: &[&str]) -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    for script in scripts {
        connection.execute_batch(script).unwrap();
    }
    connection
}

fn texts(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map((), |row| row.get(0)).unwrap();
    rows.collect::<Result<_>>().unwrap()
}

/// Statements in the order in which they were run.
fn schema(connection: &Connection) -> String {
    let statements = texts(
        connection,
        "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
         ORDER BY rowid",
    );
    statements.join(";\n\n")
}

fn rows(connection: &Connection) -> Vec<(String, i64)> {
    let tables = texts(
        connection,
        "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name",
    );
    let count = |table: String| {
        let sql = format!("SELECT count(*) FROM \"{table}\"");
        let count = connection.query_row(&sql, (), |row| row.get(0)).unwrap();
        (table, count)
    };
    tables.into_iter().map(count).collect()
}

#[test]
fn new_file_equals_the_result_of_all_scripts() {
    let (migrated, new) = (run(&SCRIPTS), run(&[NEW_FILE]));
    assert_eq!(schema(&new), schema(&migrated));
    assert_eq!(rows(&new), rows(&migrated));
    let heartbeat = |of: &Connection| {
        of.query_row("SELECT * FROM heartbeat", (), |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
        })
        .unwrap()
    };
    assert_eq!(heartbeat(&new), heartbeat(&migrated));
}
