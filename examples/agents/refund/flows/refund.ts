import { defineFlow } from 'tandem';
import { readAmount, readOrder } from '../wording.ts';

/** Refunds up to this amount need nobody. */
const FREE_UP_TO = 100;
const WEEK = 7 * 86_400;

export const refund = defineFlow({
  description: 'Pays money back for an order',
  run: async function* (ctx) {
    let order = ctx.input?.order;
    while (!order) {
      order = readOrder(yield* ctx.ask('order', 'Which order is it about? Its number looks like A-1001.'));
    }
    let amount = ctx.input?.amount;
    while (!amount) {
      amount = readAmount(yield* ctx.ask('amount', `How much of order ${order} shall we pay back, in euro?`));
    }

    if (amount > FREE_UP_TO) {
      yield* ctx.escalate({
        mode: 'async_resolution',
        reason: `Refund of ${amount} euro for order ${order}`,
        priority: amount > 500 ? 'high' : 'normal',
        metadata: { order, amount, customer: ctx.user.displayName },
        timeoutSeconds: WEEK,
      });
      yield* ctx.say(`A colleague has to approve a refund of ${amount} euro. I write here as soon as it is decided.`);
      const decision = yield* ctx.wait({ waitFor: 'admin_resolution' });
      if (!decision.approved) {
        const why = decision.message ?? (decision.timedOut ? 'Nobody decided within a week; please ask again.' : 'It was not approved.');
        yield* ctx.say(`I am sorry, there is no refund for order ${order}. ${why}`);
        return { reason: 'not_approved' };
      }
      // Whoever approves may change the amount.
      amount = decision.actionData?.amount ?? amount;
    }

    yield* ctx.tool('process_refund', { order, amount });
    yield* ctx.say(`Done: ${amount} euro for order ${order} are on the way to your account.`);
    return { reason: 'refunded' };
  },
});
