use tandem_record::Event;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Updates,
    Values,
    Messages,
    Debug,
}

pub const SUPPORTED: [&str; 4] = ["updates", "values", "messages", "debug"];

#[derive(Debug)]
pub struct UnsupportedMode(pub String);

#[derive(Clone, Debug)]
pub struct Modes(Vec<Mode>);

impl Modes {
    pub fn parse(text: &str) -> Result<Self, UnsupportedMode> {
        let modes = text
            .split(',')
            .map(|name| match name.trim() {
                "updates" => Ok(Mode::Updates),
                "values" => Ok(Mode::Values),
                "messages" => Ok(Mode::Messages),
                "debug" => Ok(Mode::Debug),
                other => Err(UnsupportedMode(other.to_owned())),
            })
            .collect::<Result<Vec<_>, _>>()?;
        if modes.len() > 1 && modes.contains(&Mode::Values) {
            return Err(UnsupportedMode(text.to_owned()));
        }
        Ok(Self(modes))
    }

    pub fn is_values(&self) -> bool {
        self.0 == [Mode::Values]
    }

    pub fn shows(&self, event: &Event) -> bool {
        self.0.iter().any(|mode| match mode {
            Mode::Debug => true,
            Mode::Updates => !matches!(
                event,
                Event::NodeStarted { .. } | Event::VariableChanged { .. }
            ),
            Mode::Values | Mode::Messages => false,
        })
    }

    pub fn values_trigger(event: &Event) -> bool {
        !matches!(event, Event::VariableChanged { .. })
    }
}
