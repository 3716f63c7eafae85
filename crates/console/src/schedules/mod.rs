//! Schedules: the list of them, one with its occurrences, and one occurrence with its recipients.

mod cron_words;
mod list;
mod occurrence;
mod page;
mod run_page;

pub use list::{
    ScheduleListRow, ScheduleListView, ScheduleSelection, schedule_list_page, schedule_rows,
};
pub use occurrence::{LocalMoment, ScheduleRunListRow, ScheduleTriggerView, ScheduledStartView};
pub use page::{SchedulePageView, schedule_link, schedule_page, schedule_parts};
pub use run_page::{RecipientListRow, ScheduleRunPageView, schedule_run_page};
