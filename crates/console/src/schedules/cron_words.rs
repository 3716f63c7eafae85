//! A cron expression in words. What it cannot put into words is shown as it was written only.

const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// Times of a day that are listed one by one.
const MAX_TIMES: usize = 6;
/// Letters by which an expression names a day or a month.
const NAME_LETTERS: usize = 3;

/// One field of an expression.
enum Field {
    Any,
    /// Each time this many after the first.
    Every(u32),
    Listed(Vec<Item>),
}

/// The first and the last value; the same for a single one.
type Item = (u32, u32);

/// What the values of a field are called.
struct Values {
    names: &'static [&'static str],
    /// The value of the first name.
    first: u32,
}

const NUMBERS: Values = Values {
    names: &[],
    first: 0,
};
const OF_WEEKDAYS: Values = Values {
    names: &WEEKDAYS,
    first: 0,
};
const OF_MONTHS: Values = Values {
    names: &MONTHS,
    first: 1,
};

pub(super) fn cron_words(expr: &str) -> Option<String> {
    let fields: Vec<&str> = expr.split_whitespace().collect();
    let [minute, hour, day, month, weekday] = fields[..] else {
        return None;
    };
    let (minute, hour) = (NUMBERS.read(minute)?, NUMBERS.read(hour)?);
    let (day, month) = (NUMBERS.read(day)?, OF_MONTHS.read(month)?);
    let weekday = OF_WEEKDAYS.read(weekday)?;
    let is_all_day = matches!(hour, Field::Any);
    let mut parts = vec![times(&minute, &hour)?];
    let days = days(&day, &weekday)?;
    match days.is_empty() {
        false => parts.push(days),
        true if is_all_day => {}
        true => parts.push("every day".to_owned()),
    }
    match &month {
        Field::Any => {}
        Field::Every(_) => return None,
        Field::Listed(months) => parts.push(format!("in {}", OF_MONTHS.show(months)?)),
    }
    let mut words = parts.join(", ");
    words[..1].make_ascii_uppercase();
    Some(words)
}

fn times(minute: &Field, hour: &Field) -> Option<String> {
    if let (Some(minutes), Some(hours)) = (singles(minute), singles(hour))
        && minutes.len() * hours.len() <= MAX_TIMES
    {
        let of_hour = |hour: &u32| {
            let hour = *hour;
            minutes
                .iter()
                .map(move |minute| format!("{hour:02}:{minute:02}"))
        };
        let times: Vec<String> = hours.iter().flat_map(of_hour).collect();
        return Some(format!("at {}", joined(&times)));
    }
    let minutes = match minute {
        Field::Any => "every minute".to_owned(),
        Field::Every(step) if 60 % step == 0 => format!("every {step} minutes"),
        Field::Every(step) => format!("every {step} minutes from the full hour"),
        Field::Listed(minutes) => format!("at minute {}", NUMBERS.show(minutes)?),
    };
    let hours = match (minute, hour) {
        (Field::Listed(_), Field::Any) => " of every hour".to_owned(),
        (_, Field::Any) => String::new(),
        (_, Field::Every(step)) => format!(" of each hour, every {step} hours from midnight"),
        (_, Field::Listed(hours)) => match hours[..] {
            [(from, to)] if from == to => format!(" of hour {from}"),
            _ => format!(" of hours {}", NUMBERS.show(hours)?),
        },
    };
    Some(minutes + &hours)
}

/// The days, in no words for every day. Where both days are restricted, either matches.
fn days(day: &Field, weekday: &Field) -> Option<String> {
    let of_month = |days: &[Item]| Some(format!("on day {} of the month", NUMBERS.show(days)?));
    match (day, weekday) {
        (Field::Any, Field::Any) => Some(String::new()),
        (Field::Any, Field::Listed(days)) => OF_WEEKDAYS.show(days),
        (Field::Listed(days), Field::Any) => of_month(days),
        (Field::Listed(days), Field::Listed(weekdays)) => {
            let (days, weekdays) = (of_month(days)?, OF_WEEKDAYS.show(weekdays)?);
            Some(format!("{days} or {weekdays}"))
        }
        (Field::Every(_), _) | (_, Field::Every(_)) => None,
    }
}

