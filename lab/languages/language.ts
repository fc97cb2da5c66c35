import type { Taken } from "../prices/prices.js";

/** The words of a page for the texts that it takes from histories and prices, in its language. */
export interface Language {
  /** A title, a name, a verdict, a unit or the head of a column, in English at its source. */
  say(english: string): string;
  /** The text that stands for a picture. */
  caption(subject: string, fault: string, verdict: string): string;
  /** The paragraph above the table of a price. */
  measured(title: string, about: string, taken: Taken): string;
}

export const english: Language = {
  say: (text) => text,
  caption: (subject, fault, verdict) => `${subject}, ${fault}: ${verdict}`,
  measured(title, about, { takenAt, machine, load }) {
    const taken = `taken ${takenAt.slice(0, 10)} on ${machine}`;
    const medians = `Medians, ${taken}, load ${load.before} to ${load.after}.`;
    return `*Measured: ${title}.* ${about} ${medians}`;
  },
};
