//! Converts a row of any table to JSON and back. Names of tables and columns come from the schema,
//! never from a file.

use rusqlite::types::{Value as Sql, ValueRef};
use rusqlite::{Connection, Result, Row, Statement};
use serde_json::{Map, Number, Value};
use std::collections::BTreeMap;

pub(super) type Columns = BTreeMap<String, Vec<String>>;

/// Every table with its writable columns.
pub(super) fn tables(connection: &Connection) -> Result<Columns> {
    let mut found = connection.prepare(
        "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c
         WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    )?;
    let mut tables = Columns::new();
    let mut rows = found.query(())?;
    while let Some(row) = rows.next()? {
        tables.entry(row.get(0)?).or_default().push(row.get(1)?);
    }
    Ok(tables)
}

pub(super) fn names(statement: &Statement<'_>) -> Vec<String> {
    statement.column_names().map(str::to_owned).collect()
}

pub(super) fn encode(row: &Row<'_>, names: &[String]) -> Result<Map<String, Value>> {
    let mut encoded = Map::with_capacity(names.len());
    for (place, name) in names.iter().enumerate() {
        let value = match row.get_ref(place)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => number.into(),
            ValueRef::Real(number) => Number::from_f64(number).map_or(Value::Null, Value::Number),
            text @ ValueRef::Text(_) => text.as_str()?.into(),
            ValueRef::Blob(bytes) => {
                let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                serde_json::json!({ "hex": hex })
            }
        };
        encoded.insert(name.clone(), value);
    }
    Ok(encoded)
}

/// `None` for values that [`encode`] never writes.
pub(super) fn decode(value: &Value) -> Option<Sql> {
    Some(match value {
        Value::Null => Sql::Null,
        Value::String(text) => Sql::Text(text.clone()),
        Value::Number(number) => match number.as_i64() {
            Some(number) => Sql::Integer(number),
            None => Sql::Real(number.as_f64()?),
        },
        Value::Object(bytes) => {
            let hex = bytes.get("hex")?.as_str()?;
            if !hex.is_ascii() || !hex.len().is_multiple_of(2) {
                return None;
            }
            let pairs = (0..hex.len()).step_by(2);
            let bytes = pairs.map(|at| u8::from_str_radix(&hex[at..at + 2], 16).ok());
            Sql::Blob(bytes.collect::<Option<_>>()?)
        }
        Value::Bool(_) | Value::Array(_) => return None,
    })
}
