/**
 * A prepared statement whose answer is one text, as an object that `pg` submits. A query of `pg`
 * itself asks for the description of the columns each time, and makes a result of rows.
 */

/** The used members of a connection of `pg` 8. */
interface Connection {
  readonly stream: { cork?(): void; uncork?(): void };
  /** By name, the texts of the statements that the server has. */
  readonly parsedStatements: Readonly<Record<string, string>>;
  parse(statement: { readonly text: string; readonly name: string }): void;
  bind(portal: { readonly statement: string; readonly values: readonly unknown[] }): void;
  execute(portal: { readonly portal: string; readonly rows: number }): void;
  sync(): void;
  sendCopyFail(reason: string): void;
}

export class PgStatement {
  readonly name: string;
  readonly text: string;
  readonly #values: readonly unknown[];
  readonly #resolve: (answer: string | null) => void;
  readonly #reject: (error: unknown) => void;
  #answer: string | null = null;

  constructor(
    { name, text, values }: { name: string; text: string; values: readonly unknown[] },
    resolve: (answer: string | null) => void,
    reject: (error: unknown) => void,
  ) {
    this.name = name;
    this.text = text;
    this.#values = values;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  submit(connection: Connection): null {
    const { name, text } = this;
    connection.stream.cork?.();
    try {
      if (connection.parsedStatements[name] !== text) connection.parse({ text, name });
      connection.bind({ statement: name, values: this.#values });
      connection.execute({ portal: "", rows: 0 });
      connection.sync();
    } finally {
      connection.stream.uncork?.();
    }
    return null;
  }

  handleDataRow({ fields: [value] }: { readonly fields: readonly unknown[] }): void {
    if (typeof value === "string") this.#answer = value;
  }

  handleError(error: unknown): void {
    this.#reject(error);
  }

  handleReadyForQuery(): void {
    this.#resolve(this.#answer);
  }

  handleRowDescription(): void {}
  handleCommandComplete(): void {}
  handleEmptyQuery(): void {}
  handlePortalSuspended(): void {}
  handleCopyData(): void {}

  handleCopyInResponse(connection: Connection): void {
    connection.sendCopyFail("There are no data to copy.");
  }
}
