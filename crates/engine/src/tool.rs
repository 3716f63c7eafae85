//! The tool servers an operator configured, as far as decisions depend on them. How they are
//! reached is not known here.

use crate::definition::Definition;
use crate::node::Kind;
use std::collections::BTreeSet;

/// Node types that need a tool server.
pub const NODE_TYPES: [&str; 1] = ["core.mcp.toolCall"];

/// The default servers, in this order, when a node names none and there are several.
const DEFAULT_SERVERS: [&str; 2] = ["default", "conformance"];

/// The tool servers of a host, by the operator's names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolServers(BTreeSet<String>);

impl ToolServers {
    /// Whether no node can call a tool on this host.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The server a node calls: the one it names, or the host's own.
    pub fn choose(&self, named: Option<&str>) -> Option<&str> {
        let known = |id: &str| self.0.get(id).map(String::as_str);
        match named {
            Some(id) => known(id),
            None if self.0.len() == 1 => self.0.first().map(String::as_str),
            None => DEFAULT_SERVERS.into_iter().find_map(known),
        }
    }

    /// Whether every node of a document that calls a tool has a server to call.
    pub fn can_serve(&self, definition: &Definition) -> bool {
        let mut nodes = definition.nodes.iter();
        nodes.all(|node| match &node.kind {
            Kind::Tool(config) => config.is_served(self),
            _ => true,
        })
    }
}

impl FromIterator<String> for ToolServers {
    fn from_iter<T: IntoIterator<Item = String>>(servers: T) -> Self {
        Self(servers.into_iter().collect())
    }
}
