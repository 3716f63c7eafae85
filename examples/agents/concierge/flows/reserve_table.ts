import { defineFlow } from 'tandem';

export const reserve_table = defineFlow({
  description: 'Reserves a table in the restaurant of the hotel',
  inputSchema: { type: 'object', properties: { people: { type: 'integer' }, time: { type: 'string' } } },
  asTool: true,
  run: async function* (ctx) {
    let people = ctx.input.people;
    while (!(people > 0)) {
      const reply = yield* ctx.ask('people', 'For how many people is the table?');
      people = Number.parseInt(/\d+/.exec(reply)?.[0] ?? '');
    }
    const time = ctx.input.time ?? (yield* ctx.ask('time', 'At what time? The kitchen is open from 18 to 22:30.'));
    const confirmed = yield* ctx.confirm({ question: `A table for ${people} at ${time}. Shall I reserve it?` });
    if (!confirmed) {
      yield* ctx.say('As you wish. I have reserved nothing.');
      return { reason: 'user_declined' };
    }
    const { table } = yield* ctx.tool('write_reservation', { people, time });
    yield* ctx.say(`Table ${table} is yours at ${time}. Enjoy your evening!`);
  },
});
