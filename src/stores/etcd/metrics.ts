import { get } from "node:http";

/** The metrics of one member, in the text form of Prometheus: each line without its comment. */
export type Metrics = ReadonlyMap<string, number>;

const LIMIT_MS = 1_000;
const MOST_BYTES = 8 * 1024 * 1024;

/** Asks a member for its metrics, at the URL that it tells to clients. */
export function fetchMetrics(url: string): Promise<Metrics> {
  return new Promise((resolve, reject) => {
    const request = get(new URL("/metrics", url), { agent: false, timeout: LIMIT_MS }, (reply) => {
      let text = "";
      reply.setEncoding("utf8");
      reply.on("data", (part: string) => {
        text += part;
        if (text.length > MOST_BYTES) request.destroy(new Error("the metrics are too long"));
      });
      reply.on("error", reject);
      reply.on("end", () => {
        if (reply.statusCode === 200) resolve(readMetrics(text));
        else reject(new Error(`the metrics have the HTTP status ${reply.statusCode}`));
      });
    });
    request.on("timeout", () => request.destroy(new Error(`no answer within ${LIMIT_MS} ms`)));
    request.on("error", reject);
  });
}

/** By the name of each metric with its labels. */
export function readMetrics(text: string): Metrics {
  const metrics = new Map<string, number>();
  for (const line of text.split("\n")) {
    const [, name, value] = /^([a-z_]\w*(?:\{[^}]*\})?) (\S+)$/i.exec(line) ?? [];
    if (name !== undefined) metrics.set(name, Number(value));
  }
  return metrics;
}

/** The least bound of a histogram below which so large a part of all values lies; NaN without. */
export function quantile(metrics: Metrics, histogram: string, part: number): number {
  const total = metrics.get(`${histogram}_count`) ?? 0;
  if (total === 0) return Number.NaN;
  for (const [name, count] of metrics) {
    const [, bound] = name.startsWith(`${histogram}_bucket`)
      ? (/le="([^"]+)"/.exec(name) ?? [])
      : [];
    if (bound !== undefined && count >= total * part) {
      return bound === "+Inf" ? Number.POSITIVE_INFINITY : Number(bound);
    }
  }
  return Number.POSITIVE_INFINITY;
}
