/**
 * The JSON text of a meta. All acquisitions of one lock share one frozen meta, whose text is made
 * once.
 */
export class MetaText {
  #meta: object | undefined;
  #text = "";

  of(meta: object): string {
    if (meta !== this.#meta) {
      this.#meta = meta;
      this.#text = JSON.stringify(meta);
    }
    return this.#text;
  }
}
