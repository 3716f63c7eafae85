//! Exports as earlier releases wrote them.

/// The same export as version 8 would write it.
pub(crate) fn of_version_8(export: &str) -> String {
    let lines = export.lines().map(|line| {
        let line = line.replacen("\"schema\":19", "\"schema\":8", 1);
        if line.starts_with("{\"interrupts\"") {
            let line = line.replacen("\"stream\":\"run:", "\"run_id\":\"", 1);
            return line.replacen("\"step\":", "\"node\":", 1);
        }
        match line.starts_with("{\"timers\"") {
            true => line.replacen(",\"tenant\":\"t1\"", "", 1),
            false => line,
        }
    });
    let older: String = lines.map(|line| line + "\n").collect();
    for changed in ["\"schema\":8", "\"run_id\":\"r1\"", "\"node\":\"gate\""] {
        assert!(older.contains(changed), "{changed}");
    }
    older
}