/// The values of a field without ranges.
fn singles(field: &Field) -> Option<Vec<u32>> {
    let Field::Listed(items) = field else {
        return None;
    };
    let single = |(from, to): &Item| (from == to).then_some(*from);
    items.iter().map(single).collect()
}

impl Values {
    fn read(&self, text: &str) -> Option<Field> {
        if text == "*" {
            return Some(Field::Any);
        }
        if let Some(step) = text.strip_prefix("*/") {
            return match step.parse().ok()? {
                0 => None,
                1 => Some(Field::Any),
                step => Some(Field::Every(step)),
            };
        }
        let items = text.split(',').map(|item| {
            let (from, to) = item.split_once('-').unwrap_or((item, item));
            Some((self.value(from)?, self.value(to)?))
        });
        items.collect::<Option<Vec<Item>>>().map(Field::Listed)
    }

    fn value(&self, text: &str) -> Option<u32> {
        if let Ok(number) = text.parse() {
            return Some(number);
        }
        let short = |name: &str| name[..NAME_LETTERS].eq_ignore_ascii_case(text);
        let found = self.names.iter().position(|name| short(name))?;
        Some(u32::try_from(found).ok()? + self.first)
    }

    fn show(&self, items: &[Item]) -> Option<String> {
        let shown: Option<Vec<String>> = items
            .iter()
            .map(|(from, to)| match from == to {
                true => self.name(*from),
                false => Some(format!("{} to {}", self.name(*from)?, self.name(*to)?)),
            })
            .collect();
        Some(joined(&shown?))
    }

    fn name(&self, value: u32) -> Option<String> {
        if self.names.is_empty() {
            return Some(value.to_string());
        }
        // Sunday is 0 and 7.
        let index = match self.first {
            0 => value % 7,
            first => value.checked_sub(first)?,
        };
        let name = self.names.get(usize::try_from(index).ok()?)?;
        Some((*name).to_owned())
    }
}

/// "a", "a and b", "a, b and c".
fn joined(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::cron_words;

    #[test]
    fn expressions_are_put_into_words() {
        for (expr, words) in [
            ("* * * * *", "Every minute"),
            ("*/10 * * * *", "Every 10 minutes"),
            ("*/7 * * * *", "Every 7 minutes from the full hour"),
            ("5 * * * *", "At minute 5 of every hour"),
            ("0 9 * * *", "At 09:00, every day"),
            (
                "30 8,17 * * mon-fri",
                "At 08:30 and 17:30, Monday to Friday",
            ),
            ("0 3 1 * *", "At 03:00, on day 1 of the month"),
            (
                "0 3 1,15 * FRI",
                "At 03:00, on day 1 and 15 of the month or Friday",
            ),
            (
                "0 0 25 12 *",
                "At 00:00, on day 25 of the month, in December",
            ),
            ("0 6 * jun-aug 7", "At 06:00, Sunday, in June to August"),
            ("0 9-17 * * 1", "At minute 0 of hours 9 to 17, Monday"),
            ("*/15 9 * * *", "Every 15 minutes of hour 9, every day"),
            (
                "0 */2 * * *",
                "At minute 0 of each hour, every 2 hours from midnight, every day",
            ),
        ] {
            assert_eq!(cron_words(expr).as_deref(), Some(words), "{expr}");
        }
    }

    #[test]
    fn others_are_left_as_written() {
        for expr in [
            "",
            "0 9 * *",
            "0 9 */2 * *",
            "0/5 * * * *",
            "é * * * *",
            "*/0 * * * *",
        ] {
            assert_eq!(cron_words(expr), None, "{expr}");
        }
    }
}
