// Reads the exports of an author's modules while an agent is loaded: which flows a file holds, and the
// configuration with the tools and commands of their folders.
(function (driver) {
  'use strict';
  const isRecord = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);

  const describe = (value) => {
    const run = isRecord(value) ? value.run : value;
    if (typeof run !== 'function') return undefined;
    const registration = isRecord(value) ? value : {};
    const { description, inputSchema, asTool } = registration;
    return { kind: driver.kindOf(run), registered: isRecord(value), description, inputSchema, asTool, run };
  };

  /** Flow candidates of a module by export name. One function under several names is listed once. */
  const flowsOf = (namespace, prefix) => {
    const found = {};
    const seen = new Set();
    // The default export and named exports come before bindings that the loader exported.
    const names = Object.keys(namespace);
    const order = [
      ...names.filter((name) => name === 'default'),
      ...names.filter((name) => name !== 'default' && !name.startsWith(prefix)),
      ...names.filter((name) => name.startsWith(prefix)),
    ];
    for (const name of order) {
      const description = describe(namespace[name]);
      if (description === undefined || seen.has(description.run)) continue;
      seen.add(description.run);
      delete description.run;
      found[name] = description;
    }
    return found;
  };

  const configuredFlows = (config) => {
    const found = {};
    for (const [id, value] of Object.entries(config.flows ?? {})) {
      const { run, ...description } = describe(value) ?? { kind: 'other', run: undefined };
      found[id] = description;
    }
    return found;
  };

  const named = (namespace, stem) =>
    Object.keys(namespace).map((name) => [name === 'default' ? stem : name, namespace[name]])
      .filter(([, value]) => isRecord(value));

  /** The configuration of `agent`, with the tools and commands of their folders added. */
  const assemble = (agent, tools, commands) => {
    const config = agent.default;
    if (!isRecord(config)) throw new TypeError('the agent file has no default export; write `export default createAgent({ … })`');
    const merged = { ...config };
    if (tools.length > 0) {
      const added = tools.flatMap(([stem, namespace]) => named(namespace, stem).map(([name, tool]) => ({ name, ...tool })));
      merged.tools = [...(config.tools ?? []), ...added];
    }
    if (commands.length > 0) {
      merged.commands = { ...config.commands };
      for (const [stem, namespace] of commands) {
        for (const [name, command] of named(namespace, stem)) {
          if (name in (config.commands ?? {})) throw new TypeError(`the command ${name} is defined twice`);
          merged.commands[name] = command;
        }
      }
    }
    return merged;
  };

  return { __proto__: null, flowsOf, configuredFlows, assemble };
})
