//! Stands for the system that really keeps appointments.

use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Appointments by the idempotency key they were booked with.
#[derive(Debug, Default)]
pub struct Calendar {
    booked: Mutex<BTreeMap<String, String>>,
    /// Questions for a price, for tests.
    asked: Mutex<u32>,
}

impl Calendar {
    pub fn price(&self, service: &str) -> Result<serde_json::Value, String> {
        *self.asked.lock() += 1;
        match service {
            "cleaning" => Ok(serde_json::json!({ "service": service, "eur": 40 })),
            other => Err(format!("there is no service {other:?}")),
        }
    }

    /// Books once for a key, however often it is called with it. Gives the number of the appointment.
    pub fn book(&self, key: &str, service: &str, date: &str) -> usize {
        let mut booked = self.booked.lock();
        booked.insert(key.to_owned(), format!("{service} on {date}"));
        booked.len()
    }

    pub fn booked(&self) -> Vec<String> {
        self.booked.lock().values().cloned().collect()
    }

    pub fn prices_asked(&self) -> u32 {
        *self.asked.lock()
    }
}
