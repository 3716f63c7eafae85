//! Writes to channels, under the channel's declaration where there is one.

use crate::graph::channel::{self, AccessSide};
use crate::node::ChannelWrite;
use crate::run::draft::DecisionDraft;
use crate::run::scheduling::NodeOutcome;
use serde_json::Value;
use std::sync::Arc;
use tandem_record::{ErrorInfo, Event, Object, Seq, Size};

impl DecisionDraft<'_> {
    pub(in crate::run) fn channel_write(
        &mut self,
        ix: usize,
        config: &ChannelWrite,
        mut inputs: Object,
        cause: Seq,
    ) -> NodeOutcome {
        let Some(name) = &config.channel else {
            return NodeOutcome::Fail(ErrorInfo::new(
                "validation_error",
                "channelName is required",
            ));
        };
        let value = config.value.clone().or_else(|| inputs.remove("value"));
        let value = value.unwrap_or(Value::Null);
        match self.write_channel(ix, name, value, Some(config), cause) {
            Ok(()) => NodeOutcome::Complete(Object::new()),
            Err(error) => NodeOutcome::Fail(error),
        }
    }

    /// One write, under the channel's declaration where there is one.
    pub(crate) fn write_channel(
        &mut self,
        ix: usize,
        name: &str,
        value: Value,
        config: Option<&ChannelWrite>,
        cause: Seq,
    ) -> Result<(), ErrorInfo> {
        let def = Arc::clone(&self.run.def);
        let node = &def.nodes[ix];
        let declared = def.channels.get(name);
        let (reducer, ttl_ms, max_size, schema_version) = match (declared, config) {
            (Some(channel), _) => {
                let declared = &channel.declared;
                let (id, kind) = (node.id.as_str(), node.type_id.as_str());
                channel::check_access(name, declared, AccessSide::Writers, id, kind)?;
                let reducer = declared.reducer.clone();
                (
                    reducer,
                    declared.ttl_ms,
                    declared.max_size,
                    declared.schema_version,
                )
            }
            (None, Some(config)) => (config.reducer.clone(), config.ttl_ms, config.max_size, 1),
            (None, None) => ("append".to_owned(), None, None, 1),
        };
        let ttl_ms = ttl_ms.filter(|_| channel::has_aging_entries(&reducer));
        let current = self.run.channel_value(name);
        let write = channel::Write {
            reducer: &reducer,
            ttl_ms,
            max_size,
            at: self.now,
        };
        channel::check_write(name, declared, &write, &value, current, self.cx.work)?;
        let grows = matches!(
            &*reducer,
            "append" | "feedback" | "votes" | "message" | "merge"
        );
        let replaced = current.filter(|_| !grows).map(Size::of);
        self.admit_growth(&value, replaced)?;
        self.emit(
            Event::ChannelWritten {
                channel: name.to_owned(),
                value: channel::stored_value(value, &reducer, ttl_ms, self.now),
                reducer,
                ttl_ms,
                max_size,
                schema_version,
                node: Some(node.id.clone()),
                mirrored: config.is_some(),
                untrusted: self.run.passes_on_untrusted(ix, self.cx.work),
            },
            Some(cause),
        );
        self.note_write(name, ix);
        Ok(())
    }
}
