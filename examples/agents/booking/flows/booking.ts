import { defineFlow } from 'tandem';

export const booking = defineFlow({
  description: 'Books an appointment',
  run: async function* (ctx) {
    const service = yield { type: 'ask', key: 'service', text: 'What is it for: a check-up, a cleaning, or something that hurts?' };
    const date = yield { type: 'ask', key: 'date', text: 'When do you want the appointment?' };

    const confirmed = yield {
      type: 'interrupt.confirm',
      question: `Shall I book ${service} for ${date}? Reply YES or NO`,
      timeoutSeconds: 300,
      positiveKeywords: ['yes', 'y', 'yep', 'sure', 'ok', 'okay', 'please', 'confirm'],
      negativeKeywords: ['no', 'n', 'nope', 'cancel', 'stop'],
    };

    if (!confirmed) {
      yield { type: 'say', text: 'Nothing is booked. Write to me whenever you want to try another day.' };
      yield { type: 'end', reason: 'user_declined' };
      return;
    }

    const appointment = yield { type: 'tool', name: 'create_appointment', args: { service, date } };
    yield { type: 'say', text: `Booked. Your appointment has the number ${appointment.number}; /appointments lists all of them.` };
  },
});
