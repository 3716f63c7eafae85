// What a text says about a refund. Used by the agent and by its flow.

/** An order number such as A-1001. */
export function readOrder(text: string): string | undefined {
  return /\b[a-z]-?\d{3,}\b/i.exec(text)?.[0].toUpperCase();
}

/** An amount such as 49.90, 49,90 or 49 euro; not the digits of an order number. */
export function readAmount(text: string): number | undefined {
  const rest = text.replace(/\b[a-z]-?\d{3,}\b/gi, ' ');
  const found = /\d+(?:[.,]\d{1,2})?/.exec(rest)?.[0];
  const amount = Number(found?.replace(',', '.'));
  return amount > 0 ? amount : undefined;
}
