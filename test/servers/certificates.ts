import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** A certificate authority for tests. Its files are in a temporary folder. */
export class Authority implements AsyncDisposable {
  readonly ca: string;
  readonly #dir: string;

  private constructor(dir: string) {
    this.#dir = dir;
    this.ca = join(dir, "ca.pem");
  }

  static async make(): Promise<Authority> {
    const authority = new Authority(await mkdtemp(join(tmpdir(), "holdfast-certificates-")));
    await authority.#openssl(
      ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
      ...["-days", "2", "-subj", "/CN=holdfast test authority"],
      ...["-keyout", "ca-key.pem", "-out", "ca.pem"],
    );
    return authority;
  }

  /** A certificate for the given names, valid for servers and clients. */
  async sign(
    name: string,
    { names = "IP:127.0.0.1,DNS:localhost", days = 2 }: { names?: string; days?: number } = {},
  ): Promise<{ readonly cert: string; readonly key: string }> {
    const [cert, key] = [join(this.#dir, `${name}.pem`), join(this.#dir, `${name}-key.pem`)];
    await writeFile(
      join(this.#dir, `${name}.ext`),
      `subjectAltName=${names}\nextendedKeyUsage=serverAuth,clientAuth\n`,
    );
    await this.#openssl(
      ...["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
      ...["-subj", `/CN=${name}`, "-keyout", key, "-out", `${name}.csr`],
    );
    await this.#openssl(
      ...["x509", "-req", "-days", `${days}`, "-in", `${name}.csr`, "-extfile", `${name}.ext`],
      ...["-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAcreateserial", "-out", cert],
    );
    return { cert, key };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#dir, { recursive: true, force: true });
  }

  async #openssl(...args: string[]): Promise<void> {
    await run("openssl", args, { cwd: this.#dir });
  }
}
