// The built-in module `tandem` (alias `zupa`).

export function createAgent(config) { return config; }
export function defineFlow(flow) { return flow; }
export function defineTool(tool) { return tool; }
export function defineCommand(command) { return command; }

const REPLY = {
  reply: { type: 'string' },
  modality: { enum: ['text', 'voice', null] },
  sessionEnded: { type: 'boolean' },
};

const isSchema = (value) => value !== null && (typeof value === 'object' || typeof value === 'function') && '~standard' in value;

const jsonSchemaOf = (schema) => {
  if (!isSchema(schema)) return schema;
  const converter = schema['~standard'].jsonSchema;
  if (converter && typeof converter.input === 'function') return converter.input({ target: 'draft-2020-12' });
  if (typeof schema.toJSONSchema === 'function') return schema.toJSONSchema();
  return {};
};

const acceptsAbsence = (schema) => {
  const result = schema['~standard'].validate(undefined);
  return !(result instanceof Promise) && !result.issues;
};

const withReplyFields = (schema, required) => ({
  ...schema,
  type: 'object',
  properties: { ...schema.properties, ...REPLY },
  required: ['reply', ...required.filter((name) => name !== 'reply')],
});

const checkReplyFields = (value) => {
  const issues = [];
  if (typeof value.reply !== 'string') issues.push({ message: 'reply must be a string', path: ['reply'] });
  if (![undefined, null, 'text', 'voice'].includes(value.modality)) {
    issues.push({ message: 'modality must be text, voice or null', path: ['modality'] });
  }
  if (!['undefined', 'boolean'].includes(typeof value.sessionEnded)) {
    issues.push({ message: 'sessionEnded must be a boolean', path: ['sessionEnded'] });
  }
  return issues;
};

/** A Standard Schema over the reply fields and what `check` says about the author's part. */
const composed = (jsonSchema, check) => ({
  '~standard': {
    version: 1,
    vendor: 'tandem',
    jsonSchema: { input: () => jsonSchema, output: () => jsonSchema },
    validate: async (value) => {
      if (value === null || typeof value !== 'object' || Array.isArray(value)) {
        return { issues: [{ message: 'must be an object', path: [] }] };
      }
      const part = await check(value);
      const issues = [...checkReplyFields(value), ...(part.issues ?? [])];
      if (issues.length > 0) return { issues };
      const { reply, modality = null, sessionEnded = false } = value;
      return { value: { ...part.value, reply, modality, sessionEnded } };
    },
  },
});

/**
 * Adds `reply`, `modality` and `sessionEnded` to a schema. `shape` is a map of fields (JSON Schemas or
 * Standard Schemas), a JSON Schema of an object, or a Standard Schema of an object.
 */
export function withReply(shape = {}) {
  if (isSchema(shape)) {
    const schema = jsonSchemaOf(shape);
    return composed(withReplyFields(schema, schema.required ?? []), (value) => shape['~standard'].validate(value));
  }
  if (shape.type === 'object') return withReplyFields(shape, shape.required ?? []);
  const names = Object.keys(shape);
  const properties = Object.fromEntries(names.map((name) => [name, jsonSchemaOf(shape[name])]));
  const required = names.filter((name) => !isSchema(shape[name]) || !acceptsAbsence(shape[name]));
  const schema = withReplyFields({ properties }, required);
  if (!names.some((name) => isSchema(shape[name]))) return schema;
  return composed(schema, async (value) => {
    const issues = [];
    const checked = {};
    for (const name of names) {
      if (!isSchema(shape[name])) { checked[name] = value[name]; continue; }
      const result = await shape[name]['~standard'].validate(value[name]);
      if (result.issues) issues.push(...result.issues.map((issue) => ({ ...issue, path: [name, ...(issue.path ?? [])] })));
      else checked[name] = result.value;
    }
    return issues.length > 0 ? { issues } : { value: checked };
  });
}
